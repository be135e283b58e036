// The choices that measurements made.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A JSON file to be committed: sorted, one line for each number, so that files of two branches can be merged.
#pragma once

#include "compiler/backends/KernelInfo.h"
#include "support/Status.h"

#include <optional>

namespace ortc::tuning {

/// What was measured of a kernel.
struct TunedKernel {
  std::optional<backends::KernelChoice> choice; ///< nothing: none is faster than what the cost table has
  int64_t usualNanoseconds = 0,
          tunedNanoseconds = 0; ///< of a call on one core: the table's choice, and this one
};

/// Measurements by place (backends::Target::describe) and by key (KernelBlocking). No other target's choices are taken.
class TuneCache {
public:
  using Kernels = std::map<std::string, TunedKernel>;

  /// Takes over what the file has besides what is known already. A file that is not there is empty where that
  /// `mayBeMissing`. Refuses what is no such file, or has another version.
  Status read(const std::string &path, bool mayBeMissing);
  std::string write() const;

  const Kernels &at(const std::string &place) const;
  void set(const std::string &place, const std::string &key, TunedKernel kernel);
  /// The choices of a place, for messages from the file that was read.
  backends::KernelChoices choices(const std::string &place) const;

private:
  std::string source;
  std::map<std::string, Kernels> places;
};

} // namespace ortc::tuning
