// The parts of a contraction's plan that measurements may choose.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/contraction/ContractionChoices.h"

#include "mlir/IR/BuiltinTypes.h"

#include <algorithm>
#include <map>

using namespace mlir;

namespace ortc::cpu {

using namespace kernels;

/// Other tiles that are tried, and how much worse than that of the best of them their estimate may be.
static constexpr size_t kTiles = 4;
static constexpr double kTileSlack = 1.4;
/// Blocks of k that are not worth while, and most rows that are gathered at a time.
static constexpr int64_t kLeastDepth = 128, kMostGathered = 384;

ContractionChoice choiceOf(const ContractionPlan &plan) {
  return {plan.mainStrip().rows, plan.strips[0].vectors, plan.kBlock,    plan.outerPerChunk,
          plan.rowChunk,         plan.laneChunk,         plan.packLanes, plan.packedRows};
}

KernelChoice nameChoice(const ContractionChoice &choice) {
  return {{"rows", choice.rows},
          {"vectors", choice.vectors},
          {"depth", choice.depth},
          {"chunk_batch", choice.outer},
          {"chunk_rows", choice.rowChunk},
          {"chunk_columns", choice.laneChunk},
          {"pack_columns", choice.packLanes},
          {"pack_rows", choice.packedRows}};
}

std::optional<ContractionChoice> readChoice(const KernelChoice &named) {
  ContractionChoice choice;
  int64_t packLanes = 0;
  const std::pair<const char *, int64_t *> fields[] = {
      {"rows", &choice.rows},         {"vectors", &choice.vectors},     {"depth", &choice.depth},
      {"chunk_batch", &choice.outer}, {"chunk_rows", &choice.rowChunk}, {"chunk_columns", &choice.laneChunk},
      {"pack_columns", &packLanes},   {"pack_rows", &choice.packedRows}};
  for (auto [name, field] : fields) {
    auto found = named.find(name);
    if (found == named.end())
      return std::nullopt;
    *field = found->second;
  }
  choice.packLanes = packLanes == 1;
  if (named.size() != std::size(fields) || packLanes < 0 || packLanes > 1)
    return std::nullopt;
  return choice;
}

namespace {

/// Collects what is possible, once.
class Neighbours {
public:
  Neighbours(const ContractionSpec &spec, const Target &target, const ContractionPlan &plan)
      : spec(spec), target(target), plan(plan), own(choiceOf(plan)) {}

  std::vector<ContractionChoice> find() {
    addTiles();
    addDepths();
    addChunks();
    addPacking();
    return std::move(found);
  }

private:
  std::optional<ContractionPlan> planOf(const ContractionChoice &choice) {
    return planContraction(spec, target, choice);
  }
  void add(const ContractionChoice &choice) {
    if (!(choice == own) && !llvm::is_contained(found, choice) && planOf(choice))
      found.push_back(choice);
  }

  /// The number of chunks of columns stays about the same.
  ContractionChoice withTile(int64_t rows, int64_t vectors) {
    ContractionChoice choice = own;
    choice.rows = rows, choice.vectors = vectors;
    ContractionPlan cut = plan;
    int64_t width = vectors * plan.lanes;
    cut.strips[0].end = plan.lane.size / width * width, cut.strips[0].vectors = vectors;
    choice.laneChunk = roundUp(ceilDiv(plan.lane.size, plan.laneChunks), laneUnitOf(cut));
    if (own.packedRows)
      choice.packedRows = roundUp(own.packedRows, rows);
    return choice;
  }

  void addTiles() {
    std::multimap<double, ContractionChoice> tiles; // by estimate
    for (int64_t vectors : {1, 2, 3, 4, 6, 8})
      for (int64_t rows : {12, 8, 6, 4, 3, 2, 1})
        if (ContractionChoice choice = withTile(rows, vectors); !(choice == own))
          if (auto cut = planOf(choice))
            tiles.emplace(estimateTiles(*cut, target), choice);
    for (const auto &[cycles, choice] : tiles)
      if (found.size() < kTiles && cycles <= kTileSlack * tiles.begin()->first)
        add(choice);
  }

  void addDepths() {
    int64_t all = plan.kLoops.back().size;
    for (double factor : {0.5, 0.75, 1.5, 2.0}) {
      int64_t wanted = std::min(all, static_cast<int64_t>(factor * static_cast<double>(own.depth)));
      ContractionChoice choice = own;
      int64_t blocks = ceilDiv(all, std::max<int64_t>(1, wanted));
      choice.depth = blocks == 1 ? all : roundUp(ceilDiv(all, blocks), 16);
      if (choice.depth >= kLeastDepth)
        add(choice);
    }
  }

  /// Even ones, twice as many or half.
  void addChunks() {
    auto cut = [](int64_t all, int64_t chunks, int64_t unit) {
      return roundUp(ceilDiv(all, std::max<int64_t>(1, chunks)), unit);
    };
    ContractionChoice choice = own;
    int64_t laneUnit = laneUnitOf(plan);
    for (int64_t chunks : {2 * plan.laneChunks, plan.laneChunks / 2}) {
      choice.laneChunk = cut(plan.lane.size, chunks, laneUnit);
      add(choice);
    }
    choice = own;
    for (int64_t chunks : {2 * plan.rowChunks, plan.rowChunks / 2}) {
      choice.rowChunk = cut(plan.row.size, chunks, kRowUnit);
      add(choice);
    }
    // The same number of chunks, cut the other way.
    choice = own;
    choice.laneChunk = cut(plan.lane.size, plan.laneChunks / 2, laneUnit);
    choice.rowChunk = cut(plan.row.size, 2 * plan.rowChunks, kRowUnit);
    add(choice);
  }

  void addPacking() {
    ContractionChoice choice = own;
    choice.packLanes = !own.packLanes;
    add(choice);
    choice = own;
    for (int64_t rows :
         {int64_t(0), own.packedRows ? own.packedRows / 2 : target.machine.contraction.gatheredRows,
          2 * own.packedRows}) {
      choice.packedRows = std::min(roundUp(rows, plan.strips[0].rows), kMostGathered);
      add(choice);
    }
  }

  const ContractionSpec &spec;
  const Target &target;
  const ContractionPlan &plan;
  const ContractionChoice own;
  std::vector<ContractionChoice> found;
};

/// Sizes and strides of A, B and the first result, and what else a plan reads.
std::string makeKey(const ContractionSpec &spec) {
  std::string key;
  llvm::raw_string_ostream text(key);
  text << "contraction " << spec.accumulatorType;
  for (Type narrow : {spec.narrowA, spec.narrowB})
    if (narrow)
      text << " of " << narrow;
  unsigned output = findOutput(spec);
  auto list = [&](StringRef name, ArrayRef<ContractionDim> dims) {
    for (const ContractionDim &dim : collapseDims(dims))
      text << " " << name << " " << dim.size << "(" << dim.strides[0] << "," << dim.strides[1] << ","
           << dim.strides[output] << ")";
  };
  list("batch", spec.batch);
  list("m", spec.m);
  list("n", spec.n);
  list("k", spec.k);
  if (spec.epilogue)
    text << (spec.rollEpilogue ? " long epilogue" : " epilogue");
  if (spec.partialOperand < 0)
    text << " sums aside";
  return key;
}

std::vector<int64_t> chunkSizes(const ContractionPlan &plan) {
  auto sizes = [](int64_t all, int64_t chunk) {
    std::vector<int64_t> result;
    for (int64_t at = 0; at < all; at += chunk)
      result.push_back(std::min(chunk, all - at));
    return result;
  };
  std::vector<int64_t> chunks;
  for (int64_t outer : sizes(plan.outerTotal, plan.outerPerChunk))
    for (int64_t rows : sizes(plan.row.size, plan.rowChunk))
      for (int64_t columns : sizes(plan.lane.size, plan.laneChunk))
        chunks.push_back(outer * rows * columns);
  return chunks;
}

} // namespace

std::vector<ContractionChoice> findNeighbours(const ContractionSpec &spec, const Target &target,
                                              const ContractionPlan &plan) {
  return Neighbours(spec, target, plan).find();
}

FailureOr<ContractionPlan> chooseContraction(MLIRContext *context, const ContractionSpec &spec,
                                             const Target &target, KernelBlocking &blocking) {
  blocking.key = makeKey(spec);
  ContractionPlan plan = planContraction(spec, target);
  if (const KernelChoice *given = findChoice(spec.choices, blocking.key)) {
    std::optional<ContractionChoice> choice = readChoice(*given);
    auto chosen = choice ? planContraction(spec, target, *choice) : std::nullopt;
    if (!chosen)
      return refuseChoice(context, *spec.choices, blocking.key);
    plan = std::move(*chosen);
    blocking.isGiven = true;
  }
  blocking.choice = nameChoice(choiceOf(plan));
  blocking.imbalance = findImbalance(chunkSizes(plan), target.workers);
  if (spec.choices)
    for (const ContractionChoice &choice : findNeighbours(spec, target, plan))
      blocking.neighbours.push_back(nameChoice(choice));
  return plan;
}

} // namespace ortc::cpu
