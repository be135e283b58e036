// Compute attention in tiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop over heads, or over some of them at a time; its body computes some rows of the scores, their softmax and the
// mixed values at a time, with the operations that stood there before. The loop is computed again for its gradient
// (nn.scan `recompute`), so scores and weights of one iteration are all that is ever stored: the memory of
// "FlashAttention" (Dao et al., 2022), with kernels that every family has. Keys that a known mask hides from all rows
// of a tile are left out.
#include "compiler/passes/attention/Passes.h"

#include "compiler/evaluator/Evaluator.h"
#include "compiler/kernels/attention/AttentionForm.h"
#include "compiler/passes/attention/AttentionMatch.h"
#include "compiler/passes/attention/MaskedKeys.h"
#include "dialects/nn/NnShapes.h"
#include "dialects/nn/ScanBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace ortc::attention {

#define GEN_PASS_DEF_TILEATTENTIONPASS
#include "compiler/passes/attention/Passes.h.inc"

using nn::TensorBuilder;

/// Every tile is code of its own, with kernels of its own where a causal mask gives it other keys. So there are at most
/// as many as 4,096 queries and keys need; of more, tiles are larger than asked for.
static constexpr int64_t kMostTiles = 32;
/// The same where rows are asked for.
static constexpr int64_t kMostWantedTiles = 256;

namespace {

/// The leading index, in the factors that all values' dimensions are made of.
struct Leads {
  SmallVector<int64_t> bounds; ///< products of the first factors: 1, ..., all
  int64_t loop = 1;            ///< iterations: the product of some first factors

  bool find(Match &match, int64_t iterationBytes);
  int64_t all() const { return bounds.back(); }
};

/// A value from outside, as the loop takes it: `[loop,] batch | 1, groups | 1, rows | 1, keys | 1`. With `factors`, of
/// a mask that is the same for some heads of an iteration: `[loop,] some of the factors, rows, keys`.
struct Input {
  Value value;
  bool isSequence = false;
  nn::Shape factors = {}, where = {}; ///< of batch and groups, and which of them the value has
};

class Tiling {
public:
  Tiling(Match &match, Leads &leads, int64_t rows) : match(match), leads(leads), rowsOfTile(rows) {}

  void run(MaskedKeys &masked);

private:
  Input arrange(TensorBuilder &b, Value value, ArrayRef<Dim> dims);
  Value arrangeSide(TensorBuilder &b, Value side, ArrayRef<int64_t> batch, ArrayRef<int64_t> last,
                    bool hasGroups = false);
  Value tileRows(TensorBuilder &b, const nn::ScanArguments &now, ArrayRef<Range> keys);
  void replace(TensorBuilder &b, Value result);

  Match &match;
  Leads &leads;
  int64_t rowsOfTile;
  SmallVector<std::pair<Value, Input>> inputs;
  SmallVector<unsigned> places; ///< which slice or invariant each of them is
};

} // namespace

/// Adds the bounds of `dims`.
static void addBounds(SmallVector<int64_t> &bounds, ArrayRef<Dim> dims) {
  for (const Dim &dim : dims)
    if (dim.kind == Dim::lead)
      bounds.append({dim.outer, dim.outer * dim.size});
}

/// Whether every bound is a multiple of the one before.
static bool isChain(ArrayRef<int64_t> bounds) {
  for (size_t i = 1; i < bounds.size(); ++i)
    if (bounds[i] % bounds[i - 1] != 0)
      return false;
  return true;
}

/// False where dimensions overlap, or a mask would have to be repeated for every head. An iteration computes as many
/// heads as have `iterationBytes` of scores, taken as 32 bits, or one.
bool Leads::find(Match &match, int64_t iterationBytes) {
  bounds = {1, match.batch, match.batch * match.groups};
  for (auto &[value, dims] : match.values)
    addBounds(bounds, dims);
  llvm::sort(bounds);
  bounds.erase(llvm::unique(bounds), bounds.end());
  if (!isChain(bounds))
    return false;
  loop = match.batch;
  for (auto &[value, dims] : match.inputs) {
    int64_t end = 1;
    for (const Dim &dim : dims)
      end = dim.kind == Dim::lead ? dim.outer * dim.size : end;
    if (hasKind(dims, Dim::row) && hasKind(dims, Dim::key) && end > 1)
      loop = std::min(loop, end);
  }
  const int64_t most = iterationBytes / (match.groups * match.rows * match.keys * 4); // of the batch
  for (int64_t count = 1; count < loop; ++count) {
    if (match.batch % count != 0 || match.batch / count > most)
      continue;
    SmallVector<int64_t> with(bounds);
    with.insert(llvm::lower_bound(with, count), count);
    with.erase(llvm::unique(with), with.end());
    if (!isChain(with))
      continue;
    bounds = std::move(with);
    loop = count;
    break;
  }
  return true;
}

Input Tiling::arrange(TensorBuilder &b, Value value, ArrayRef<Dim> dims) {
  Input input;
  bool hasTail = false;
  for (const Dim &dim : dims)
    if (dim.kind == Dim::lead) {
      input.isSequence |= dim.outer < leads.loop;
      hasTail |= dim.outer * dim.size > leads.loop;
    }
  bool hasRows = hasKind(dims, Dim::row), hasKeys = hasKind(dims, Dim::key);
  nn::Shape split, full, where, last;
  auto add = [&](int64_t size, bool isIn) {
    if (isIn) {
      split.push_back(size);
      where.push_back(full.size());
    }
    full.push_back(size);
  };
  auto addFactors = [&](bool ofLoop, llvm::function_ref<void(int64_t, bool)> addFactor) {
    for (size_t at = 1; at < leads.bounds.size(); ++at)
      if ((leads.bounds[at] <= leads.loop) == ofLoop)
        addFactor(leads.bounds[at] / leads.bounds[at - 1], llvm::any_of(dims, [&](const Dim &dim) {
                    return dim.kind == Dim::lead && dim.outer <= leads.bounds[at - 1] &&
                           leads.bounds[at] <= dim.outer * dim.size;
                  }));
  };
  if (input.isSequence) {
    addFactors(/*ofLoop=*/true, add);
    last.push_back(leads.loop);
  }
  nn::Shape factors, inFactors, sizes;
  if (hasTail)
    addFactors(/*ofLoop=*/false, [&](int64_t size, bool isIn) {
      if (isIn) {
        inFactors.push_back(factors.size());
        sizes.push_back(size);
      }
      factors.push_back(size);
    });
  if (hasRows && hasKeys && inFactors.size() < factors.size()) { // repeated in the loop, a tile at a time
    for (int64_t size : sizes)
      add(size, true);
    last.append(sizes);
    input.factors = factors;
    input.where = inFactors;
  } else {
    for (auto [i, size] : llvm::enumerate(factors))
      add(size, llvm::is_contained(inFactors, static_cast<int64_t>(i)));
    last.append({hasTail ? match.batch / leads.loop : 1, hasTail ? match.groups : 1});
  }
  if (hasRows)
    add(match.rows, true);
  if (hasKeys)
    add(match.keys, true);
  last.append({hasRows ? match.rows : 1, hasKeys ? match.keys : 1});
  input.value = b.reshape(b.broadcast(b.reshape(value, split), full, where), last);
  return input;
}

/// One operand of a contraction as a sequence: batch, free and contracted dimensions, these in the order of `last`.
Value Tiling::arrangeSide(TensorBuilder &b, Value side, ArrayRef<int64_t> batch, ArrayRef<int64_t> last,
                          bool hasGroups) {
  nn::Shape order(batch), shape{leads.loop, match.batch / leads.loop};
  for (int64_t dim = 0; dim < TensorBuilder::rankOf(side); ++dim)
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(last, dim))
      order.push_back(dim);
  order.append(last.begin(), last.end());
  if (hasGroups)
    shape.push_back(match.groups);
  for (int64_t dim : last)
    shape.push_back(TensorBuilder::shapeOf(side)[dim]);
  return b.reshape(b.transpose(side, order), shape);
}

/// The mixed values of one iteration, [batch, groups, rows, features].
Value Tiling::tileRows(TensorBuilder &b, const nn::ScanArguments &now, ArrayRef<Range> keys) {
  Value queries = now.slices[0], key = now.slices[1], mixed = now.slices[2], index = now.slices[3];
  TileValues tile(match);
  for (auto [input, place] : llvm::zip_equal(inputs, places))
    tile.setInput(input.first,
                  {place < now.slices.size() ? now.slices[place] : now.invariants[place - now.slices.size()],
                   input.second.factors, input.second.where});
  tile.setIndex(index, leads.loop);
  SmallVector<Value> parts;
  for (auto [number, seen] : llvm::enumerate(keys)) {
    int64_t first = static_cast<int64_t>(number) * rowsOfTile,
            rows = std::min(rowsOfTile, match.rows - first);
    tile.begin({match.batch / leads.loop, match.groups}, {first, rows}, seen);
    tile.setSides(b.sliceAxis(queries, 2, first, rows), b.sliceAxis(key, 1, seen.first, seen.size));
    parts.push_back(b.dot(tile.get(b, match.weights()), b.sliceAxis(mixed, 1, seen.first, seen.size), {0},
                          {0}, {3}, {1}, match.mix.getExact()));
  }
  return b.concat(parts, 2);
}

/// Gives `result`, [loop, batch, groups, rows, features], the dimensions of what it stands for.
void Tiling::replace(TensorBuilder &b, Value result) {
  if (!match.weightsAreLeft)
    result = b.transpose(result, {0, 1, 4, 2, 3});
  match.mix.replaceAllUsesWith(b.reshape(result, TensorBuilder::shapeOf(match.mix.getResult())));
}

void Tiling::run(MaskedKeys &masked) {
  TensorBuilder b(match.mix.getLoc(), match.mix);
  nn::DotOp scores = match.scores, mix = match.mix;
  SmallVector<Range> keys;
  for (int64_t first = 0; first < match.rows; first += rowsOfTile)
    keys.push_back(masked.find(match, {first, std::min(rowsOfTile, match.rows - first)}));
  auto lhsRank = TensorBuilder::rankOf(scores.getLhs());
  auto queryFree = nn::freeDimensions(lhsRank, scores.getLhsBatch(), scores.getLhsContract());
  auto keyFree = nn::freeDimensions(TensorBuilder::rankOf(scores.getRhs()), scores.getRhsBatch(),
                                    scores.getRhsContract());
  auto mixedBatch = match.weightsAreLeft ? mix.getRhsBatch() : mix.getLhsBatch(),
       mixedContract = match.weightsAreLeft ? mix.getRhsContract() : mix.getLhsContract();
  auto mixedFree = nn::freeDimensions(TensorBuilder::rankOf(match.mixed()), mixedBatch, mixedContract);
  SmallVector<Value> sequences, invariants;
  sequences.push_back(arrangeSide(b, scores.getLhs(), scores.getLhsBatch(),
                                  {queryFree.back(), scores.getLhsContract().front()}, /*hasGroups=*/true));
  sequences.push_back(arrangeSide(b, scores.getRhs(), scores.getRhsBatch(),
                                  {keyFree.front(), scores.getRhsContract().front()}));
  sequences.push_back(arrangeSide(b, match.mixed(), mixedBatch, {mixedContract.front(), mixedFree.front()}));
  sequences.push_back(b.iota(RankedTensorType::get({leads.loop}, b.getI64Type()), 0));
  for (auto &[value, dims] : match.inputs)
    inputs.push_back({value, arrange(b, value, dims)});
  places.resize(inputs.size());
  for (bool isSequence : {true, false})
    for (auto [input, place] : llvm::zip_equal(inputs, places))
      if (input.second.isSequence == isSequence) {
        place = sequences.size() + invariants.size();
        (isSequence ? sequences : invariants).push_back(input.second.value);
      }
  auto results =
      nn::buildScan(b, leads.loop, false, {}, sequences, invariants,
                    [&](const nn::ScanArguments &now) { return SmallVector<Value>{tileRows(b, now, keys)}; });
  auto scan = cast<nn::ScanOp>(results[0].getDefiningOp());
  scan.setRecompute(true);
  scan.captureOuterValues();
  replace(b, scan.getResult(0));
}

namespace {

struct TileAttentionPass : impl::TileAttentionPassBase<TileAttentionPass> {
  using Base::Base;

  /// Of a tile: as many as fit, where none are asked for.
  int64_t rowsOf(const Match &match, int64_t loop) {
    if (rows > 0)
      return std::min<int64_t>(rows, match.rows);
    int64_t row = match.batch / loop * match.groups * match.keys * 4; // scores are taken as 32 bits
    return std::min(match.rows, std::max({int64_t(tileRows), tileBytes / row / 16 * 16,
                                          (match.rows + kMostTiles - 1) / kMostTiles}));
  }

  /// Whether a kernel computes all of it at once.
  bool isForKernel(Match &match) const {
    auto sizeOf = [](Value side, ArrayRef<int64_t> dims) {
      int64_t size = 1;
      for (int64_t dim : dims)
        size *= TensorBuilder::shapeOf(side)[dim];
      return size;
    };
    int64_t depth = sizeOf(match.scores.getLhs(), match.scores.getLhsContract());
    int64_t columns = TensorBuilder::typeOf(match.mixed()).getNumElements() / (match.batch * match.keys);
    return rows == 0 && kernels::fitsAttention(match.rows, match.keys, depth, columns, 1, kernelDepth) &&
           TensorBuilder::elementOf(match.scores.getResult()).isF32();
  }

  void runOnOperation() override {
    SmallVector<nn::SoftmaxOp> all;
    getOperation().walk([&](nn::SoftmaxOp op) { all.push_back(op); });
    MaskedKeys masked;
    bool isTiled = false;
    for (nn::SoftmaxOp op : all) {
      Leads leads;
      auto match = matchAttention(op, kernelDepth > 0 ? 1 : least); // kernels take attention of any size
      if (!match)
        continue;
      bool isWhole = isForKernel(*match);
      if (!isWhole && match->rows * match->keys < least)
        continue;
      if (!leads.find(*match, isWhole ? INT64_MAX : iterationBytes))
        continue;
      int64_t leastRows = (match->rows + kMostWantedTiles - 1) / kMostWantedTiles;
      if (rows > 0 && rows < leastRows) {
        op.emitError() << "attention of " << match->rows << " queries in tiles of " << int64_t(rows)
                       << " is more code than " << kMostWantedTiles << " tiles; ask for " << leastRows
                       << " queries a tile or more";
        return signalPassFailure();
      }
      Tiling(*match, leads, isWhole ? match->rows : rowsOf(*match, leads.loop)).run(masked);
      isTiled = true;
    }
    if (!isTiled)
      return;
    OpPassManager cleanup(func::FuncOp::getOperationName());
    cleanup.addPass(createCanonicalizerPass());
    cleanup.addPass(createCSEPass());
    if (failed(runPipeline(cleanup, getOperation())))
      signalPassFailure();
  }
};

} // namespace
} // namespace ortc::attention
