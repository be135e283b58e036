// Flags of the form NAME[:key=value,...].
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/Status.h"

namespace ortc {

struct Spec {
  std::string name;
  std::map<std::string, std::string> values; ///< by key
};

/// Takes `text` apart. Refuses keys without a value, and keys that are there twice; `what` begins messages.
Status parseSpec(const std::string &text, const std::string &what, Spec &spec);
/// Refuses keys that are not among `keys`.
Status checkKeys(const Spec &spec, const std::string &what, const std::vector<std::string> &keys);
/// A finite number, or a whole one, from `least` to `most`; `value` stays where the key is not given.
Status readNumber(const Spec &spec, const std::string &what, const std::string &key, double least,
                  double most, double &value);
Status readWhole(const Spec &spec, const std::string &what, const std::string &key, int64_t least,
                 int64_t most, int64_t &value);

/// "there are a, b and c", and which of them is meant where `name` is nearly one.
std::string describeNames(const std::string &name, const std::vector<std::string> &names);

} // namespace ortc
