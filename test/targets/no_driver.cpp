// gpu-run without a GPU, for systems whose programs have no dlopen.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/gpu/driver.h"
#include "tools/gpu/launch_times.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace ortc::gpucheck {

double readClock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

const ortc_device *Driver::open() {
  std::fprintf(stderr, "gpu-run: there are no GPUs here, only --host\n");
  std::exit(ORTC_E_TARGET);
}
void Driver::close(const ortc_device *) const {}
std::string Driver::describe() const { return ""; }
double Driver::countUsed() const { return 0; }
void *Driver::allocate(size_t) const { return nullptr; }
void Driver::release(void *) const {}
void Driver::copyIn(void *, const void *, size_t) const {}
void Driver::copyWithin(void *, const void *, size_t) const {}
void Driver::wait() const {}

void timeLaunches(const ortc_device *, void *) {}
void forgetTimes() {}
std::string describeTimes() { return "[]"; }

} // namespace ortc::gpucheck
