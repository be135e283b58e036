// Times of single launches: takes the place of graphs in the runtime's table of the driver.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime captures the launches of a list into a graph. Here the capture keeps them, and launching the graph
// launches each by itself. Work is in order on a stream: from an event before a launch to one behind it the device did
// nothing else.
#include "tools/gpu/launch_times.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "runtime/device/gpu.h"
#include "tools/gpu/files.h"

namespace ortc::gpucheck {
namespace {

using namespace ortc::device;

struct Launch {
  Function function;
  unsigned blocks, threads, sharedBytes;
  std::vector<Address> values;
};

/// What a handle of a graph stands for.
using Launches = std::vector<Launch>;

/// Launches of one kind.
struct Times {
  uint64_t count = 0;
  double milliseconds = 0;
};

struct State {
  Driver driver; ///< as the vendor has it
  int (*measure)(float *milliseconds, Event start, Event end) = nullptr;
  std::map<Function, std::string> names;
  std::vector<std::unique_ptr<Launches>> graphs;
  Launches *capture = nullptr; ///< that is being made
  std::map<std::tuple<std::string, unsigned, unsigned>, Times> times;
  uint64_t steps = 0;
};
State state;

constexpr unsigned kBatch = 256; ///< launches that are under way at once

Result getFunction(Function *function, Image image, const char *name) {
  Result result = state.driver.getFunction(function, image, name);
  if (!result)
    state.names[*function] = name;
  return result;
}

Result beginCapture(Stream, int) {
  state.graphs.push_back(std::make_unique<Launches>());
  state.capture = state.graphs.back().get();
  return 0;
}

Result launch(Function function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
              unsigned blockY, unsigned blockZ, unsigned sharedBytes, Stream stream, void **parameters,
              void **extra) {
  if (!state.capture)
    return state.driver.launch(function, gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes, stream,
                               parameters, extra);
  Launch made{function, gridX, blockX, sharedBytes, std::vector<Address>(kMostArguments)};
  for (uint32_t i = 0; i < kMostArguments; i++)
    made.values[i] = *static_cast<Address *>(parameters[i]);
  while (!made.values.empty() && !made.values.back()) // those of the runtime that the kernel does not take
    made.values.pop_back();
  state.capture->push_back(std::move(made));
  return 0;
}

Result endCapture(Stream, Graph *graph) {
  *graph = reinterpret_cast<Graph>(state.capture);
  state.capture = nullptr;
  return 0;
}

Result instantiate(GraphCode *code, Graph graph, unsigned long long) {
  *code = reinterpret_cast<GraphCode>(graph);
  return 0;
}

Result destroyGraph(Graph) { return 0; }
Result destroyGraphCode(GraphCode) { return 0; } // the process ends soon

/// Launches some of a list and adds their times.
Result timeBatch(const Launch *first, size_t count, Event *events, Stream stream) {
  for (size_t i = 0; i < count; i++) {
    const Launch &each = first[i];
    Address values[kMostArguments] = {};
    void *parameters[kMostArguments];
    for (uint32_t k = 0; k < kMostArguments; k++)
      parameters[k] = &values[k];
    std::copy(each.values.begin(), each.values.end(), values);
    if (Result result = state.driver.recordEvent(events[2 * i], stream))
      return result;
    if (Result result = state.driver.launch(each.function, each.blocks, 1, 1, each.threads, 1, 1,
                                            each.sharedBytes, stream, parameters, nullptr))
      return result;
    if (Result result = state.driver.recordEvent(events[2 * i + 1], stream))
      return result;
  }
  if (Result result = state.driver.awaitStream(stream))
    return result;
  for (size_t i = 0; i < count; i++) {
    float milliseconds = 0;
    if (Result result = state.measure(&milliseconds, events[2 * i], events[2 * i + 1]))
      return result;
    Times &times = state.times[{state.names[first[i].function], first[i].blocks, first[i].threads}];
    times.count++;
    times.milliseconds += milliseconds;
  }
  return 0;
}

Result launchGraph(GraphCode code, Stream stream) {
  const auto &launches = *reinterpret_cast<const Launches *>(code);
  static std::vector<Event> events;
  while (events.size() < size_t{2} * kBatch) {
    Event event;
    if (Result result = state.driver.createEvent(&event, 0))
      return result;
    events.push_back(event);
  }
  for (size_t i = 0; i < launches.size(); i += kBatch)
    if (Result result =
            timeBatch(&launches[i], std::min<size_t>(kBatch, launches.size() - i), events.data(), stream))
      return result;
  state.steps++;
  return 0;
}

} // namespace

void timeLaunches(const ortc_device *device, void *library) {
  // What ortc_cuda_open returns is the first member of a Device, in memory of its own.
  Driver &table = const_cast<Device *>(reinterpret_cast<const Device *>(device))->driver;
  state.driver = table;
  state.measure = reinterpret_cast<decltype(state.measure)>(dlsym(library, "cuEventElapsedTime"));
  if (!state.measure) {
    std::fprintf(stderr, "gpu-run: cuEventElapsedTime is missing\n");
    std::exit(ORTC_E_INTERNAL);
  }
  table.getFunction = getFunction;
  table.beginCapture = beginCapture;
  table.launch = launch;
  table.endCapture = endCapture;
  table.instantiate = instantiate;
  table.launchGraph = launchGraph;
  table.destroyGraph = destroyGraph;
  table.destroyGraphCode = destroyGraphCode;
}

void forgetTimes() {
  state.times.clear();
  state.steps = 0;
}

std::string describeTimes() {
  std::string rows;
  for (const auto &[key, times] : state.times) {
    const auto &[name, blocks, threads] = key;
    char text[160];
    std::snprintf(text, sizeof text, ", \"blocks\": %u, \"threads\": %u, \"times\": %.9g, \"us\": %.6g}",
                  blocks, threads, static_cast<double>(times.count) / static_cast<double>(state.steps),
                  times.milliseconds * 1e3 / static_cast<double>(times.count));
    rows += (rows.empty() ? "" : ", ") + ("{\"kernel\": " + quote(name)) + text;
  }
  return "[" + rows + "]";
}

} // namespace ortc::gpucheck
