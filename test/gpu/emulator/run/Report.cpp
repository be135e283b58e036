// One line about what a launch did wrong: the kernel, the thread, the instruction, the memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdarg>
#include <cstdio>

#include "test/gpu/emulator/run/Block.h"
#include "test/gpu/emulator/run/Warp.h"

namespace ortc::emulator {
namespace {

const char *nameOf(Space space) {
  return space == Space::Shared  ? "shared"
         : space == Space::Local ? "local"
         : space == Space::Param ? "parameter"
                                 : "global";
}

const char *nameOf(Touch touch) {
  return touch == Touch::Read ? "read" : touch == Touch::Atomic ? "atomic access" : "write";
}

std::string format(const char *pattern, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

/// Which of the bytes lacks the state; `bytes`: none.
uint32_t firstWithout(const uint8_t *state, uint32_t bytes, uint8_t bit) {
  uint32_t k = 0;
  while (k < bytes && (state[k] & bit))
    ++k;
  return k;
}

std::string whatOfState(const uint8_t *state, uint32_t bytes, Touch touch) {
  if (firstWithout(state, bytes, kExists) < bytes)
    return "is out of bounds";
  if (touch != Touch::Read && firstWithout(state, bytes, kWritable) < bytes)
    return "is to constant memory";
  uint32_t byte = firstWithout(state, bytes, kWritten);
  if (byte < bytes && (state[byte] & kPending))
    return "is of bytes that cp.async still copies";
  return "is of bytes that were never written";
}

} // namespace

void report(Warp &warp, const Instruction &i, uint32_t lane, Failure failure, const char *what) {
  Block &block = *warp.block;
  Launch &launch = *block.launch;
  block.isFailed = true;
  std::lock_guard<std::mutex> lock(launch.mutex);
  if (launch.isFailed.exchange(true))
    return;
  const SourceLine &source = warp.kernel->statements[i.statement];
  const uint32_t thread = warp.id * kLanes + lane, x = launch.block[0], y = launch.block[1];
  launch.failure = failure;
  launch.message =
      format("kernel '%s' block (%u,%u,%u) thread (%u,%u,%u) lane %u, PTX line %d '%s': %s",
             warp.kernel->name.c_str(), block.index[0], block.index[1], block.index[2], thread % x,
             thread / x % y, thread / (x * y), lane, source.line, source.text.c_str(), what);
}

void reportRace(Warp &warp, const Instruction &i, uint32_t lane, Space space, uint64_t address,
                uint32_t bytes, Touch touch) {
  const char *how = space == Space::Shared ? "another thread since the last barrier" : "another block";
  report(warp, i, lane, Failure::LaunchFailed,
         format("race in %s memory: the %s of %u bytes at 0x%llx meets an access by %s", nameOf(space),
                nameOf(touch), bytes, (unsigned long long)address, how)
             .c_str());
}

void reportAccess(Warp &warp, const Instruction &i, uint32_t lane, Space space, uint64_t address,
                  uint32_t bytes, Touch touch) {
  const Block &block = *warp.block;
  const MemoryView &memory = block.launch->memory;
  std::string what = "is out of bounds";
  Failure failure = Failure::IllegalAddress;
  if (address & (bytes - 1)) {
    what = "is misaligned";
    failure = Failure::Misaligned;
  } else if (space == Space::Shared) {
    if (address <= block.sharedBytes && bytes <= block.sharedBytes - address)
      what = whatOfState(block.sharedState + address, bytes, touch);
    else
      what += format(": there are %u bytes", block.sharedBytes);
  } else if (space == Space::Local) {
    what += format(": there are %u bytes", block.localBytes);
  } else if (space == Space::Param) {
    what =
        touch != Touch::Read ? "is to parameters" : what + format(": there are %u bytes", block.paramBytes);
  } else if (memory.contains(address, bytes)) {
    what = whatOfState(memory.state + (address - memory.base), bytes, touch);
    if (what == "is out of bounds") {
      uint64_t end = address - memory.base, most = 1u << 20; // how far behind the last memory that exists
      uint64_t k = 0;
      while (k < most && k < end && !(memory.state[end - 1 - k] & kExists))
        ++k;
      if (k < most && k < end)
        what += format(", %llu bytes behind an allocation's end", (unsigned long long)k);
    }
  }
  if (what.find("never written") != std::string::npos || what.find("cp.async") != std::string::npos)
    failure = Failure::LaunchFailed;
  report(warp, i, lane, failure,
         format("%s of %u bytes at 0x%llx of %s memory %s", nameOf(touch), bytes, (unsigned long long)address,
                nameOf(space), what.c_str())
             .c_str());
}

} // namespace ortc::emulator
