// How long kernels take, here.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/measure/MeasureKernels.h"

#include <cstring>
#include <ctime>
#include <map>
#include <random>
#include <sys/mman.h>

using namespace mlir;

namespace ortc::cpu {

namespace {

/// Where a step's buffers lie in its scratch memory.
struct Layout {
  std::vector<size_t> offsets; ///< of inputs, then outputs
  std::vector<MemRefType> types;
  size_t workspace = 0, bytes = 0;
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

static constexpr size_t kHugePage = 2 << 20;

KernelTrial::KernelTrial(plan::StepOp step, int64_t workspaceBytes) {
  Layout layout = layOut(step, workspaceBytes);
  // In huge pages, as a session of `ortc run` is.
  size = llvm::alignTo(std::max<size_t>(layout.bytes, 1), kHugePage) + kHugePage;
  mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    return;
  data = reinterpret_cast<uint8_t *>(llvm::alignTo(reinterpret_cast<uintptr_t>(mapping), kHugePage));
#ifdef MADV_HUGEPAGE
  madvise(data, size - kHugePage, MADV_HUGEPAGE); // a wish
#endif
  for (auto [offset, type] : llvm::zip_equal(layout.offsets, layout.types)) {
    fill(type, data + offset);
    arguments.push_back(data + offset);
  }
  if (workspaceBytes > 0)
    arguments.push_back(data + layout.workspace);
}

KernelTrial::~KernelTrial() {
  if (data)
    munmap(mapping, size);
}

void KernelTrial::run(const Code &code) {
  for (int64_t chunk = 0; chunk < code.chunks; ++chunk)
    code.kernel(arguments.data(), chunk, 0);
}

/// Calls of which one reading of the clock, which costs up to a microsecond, is a small part.
static int64_t findRepeats(double took) { return static_cast<int64_t>(2e-5 / std::max(took, 5e-8)) + 1; }

double KernelTrial::time(ortc_task_fn kernel, int64_t chunks) {
  Code code{kernel, chunks};
  double start = seconds();
  run(code); // fills the caches
  double took = seconds() - start;
  int64_t repeats = findRepeats(took);
  double best = took, spent = 0;
  for (int round = 0; round < 10 && spent < 0.02; ++round) {
    start = seconds();
    for (int64_t i = 0; i < repeats; ++i)
      run(code);
    took = seconds() - start;
    spent += took;
    best = std::min(best, took / double(repeats));
  }
  return best;
}

std::vector<double> KernelTrial::timeInTurns(const std::vector<Code> &codes) {
  constexpr int kTurns = 12, kTurnsOfAll = 3;
  constexpr double kSeconds = 0.03, kSlower = 1.1, kHopeless = 1.4, kLong = 2e-3;
  std::vector<double> best(codes.size()), spent(codes.size(), 0);
  if (codes.empty())
    return best;
  run(codes.front()); // fills the caches
  for (auto [time, code] : llvm::zip_equal(best, codes)) {
    double start = seconds();
    run(code);
    time = seconds() - start;
  }
  for (int turn = 0; turn < kTurns; ++turn) {
    double fastest = *std::min_element(best.begin(), best.end());
    for (size_t i = 0; i < codes.size(); ++i) {
      if (best[i] > (turn < kTurnsOfAll ? kHopeless : kSlower) * fastest ||
          (turn >= kTurnsOfAll && spent[i] > kSeconds))
        continue;
      int64_t repeats = findRepeats(best[i]);
      if (best[i] < kLong)
        run(codes[i]); // its own data into the caches
      double start = seconds();
      for (int64_t call = 0; call < repeats; ++call)
        run(codes[i]);
      double took = seconds() - start;
      spent[i] += took;
      best[i] = std::min(best[i], took / double(repeats));
    }
  }
  return best;
}

Expected<std::vector<double>> measureKernels(ModuleOp module, const kernels::ProgramKernels &kernels,
                                             const ProgramCode &code) {
  auto blob = LoadedBlob::load(code.blob);
  if (!blob)
    return Status::failure(llvm::toString(blob.takeError()));
  llvm::StringMap<plan::StepOp> steps = kernels::findFirstSteps(module);
  std::vector<double> times;
  for (auto [i, name] : llvm::enumerate(kernels.names)) {
    times.push_back(0);
    const KernelInfo &info = code.kernels[i];
    auto kind = module.lookupSymbol(name)->getAttrOfType<plan::KernelKindAttr>(plan::kKind).getValue();
    ortc_task_fn kernel = blob->kernel(info.name);
    if (kind == plan::KernelKind::check || !kernel)
      continue;
    KernelTrial trial(steps.lookup(name), info.workspaceBytesPerWorker);
    if (trial.isReady()) // otherwise there is no memory for its buffers: not measured
      times.back() = trial.time(kernel, info.chunks);
  }
  return times;
}

Expected<std::unique_ptr<LoadedVariants>> loadVariants(ProgramCode code) {
  auto blob = LoadedBlob::load(std::move(code.blob));
  if (!blob)
    return Status::failure(llvm::toString(blob.takeError()));
  auto variants = std::make_unique<LoadedVariants>(std::move(*blob));
  variants->kernels = std::move(code.kernels);
  return variants;
}

Expected<std::vector<double>> timeVariants(plan::StepOp step, const LoadedVariants &variants,
                                           const std::vector<size_t> &numbers) {
  int64_t workspace = 0;
  std::vector<KernelTrial::Code> codes;
  for (size_t number : numbers) {
    const KernelInfo &info = variants.kernels[number];
    workspace = std::max(workspace, info.workspaceBytesPerWorker);
    codes.push_back({variants.blob.kernel(info.name), info.chunks});
  }
  KernelTrial trial(step, workspace);
  if (!trial.isReady())
    return Status::failure("cannot get " + std::to_string(trial.bytes()) + " bytes to measure " +
                           step.getKernel().str());
  return trial.timeInTurns(codes);
}

} // namespace ortc::cpu
