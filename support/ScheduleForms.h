// The kinds of learning-rate schedules, as they are written.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

namespace ortc {

/// A kind of schedule: its name and its keys.
struct ScheduleForm {
  std::string name;
  std::vector<std::string> keys;
};

/// All there are; the order is that of messages.
std::vector<ScheduleForm> listScheduleForms();

} // namespace ortc
