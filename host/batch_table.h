// Which inputs and outputs of an artifact have the batch as their leading dimension.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace ortc::host {

/// What a manifest says of the leading dimensions of inputs and outputs.
class BatchTable {
public:
  /// Takes what is there: a manifest without it (of an older compiler, or of a model that declares none) has
  /// nothing to say.
  static BatchTable parse(const std::string &manifest);
  /// Whether rows of the value are samples; nullopt where that is not known.
  std::optional<bool> find(const std::string &binding, const std::string &name, bool isInput) const;

private:
  using Key = std::pair<std::string, std::string>; ///< binding and name
  std::map<Key, bool> inputs, outputs;
};

} // namespace ortc::host
