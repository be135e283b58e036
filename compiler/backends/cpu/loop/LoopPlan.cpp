// How the work of a loop program is cut.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/loop/LoopPlan.h"

#include "compiler/backends/emit/ElementEmitter.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

/// Units for each worker that sums over rows are cut in where there are fewer, columns that one takes at least (four
/// cache lines of each row), and at most: their sums stay in the first-level cache beside the rows
/// (docs/benchmarks/kernels-avx2.md#sums-over-rows-as-a-stream).
static constexpr int64_t kStreamUnits = 2, kStreamColumns = 64, kMostStreamColumns = 2048;
/// Nodes that cost at least this much are kept for later passes.
static constexpr int64_t kKeepCost = 4;
/// Operations that cost at least this much are long chains of dependent ones.
static constexpr int64_t kChainCost = 20;
/// Elements of a cache line, of 4 bytes.
static constexpr int64_t kLineElements = 16;

/// Chooses the nodes worth keeping from one pass over a row to the next.
static void chooseKept(const LoopProgram &program, LoopPlan &plan) {
  std::vector<unsigned> firstPass(program.nodes.size(), ~0u);
  // What is made of a table's element within one pass is kept in its place: the sooner a later pass has what it needs,
  // the less it does again.
  std::vector<char> looksUp(program.nodes.size(), 0);
  for (auto [n, node] : llvm::enumerate(program.nodes))
    looksUp[n] = program.isLookup(node) ||
                 llvm::any_of(node.operands, [&](unsigned operand) { return looksUp[operand]; });
  uint64_t reduced = program.reducedMask();
  for (unsigned pass = 0; pass < program.passes; ++pass) {
    std::vector<char> reached(program.nodes.size(), 0);
    for (const LoopReduction &reduction : program.reductions)
      if (reduction.pass == pass)
        reached[reduction.input] = 1;
    for (const LoopOutput &output : program.outputs)
      if (!output.perRow && output.pass == pass)
        reached[output.node] = 1;
    for (size_t n = program.nodes.size(); n-- > 0;) {
      const LoopNode &node = program.nodes[n];
      if (!reached[n])
        continue;
      bool scattered = node.kind == LoopNode::load && (node.at.scales[program.laneDim] & ~int64_t(1)) != 0;
      bool costly =
          ((node.kind == LoopNode::operation || node.kind == LoopNode::random) && node.cost >= kKeepCost) ||
          node.kind == LoopNode::range || scattered || looksUp[n];
      if (costly && (node.dims >> program.laneDim & 1) && (node.dims & reduced) && firstPass[n] < pass) {
        if (!llvm::is_contained(plan.kept, n)) {
          plan.kept.push_back(n);
          plan.keptPass.push_back(firstPass[n]);
        }
        continue;
      }
      for (unsigned operand : node.operands)
        reached[operand] = 1;
      for (const IndexExpr::Dynamic &term : node.at.dynamic)
        reached[term.node] = 1;
    }
    for (size_t n = 0; n < program.nodes.size(); ++n)
      if (reached[n])
        firstPass[n] = std::min(firstPass[n], pass);
  }
  int64_t rowElements = program.elements(true);
  for (unsigned n : plan.kept) {
    plan.keptOffset.push_back(plan.workspaceBytes);
    unsigned bits = bufferType(program.nodes[n].element).getIntOrFloatBitWidth();
    plan.workspaceBytes += (rowElements * bits / 8 + 63) / 64 * 64;
  }
}

/// Chooses tiles for programs that read across the grain.
static void chooseTiles(const LoopProgram &program, LoopPlan &plan) {
  if (!program.reductions.empty() || program.elements(true) > 1 || program.nodes.size() > 24)
    return;
  auto isLanes = [&](unsigned node) { return program.nodes[node].dims >> program.laneDim & 1; };
  for (auto [n, node] : llvm::enumerate(program.nodes)) {
    int64_t stride = node.at.scales[program.laneDim];
    bool dynamic =
        llvm::any_of(node.at.dynamic, [&](const IndexExpr::Dynamic &term) { return isLanes(term.node); });
    if (node.kind != LoopNode::load || dynamic || stride == 0 || stride == 1 || stride == -1)
      continue;
    for (auto [d, scale] : llvm::enumerate(node.at.scales))
      if (scale == 1 && program.dims[d].size >= kTile &&
          (plan.tileDim < 0 || plan.tileDim == static_cast<int>(d))) {
        plan.tileDim = d;
        plan.tiled.push_back(n);
      }
  }
  // A guarded load may not be done ahead.
  if (llvm::any_of(program.nodes, [](const LoopNode &node) { return node.kind == LoopNode::range; }))
    plan.tileDim = -1;
}

/// Chooses the order in which units follow each other. A load across the grain reads one element of a cache line for
/// each lane: few lanes at a time, and next the units that read the neighbours of those elements, which are in the
/// cache then (a filter of 512x512x3x3 with its channels last: 1.7 instead of 4.8 ms).
static void chooseOrder(const LoopProgram &program, LoopPlan &plan) {
  for (auto [d, dim] : llvm::enumerate(program.dims))
    if (!dim.reduced && static_cast<int>(d) != program.laneDim && static_cast<int>(d) != plan.tileDim)
      plan.order.push_back(d);
  if (!program.reductions.empty() || program.laneDim < 0 || program.lanesReduced() || plan.tileDim >= 0)
    return;
  auto across = llvm::find_if(program.nodes, [&](const LoopNode &node) {
    return node.kind == LoopNode::load && (node.at.scales[program.laneDim] & ~int64_t(1)) != 0;
  });
  if (across == program.nodes.end() || program.dims[program.laneDim].size < kLineElements * kLineElements)
    return;
  auto distance =
      [&](unsigned d) { // of dimensions that leave the line: 0, as of those that the load does not know
        int64_t scale = std::abs(across->at.scales[d]);
        return scale < kLineElements ? scale : 0;
      };
  if (llvm::none_of(plan.order, distance))
    return;
  llvm::sort(plan.order, [&](unsigned a, unsigned b) {
    return std::tuple(distance(a) != 0, -distance(a), a) < std::tuple(distance(b) != 0, -distance(b), b);
  });
  plan.unroll = 1;
  plan.block = plan.width;
  plan.blocksOutermost = true;
}

/// The innermost reduced dimension of a program whose lanes are parallel.
static int64_t innermostReduced(const LoopProgram &program) {
  int64_t innermost = 1;
  for (auto [d, dim] : llvm::enumerate(program.dims))
    if (dim.reduced && static_cast<int>(d) != program.laneDim)
      innermost = dim.size;
  return innermost;
}

/// Whether the sums of the first pass over many rows of more columns than are evaluated side by side are better done a
/// row at a time, all columns of it: memory is then read as a stream. The totals are in the workspace. Pieces of
/// kStreamColumns columns are long enough as they are, unless many of them are short. Later passes find in the
/// caches what the first one has read.
static bool streamsRows(const LoopProgram &program, int64_t group) {
  int64_t lane = program.dims[program.laneDim].size;
  bool shortPieces = group < kStreamColumns || lane < 4 * group || program.passes > 1;
  return llvm::any_of(program.reductions, [](const LoopReduction &r) { return r.pass == 0; }) &&
         lane > group && shortPieces && innermostReduced(program) >= kReductionBlock / 2 &&
         program.elements(true) >= 4 * kReductionBlock &&
         llvm::all_of(program.reductions, [](const LoopReduction &reduction) {
           return accumulatorType(reduction.element).getIntOrFloatBitWidth() >= 32;
         });
}

/// Room for the totals of all reductions over one more dimension.
static void addTotals(const LoopProgram &program, LoopPlan &plan) {
  int64_t lane = program.dims[program.laneDim].size;
  for (const LoopReduction &reduction : program.reductions) {
    plan.totals.push_back(plan.workspaceBytes);
    plan.workspaceBytes +=
        (lane * accumulatorType(reduction.element).getIntOrFloatBitWidth() / 8 + 63) / 64 * 64;
  }
}

/// Room for the sums of all lanes of a row, by reduction.
static void addLaneSums(const LoopProgram &program, LoopPlan &plan) {
  for (const LoopReduction &reduction : program.reductions) {
    plan.laneSums.push_back(plan.workspaceBytes);
    int64_t bits = accumulatorType(reduction.element).getIntOrFloatBitWidth();
    plan.workspaceBytes += (plan.width * plan.unroll * std::max<int64_t>(bits, 8) / 8 + 63) / 64 * 64;
  }
}

/// Whether kLookupLanes lanes pay: the loop looks numbers up, adds nothing up (sums have a fixed order), and loads
/// along the lanes.
static bool takesWideLookups(const LoopProgram &program, const Target &target) {
  auto isAcross = [&](const LoopNode &node) {
    return node.kind == LoopNode::load && !program.isLookup(node) &&
           (!node.at.dynamic.empty() || (node.at.scales[program.laneDim] & ~int64_t(1)) != 0);
  };
  auto isSum = [](const LoopReduction &reduction) {
    return reduction.kind != nn::ReduceKind::max && reduction.kind != nn::ReduceKind::min;
  };
  return target.has(Instruction::ByteLookup) && program.dims[program.laneDim].size % kLookupLanes == 0 &&
         llvm::any_of(program.nodes, [&](const LoopNode &node) { return program.isLookup(node); }) &&
         llvm::none_of(program.nodes, isAcross) && llvm::none_of(program.reductions, isSum);
}

LoopPlan planLoops(const LoopProgram &program, const Target &target) {
  LoopPlan plan;
  const int64_t chunkCost = target.machine.parallel.loopCost;
  int64_t cost = program.costPerPoint() + static_cast<int64_t>(program.outputs.size());
  int64_t parallel = program.elements(false), reduced = program.elements(true);
  if (program.laneDim < 0) {
    plan.width = 0;
    chooseOrder(program, plan);
    return plan;
  }
  int64_t lane = program.dims[program.laneDim].size;
  if (program.lanesReduced()) {
    plan.width = kReductionLanes;
    plan.unroll = kReductionVectors;
    if (takesWideLookups(program, target)) {
      plan.width = kLookupLanes;
      plan.unroll = 1;
      plan.fetchesRows = true;
    }
    plan.block = lane;
    plan.units = parallel;
    chooseKept(program, plan);
    if (target.isa.forSize)
      addLaneSums(program, plan);
  } else {
    bool reduces = reduced > 1 || !program.reductions.empty();
    // Side by side LLVM still puts the operations of one vector after those of another. Processors that do not look far
    // enough ahead wait for each; as halves of a wider vector, two chains alternate.
    bool hasChains = llvm::any_of(program.nodes, [](const LoopNode &node) {
      return node.kind == LoopNode::operation && node.cost >= kChainCost;
    });
    plan.width =
        target.isa.forSize ? target.lanes(32) : std::max<int64_t>(hasChains ? 16 : 8, target.lanes(32));
    if (reduces && !target.isa.forSize)
      plan.width = kReductionLanes;
    int64_t nodes = program.nodes.size();
    int64_t most = hasChains && plan.width > target.lanes(32) ? 2 : 4;
    plan.unroll = target.isa.forSize ? 1 : nodes <= 8 ? most : nodes <= 20 ? 2 : 1;
    int64_t group = plan.width * plan.unroll;
    int64_t wanted =
        std::max<int64_t>(group, chunkCost / std::max<int64_t>(1, cost * reduced) / group * group);
    // Few long columns: narrow blocks keep everybody busy.
    plan.block = std::min(lane, wanted);
    if (reduces && streamsRows(program, group)) {
      // Whole rows are the best stream: one worker needs no cut.
      int64_t wantedUnits = target.workers > 1 ? kStreamUnits * target.workers : 1, rows = parallel / lane;
      int64_t blocks = (wantedUnits + rows - 1) / rows;
      int64_t piece = std::max<int64_t>(1, lane / blocks); // workers may outnumber the columns
      plan.block = std::min(
          {lane, (piece + kStreamColumns - 1) / kStreamColumns * kStreamColumns, kMostStreamColumns});
      for (auto [d, dim] : llvm::enumerate(program.dims))
        if (dim.reduced && static_cast<int>(d) != program.laneDim)
          addTotals(program, plan);
      if (innermostReduced(program) > kReductionBlock)
        addTotals(program, plan);
    }
  }
  if (!program.lanesReduced() && lane >= 4 && !target.isa.forSize)
    chooseTiles(program, plan);
  chooseOrder(program, plan);
  if (!program.lanesReduced()) {
    plan.blocks = (lane + plan.block - 1) / plan.block;
    plan.units = parallel / lane * plan.blocks;
  }
  if (plan.tileDim >= 0) {
    plan.width = kTile;
    plan.unroll = 1;
    plan.block = lane;
    int64_t rows = program.dims[plan.tileDim].size;
    plan.tileRows = rows % (4 * kTile) == 0 ? 4 * kTile : rows % (2 * kTile) == 0 ? 2 * kTile : kTile;
    plan.blocks = (rows + plan.tileRows - 1) / plan.tileRows;
    plan.units = parallel / lane / rows * plan.blocks;
    plan.unitsPerChunk = std::clamp<int64_t>(chunkCost / (lane * plan.tileRows * cost), 1, plan.units);
    plan.chunks = (plan.units + plan.unitsPerChunk - 1) / plan.unitsPerChunk;
    return plan;
  }
  int64_t unitCost =
      std::max<int64_t>(1, plan.block * (program.lanesReduced() ? reduced / lane : reduced) * cost);
  plan.unitsPerChunk = std::max<int64_t>(1, std::min(plan.units, chunkCost / unitCost));
  plan.chunks = (plan.units + plan.unitsPerChunk - 1) / plan.unitsPerChunk;
  return plan;
}

} // namespace ortc::cpu
