// Memory plans as HTML without scripts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ortc::report {

/// Every entry of a plan report with its figures, its arena as inline SVG, and the tensors of its peak. What
/// comes from a model is escaped. Needs neither scripts nor styles, which archives of build results often
/// block.
std::string drawPlans(const nlohmann::ordered_json &report);

/// "Persistent 1.2 KiB, ...".
std::string describeShared(const nlohmann::ordered_json &report);

} // namespace ortc::report
