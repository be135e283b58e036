// How much stack compiled code takes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace llvm {
class MachineFunctionPass;
}

namespace ortc::cpu {

class Architecture;

/// One function: what it takes itself, and whom it calls.
struct StackFrame {
  /// From the stack pointer before the call down, return address included; with the alignment of the caller's stack
  /// that takes most. Absent where it depends on values.
  std::optional<uint64_t> bytes;
  std::set<std::string> calls;
  bool callsPointers = false;
};

/// By name of the function.
using StackFrames = std::map<std::string, StackFrame>;

/// Where calls through pointers lead, by name of the function that makes them.
using PointerCalls = std::map<std::string, std::set<std::string>>;

/// A pass for the end of the code generator's pipeline that notes the frame of every function. Frames whose alignment
/// is above the stack's are absent where `architecture` does not understand them.
llvm::MachineFunctionPass *createStackFramePass(StackFrames &frames, const Architecture &architecture);

/// The most that a call of `function` takes, with all that it calls. Absent where that is not known: recursion, frames
/// of varying size, calls through pointers that `pointers` does not have, functions outside `frames`. What a pointer of
/// the host leads to is not counted.
std::optional<uint64_t> findStackUse(const StackFrames &frames, const PointerCalls &pointers,
                                     const std::string &function);

} // namespace ortc::cpu
