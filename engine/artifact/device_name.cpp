// The values of `--device`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/artifact/device_name.h"

#include <charconv>
#include <string_view>

namespace ortc::engine {

Status parseDevice(const std::string &name, DeviceKind &kind, uint32_t &ordinal) {
  std::string_view rest = name;
  ordinal = 0;
  kind = rest.starts_with("cuda")  ? DeviceKind::Cuda
         : rest.starts_with("hip") ? DeviceKind::Hip
                                   : DeviceKind::Cpu;
  rest.remove_prefix(kind == DeviceKind::Cuda ? 4 : kind == DeviceKind::Hip ? 3 : 0);
  bool isGood = kind == DeviceKind::Cpu ? rest == "cpu" : rest.empty();
  if (kind != DeviceKind::Cpu && rest.starts_with(':')) {
    const char *end = rest.data() + rest.size();
    auto [at, status] = std::from_chars(rest.data() + 1, end, ordinal);
    isGood = status == std::errc() && at == end;
  }
  return isGood ? Status() : Status::refusal("'" + name + "' is none of cpu, cuda, cuda:N, hip and hip:N");
}

} // namespace ortc::engine
