// How the instructions of a kernel are counted: their classes, and its loops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace ortc::emulator {

struct Kernel;

enum class AccessKind : uint8_t { None, Load, Store, Atomic, Copy, Matrix };

struct CountPlan {
  /// A statement of PTX may have become several instructions; it counts at the first one.
  struct Place {
    bool isFirst = false;
    AccessKind access = AccessKind::None;
  };
  /// A loop that has no other one in it: the statement where it begins, and all of them.
  struct Loop {
    uint32_t head;
    std::set<uint32_t> statements;
  };
  std::vector<Place> places;
  std::vector<std::string> classes;
  std::vector<uint32_t> classOf; ///< of each statement
  std::vector<Loop> loops;
};

std::shared_ptr<const CountPlan> planCounts(const Kernel &kernel);

/// The class of an instruction as PTX has it, such as "f32.fma" or "load.global.128".
std::string classOfText(const std::string &text);

} // namespace ortc::emulator
