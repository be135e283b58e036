// The description of an artifact for tools.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/artifact/Artifact.h"
#include "compiler/backends/Backend.h"
#include "compiler/frontend/FakeQuantizers.h"
#include "compiler/frontend/LoraAdapters.h"
#include "compiler/legalize/Legalize.h"
#include "compiler/options/CompileOptions.h"
#include "compiler/report/BatchFacts.h"
#include "compiler/report/KernelFacts.h"
#include "compiler/report/MemoryPlan.h"

namespace ortc::report {

struct EntryFacts {
  std::string name; ///< as the artifact has it
  int64_t steps = 0, flops = 0, bytesRead = 0, bytesWritten = 0;
  std::map<size_t, int64_t> calls; ///< of a kernel, by its number in FamilyFacts::kernels
  MemoryPlan memory;
};

/// The program as one family of targets runs it.
struct FamilyFacts {
  std::string name; ///< empty where there is only one
  std::vector<EntryFacts> entries;
  std::vector<KernelFacts> kernels;                ///< in the order of the artifact's kernel names
  std::vector<const backends::TargetCode *> codes; ///< for each target; not owned
};

/// What one loss is computed from.
struct LossFacts {
  std::string text;           ///< of the flag, with the output that feeds it
  std::string output;         ///< graph output that feeds it, the first of several
  std::vector<int64_t> shape; ///< of it
  bool labelIsIndices = false;
  std::vector<double> classWeight; ///< compiled in; empty: none
  std::vector<std::string> inputs; ///< that the loss reads beside the label
};

/// Facts about a compilation that the tables do not hold.
struct CompileFacts {
  std::string modelName, modelFile, producer;
  int64_t irVersion = 0, opset = 0, nodes = 0;
  std::vector<LossFacts> losses; ///< as the options have them
  BatchFacts batch;
  int64_t floatValues = 0;   ///< of the floating-point initializers of the file
  int64_t teacherValues = 0; ///< of those of a teacher
  std::vector<legalize::InitializerReport> initializers;
  std::map<std::string, int64_t>
      trainedInPart; ///< parameters with frozen channels: elements that are trained
  std::vector<frontend::LoraAdapter> adapters;
  std::vector<frontend::FakeQuantizer> quantizers;
  std::vector<std::string> detached;                  ///< values that no gradient goes back through
  std::map<std::string, int64_t> paddingRows;         ///< of lookups
  std::map<std::string, std::string> straightThrough; ///< values, and those that their gradients go to
  std::vector<std::string> wideMasks;                 ///< of legalisation
  std::vector<std::string> warnings;
  std::vector<std::string> tuned;    ///< what --tune found, by target
  std::vector<FamilyFacts> families; ///< of those whose program is placed
};

/// The axis of the loss' output that has the classes; nullopt where the loss knows no classes.
std::optional<int64_t> findClassAxis(const LossSpec &loss, const LossFacts &facts);

/// Adds "caller" and "worker", as far as they are known.
void addStack(nlohmann::ordered_json &item, const backends::StackUse &use);

/// docs/manifest.md describes the layout.
std::string makeManifest(const CompileOptions &options, const CompileFacts &facts,
                         const artifact::Artifact &artifact);

/// The screen that `ortc train` ends with.
std::string makeSummary(const CompileOptions &options, const CompileFacts &facts,
                        const artifact::Artifact &artifact, double seconds);

} // namespace ortc::report
