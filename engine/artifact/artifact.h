// An opened artifact: the runtime's program, its entries in words, and the loss from its manifest.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <ortc/ortc.h>
#include <string_view>

#include "engine/artifact/adapters.h"
#include "engine/artifact/device.h"
#include "engine/artifact/kernel_table.h"
#include "engine/artifact/loss_info.h"
#include "engine/artifact/release.h"
#include "engine/data/batches.h"
#include "support/Schedule.h"

namespace ortc::engine {

/// An output of an entry.
struct OutputSpec {
  std::string name;
  std::string graphName; ///< differs where a tensor or an input has the same name: that of "output:x" is "x"
  DataType type = DataType::None;
  Shape shape;
  std::optional<bool> isBatch; ///< as of an input
  size_t batchAxis = 0;        ///< where the samples are, if not in front
};

/// One entry of one binding, for the code that was chosen on this machine.
struct Entry {
  uint32_t role = 0, binding = 0; ///< enum ortc_entry_role, index
  std::string bindingName;
  bool hasLoss = false;
  DataType lossType = DataType::None; ///< None without a loss
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
};

/// A program of the runtime, and what its manifest says: entries, losses, adapters. It outlives its sessions.
class Artifact {
public:
  /// `path` is the folder with `model.ortc` in it, or that file. Sessions are on the device, which must live as long.
  static Status open(const std::string &path, Artifact &artifact, const Device &device);
  /// For this processor; where the artifact has code for other devices alone, for its tensors.
  static Status open(const std::string &path, Artifact &artifact);
  /// Over a program that somebody else has opened from the file `path`, and keeps open.
  static Status adopt(ortc_program *program, const std::string &path, bool isOnDevice, Artifact &artifact);

  ortc_program *getProgram() const { return program.get(); }
  const std::string &getPath() const { return path; } ///< of model.ortc
  const ortc_program_info &getInfo() const { return info; }
  std::string_view getManifest() const { return manifest; } ///< the text, which the program keeps
  bool isOnDevice() const { return isDevice; }              ///< and not on this processor
  /// Never empty: the loss, or those whose sum is trained.
  const std::vector<LossInfo> &getLosses() const { return losses; }
  const std::vector<Adapter> &getAdapters() const { return adapters; }
  /// Of the learning rate, which the artifact computes by itself (--schedule of ortc train), where it does.
  const std::optional<Schedule> &getSchedule() const { return schedule; }
  /// Outputs of a training step that are numbers about it (--step-outputs of ortc train).
  const std::vector<std::string> &getStepOutputs() const { return stepOutputs; }
  /// Refuses an artifact that was compiled without weights, where no file brings them: it would compute with zeros.
  Status checkWeights() const;
  /// Refuses an artifact whose parameters lie in memory of a program that binds them (--bind of ortc train): a command
  /// has none. So it does for entries that give gradients, where these are bound.
  Status checkBound(bool givesGradients = false) const;
  /// One entry for each number that a trace hook may get: names alone where the manifest does not tell more.
  KernelTable readKernels() const;
  const std::vector<Entry> &getEntries() const { return entries; }

  /// The first entry of a role, in the binding of that name ("": in any). Refuses with what would make it
  /// exist.
  Status findEntry(uint32_t role, const std::string &binding, const Entry *&entry) const;
  /// The entry of a role in a binding; nullptr if there is none.
  const Entry *findEntry(uint32_t role, uint32_t binding) const;
  /// The same in the binding of `beside`, or else in any that has the role.
  const Entry *findEntryBeside(uint32_t role, const Entry &beside) const;

private:
  static Status openOn(const std::string &path, Artifact &artifact, const Device &device, bool mayStore);
  Status read();
  using Close = Release<ortc_program_close>;
  std::string path;
  std::unique_ptr<ortc_program, Close> program;
  ortc_program_info info{};
  std::string_view manifest; ///< a section of the program
  bool isDevice = false;
  std::vector<LossInfo> losses;
  std::vector<Adapter> adapters;
  std::optional<Schedule> schedule;
  std::vector<std::string> stepOutputs;
  bool hasWeights = true;
  std::string bound; ///< as --bind had it; empty: nothing is
  std::vector<Entry> entries;
};

} // namespace ortc::engine
