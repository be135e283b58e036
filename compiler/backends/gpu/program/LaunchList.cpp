// A placed program as the launches of an entry.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/program/LaunchList.h"

#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace mlir;

namespace ortc::gpu {

namespace {

class ListMaker {
public:
  explicit ListMaker(const KernelTable &table) : table(table) {}

  /// `times`: iterations of all loops around the block.
  Status walk(Block &block, unsigned depth, uint64_t times) {
    for (Operation &op : block) {
      size_t before = list.launches.size();
      if (auto step = dyn_cast<plan::StepOp>(op)) {
        addStep(step);
      } else if (auto guard = dyn_cast<plan::GuardOp>(op)) {
        addGuard(guard);
      } else if (auto loop = dyn_cast<plan::LoopOp>(op)) {
        if (depth == ORTC_MAX_LOOPS)
          return Status::refusal("more than " + std::to_string(ORTC_MAX_LOOPS) +
                                 " loops within each other cannot run on a GPU");
        list.launches.push_back(
            {ORTC_LAUNCH_LOOP, 0, static_cast<uint32_t>(loop.getTripCount()), loop.getReverse(), 0, 0});
        uint64_t turns = llvm::SaturatingMultiply(times, static_cast<uint64_t>(loop.getTripCount()));
        ORTC_TRY(count(turns));
        ORTC_TRY(walk(loop.getBody().front(), depth + 1, turns));
        list.launches.push_back({ORTC_LAUNCH_END, 0, 1, 0, 0, 0});
        ORTC_TRY(count(times));
        continue;
      }
      ORTC_TRY(count(llvm::SaturatingMultiply<uint64_t>(times, list.launches.size() - before)));
    }
    return {};
  }

  LaunchList list;

private:
  /// As the device library counts: launches and the ends of loops in every iteration.
  Status count(uint64_t more) {
    launches = llvm::SaturatingAdd(launches, more);
    if (launches <= ORTC_MAX_LAUNCHES)
      return {};
    return Status::refusal(
        "a step of this model would be more than " + std::to_string(ORTC_MAX_LAUNCHES) +
        " launches on a GPU, iterations of loops counted, which is the limit; make sequences "
        "shorter, or compile for processors only");
  }
  uint64_t launches = 0;

  void addStep(plan::StepOp step) {
    const GpuKernel &kernel = table.kernels.at(step.getKernel().str());
    uint32_t first = static_cast<uint32_t>(list.arguments.size());
    if (kernel.launches.empty())
      return;
    for (Value buffer : step.getInputs())
      addBuffer(buffer);
    for (Value buffer : step.getOutputs())
      addBuffer(buffer);
    if (kernel.scratchBytes)
      list.arguments.push_back({ORTC_ARGUMENT_TRANSIENT,
                                0,
                                static_cast<uint64_t>(step.getScratch().value_or(0)),
                                static_cast<uint64_t>(kernel.scratchBytes),
                                {}});
    addStatus();
    for (const Launch &launch : kernel.launches)
      list.launches.push_back({ORTC_LAUNCH_KERNEL, table.numbers.at(launch.symbol),
                               static_cast<uint32_t>(launch.blocks), 0, first, 0});
  }

  void addGuard(plan::GuardOp guard) {
    uint32_t first = static_cast<uint32_t>(list.arguments.size());
    addBuffer(guard.getLoss());
    addStatus();
    bool isDouble = cast<MemRefType>(guard.getLoss().getType()).getElementType().isF64();
    list.launches.push_back(
        {ORTC_LAUNCH_KERNEL, table.numbers.at(KernelTable::guardName(isDouble)), 1, 0, first, 0});
  }

  void addBuffer(Value value) {
    auto buffer = value.getDefiningOp<plan::BufferOp>();
    auto type = cast<MemRefType>(buffer.getType());
    int64_t bytes = type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
    ortc_launch_argument argument{};
    argument.kind = static_cast<uint32_t>(buffer.getRegion());
    argument.offset = static_cast<uint64_t>(buffer.getOffset());
    argument.bytes = static_cast<uint64_t>(bytes);
    for (auto [i, stride] : llvm::enumerate(buffer.getStrides().value_or(ArrayRef<int64_t>())))
      argument.strides[i] = stride;
    list.arguments.push_back(argument);
  }
  void addStatus() { list.arguments.push_back({ORTC_ARGUMENT_STATUS, 0, 0, sizeof(ortc_device_status), {}}); }

  const KernelTable &table;
};
static_assert(static_cast<int>(plan::Region::constants) == ORTC_ARGUMENT_CONSTANTS &&
                  static_cast<int>(plan::Region::persistent) == ORTC_ARGUMENT_PERSISTENT &&
                  static_cast<int>(plan::Region::transient) == ORTC_ARGUMENT_TRANSIENT &&
                  static_cast<int>(plan::Region::external) == ORTC_ARGUMENT_EXTERNAL,
              "regions are kinds of arguments");

/// Bytes that grow, with places that are filled in later.
class Writer {
public:
  uint64_t align(size_t alignment) {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    return bytes.size();
  }
  template <typename Row> uint64_t append(const std::vector<Row> &rows) {
    uint64_t at = align(8);
    bytes.resize(at + rows.size() * sizeof(Row));
    if (!rows.empty())
      std::memcpy(bytes.data() + at, rows.data(), rows.size() * sizeof(Row));
    return at;
  }
  template <typename Row> uint64_t append(const Row &row) { return append(std::vector<Row>{row}); }
  template <typename Row> void put(uint64_t at, const Row &row) {
    std::memcpy(bytes.data() + at, &row, sizeof(Row));
  }

  std::vector<uint8_t> bytes;
};

} // namespace

Expected<LaunchList> makeLaunchList(plan::ProgramOp program, const KernelTable &table) {
  ListMaker maker(table);
  ORTC_TRY(maker.walk(program.getBody().front(), 0, 1));
  return std::move(maker.list);
}

std::vector<uint8_t> writeSection(const std::vector<SectionEntry> &entries, const KernelTable &table,
                                  const std::vector<SectionImage> &images) {
  Writer out;
  out.append(ortc_blob{ORTC_BLOB_MAGIC, ORTC_CALL_ABI, static_cast<uint32_t>(entries.size()),
                       sizeof(ortc_blob_entry)});
  std::vector<ortc_blob_entry> heads;
  for (const SectionEntry &entry : entries)
    heads.push_back(entry.head);
  uint64_t headsAt = out.append(heads);
  ortc_device_code code{};
  uint64_t codeAt = out.append(code);

  std::vector<ortc_device_kernel> rows = table.rows;
  code.kernel_count = static_cast<uint32_t>(rows.size()), code.kernel_bytes = sizeof(ortc_device_kernel);
  code.kernels = out.append(rows);
  for (const auto &[symbol, number] : table.numbers) {
    rows[number].name = static_cast<uint32_t>(out.bytes.size());
    out.bytes.insert(out.bytes.end(), symbol.begin(), symbol.end());
    out.bytes.push_back(0);
  }
  for (size_t i = 0; i < rows.size(); ++i)
    out.put(code.kernels + i * sizeof(ortc_device_kernel), rows[i]);

  for (size_t i = 0; i < entries.size(); ++i) {
    const LaunchList &from = entries[i].list;
    ortc_launch_list list{static_cast<uint32_t>(from.launches.size()),  sizeof(ortc_launch),          0,
                          static_cast<uint32_t>(from.arguments.size()), sizeof(ortc_launch_argument), 0};
    list.launches = out.append(from.launches);
    list.arguments = out.append(from.arguments);
    heads[i].offset = static_cast<uint32_t>(out.append(list));
    out.put(headsAt + i * sizeof(ortc_blob_entry), heads[i]);
  }

  std::vector<ortc_device_image> imageRows;
  for (const SectionImage &image : images) {
    uint64_t at = out.align(64);
    out.bytes.insert(out.bytes.end(), image.bytes.begin(), image.bytes.end());
    imageRows.push_back({image.kind, image.processor, at, image.bytes.size()});
  }
  code.image_count = static_cast<uint32_t>(images.size()), code.image_bytes = sizeof(ortc_device_image);
  code.images = out.append(imageRows);
  out.put(codeAt, code);
  return std::move(out.bytes);
}

} // namespace ortc::gpu
