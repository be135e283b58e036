// What ortc-plan does: reads a packing problem, packs each of its pools, and writes the offsets.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc-plan/PackFile.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <ctime>

#include "compiler/planning/csv/PackingCsv.h"
#include "support/AtomicFile.h"
#include "support/MappedFile.h"
#include "support/OutputPaths.h"
#include "support/Plural.h"

namespace ortc::tool {

using namespace planning;

namespace {

/// Limit of the heuristics. Most of what they find is found in the first tenth of a second.
constexpr uint64_t kHeuristicWork = 1'000'000'000;

std::string bytes(uint64_t count) { return formatCount(int64_t(count), "byte"); }

class PackedFile {
public:
  explicit PackedFile(const PackOptions &options) : options(options) {}

  Status run() {
    ORTC_TRY(checkOutputs({{"the input", options.input}}, {{"-o", options.output}}));
    std::string place;
    if (!options.output.empty())
      ORTC_TRY(resolveOutput(options.output, place)); // refused before the search, not after it
    ORTC_TRY(read());
    for (const Pool &pool : pools)
      ORTC_TRY(packPool(pool));
    return options.output.empty() ? Status() : write();
  }

private:
  Status read() {
    std::shared_ptr<const MappedFile> mapped;
    ORTC_TRY(MappedFile::open(options.input, mapped));
    Expected<PackingFile> parsed =
        readPacking({reinterpret_cast<const char *>(mapped->getData()), mapped->getBytes()});
    if (!parsed)
      return Status::refusal(options.input + ": " + parsed.getStatus().getMessage());
    file = std::move(*parsed);
    std::vector<uint32_t> poolOf = file.pools;
    poolOf.resize(file.problem.items.size(), 0);
    pools = splitPools(file.problem, poolOf);
    if (pools.empty())
      pools.emplace_back();
    for (auto [number, capacity] : options.capacities)
      if (std::none_of(pools.begin(), pools.end(), [&](const Pool &pool) { return pool.number == number; }))
        return Status::refusal("--capacity " + std::to_string(number) + "=" + std::to_string(capacity) +
                               ": " + options.input + " has no buffer in pool " + std::to_string(number));
    offsets.resize(file.problem.items.size());
    return Status();
  }

  std::optional<uint64_t> capacityOf(const Pool &pool) const {
    auto own = options.capacities.find(pool.number);
    return own != options.capacities.end() ? own->second : options.capacity;
  }

  Status packPool(const Pool &pool) {
    std::optional<uint64_t> capacity = capacityOf(pool);
    std::clock_t begin = std::clock();
    PackingOptions limits;
    limits.target = capacity.value_or(0);
    limits.work = kHeuristicWork;
    limits.exactWork = options.work;
    Packing packing = pack(pool.problem, limits);
    if (ortc::Status status = validatePacking(pool.problem, packing.offsets, packing.height); !status.isOk())
      return Status::failure(options.input + ": the validator refuses the packing: " + status.getMessage() +
                             "; please report this with the file");
    print(pool, packing, capacity, double(std::clock() - begin) / CLOCKS_PER_SEC);
    if (capacity && packing.height > *capacity)
      return tooHigh(pool, packing, *capacity);
    for (size_t i = 0; i < pool.items.size(); ++i)
      offsets[pool.items[i]] = packing.offsets[i];
    return Status();
  }

  void print(const Pool &pool, const Packing &packing, std::optional<uint64_t> capacity,
             double seconds) const {
    uint64_t gap = packing.height - packing.bound;
    if (!file.pools.empty())
      std::printf("pool       %" PRIu32 "\n", pool.number);
    std::printf("buffers    %zu\nmax-live   %" PRIu64 "\n", pool.items.size(), packing.maxLive);
    if (packing.bound > packing.maxLive)
      std::printf("bound      %" PRIu64 ", the end of a fixed buffer\n", packing.bound);
    std::printf("height     %" PRIu64 "\ngap        %s (%.3f %%) above %s\n", packing.height,
                bytes(gap).c_str(), packing.bound == 0 ? 0.0 : 100 * double(gap) / double(packing.bound),
                packing.bound > packing.maxLive ? "the bound" : "max-live");
    if (capacity)
      std::printf("capacity   %" PRIu64 "\n", *capacity);
    std::printf("placement  %s\nseconds    %.2f\n", packing.source.c_str(), seconds);
  }

  Status tooHigh(const Pool &pool, const Packing &packing, uint64_t capacity) const {
    std::string where = options.input + (file.pools.empty() ? "" : ": pool " + std::to_string(pool.number));
    if (packing.bound > capacity)
      return Status::failure(where + ": no packing fits the capacity of " + bytes(capacity) + ": " +
                             (packing.bound > packing.maxLive ? "a fixed buffer ends at " : "max-live is ") +
                             std::to_string(packing.bound) + "; raise --capacity to " +
                             std::to_string(packing.height));
    return Status::failure(where + ": no packing within the capacity of " + bytes(capacity) +
                           " was found: the best is " + std::to_string(packing.height) +
                           " high, and max-live is " + std::to_string(packing.maxLive) +
                           "; raise --capacity to that height, or --work to search longer");
  }

  Status write() const { return writeFile(options.output, writePacking(file, offsets)); }

  const PackOptions &options;
  PackingFile file;
  std::vector<Pool> pools;
  std::vector<uint64_t> offsets; ///< per buffer of the file
};

} // namespace

Status packFile(const PackOptions &options) { return PackedFile(options).run(); }

} // namespace ortc::tool
