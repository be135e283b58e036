// Chooses lanes, tiles, blocks and chunks of a contraction.
// Figures behind the choices: docs/benchmarks/contractions.md.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/contraction/ContractionPlan.h"

#include "compiler/backends/cpu/contraction/Microkernel.h"

#include <algorithm>
#include <cassert>
#include <numeric>

using namespace mlir;

namespace ortc::cpu {

using namespace kernels;

/// Columns that a packed block has at most where its tiles are estimated.
static constexpr int64_t kPackedColumns = 256;
/// Rows and results are fetched where they are so many times as large as the second-level cache, and have at most so
/// many multiply-adds an element: with more, the wait for it is a small part.
static constexpr int64_t kFetchedCaches = 4, kFetchReuse = 64;
/// Elements of an operand that a choice may have copied at a time, by every worker.
static constexpr int64_t kMostPackedElements = 1 << 20;

unsigned findOutput(const ContractionSpec &spec) {
  for (size_t i = 2; i < spec.operands.size(); ++i)
    if (spec.buffers[spec.operands[i].buffer].written)
      return i;
  return 2;
}

namespace {

/// Cycles of one step of k for a tile. Loads that hide behind arithmetic still cost a little: larger tiles win ties.
double tileCost(int64_t rows, int64_t vectors, const TileModel &model, double vectorCycles) {
  double arithmetic = rows * vectors / model.macsPerCycle, loads = (rows + vectors) / model.loadsPerCycle;
  return std::max({arithmetic, loads, model.latencyCycles}) + model.rowCycles * rows + vectorCycles * vectors;
}

double rowsCost(int64_t total, int64_t rows, int64_t vectors, const TileModel &model, double vectorCycles) {
  double cost = total / rows * tileCost(rows, vectors, model, vectorCycles);
  return total % rows ? cost + tileCost(total % rows, vectors, model, vectorCycles) : cost;
}

/// The best tile height for strips of `vectors` vectors.
int64_t pickRows(const ContractionPlan &plan, int64_t vectors, const Target &target) {
  int64_t total = plan.row.size, most = plan.areRowsContiguous() ? 12 : 8;
  const TileModel &model = target.machine.tiles;
  auto fits = [&](int64_t rows) {
    return rows <= most && fitsRegisters(rows, vectors, target, plan.usesFma);
  };
  int64_t best = 1;
  double bestCost = -1;
  for (int64_t rows : {12, 8, 6, 4, 3, 2, 1}) {
    if (!fits(rows) || rows > total)
      continue;
    double cost = rowsCost(total, rows, vectors, model, model.vectorCycles);
    if (bestCost < 0 || cost < bestCost)
      best = rows, bestCost = cost;
  }
  // A height that is none of the list when it is all there is.
  if (total < 12 && fits(total) && tileCost(total, vectors, model, model.vectorCycles) < bestCost)
    best = total;
  return best;
}

} // namespace

/// Cuts columns into a main strip of tiles of `width` vectors and an edge.
static void cutColumns(ContractionPlan &plan, int64_t width, const Target &target) {
  int64_t columns = plan.lane.size, whole = columns / (width * plan.lanes) * (width * plan.lanes);
  plan.strips[0] = {0, whole, width, plan.lanes, pickRows(plan, width, target)};
  if (whole < columns) {
    int64_t rest = columns - whole, edgeVectors = ceilDiv(rest, plan.lanes);
    plan.strips[1] = {whole, columns, edgeVectors, rest - (edgeVectors - 1) * plan.lanes,
                      pickRows(plan, edgeVectors, target)};
  }
}

double estimateTiles(const ContractionPlan &plan, const Target &target) {
  const TileModel &model = target.machine.tiles;
  int64_t block = std::min(plan.lane.size, kPackedColumns) * plan.blockDepth();
  bool isFar = plan.packLanes && block > model.nearElements;
  double cycles = 0, vectorCycles = isFar ? model.farVectorCycles : model.vectorCycles;
  for (const ContractionStrip &strip : plan.strips)
    if (strip.begin < strip.end)
      cycles += rowsCost(plan.row.size, strip.rows, strip.vectors, model, vectorCycles) *
                static_cast<double>(ceilDiv(strip.end - strip.begin, strip.vectors * plan.lanes));
  return cycles;
}

/// The cut whose estimated cycles are fewest.
static void planStrips(ContractionPlan &plan, const Target &target) {
  int64_t vectors = ceilDiv(plan.lane.size, plan.lanes), best = 1;
  double bestCost = -1;
  for (int64_t width : {4, 3, 2, 6, 8, 1}) {
    if (width > vectors || !fitsRegisters(1, width, target, plan.usesFma))
      continue;
    ContractionPlan cut = plan;
    cutColumns(cut, width, target);
    double cost = estimateTiles(cut, target);
    if (bestCost < 0 || cost < bestCost)
      bestCost = cost, best = width;
  }
  cutColumns(plan, best, target);
}

/// Cycles that a cut of rows and columns costs: arithmetic of the busiest worker, copies or reads of B for every row
/// chunk, those of A for every column chunk.
static double chunkCost(const ContractionPlan &plan, int64_t rowChunks, int64_t laneChunks,
                        const Target &target) {
  const ContractionModel &model = target.machine.contraction;
  int64_t workers = target.workers;
  double depth = plan.blocks() * plan.blockDepth(), rows = plan.row.size, columns = plan.lane.size;
  int64_t chunks = plan.outerChunks * rowChunks * laneChunks;
  double turns = static_cast<double>(ceilDiv(chunks, workers) * workers) / chunks;
  double packing = (plan.packLanes ? model.packCycles : model.readCycles) * rowChunks * columns * depth;
  double reading =
      (plan.areRowsContiguous() ? model.packCycles : model.readCycles) * laneChunks * rows * depth;
  return turns * (rows * columns * depth / model.macsPerCycle + packing + reading);
}

// The width of most panels divides 64.
int64_t laneUnitOf(const ContractionPlan &plan) {
  return plan.strips[0].end > 0 ? std::lcm<int64_t>(plan.strips[0].vectors * plan.lanes, 64) : 64;
}

/// Chunks are outer indices, then rows and columns. The order of sums does not depend on them, so they may
/// depend on the number of workers. As few as keep all workers busy: every chunk packs for itself.
static void planChunks(ContractionPlan &plan, const Target &target) {
  const ContractionModel &model = target.machine.contraction;
  int64_t workers = target.workers;
  double depth = plan.blocks() * plan.blockDepth();
  double flops = 2.0 * plan.outerTotal * plan.row.size * plan.lane.size * depth;
  // More than two workers may well be fewer in a session: twice as many chunks, then, to keep them even.
  int64_t wanted = workers <= 2 ? workers : 2 * workers;
  int64_t enough =
      std::clamp<int64_t>(static_cast<int64_t>(flops / target.machine.parallel.contractionFlops), 1, wanted);
  int64_t outer = plan.outerTotal >= enough ? kOuterChunks * enough : enough;
  plan.outerPerChunk = ceilDiv(plan.outerTotal, std::min(outer, plan.outerTotal));
  plan.outerChunks = ceilDiv(plan.outerTotal, plan.outerPerChunk);
  enough = ceilDiv(enough, plan.outerChunks);

  int64_t laneUnit = laneUnitOf(plan), laneUnits = ceilDiv(plan.lane.size, laneUnit);
  // Each tile reads all columns of its chunk: packed, from the second-level cache; in place, better from the first.
  // Rows that are copied want many.
  bool wide = plan.packLanes || plan.areRowsContiguous();
  int64_t depthOfBlock = std::max<int64_t>(1, plan.blockDepth());
  int64_t columnBytes = depthOfBlock * target.isa.vectorBits / 8 / plan.lanes; // of one column
  int64_t widest = wide ? std::min(model.laneChunk, target.machine.l2Bytes / model.packedShare / columnBytes)
                        : model.inPlaceElements / depthOfBlock;
  int64_t resultBytes = plan.outerTotal * plan.row.size * plan.lane.size * (columnBytes / depthOfBlock);
  if (wide && resultBytes >= model.streamedBytes && plan.lane.size <= model.wholeColumns)
    widest = roundUp(plan.lane.size, laneUnit);
  int64_t most = std::clamp<int64_t>(widest / laneUnit, 1, laneUnits);
  int64_t rowUnits = ceilDiv(plan.row.size, kRowUnit);
  double bestCost = -1;
  for (int64_t perChunk = most; perChunk >= 1; --perChunk) {
    int64_t laneChunks = ceilDiv(laneUnits, perChunk);
    int64_t perRowChunk = ceilDiv(rowUnits, std::clamp<int64_t>(ceilDiv(enough, laneChunks), 1, rowUnits));
    int64_t rowChunks = ceilDiv(rowUnits, perRowChunk);
    double cost = chunkCost(plan, rowChunks, laneChunks, target);
    if (bestCost >= 0 && cost >= bestCost)
      continue;
    bestCost = cost;
    plan.laneChunk = perChunk * laneUnit, plan.laneChunks = laneChunks;
    plan.rowChunk = perRowChunk * kRowUnit, plan.rowChunks = rowChunks;
    if (laneChunks >= kOuterChunks * enough)
      break;
  }
}

/// Whether vectors of the lane operand are copied to the workspace first.
static bool wantsPacking(const ContractionPlan &plan, bool narrow, const MachineModel &machine) {
  int64_t rows = plan.row.size, columns = plan.lane.size;
  if (plan.lane.strides[plan.laneOperand] != 1)
    return true; // no vectors to load in place
  if (rows <= 8)
    return false;
  if (narrow && rows > 24)
    return true; // convert once
  const ContractionModel &model = machine.contraction;
  bool aligned = plan.kLoops.back().strides[plan.laneOperand] % 16 == 0;
  bool isNear = columns * plan.blockDepth() <= machine.tiles.nearElements;
  int64_t most = !aligned ? model.unalignedRows : isNear ? model.nearRows : model.inPlaceRows;
  return rows > most || columns > model.inPlaceColumns;
}

/// Whether every k finds the rows of the broadcast operand far from those of the k before.
static bool areRowsFar(const ContractionPlan &plan, int64_t elementBytes, const ContractionModel &model) {
  return plan.areRowsContiguous() &&
         plan.kLoops.back().strides[plan.rowOperand] * elementBytes >= model.gatheredStride;
}

/// Whether rows of the broadcast operand that lie k by k far apart are gathered first: every k of a tile would be
/// another cache line (and often the same cache set) of which few bytes are used. Worth it for two panels or more.
static bool wantsRowPacking(const ContractionPlan &plan, int64_t elementBytes, bool narrow,
                            const ContractionModel &model) {
  const ContractionStrip &strip = plan.strips[0];
  if (narrow) // extended while they are gathered
    return plan.areRowsContiguous() && strip.end > 0 && plan.row.size >= kRowUnit &&
           model.gatheredRows % strip.rows == 0;
  int64_t panels = std::min(plan.laneChunk, strip.end) / (strip.vectors * plan.lanes);
  int64_t least = plan.packLanes ? model.gatheredPanels : 2;
  return panels >= least && plan.blockDepth() >= model.gatheredLeastDepth && strip.rows >= 4 &&
         plan.row.size >= kRowUnit && areRowsFar(plan, elementBytes, model);
}

/// Elements of a narrow row lie side by side: vectors of them are extended, not one by one for every panel.
static void planWidening(ContractionPlan &plan, const ContractionSpec &spec) {
  if (!spec.narrow(plan.rowOperand) || plan.areRowsContiguous() || plan.packedRows)
    return;
  // what tiles read stays in the first-level cache
  plan.widenedRows = std::lcm(plan.strips[0].rows, plan.strips[1].rows);
  // A vector more, so that rows of a tile are not in the same cache sets.
  plan.widenedPitch = roundUp(plan.blockDepth(), plan.lanes) + plan.lanes;
  plan.packedRowElements = plan.widenedPitch * std::min(plan.widenedRows, plan.row.size);
}

/// What a tile fetches for the next one: short rows, which a processor takes for no stream, and results.
static void planFetching(ContractionPlan &plan, const ContractionSpec &spec, const Target &target) {
  int64_t elementBytes = spec.accumulatorType.getIntOrFloatBitWidth() / 8, depth = plan.kLoops.back().size;
  auto isFar = [&](int64_t columns) {
    return plan.row.size * columns * elementBytes > kFetchedCaches * target.machine.l2Bytes;
  };
  bool isWhole = plan.blocks() == 1 && plan.kLoops.size() == 1;
  plan.fetchesRows = isWhole && isFar(depth) && plan.lane.size <= kFetchReuse &&
                     !spec.narrow(plan.rowOperand) && plan.kLoops.back().strides[plan.rowOperand] == 1 &&
                     plan.row.strides[plan.rowOperand] == depth;
  plan.fetchesResults =
      isWhole && isFar(plan.lane.size) && depth <= kFetchReuse && plan.lane.strides[findOutput(spec)] == 1;
}

/// The contents of the workspace.
static void sizeWorkspace(ContractionPlan &plan, const ContractionSpec &spec) {
  plan.packOnce =
      plan.packLanes && plan.blocks() == 1 &&
      llvm::all_of(plan.outer, [&](const ContractionDim &dim) { return dim.strides[plan.laneOperand] == 0; });
  if (plan.packedRows) {
    plan.packedTileElements = plan.blockDepth() * plan.strips[0].rows + plan.lanes;
    plan.packedRowElements = plan.packedTileElements * (plan.packedRows / plan.strips[0].rows);
  }
  planWidening(plan, spec);
  if (plan.packLanes)
    plan.packedElements = roundUp(std::min(plan.laneChunk, roundUp(plan.lane.size, plan.lanes)), plan.lanes) *
                          plan.blockDepth();
  bool inPlace = spec.partialOperand >= 0 && plan.lane.strides[spec.partialOperand] == 1;
  if (plan.blocks() > 1 && !inPlace) {
    plan.partialPitch = roundUp(std::min(plan.laneChunk, plan.lane.size), plan.lanes);
    plan.partialElements = plan.partialPitch * std::min(plan.rowChunk, plan.row.size);
  }
  if (spec.rollEpilogue)
    for (const ContractionStrip &strip : plan.strips)
      plan.tileElements = std::max(plan.tileElements, strip.rows * strip.vectors * plan.lanes);
}

/// Gathered rows go along more columns in blocks that are less deep. Sums that are put aside keep their bits.
static void cutGatheredDepth(ContractionPlan &plan, const ContractionModel &model) {
  if (plan.kBlockCount == 1 || plan.kBlock <= model.gatheredDepth)
    return;
  int64_t all = plan.kLoops.back().size;
  plan.kBlock = roundUp(ceilDiv(all, ceilDiv(all, model.gatheredDepth)), 16);
  plan.kBlockCount = ceilDiv(all, plan.kBlock);
}

/// The dims of the kernel on a target, without tiles and chunks.
static ContractionPlan planDims(const ContractionSpec &spec, const Target &target) {
  ContractionPlan plan;
  static_cast<ContractionAxes &>(plan) = chooseAxes(spec, findOutput(spec));
  plan.usesFma = target.usesFma(spec.numerics);
  int64_t bits = spec.accumulatorType.getIntOrFloatBitWidth();
  plan.lanes = target.lanes(bits);
  if (areRowsFar(plan, bits / 8, target.machine.contraction))
    cutGatheredDepth(plan, target.machine.contraction);
  return plan;
}

ContractionPlan planContraction(const ContractionSpec &spec, const Target &target) {
  ContractionPlan plan = planDims(spec, target);
  const ContractionModel &model = target.machine.contraction;
  plan.packLanes = wantsPacking(plan, bool(spec.narrow(plan.laneOperand)), target.machine);
  planStrips(plan, target);
  planChunks(plan, target);
  if (wantsRowPacking(plan, spec.accumulatorType.getIntOrFloatBitWidth() / 8,
                      bool(spec.narrow(plan.rowOperand)), model))
    plan.packedRows = model.gatheredRows;
  planFetching(plan, spec, target);
  sizeWorkspace(plan, spec);
  return plan;
}

/// Takes over the blocks of k. Several loops inside a block would be summed in another order if the last one were cut.
static bool cutDepth(ContractionPlan &plan, int64_t depth) {
  int64_t all = plan.kLoops.back().size;
  if (depth != all && (depth < 16 || depth > all || depth % 16 != 0 || plan.kLoops.size() > 1))
    return false;
  plan.kBlock = depth, plan.kBlockCount = ceilDiv(all, depth);
  return true;
}

/// All units of rows and columns divide it (of columns 64, 128 and 192): a chunk of everything stays one with any tile.
static constexpr int64_t kCommonUnit = 384;

/// Takes over the chunks: whole panels, and rows that are whole tiles.
static bool cutChunks(ContractionPlan &plan, const ContractionChoice &choice) {
  auto fits = [](int64_t chunk, int64_t unit, int64_t all) {
    return chunk > 0 && chunk % unit == 0 && chunk <= roundUp(all, unit == 1 ? 1 : kCommonUnit);
  };
  if (!fits(choice.outer, 1, plan.outerTotal) || !fits(choice.rowChunk, kRowUnit, plan.row.size) ||
      !fits(choice.laneChunk, laneUnitOf(plan), plan.lane.size))
    return false;
  plan.outerPerChunk = choice.outer, plan.outerChunks = ceilDiv(plan.outerTotal, choice.outer);
  plan.rowChunk = choice.rowChunk, plan.rowChunks = ceilDiv(plan.row.size, choice.rowChunk);
  plan.laneChunk = choice.laneChunk, plan.laneChunks = ceilDiv(plan.lane.size, choice.laneChunk);
  return plan.rowChunks == 1 || llvm::all_of(plan.strips, [&](const ContractionStrip &strip) {
           return strip.begin == strip.end || kRowUnit % strip.rows == 0;
         });
}

std::optional<ContractionPlan> planContraction(const ContractionSpec &spec, const Target &target,
                                               const ContractionChoice &choice) {
  ContractionPlan plan = planDims(spec, target);
  if (!cutDepth(plan, choice.depth) || choice.vectors < 1 || choice.rows < 1 || choice.rows > plan.row.size ||
      choice.vectors > ceilDiv(plan.lane.size, plan.lanes) ||
      !fitsRegisters(choice.rows, choice.vectors, target, plan.usesFma))
    return std::nullopt;
  cutColumns(plan, choice.vectors, target);
  ContractionStrip &strip = plan.strips[0].end > 0 ? plan.strips[0] : plan.strips[1];
  strip.rows = choice.rows;
  plan.packLanes = choice.packLanes, plan.packedRows = choice.packedRows;
  if (!cutChunks(plan, choice) || (!plan.packLanes && plan.lane.strides[plan.laneOperand] != 1))
    return std::nullopt;
  bool mayPackRows = plan.areRowsContiguous() && plan.strips[0].end > 0 && plan.packedRows > 0 &&
                     plan.packedRows <= kMostPackedElements && plan.packedRows % plan.strips[0].rows == 0;
  if (plan.packedRows != 0 && !mayPackRows)
    return std::nullopt;
  planFetching(plan, spec, target);
  sizeWorkspace(plan, spec);
  if (plan.packedElements > kMostPackedElements || plan.packedRowElements > kMostPackedElements)
    return std::nullopt;
  return plan;
}

} // namespace ortc::cpu
