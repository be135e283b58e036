// Decides for or against the unit by estimated cycles.
// Figures behind the choices: docs/benchmarks/contractions.md.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/contraction/MatrixPlan.h"

#include "compiler/backends/cpu/contraction/MatrixUnit.h"
#include "compiler/kernels/SumOrder.h"

#include <algorithm>

using namespace mlir;

namespace ortc::cpu {

using namespace kernels;

int64_t MatrixPlan::blocks() const { return sizeOf(depthOuter) * depthBlocks; }

int64_t MatrixPlan::stepWords() const { return stepWordsOf(parts); }

int64_t MatrixPlan::panelWords() const {
  return ceilDiv(std::min(depthBlock, depth.size), kTileDepth) * stepWords();
}

static int64_t panelsOf(int64_t lines) { return ceilDiv(lines, kPanelLines); }

int64_t MatrixPlan::packedRowWords() const {
  return panelsOf(std::min({rowBlock, rowChunk, row.size})) * panelWords();
}

int64_t MatrixPlan::packedLaneWords() const {
  return panelsOf(std::min({laneBlock, laneChunk, lane.size})) * panelWords();
}

int64_t MatrixPlan::sumElements() const {
  if (blocks() == 1)
    return kBlockElements;
  return panelsOf(std::min(rowChunk, row.size)) * panelsOf(std::min(laneChunk, lane.size)) * kBlockElements;
}

/// Multiply-adds a cycle.
static double macsOf(const MatrixPlan &plan) {
  if (plan.unit == BlockUnit::Pairs)
    return kPairMacs;
  return plan.parts == 1 ? kNarrowUnitMacs : kUnitMacs;
}

/// Cycles for one outer index, when rows and columns are in so many chunks.
static double cyclesOf(const MatrixPlan &plan, int64_t rowChunks, int64_t laneChunks) {
  double rows = plan.row.size, columns = plan.lane.size,
         depth = plan.blocks() * std::min(plan.depthBlock, plan.depth.size);
  double products =
      roundUp(plan.row.size, kTileLines) * roundUp(plan.lane.size, kTileLines) * roundUp(depth, kTileDepth);
  auto packing = [&](bool isColumns) {
    unsigned operand = isColumns ? plan.laneOperand : plan.rowOperand;
    bool isDirect = (plan.depth.strides[operand] == 1) != isColumns;
    return (isDirect ? kUnitPackCycles : kUnitTransposeCycles) * static_cast<double>(plan.parts) /
           kFloatParts;
  };
  return products / macsOf(plan) + rows * depth * packing(false) * laneChunks +
         columns * depth * packing(true) * rowChunks + rows * columns * kUnitSumCycles * plan.blocks();
}

static void planChunks(MatrixPlan &plan, const Target &target) {
  int64_t workers = target.workers;
  const MatrixUnitModel &model = target.machine.matrixUnit;
  int64_t wanted = workers <= 2 ? workers : 2 * workers;
  int64_t enough = std::clamp<int64_t>(
      static_cast<int64_t>(plan.outerTotal * cyclesOf(plan, 1, 1) / target.machine.parallel.matrixUnitCycles),
      1, wanted);
  int64_t outer = plan.outerTotal >= enough ? kOuterChunks * enough : enough;
  plan.outerPerChunk = ceilDiv(plan.outerTotal, std::min(outer, plan.outerTotal));
  plan.outerChunks = ceilDiv(plan.outerTotal, plan.outerPerChunk);
  enough = ceilDiv(enough, plan.outerChunks);

  int64_t rowPanels = panelsOf(plan.row.size), lanePanels = panelsOf(plan.lane.size);
  int64_t mostRowPanels = std::max<int64_t>(1, model.rows / (plan.panelWords() * 4));
  double best = -1;
  for (int64_t wantedRows = 1; wantedRows <= rowPanels; ++wantedRows) {
    int64_t perRowChunk = std::min(ceilDiv(rowPanels, wantedRows), mostRowPanels);
    int64_t rowChunks = ceilDiv(rowPanels, perRowChunk);
    int64_t perLaneChunk = ceilDiv(lanePanels, std::min(ceilDiv(enough, rowChunks), lanePanels));
    if (plan.blocks() > 1)
      perLaneChunk =
          std::min(perLaneChunk, std::max<int64_t>(1, model.sums / 4 / kBlockElements / perRowChunk));
    int64_t laneChunks = ceilDiv(lanePanels, perLaneChunk);
    int64_t chunks = rowChunks * laneChunks;
    double turns = static_cast<double>(ceilDiv(chunks, enough) * enough) / chunks;
    double cycles = turns * cyclesOf(plan, rowChunks, laneChunks);
    if (best >= 0 && cycles >= best)
      continue;
    best = cycles;
    plan.rowChunk = perRowChunk * kPanelLines, plan.rowChunks = rowChunks;
    plan.laneChunk = perLaneChunk * kPanelLines, plan.laneChunks = laneChunks;
  }
}

std::optional<MatrixPlan> planMatrix(const ContractionSpec &spec, const Target &target) {
  bool hasTiles = target.has(Instruction::MatrixUnit),
       hasPairs = spec.narrowA && target.has(Instruction::PairProduct);
  if ((!hasTiles && !hasPairs) || spec.numerics != Numerics::Fast || !spec.accumulatorType.isF32() ||
      spec.narrowA != spec.narrowB || (spec.narrowA && !spec.narrowA.isBF16()))
    return std::nullopt;
  ContractionPlan vectors = planContraction(spec, target);
  MatrixPlan plan;
  plan.architecture = target.isa.architecture;
  plan.unit = hasTiles ? BlockUnit::Tiles : BlockUnit::Pairs;
  plan.parts = spec.narrowA ? 1 : kFloatParts;
  plan.rowOperand = vectors.rowOperand, plan.laneOperand = vectors.laneOperand;
  plan.outer = vectors.outer, plan.row = vectors.row, plan.lane = vectors.lane;
  plan.outerTotal = vectors.outerTotal;
  plan.depthOuter = vectors.kBlocks;
  plan.depthOuter.append(vectors.kLoops.begin(), vectors.kLoops.end() - 1);
  plan.depth = vectors.kLoops.back();
  auto isContiguous = [&](unsigned operand, const ContractionDim &line) {
    return line.strides[operand] == 1 || plan.depth.strides[operand] == 1;
  };
  if (!isContiguous(plan.rowOperand, plan.row) || !isContiguous(plan.laneOperand, plan.lane))
    return std::nullopt;
  plan.depthBlocks = ceilDiv(plan.depth.size, kMatrixUnitDepth);
  plan.depthBlock = roundUp(ceilDiv(plan.depth.size, plan.depthBlocks), kTileDepth);
  plan.depthBlocks = ceilDiv(plan.depth.size, plan.depthBlock);
  planChunks(plan, target);
  int64_t panels = panelsOf(std::min(plan.laneChunk, plan.lane.size)), panelBytes = plan.panelWords() * 4;
  bool isRepeated = panels * panelBytes > target.machine.matrixUnit.lanes;
  int64_t most = isRepeated ? std::max<int64_t>(1, target.machine.matrixUnit.laneBlock / panelBytes) : panels;
  plan.laneBlock = ceilDiv(panels, ceilDiv(panels, most)) * kPanelLines;
  plan.rowBlock = isRepeated ? plan.rowChunk : kPanelLines;
  return plan;
}

/// Not as it was cut: bits would depend on workers.
static bool isFaster(const MatrixPlan &plan, double vectorMacs) {
  double macs =
      static_cast<double>(plan.row.size) * plan.lane.size * plan.depth.size * sizeOf(plan.depthOuter);
  return cyclesOf(plan, 1, 1) < macs / vectorMacs;
}

bool isFasterOnUnit(const MatrixPlan &plan) { return isFaster(plan, kVectorMacs); }

bool isFasterOnUnit(const ContractionSpec &spec, const Target &target) {
  std::optional<MatrixPlan> plan = usesDotKernel(spec) ? std::nullopt : planMatrix(spec, target);
  return plan && isFaster(*plan, kInPlaceMacs);
}

} // namespace ortc::cpu
