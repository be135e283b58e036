// The state of the device from the first context to the end of the process.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/driver/Device.h"

#include <cstdlib>
#include <unistd.h>

namespace ortc::emulator {
namespace {

constexpr int kLeakStatus = 99;

void finishAtExit() { Device::get().finish(); }

} // namespace

thread_local uint64_t currentContext = 0;

Device::Device() { std::atexit(finishAtExit); }

/// Never destroyed: threads may call until the very end.
Device &Device::get() {
  static Device *device = new Device;
  return *device;
}

Call::Call(Needs needs) : device(Device::get()), lock(device.mutex) {
  result = ORTC_CU_SUCCESS;
  if (needs == Needs::Nothing)
    return;
  if (!device.isInitialized)
    result = ORTC_CU_NOT_INITIALIZED;
  else if (needs == Needs::Context && (!device.retained || currentContext != device.contextNumber))
    result = ORTC_CU_INVALID_CONTEXT;
  else if (needs == Needs::Context)
    result = device.sticky;
}

ortc_cu_result Device::openContext() {
  if (!memory.open(options.memory)) {
    say("the host has no addresses for %llu bytes of device memory", (unsigned long long)options.memory);
    return ORTC_CU_OUT_OF_MEMORY;
  }
  runner = std::make_unique<Runner>(options.threads);
  if (options.countFile != countPath) {
    countPath = options.countFile;
    counts = countPath.empty() ? nullptr : std::make_unique<CountFile>(countPath, options.countsLines);
  }
  launchNumber = 0;
  launchCount = 0;
  hasSaidUnwritten = false;
  ++contextNumber;
  sticky = ORTC_CU_SUCCESS;
  return ORTC_CU_SUCCESS;
}

void Device::closeContext() {
  drainAll();
  for (auto &[handle, module] : modules)
    for (uint64_t address : module->allocations)
      memory.release(address);
  hasLeaked |= reportLeaks();
  peakBytes = std::max(peakBytes, memory.peak());
  modules.clear();
  kernels.clear();
  streams.clear();
  events.clear();
  graphs.clear();
  graphExecs.clear();
  nullStream = {};
  for (auto &[address, bytes] : hostMemory)
    std::free(address);
  hostMemory.clear();
  memory.close();
  runner.reset();
  sticky = ORTC_CU_SUCCESS;
}

/// One line, if memory is still allocated.
bool Device::reportLeaks() {
  if (memory.allocations().empty() && hostMemory.empty())
    return false;
  uint64_t bytes = 0, hostBytes = 0;
  for (const auto &[address, size] : memory.allocations())
    bytes += size;
  for (const auto &[address, size] : hostMemory)
    hostBytes += size;
  say("leak: %zu allocations with %llu bytes of device memory, %zu with %llu bytes of pinned host memory",
      memory.allocations().size(), (unsigned long long)bytes, hostMemory.size(),
      (unsigned long long)hostBytes);
  return true;
}

ortc_cu_stream_s *Device::find(ortc_cu_stream stream) {
  if (!stream)
    return &nullStream;
  auto found = streams.find(stream);
  return found == streams.end() ? nullptr : found->second.get();
}

bool Device::isPinned(uint64_t address, uint64_t bytes) const {
  auto after = hostMemory.upper_bound(reinterpret_cast<void *>(address));
  if (after == hostMemory.begin())
    return false;
  const auto &[start, size] = *std::prev(after);
  return address + bytes <= reinterpret_cast<uint64_t>(start) + size;
}

bool Device::isCapturing() const {
  for (const auto &[handle, stream] : streams)
    if (stream->capture && stream->captureMode != ORTC_CU_CAPTURE_RELAXED)
      return true;
  return false;
}

ortc_cu_result Device::enqueue(ortc_cu_stream handle, Work work) {
  ortc_cu_stream_s *stream = find(handle);
  if (!stream)
    return ORTC_CU_INVALID_HANDLE;
  if (stream->isCaptureBroken)
    return ORTC_CU_STREAM_CAPTURE_INVALIDATED;
  if (stream->capture) {
    stream->capture->works.push_back(std::move(work));
    return ORTC_CU_SUCCESS;
  }
  if (!handle && isCapturing())
    return ORTC_CU_STREAM_CAPTURE_IMPLICIT;
  if (!options.isLazy)
    return perform(*this, work);
  stream->waiting.push_back(std::move(work));
  return ORTC_CU_SUCCESS;
}

ortc_cu_result Device::drain(ortc_cu_stream_s &stream) {
  std::vector<Work> works;
  works.swap(stream.waiting);
  for (const Work &work : works)
    if (ortc_cu_result result = perform(*this, work))
      return result;
  return sticky;
}

ortc_cu_result Device::drainAll() {
  ortc_cu_result result = drain(nullStream);
  for (auto &[handle, stream] : streams)
    if (ortc_cu_result next = drain(*stream))
      result = result ? result : next;
  return result;
}

ortc_cu_result Device::runLaunch(const LaunchWork &work) {
  if (++launchNumber > kLastLaunch) {
    memory.clearCells();
    launchNumber = 1;
  }
  Launch launch;
  launch.kernel = &work.kernel->kernel;
  for (int k = 0; k < 3; ++k) {
    launch.grid[k] = work.grid[k];
    launch.block[k] = work.block[k];
  }
  const uint32_t align = launch.kernel->dynamicAlign;
  launch.dynamicBytes = work.dynamicShared;
  launch.sharedBytes = (launch.kernel->sharedBytes + align - 1) / align * align + work.dynamicShared;
  launch.params = work.params;
  launch.memory = memory.view();
  launch.isChecked = options.isChecked;
  launch.number = launchNumber;
  launch.gridId = ++launchCount; // orders at random depend on it
  ++launches;
  launch.sample = options.sample;
  if (counts)
    counts->begin(launch);
  runner->run(launch, options.order);
  if (counts)
    counts->write(launch);
  laneInstructions += launch.laneInstructions;
  if (launch.isFailed && options.sample) {
    // It may have followed what the blocks that are left out did not write.
    if (!hasSaidStopped)
      say("a launch of which some blocks are run stopped: %s", launch.message.c_str());
    hasSaidStopped = true;
  } else if (launch.isFailed) {
    say("%s", launch.message.c_str());
    sticky = ortc_cu_result(launch.failure);
  }
  return sticky;
}

void Device::finish() {
  std::lock_guard<std::mutex> lock(mutex);
  if (retained)
    hasLeaked |= reportLeaks();
  peakBytes = std::max(peakBytes, memory.peak());
  if (options.printsStatistics)
    say("%llu bytes allocated at most, %llu launches, %llu lane-instructions, %llu bytes copied",
        (unsigned long long)peakBytes, (unsigned long long)launches, (unsigned long long)laneInstructions,
        (unsigned long long)copiedBytes);
  if (hasLeaked && options.failsOnLeaks)
    _exit(kLeakStatus);
}

} // namespace ortc::emulator
