// A stand-in for a GPU's driver, on memory of the host: it records what it is asked for, and its kernels are below. It
// has the names and numbers of NVIDIA's driver and of AMD's.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work that is put into a stream happens when somebody waits for it, so that what does not wait where it should is
// found. Addresses of device memory are none of this process.
#include "test/runtime/fake_driver.h"

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include "ortc/device.h"

using namespace ortc::test;

namespace {

FakeDriver fake;
constexpr int kFirstHandle = 10;         ///< of devices
std::map<uint64_t, size_t> deviceMemory; // by address, as the caller sees it
std::map<const void *, size_t> pinnedMemory;
using Work = std::function<void()>;

struct Stream {
  std::vector<Work> queue;
  size_t done = 0; ///< of all that were ever in the queue
  std::vector<Work> *captured = nullptr;
};
struct Graph {
  std::vector<Work> work;
};
struct Event {
  Stream *stream = nullptr;
  size_t position = 0;
};
using Kernel = void (*)(void *const *arguments, unsigned block, unsigned blocks);
struct KernelRow {
  const char *name;
  int arguments;
  Kernel run;
};

__attribute__((format(printf, 1, 2))) void note(const char *format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  fake.log += line;
  fake.log += '\n';
}

/// Whether this call is to fail; its result.
int check(const char *function) {
  if (fake.failing != function + std::strlen("fake_") || fake.goodCalls-- > 0)
    return 0;
  fake.failing.clear();
  return fake.result;
}
#define CHECK()                                                                                              \
  if (int failed = check(__func__))                                                                          \
  return failed

[[noreturn]] void die(const char *what) {
  std::fprintf(stderr, "fake_driver: %s\n", what);
  std::abort();
}

/// The place in this process of `bytes` bytes at an address, which must be in one allocation.
uint8_t *place(uint64_t address, size_t bytes) {
  auto found = deviceMemory.upper_bound(address);
  if (found == deviceMemory.begin())
    die("an address before all memory");
  --found;
  if (address - found->first > found->second || bytes > found->second - (address - found->first))
    die("an address outside of memory");
  return reinterpret_cast<uint8_t *>(address & ~kFakeBit);
}
bool isPinned(const void *data, size_t bytes) {
  auto found = pinnedMemory.upper_bound(data);
  if (found == pinnedMemory.begin())
    return false;
  --found;
  auto *begin = static_cast<const uint8_t *>(found->first), *at = static_cast<const uint8_t *>(data);
  return size_t(at - begin) + bytes <= found->second;
}
/// An address relative to the allocation it is in.
unsigned long long relative(uint64_t address) {
  auto found = deviceMemory.upper_bound(address);
  return found == deviceMemory.begin() ? address : address - (--found)->first;
}

void add(Stream *stream, Work work) {
  (stream->captured ? *stream->captured : stream->queue).push_back(std::move(work));
}
void drain(Stream *stream, size_t count) {
  std::vector<Work> now(stream->queue.begin(), stream->queue.begin() + std::ptrdiff_t(count));
  stream->queue.erase(stream->queue.begin(), stream->queue.begin() + std::ptrdiff_t(count));
  stream->done += count;
  for (Work &work : now)
    work();
}

// ---- Kernels of the test artifact (steps.c) ----

template <typename T> T *as(void *argument) { return static_cast<T *>(argument); }
constexpr int kIn = 3, kOut = 2;

void fail(ortc_device_status *status, uint32_t what) {
  if (status->status == ORTC_STEP_OK)
    status->status = what;
}
/// x, w, y: a row in each block.
void forward(void *const *a, unsigned block, unsigned) {
  auto *x = as<float>(a[0]) + block * kIn, *w = as<float>(a[1]), *y = as<float>(a[2]) + block * kOut;
  for (int o = 0; o < kOut; o++) {
    float sum = 0;
    for (int i = 0; i < kIn; i++)
      sum += x[i] * w[i * kOut + o];
    y[o] = sum;
  }
}
/// y, shift.
void shift(void *const *a, unsigned block, unsigned) {
  for (int o = 0; o < kOut; o++)
    as<float>(a[0])[block * kOut + unsigned(o)] += as<float>(a[1])[o];
}
/// label, status.
void checkLabel(void *const *a, unsigned block, unsigned) {
  int64_t label = as<int64_t>(a[0])[block];
  auto *status = as<ortc_device_status>(a[1]);
  if ((label >= 0 && label < kOut) || status->status)
    return;
  status->status = ORTC_STEP_RANGE;
  status->detail = {0, 0, label, kOut};
}
/// y, label, residual.
void residual(void *const *a, unsigned block, unsigned) {
  for (unsigned o = 0; o < kOut; o++)
    as<float>(a[2])[block * kOut + o] =
        as<float>(a[0])[block * kOut + o] - (as<int64_t>(a[1])[block] == o ? 1.0f : 0.0f);
}
/// residual, loss, status: the last block has the sum of all.
void mean(void *const *a, unsigned block, unsigned blocks) {
  if (block + 1 < blocks)
    return;
  float sum = 0;
  for (unsigned k = 0; k < blocks * kOut; k++)
    sum += as<float>(a[0])[k] * as<float>(a[0])[k];
  float result = sum / float(blocks * kOut);
  auto *status = as<ortc_device_status>(a[2]);
  *as<float>(a[1]) = result;
  if (status->flags & ORTC_CALL_STOP_ON_NOT_FINITE && result - result != 0)
    fail(status, ORTC_STEP_NOT_FINITE);
}
/// residual, x, gradient.
void gradient(void *const *a, unsigned block, unsigned blocks) {
  if (block)
    return;
  for (int i = 0; i < kIn; i++)
    for (int o = 0; o < kOut; o++) {
      float sum = 0;
      for (unsigned b = 0; b < blocks; b++)
        sum += as<float>(a[0])[b * kOut + unsigned(o)] * as<float>(a[1])[b * kIn + unsigned(i)];
      as<float>(a[2])[i * kOut + o] = sum * (2.0f / float(blocks * kOut));
    }
}
/// w, momentum, gradient, rate, step, status.
void update(void *const *a, unsigned, unsigned) {
  if (as<ortc_device_status>(a[5])->status)
    return;
  for (int k = 0; k < kIn * kOut; k++) {
    as<float>(a[1])[k] = 0.5f * as<float>(a[1])[k] + as<float>(a[2])[k];
    as<float>(a[0])[k] -= *as<float>(a[3]) * as<float>(a[1])[k];
  }
  ++*as<int64_t>(a[4]);
}
/// Does nothing: for tests that read the log.
void nothing(void *const *, unsigned, unsigned) {}

const KernelRow kKernels[] = {
    {"forward", 3, forward},   {"shift", 2, shift},      {"check_label", 2, checkLabel},
    {"residual", 3, residual}, {"mean", 3, mean},        {"gradient", 3, gradient},
    {"update", 6, update},     {"nothing2", 2, nothing}, {"nothing0", 0, nothing}};

} // namespace

extern "C" {

FakeDriver *fake_driver = &fake;

int fake_initialise(unsigned) {
  CHECK();
  return fake.devices < 0 ? 100 : 0;
}
int fake_getVersion(int *version) {
  CHECK();
  *version = fake.version;
  return 0;
}
int fake_describe(int result, const char **text) {
  *text = result == 2     ? "out of memory"
          : result == 209 ? "no binary for the GPU"
          : result == 700 ? "an illegal memory access was encountered"
                          : "unknown error";
  return 0;
}
int fake_countDevices(int *count) {
  CHECK();
  *count = fake.devices;
  return 0;
}
int fake_getDevice(int *device, int ordinal) {
  CHECK();
  *device = ordinal + kFirstHandle;
  return 0;
}
int fake_nameDevice(char *name, int bytes, int device) {
  std::snprintf(name, size_t(bytes), "Fake GPU %d", device - kFirstHandle);
  return 0;
}
static int fake_getAttribute(int *value, std::map<int, int> values, int attribute) {
  CHECK();
  *value = values.count(attribute) ? values[attribute] : -1;
  return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int) {
  return fake_getAttribute(value, {{75, fake.processor / 10}, {76, fake.processor % 10}, {97, 232448}},
                           attribute);
}
int hipDeviceGetAttribute(int *value, int attribute, int) {
  return fake_getAttribute(value, {{74, 65536}}, attribute);
}
int fake_getProperties(char *properties, int) {
  CHECK();
  std::memset(properties, 0x77, 1472);
  std::strcpy(properties + 1160, fake.model.c_str());
  return 0;
}
int fake_retainContext(void **context, int device) {
  CHECK();
  fake.live++;
  *context = reinterpret_cast<void *>(uintptr_t(device));
  return 0;
}
int fake_releaseContext(int) {
  fake.live--;
  return 0;
}
int fake_useContext(void *context) {
  CHECK();
  fake.current = int(reinterpret_cast<uintptr_t>(context)) - kFirstHandle;
  return context ? 0 : 201;
}
int fake_useDevice(int device) {
  CHECK();
  fake.current = device - kFirstHandle;
  return device >= kFirstHandle ? 0 : 101;
}
int fake_countMemory(size_t *unused, size_t *all) {
  *unused = fake.freeBytes;
  *all = 2 * fake.freeBytes;
  return 0;
}
int fake_allocate(uint64_t *memory, size_t bytes) {
  CHECK();
  if (!bytes)
    return 1;
  if (bytes > fake.freeBytes)
    return 2;
  void *data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  std::memset(data, 0xee, bytes);
  *memory = reinterpret_cast<uint64_t>(data) | kFakeBit;
  deviceMemory[*memory] = bytes;
  fake.live++;
  note("allocate %zu", bytes);
  return 0;
}
int fake_release(uint64_t memory) {
  if (!deviceMemory.erase(memory))
    die("memory is released that was not allocated");
  std::free(reinterpret_cast<void *>(memory & ~kFakeBit));
  fake.live--;
  return 0;
}
int fake_allocatePinned(void **memory, size_t bytes) {
  CHECK();
  if (!bytes)
    return 1;
  *memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  std::memset(*memory, 0xee, bytes);
  pinnedMemory[*memory] = bytes;
  fake.live++;
  note("pinned %zu", bytes);
  return 0;
}
int fake_releasePinned(void *memory) {
  if (!pinnedMemory.erase(memory))
    die("pinned memory is released that was not allocated");
  std::free(memory);
  fake.live--;
  return 0;
}
int fake_copyIn(uint64_t to, const void *from, size_t bytes, Stream *stream) {
  CHECK();
  note("in %llu %zu", relative(to), bytes);
  uint8_t *target = place(to, bytes);
  if (isPinned(from, bytes)) {
    add(stream, [=] { std::memcpy(target, from, bytes); });
  } else { // the driver takes it now
    auto *data = static_cast<const uint8_t *>(from);
    add(stream,
        [=, held = std::vector<uint8_t>(data, data + bytes)] { std::memcpy(target, held.data(), bytes); });
  }
  return 0;
}
int fake_copyOut(void *to, uint64_t from, size_t bytes, Stream *stream) {
  CHECK();
  note("out %llu %zu", relative(from), bytes);
  const uint8_t *source = place(from, bytes);
  add(stream, [=] { std::memcpy(to, source, bytes); });
  return 0;
}
int fake_copyWithin(uint64_t to, uint64_t from, size_t bytes, Stream *stream) {
  CHECK();
  note("within %llu %llu %zu", relative(to), relative(from), bytes);
  uint8_t *target = place(to, bytes), *source = place(from, bytes);
  add(stream, [=] { std::memmove(target, source, bytes); });
  return 0;
}
int fake_fillBytes(uint64_t to, unsigned char value, size_t count, Stream *stream) {
  CHECK();
  uint8_t *target = place(to, count);
  add(stream, [=] { std::memset(target, value, count); });
  return 0;
}
int fake_fillWords(uint64_t to, unsigned value, size_t count, Stream *stream) {
  CHECK();
  note("number %llu", relative(to));
  uint8_t *target = place(to, 4 * count);
  add(stream, [=] {
    for (size_t i = 0; i < count; i++)
      std::memcpy(target + 4 * i, &value, 4);
  });
  return 0;
}
int fake_loadImage(void **module, const void *image, unsigned count, int *options, void **values) {
  auto *text = static_cast<const char *>(image);
  char line[80];
  std::snprintf(line, sizeof line, "%.*s", int(std::strcspn(text, "\n")), text);
  note("load %s", line);
  if (int failed = check(__func__)) {
    for (unsigned i = 0; i < count; i++)
      if (options[i] == 5)
        std::snprintf(static_cast<char *>(values[i]), 1024, "%s", fake.jitLog.c_str());
    return failed;
  }
  fake.live++;
  *module = const_cast<void *>(image);
  return 0;
}
int fake_unloadImage(void *) {
  fake.live--;
  return 0;
}
int fake_getFunction(const KernelRow **function, void *module, const char *name) {
  CHECK();
  for (const KernelRow &row : kKernels)
    if (!std::strcmp(row.name, name) && std::strstr(static_cast<const char *>(module), name)) {
      *function = &row;
      return 0;
    }
  return 500;
}
int fake_setAttribute(const KernelRow *function, int attribute, int value) {
  CHECK();
  note("attribute %s %d %d", function->name, attribute, value);
  return 0;
}
int fake_launch(const KernelRow *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                unsigned blockY, unsigned blockZ, unsigned shared, Stream *stream, void **parameters,
                void **extra) {
  CHECK();
  if (gridY != 1 || gridZ != 1 || blockY != 1 || blockZ != 1 || extra)
    die("a launch in more than one dimension");
  std::string text;
  std::vector<void *> arguments;
  for (int i = 0; i < function->arguments; i++) {
    uint64_t address = *static_cast<uint64_t *>(parameters[i]);
    text += " " + std::to_string(relative(address));
    arguments.push_back(address || fake.runsKernels ? place(address, 0) : nullptr);
  }
  note("launch %s %u %u %u:%s", function->name, gridX, blockX, shared, text.c_str());
  add(stream, [=] {
    for (unsigned block = 0; block < gridX && fake.runsKernels; block++)
      function->run(arguments.data(), block, gridX);
  });
  return 0;
}
int fake_createStream(Stream **stream, unsigned flags) {
  CHECK();
  if (flags != 1)
    die("a stream that waits for others");
  fake.live++;
  *stream = new Stream;
  return 0;
}
int fake_destroyStream(Stream *stream) {
  fake.live--;
  delete stream;
  return 0;
}
int fake_awaitStream(Stream *stream) {
  if (int failed = check(__func__)) { // with all that was to be done
    stream->done += stream->queue.size();
    stream->queue.clear();
    return failed;
  }
  note("wait");
  drain(stream, stream->queue.size());
  return 0;
}
int fake_beginCapture(Stream *stream, int mode) {
  CHECK();
  if (mode != 1 || stream->captured)
    die("a capture that disturbs other threads");
  stream->captured = new std::vector<Work>;
  note("capture");
  return 0;
}
int fake_endCapture(Stream *stream, Graph **graph) {
  if (!stream->captured)
    return 903;
  std::vector<Work> work = std::move(*stream->captured);
  delete stream->captured;
  stream->captured = nullptr;
  CHECK();
  *graph = new Graph{std::move(work)};
  fake.live++;
  return 0;
}
int fake_instantiate(Graph **code, Graph *graph, unsigned long long) {
  CHECK();
  *code = new Graph(*graph);
  fake.live++;
  return 0;
}
int fake_launchGraph(Graph *code, Stream *stream) {
  CHECK();
  note("graph");
  for (const Work &work : code->work)
    add(stream, work);
  return 0;
}
int fake_destroyGraphCode(Graph *code) {
  fake.live--;
  delete code;
  return 0;
}
int fake_destroyGraph(Graph *graph) {
  fake.live--;
  delete graph;
  return 0;
}
int fake_createEvent(Event **event, unsigned) {
  CHECK();
  *event = new Event;
  fake.live++;
  return 0;
}
int fake_recordEvent(Event *event, Stream *stream) {
  CHECK();
  event->stream = stream;
  event->position = stream->done + stream->queue.size();
  return 0;
}
int fake_awaitEvent(Event *event) {
  CHECK();
  note("await");
  if (event->stream && event->position > event->stream->done)
    drain(event->stream, event->position - event->stream->done);
  return 0;
}
int fake_destroyEvent(Event *event) {
  fake.live--;
  delete event;
  return 0;
}
int fake_getPointerAttributes(unsigned count, int *attributes, void **values, uint64_t pointer) {
  if (count != 1 || attributes[0] != 2)
    return 1;
  *static_cast<unsigned *>(values[0]) = fake.knowsPointers && pointer & kFakeBit ? 2 : 0;
  return 0;
}

// ---- The names ----

#define NAME(function, symbol) __attribute__((alias("fake_" #function))) decltype(fake_##function) symbol;
#define NAMES(function, cuda, hip) NAME(function, cuda) NAME(function, hip)
NAMES(initialise, cuInit, hipInit)
NAMES(getVersion, cuDriverGetVersion, hipDriverGetVersion)
NAMES(describe, cuGetErrorString, hipDrvGetErrorString)
NAMES(countDevices, cuDeviceGetCount, hipGetDeviceCount)
NAMES(getDevice, cuDeviceGet, hipDeviceGet)
NAMES(nameDevice, cuDeviceGetName, hipDeviceGetName)
NAME(retainContext, cuDevicePrimaryCtxRetain)
NAME(releaseContext, cuDevicePrimaryCtxRelease_v2)
NAME(useContext, cuCtxSetCurrent)
NAME(useDevice, hipSetDevice)
NAME(getProperties, hipGetDevicePropertiesR0600)
NAMES(countMemory, cuMemGetInfo_v2, hipMemGetInfo)
NAMES(allocate, cuMemAlloc_v2, hipMalloc)
NAMES(release, cuMemFree_v2, hipFree)
NAMES(allocatePinned, cuMemAllocHost_v2, hipMemAllocHost)
NAMES(releasePinned, cuMemFreeHost, hipHostFree)
NAMES(copyIn, cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync)
NAMES(copyOut, cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)
NAMES(copyWithin, cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)
NAMES(fillBytes, cuMemsetD8Async, hipMemsetD8Async)
NAMES(fillWords, cuMemsetD32Async, hipMemsetD32Async)
NAMES(loadImage, cuModuleLoadDataEx, hipModuleLoadDataEx)
NAMES(unloadImage, cuModuleUnload, hipModuleUnload)
NAMES(getFunction, cuModuleGetFunction, hipModuleGetFunction)
NAME(setAttribute, cuFuncSetAttribute)
NAMES(launch, cuLaunchKernel, hipModuleLaunchKernel)
NAMES(createStream, cuStreamCreate, hipStreamCreateWithFlags)
NAMES(destroyStream, cuStreamDestroy_v2, hipStreamDestroy)
NAMES(awaitStream, cuStreamSynchronize, hipStreamSynchronize)
NAMES(beginCapture, cuStreamBeginCapture_v2, hipStreamBeginCapture)
NAMES(endCapture, cuStreamEndCapture, hipStreamEndCapture)
NAMES(instantiate, cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags)
NAMES(launchGraph, cuGraphLaunch, hipGraphLaunch)
NAMES(destroyGraphCode, cuGraphExecDestroy, hipGraphExecDestroy)
NAMES(destroyGraph, cuGraphDestroy, hipGraphDestroy)
NAMES(createEvent, cuEventCreate, hipEventCreateWithFlags)
NAMES(recordEvent, cuEventRecord, hipEventRecord)
NAMES(awaitEvent, cuEventSynchronize, hipEventSynchronize)
NAMES(destroyEvent, cuEventDestroy_v2, hipEventDestroy)
NAMES(getPointerAttributes, cuPointerGetAttributes, hipDrvPointerGetAttributes)
#undef NAMES
#undef NAME
}
