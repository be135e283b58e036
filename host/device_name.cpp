// The values of `--device`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/device_name.h"

#include <charconv>
#include <string_view>

namespace ortc::host {

Status parseDevice(const std::string &name, bool &isCuda, uint32_t &ordinal) {
  constexpr std::string_view kPrefix = "cuda:";
  ordinal = 0;
  isCuda = name != "cpu";
  bool isGood = !isCuda || name == "cuda";
  if (name.starts_with(kPrefix)) {
    const char *end = name.data() + name.size();
    auto [at, status] = std::from_chars(name.data() + kPrefix.size(), end, ordinal);
    isGood = status == std::errc() && at == end;
  }
  return isGood ? Status() : Status::refusal("'" + name + "' is none of cpu, cuda and cuda:N");
}

} // namespace ortc::host
