// Memory plans for people.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both `ortc plan` and `ortc inspect` print what stands in JSON, the latter from the manifest of an artifact.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ortc::report {

/// "3.1 %".
std::string formatShare(double share);

/// By how much `value` is above `bound`, of the latter, as a share.
std::string formatGap(uint64_t value, uint64_t bound);

/// The peak with its largest tensors, the certificates, and the curve of budgets: lines that each end with a newline.
/// `memory` is `entries[].memory` of a manifest. What is missing is left out; nothing else is taken for granted either.
std::string describePlan(const nlohmann::ordered_json &memory);

/// One line: what the code of an entry takes of the stack, by target; empty when the manifest does not say.
std::string describeStack(const nlohmann::ordered_json &manifest, const std::string &entry);

/// The screen of `ortc plan`, from a plan report (MemoryReport.h): `describePlan` of the first entry, or of every one.
std::string describePlanReport(const nlohmann::ordered_json &report, bool everyEntry);

} // namespace ortc::report
