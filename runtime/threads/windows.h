// What the pool takes of Windows, 8 or newer: threads, and sleeping on the address of a word. linux.h says more.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !defined(_WIN32_WINNT) || _WIN32_WINNT < 0x0602
#undef _WIN32_WINNT
#define _WIN32_WINNT 0x0602 // WaitOnAddress
#endif
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <malloc.h>
#include <stdint.h>

#define ORTC_THREAD WINAPI

namespace ortc {

using Thread = HANDLE;
using ThreadResult = DWORD;

inline bool start(Thread *thread, ThreadResult(ORTC_THREAD *function)(void *), void *argument) {
  return (*thread = CreateThread(nullptr, 0, function, argument, 0, nullptr)) != nullptr;
}
inline void join(Thread thread) {
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
}

inline void sleepWhile(uint32_t *word, uint32_t value) {
  WaitOnAddress(word, &value, sizeof value, INFINITE);
}
inline void wakeAll(uint32_t *word) { WakeByAddressAll(word); }
inline void yield() { SwitchToThread(); }

inline int64_t nanoseconds() {
  LARGE_INTEGER count, perSecond;
  QueryPerformanceFrequency(&perSecond);
  QueryPerformanceCounter(&count);
  return (int64_t)((double)count.QuadPart * 1e9 / (double)perSecond.QuadPart);
}
inline uint32_t countProcessors() {
  SYSTEM_INFO info;
  GetSystemInfo(&info);
  return info.dwNumberOfProcessors;
}

inline void *allocate(size_t alignment, size_t bytes) { return _aligned_malloc(bytes, alignment); }
inline void release(void *memory) { _aligned_free(memory); }

} // namespace ortc
