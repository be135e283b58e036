// The one device: its memory, its context, and everything that handles point to.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "test/gpu/emulator/count/CountFile.h"
#include "test/gpu/emulator/driver/Work.h"
#include "test/gpu/emulator/run/Runner.h"

struct ortc_cu_event_s {
  bool isRecorded = false;
  std::chrono::steady_clock::time_point time;
  ortc_cu_stream stream = nullptr;
};

struct ortc_cu_graph_s {
  std::vector<ortc::emulator::Work> works;
};

struct ortc_cu_graph_exec_s {
  std::vector<ortc::emulator::Work> works;
};

struct ortc_cu_stream_s {
  /// What is not done yet, where streams are lazy.
  std::vector<ortc::emulator::Work> waiting;
  /// What is captured; null while nothing is.
  std::unique_ptr<ortc_cu_graph_s> capture;
  int captureMode = 0;
  bool isCaptureBroken = false;
};

namespace ortc::emulator {

/// Everything is guarded by `mutex`, which each function of the driver takes.
class Device {
public:
  static Device &get();

  std::mutex mutex;
  Options options;
  bool isInitialized = false;
  /// Users of the primary context; 0: there is none.
  uint32_t retained = 0;
  /// Differs for every context that there was: threads may still have an old one.
  uint64_t contextNumber = 0;
  /// What a kernel did wrong; every call gives it until the context is gone.
  ortc_cu_result sticky = ORTC_CU_SUCCESS;

  DeviceMemory memory;
  std::map<void *, size_t> hostMemory;
  std::map<ortc_cu_module, std::unique_ptr<ortc_cu_module_s>> modules;
  std::map<ortc_cu_kernel, std::shared_ptr<ortc_cu_kernel_s>> kernels;
  std::map<ortc_cu_stream, std::unique_ptr<ortc_cu_stream_s>> streams;
  std::map<ortc_cu_event, std::unique_ptr<ortc_cu_event_s>> events;
  std::map<ortc_cu_graph, std::unique_ptr<ortc_cu_graph_s>> graphs;
  std::map<ortc_cu_graph_exec, std::unique_ptr<ortc_cu_graph_exec_s>> graphExecs;
  ortc_cu_stream_s nullStream;

  /// Whether it was said that a copy gave the host bytes that nobody wrote.
  bool hasSaidUnwritten = false;
  uint64_t launches = 0, laneInstructions = 0, copiedBytes = 0;

  /// Opens the memory and starts a context.
  ortc_cu_result openContext();
  /// Says what still lives, and ends the context.
  void closeContext();
  /// The stream of a handle; null: there is none.
  ortc_cu_stream_s *find(ortc_cu_stream stream);
  /// Whether memory of the host was allocated by the driver: only then may a copy use it later.
  bool isPinned(uint64_t address, uint64_t bytes) const;
  /// Whether some stream captures in a mode that forbids calls such as allocations.
  bool isCapturing() const;
  /// Does the work, or notes it for later.
  ortc_cu_result enqueue(ortc_cu_stream stream, Work work);
  /// Does what a stream has waiting; what all have.
  ortc_cu_result drain(ortc_cu_stream_s &stream);
  ortc_cu_result drainAll();
  ortc_cu_result runLaunch(const LaunchWork &work);
  /// At the end of the process.
  void finish();

private:
  Device();
  bool reportLeaks();

  std::unique_ptr<Runner> runner;
  /// Of the process: a context goes on where the last one ended, unless the file is another one.
  std::unique_ptr<CountFile> counts;
  std::string countPath;
  bool hasSaidStopped = false;
  uint32_t launchNumber = 0;
  /// In this context.
  uint64_t launchCount = 0;
  uint64_t peakBytes = 0;
  bool hasLeaked = false;
};

/// Locks the device and says whether a call may go on.
class Call {
public:
  enum class Needs { Nothing, Initialization, Context };
  explicit Call(Needs needs);
  ortc_cu_result result;
  Device &device;
  explicit operator bool() const { return result == ORTC_CU_SUCCESS; }

private:
  std::lock_guard<std::mutex> lock;
};

/// The context that a thread has made its own: its number, or 0.
extern thread_local uint64_t currentContext;

} // namespace ortc::emulator
