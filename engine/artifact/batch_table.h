// Where inputs and outputs of an artifact have the batch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace ortc::engine {

/// What a manifest says of the dimensions of inputs and outputs.
class BatchTable {
public:
  /// Takes what is there: a manifest without it (of an older compiler, or of a model that declares none) has
  /// nothing to say.
  static BatchTable parse(const std::string &manifest);
  /// Whether rows of the value are samples; nullopt where that is not known.
  std::optional<bool> find(const std::string &binding, const std::string &name, bool isInput) const;
  /// Where the samples of an output are along another dimension than the first: which one; else 0.
  size_t findAxis(const std::string &binding, const std::string &name) const;

private:
  using Key = std::pair<std::string, std::string>; ///< binding and name
  std::map<Key, bool> inputs, outputs;
  std::map<Key, size_t> axes;
};

} // namespace ortc::engine
