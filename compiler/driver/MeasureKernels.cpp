//===- MeasureKernels.cpp - how long kernels take, here -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/MeasureKernels.h"

#include "compiler/codegen/backend/BlobLoader.h"
#include "passes/memory/Passes.h"

#include <cstring>
#include <ctime>
#include <map>
#include <new>
#include <random>
#include <sys/mman.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

using namespace mlir;

namespace ortc::driver {

namespace {

/// Memory that is zero, from and back to the system.
class Scratch {
public:
  explicit Scratch(size_t bytes) : bytes(std::max<size_t>(bytes, 1)) {
    void *memory = mmap(nullptr, this->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    data = memory == MAP_FAILED ? nullptr : static_cast<uint8_t *>(memory);
  }
  ~Scratch() {
    if (data)
      munmap(data, bytes);
  }
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;

  uint8_t *data;
  size_t bytes;
};

/// Where a step's buffers lie in its scratch memory.
struct Layout {
  std::vector<size_t> offsets; ///< of inputs, then outputs
  std::vector<MemRefType> types;
  size_t workspace = 0, bytes = 0;
};

/// Values that came to lie below the normal ones would slow kernels down that run on their own results.
class FlushDenormals {
public:
#if defined(__x86_64__)
  FlushDenormals() : before(_mm_getcsr()) { _mm_setcsr(before | 0x8040); }
  ~FlushDenormals() { _mm_setcsr(before); }

private:
  unsigned before;
#endif
};

} // namespace

/// Time of this thread on a CPU.
static double seconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// Buffers in one place of the plan share memory.
static Layout layOut(plan::StepOp step, int64_t workspaceBytes) {
  using Place = std::pair<plan::Region, int64_t>;
  std::map<Place, size_t> sizes;
  std::vector<Place> places;
  Layout layout;
  auto add = [&](Value value) {
    auto buffer = value.getDefiningOp<plan::BufferOp>();
    Place place{buffer.getRegion(), buffer.getOffset()};
    auto type = cast<MemRefType>(buffer.getType());
    places.push_back(place);
    layout.types.push_back(type);
    size_t &size = sizes[place];
    size = std::max(size, static_cast<size_t>(plan::storedBytes(type)));
  };
  for (Value value : step.getInputs())
    add(value);
  for (Value value : step.getOutputs())
    add(value);
  std::map<Place, size_t> offsets;
  for (const auto &[place, size] : sizes) {
    offsets[place] = layout.bytes;
    layout.bytes += llvm::alignTo(size, 64);
  }
  for (const Place &place : places)
    layout.offsets.push_back(offsets[place]);
  layout.workspace = layout.bytes;
  layout.bytes += workspaceBytes;
  return layout;
}

/// Numbers near one, booleans, and zeros for integers, which may be indices.
static void fill(MemRefType type, uint8_t *data) {
  Type element = type.getElementType();
  std::minstd_rand random(1);
  auto each = [&](auto make) {
    auto *values = reinterpret_cast<decltype(make()) *>(data);
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      values[i] = make();
  };
  auto number = [&] { return 0.5 + double(random()) / double(random.max()); };
  if (element.isF32())
    each([&] { return float(number()); });
  else if (element.isF64())
    each(number);
  else if (element.isF16())
    each([] { return uint16_t(0x3c00); });
  else if (element.isBF16())
    each([] { return uint16_t(0x3f80); });
  else if (element.isInteger(1))
    each([&] { return uint8_t(random() >> 8 & 1); });
  else
    std::memset(data, 0, static_cast<size_t>(plan::storedBytes(type)));
}

static double timeKernel(ortc_task_fn kernel, int64_t chunks, std::vector<void *> &arguments) {
  auto once = [&] {
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      kernel(arguments.data(), chunk, 0);
  };
  double start = seconds();
  once(); // fills the caches
  double took = seconds() - start;
  // At least 20 microseconds at a time: reading the clock costs up to one.
  auto repeats = static_cast<int64_t>(2e-5 / std::max(took, 5e-8)) + 1;
  double best = took, spent = 0;
  for (int round = 0; round < 10 && spent < 0.02; ++round) {
    start = seconds();
    for (int64_t i = 0; i < repeats; ++i)
      once();
    took = seconds() - start;
    spent += took;
    best = std::min(best, took / double(repeats));
  }
  return best;
}

std::vector<double> measureKernels(ModuleOp module, const ProgramKernels &kernels, const TargetCode &code,
                                   std::string &error) {
  auto blob = codegen::LoadedBlob::load(code.blob);
  if (!blob) {
    error = llvm::toString(blob.takeError());
    return {};
  }
  llvm::StringMap<plan::StepOp> steps;
  module.walk([&](plan::StepOp step) { steps.try_emplace(step.getKernel(), step); });
  FlushDenormals flush;
  std::vector<double> times;
  for (auto [i, name] : llvm::enumerate(kernels.names)) {
    times.push_back(0);
    const codegen::KernelInfo &info = code.kernels[i];
    auto kind = module.lookupSymbol(name)->getAttrOfType<plan::KernelKindAttr>(plan::kKind).getValue();
    ortc_task_fn kernel = blob->kernel(info.name);
    if (kind == plan::KernelKind::check || !kernel)
      continue;
    Layout layout = layOut(steps.lookup(name), info.workspaceBytesPerWorker);
    Scratch scratch(layout.bytes);
    if (!scratch.data) {
      error = "cannot get " + std::to_string(layout.bytes) + " bytes to measure " + name;
      return {};
    }
    std::vector<void *> arguments;
    for (auto [offset, type] : llvm::zip_equal(layout.offsets, layout.types)) {
      fill(type, scratch.data + offset);
      arguments.push_back(scratch.data + offset);
    }
    if (info.workspaceBytesPerWorker > 0)
      arguments.push_back(scratch.data + layout.workspace);
    times.back() = timeKernel(kernel, info.chunks, arguments);
  }
  return times;
}

} // namespace ortc::driver
