// Attention and its gradients on matrix cores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A warp makes the scores of 16 rows and of the keys of a step in registers, where a matrix core leaves them: on
// NVIDIA, lane 4g + q has rows g and g + 8 and, of every eight keys, 2q and 2q + 1; on AMD, lane 16g + r has row r and,
// of every 16 keys, 4g to 4g + 3; a wavefront of 32 lanes also has those 8 further. The program between the products
// runs there. Its results already lie as the core takes rows of the product along the keys, or nearly so
// (MatrixCore::rowsOf). A half is one of a lane's rows: NVIDIA's lanes have two, AMD's one.
#include "compiler/backends/gpu/attention/AttentionKernel.h"

#include "compiler/backends/emit/LoopWalk.h"
#include "compiler/backends/emit/Reduction.h"
#include "compiler/backends/emit/StorageConversion.h"
#include "compiler/backends/gpu/attention/AttentionCycles.h"
#include "compiler/backends/gpu/attention/AttentionTiles.h"
#include "compiler/backends/gpu/attention/KeyRange.h"
#include "compiler/backends/gpu/product/BlockSums.h"
#include "compiler/backends/gpu/product/ScalarAccess.h"
#include "compiler/kernels/attention/OnlineSoftmax.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <deque>

using namespace mlir;

namespace ortc::gpu {

namespace {

using Sums = SmallVector<Value>;

/// Keys whose scores are in registers at a time: those of a block of sums that are promoted.
constexpr int64_t kBlockKeys = kPromotedDepth;
/// Scores of a lane that are computed side by side where registers are few.
constexpr int64_t kScoresAtOnce = 4;

class AttentionEmitter : LoopWalk {
public:
  AttentionEmitter(KernelBuilder &kernel, ThreadBuilder &builder, const AttentionForm &form,
                   const AttentionLayout &layout, const KeyRange &range,
                   const KernelBuilder::Arguments &arguments, ValueRange buffers, const MathOptions &options)
      : LoopWalk(builder, form.program, buffers), b(builder), form(form), layout(layout), range(range),
        arguments(arguments.buffers), options(options), core(*layout.scores.front().rows.plan.core),
        halfCount(core.rowsOfLane()), space(kernel.sharedSpace(builder, layout.bytes, kLineAlignment)) {}

  void emit() {
    place(b.thread(), b.block());
    std::deque<ElementEmitter> emitters;
    for (int64_t half = 0; half < halfCount; ++half) {
      ElementEmitter &emitter = emitters.emplace_back(b, program, buffers, options);
      setIndices(emitter, half, b.index(0));
      emitter.setSupplier([this](unsigned node) { return supply(node); });
      halves.push_back(&emitter);
    }
    for (const AttentionLayout::Scores &tiles : layout.scores)
      fill(tiles.rows, firstRow, b.index(0));
    mixSums.resize(form.mixes.size());
    if (auto softmax = findOnlineSoftmax(program))
      walkOnce(*softmax);
    else
      for (unsigned pass = 0; pass < program.passes; ++pass)
        walkKeys(pass);
    storeRows();
    place(b.threadAgain(), b.blockAgain()); // the passes want all registers
    for (auto [number, mix] : llvm::enumerate(form.mixes))
      storeMix(mix, form.mixOutputs[number], mixSums[number]);
  }

private:
  //===--- Where things are ---===//

  void place(Value threadNumber, Value block) {
    // Blocks whose tiles see most keys come first, for all heads.
    int64_t rowTiles = llvm::divideCeilSigned(form.row.size, layout.rows);
    bool isLastFirst =
        range.endOf(rowTiles - 1) - range.firstOf(rowTiles - 1) > range.endOf(0) - range.firstOf(0);
    Value tile = b.div(block, form.products());
    if (isLastFirst)
      tile = b.sub(b.index(rowTiles - 1), tile);
    firstRow = b.mul(tile, layout.rows);
    keys = {b.index(0), b.index(form.key.size)};
    if (!range.isWhole()) {
      auto at = [&](int64_t start) {
        Value step = b.add(b.mul(tile, range.slope), start);
        return b.mul(b.minimum(b.maximum(step, b.index(0)), b.index(range.steps)), layout.keys);
      };
      keys = {at(range.first), b.minimum(at(range.end), keys.end)};
    }
    Value head = positionOf(form.others, b.rem(block, form.products()));
    steps = program.steps();
    starts.resize(program.dims.size());
    setPosition(head);
    placeLane(threadNumber);
  }

  void placeLane(Value thread) {
    lane = b.rem(thread, core.lanes);
    warpRow = b.mul(b.div(thread, core.lanes), kFragment);
    rows.clear();
    for (int64_t half = 0; half < halfCount; ++half)
      rows.push_back(b.add(firstRow, b.add(b.add(warpRow, core.sumRowOf(b, lane)), half * core.rowStep)));
  }

  /// Where registers are few, what follows from the number of a lane is computed anew in each step, not kept.
  Values withLaneAgain(llvm::function_ref<Values()> body) {
    if (!core.hasFewRegisters)
      return body();
    ThreadBuilder::ThreadAgain scope(b);
    Value oldLane = lane, oldWarpRow = warpRow;
    Values oldRows = rows;
    placeLane(b.thread());
    Values result = body();
    lane = oldLane, warpRow = oldWarpRow, rows = oldRows;
    return result;
  }

  /// The position of element `number` of some axes.
  Value positionOf(ArrayRef<AttentionForm::Axis> axes, Value number) {
    SmallVector<int64_t> sizes;
    for (const AttentionForm::Axis &axis : axes)
      sizes.push_back(axis.size);
    Value sum = b.index(0);
    if (!sizes.empty())
      for (auto [axis, digit] : llvm::zip_equal(axes, delinearize(b, number, sizes)))
        sum = b.add(sum, b.mul(digit, axis.step));
    return sum;
  }

  void setPosition(Value value) {
    position = value;
    for (size_t d = 0; d < program.dims.size(); ++d)
      starts[d] = b.rem(b.div(position, steps[d]), program.dims[d].size);
  }

  /// All keys of the block, of one group after another: body(firstKey, carried).
  Values overKeys(Values carried, llvm::function_ref<Values(Value, ValueRange)> body) {
    Value head = position;
    Values result =
        b.fold({b.index(0), b.index(form.groupCount())}, 1, carried, [&](Value group, ValueRange now) {
          setPosition(b.add(head, positionOf(form.groups, group)));
          return b.fold(keys, layout.keys, now, [&](Value firstKey, ValueRange carriedOn) {
            return withLaneAgain([&] { return body(firstKey, carriedOn); });
          });
        });
    setPosition(head);
    for (auto [number, half] : llvm::enumerate(halves))
      setIndices(*half, static_cast<int64_t>(number), b.index(0)); // those of the last key end with the loop
    return result;
  }

  /// How far an index of a dim moves along an axis; 0: it does not.
  int64_t moveOf(size_t d, const AttentionForm::Axis &axis) const {
    bool isThere = steps[d] <= axis.step && axis.step < steps[d] * program.dims[d].size;
    return isThere ? axis.step / steps[d] : 0;
  }

  /// Rows and keys beyond the last one count as the last one.
  Value within(Value index, const AttentionForm::Axis &axis, int64_t tile) {
    return axis.size % tile == 0 ? index : b.minimum(index, b.index(axis.size - 1));
  }

  void setIndices(ElementEmitter &emitter, int64_t half, Value key) {
    Value row = within(rows[half], form.row, layout.rows);
    for (size_t d = 0; d < program.dims.size(); ++d) {
      Value index = b.add(starts[d], b.mul(row, moveOf(d, form.row)));
      emitter.setIndex(d, b.add(index, b.mul(key, moveOf(d, form.key))));
    }
  }

  /// The first element of a head in a buffer. `at`: its position.
  Value baseOf(ArrayRef<AttentionForm::ScoreDim> dims, unsigned operand, int64_t offset, Value at) {
    Value base = b.index(offset);
    for (const AttentionForm::ScoreDim &dim : dims)
      if (int64_t stride = dim.dim.strides[operand]; stride != 0)
        base = b.add(base, b.mul(b.rem(b.div(at, dim.step), dim.dim.size), stride));
    return base;
  }

  /// The position of the head among the scores of a product.
  Value positionIn(const AttentionForm::Scores &scores) {
    const LoopNode &load = *llvm::find_if(program.nodes, [&](const LoopNode &node) {
      return node.kind == LoopNode::load && node.buffer == scores.buffer;
    });
    Value at = b.index(0);
    for (size_t d = 0; d < program.dims.size(); ++d)
      at = b.add(at, b.mul(starts[d], load.at.scales[d]));
    return at;
  }

  SharedTile tileOf(const AttentionTile &tile, Value firstIndex) {
    return SharedTile(b, tile.shape, tile.plan, tile.side, b.advance(space, tile.place), firstIndex);
  }

  StridedAccess accessOf(const AttentionTile &tile) {
    Value at = position;
    for (auto [scores, tiles] : llvm::zip_equal(form.scores, layout.scores))
      if (&tile == &tiles.rows || &tile == &tiles.keys)
        at = positionIn(scores);
    return {arguments[tile.buffer], baseOf(tile.dims, tile.operand, tile.offset, at), tile.along, tile.depth};
  }

  /// Loads a tile, at once.
  void fill(const AttentionTile &tile, Value firstIndex, Value start) {
    SharedTile shared = tileOf(tile, firstIndex);
    StridedAccess access = accessOf(tile);
    shared.store(shared.load(access, start), b.index(0));
  }

  //===--- A pass over the keys ---===//

  /// The scores that a pass needs, by number.
  SmallVector<unsigned> scoresOf(unsigned pass) const {
    llvm::BitVector seen(program.nodes.size());
    SmallVector<unsigned> stack = program.rootsOf(pass);
    while (!stack.empty()) {
      unsigned number = stack.pop_back_val();
      if (seen.test(number) || program.nodes[number].kind == LoopNode::reduction)
        continue;
      seen.set(number);
      stack.append(program.nodes[number].operands.begin(), program.nodes[number].operands.end());
    }
    SmallVector<unsigned> needed;
    for (auto [i, scores] : llvm::enumerate(form.scores))
      for (unsigned number : seen.set_bits())
        if (const LoopNode &node = program.nodes[number];
            node.kind == LoopNode::load && node.buffer == scores.buffer) {
          needed.push_back(i);
          break;
        }
    return needed;
  }

  Value zero() { return arith::ConstantOp::create(b, b.getF32FloatAttr(0)); }

  /// The dims that change along the keys.
  uint64_t innerDims() const {
    uint64_t inner = 0;
    SmallVector<AttentionForm::Axis> axes(form.groups);
    axes.push_back(form.key);
    for (size_t d = 0; d < program.dims.size(); ++d)
      if (llvm::any_of(axes, [&](const AttentionForm::Axis &axis) { return moveOf(d, axis) != 0; }))
        inner |= uint64_t(1) << d;
    return inner;
  }

  void walkKeys(unsigned pass) {
    SmallVector<unsigned> list = reductionsOf(pass);
    SmallVector<unsigned> mixing; // whose scores this pass makes
    for (auto [i, mix] : llvm::enumerate(form.mixes))
      if (program.outputs[mix.output].pass == pass)
        mixing.push_back(i);
    if (list.empty() && mixing.empty())
      return;
    for (ElementEmitter *half : halves)
      hoistPass(*half, pass, innerDims());
    Values carried = identitiesOf(halves, list);
    size_t sums = carried.size();
    for (unsigned i : mixing)
      carried.append(zeros(columnsOf(i)));
    SmallVector<unsigned> needed = scoresOf(pass);
    carried = overKeys(carried, [&](Value firstKey, ValueRange now) {
      return step(list, needed, mixing, firstKey, Values(now), sums);
    });
    Values joinedSums;
    for (size_t i = 0; i < sums; ++i)
      joinedSums.push_back(joinLanes(program.reductions[list[i / halfCount]].kind, carried[i]));
    finishPass(halves, list, joinedSums);
    size_t at = sums;
    for (unsigned i : mixing) {
      size_t count = sumsFor(columnsOf(i));
      mixSums[i].assign(carried.begin() + at, carried.begin() + at + count);
      at += count;
    }
  }

  int64_t columnsOf(unsigned mix) const { return layout.mixed[mix].plan.tile.columns; }

  /// Values that hold the sums of so many columns.
  size_t sumsFor(int64_t columns) const { return columns / core.pieceColumns() * core.sumValues; }
  Sums zeros(int64_t columns) {
    Sums sums;
    while (sums.size() < sumsFor(columns))
      llvm::append_range(sums, core.zeros(b));
    return sums;
  }
  /// Those sums as numbers, `core.sumsOfLane()` of an instruction.
  Values elementsOf(ArrayRef<Value> sums) {
    Values elements;
    for (; !sums.empty(); sums = sums.drop_front(core.sumValues))
      llvm::append_range(elements, core.elementsOf(b, sums.take_front(core.sumValues)));
    return elements;
  }
  /// Multiplies sums by the factors of their rows.
  void scale(MutableArrayRef<Value> sums, ArrayRef<Value> factors) {
    for (; !sums.empty(); sums = sums.drop_front(core.sumValues)) {
      SmallVector<Value> elements = core.elementsOf(b, ValueRange(sums.take_front(core.sumValues)));
      for (auto [number, element] : llvm::enumerate(elements))
        element = arith::MulFOp::create(b, element, factors[core.rowOf(static_cast<int64_t>(number))]);
      llvm::copy(core.sumsOf(b, elements), sums.begin());
    }
  }

  Value joinLanes(nn::ReduceKind kind, Value sum) {
    for (int64_t lanes = 1; lanes < core.rowLanes; lanes *= 2)
      sum = combine(b, kind, sum, b.shuffleXor(sum, lanes * core.rowLaneStep));
    return sum;
  }

  /// The keys from `firstKey` on: returns what is carried on.
  Values step(List list, ArrayRef<unsigned> needed, ArrayRef<unsigned> mixing, Value firstKey, Values carried,
              size_t sums) {
    loadKeys(needed, mixing, firstKey);
    for (int64_t block = 0; block < layout.keys / kBlockKeys; ++block)
      addKeys(list, needed, mixing, firstKey, block, carried, sums);
    return carried;
  }

  /// One block of those keys.
  void addKeys(List list, ArrayRef<unsigned> needed, ArrayRef<unsigned> mixing, Value firstKey, int64_t block,
               Values &carried, size_t sums) {
    SmallVector<Sums, 2> made = makeScores(needed, block);
    SmallVector<Values, 2> mixed(form.mixes.size(), Values(scoresOfLane()));
    forElements(firstKey, block, made, [&](const Element &at, ElementEmitter &emitter) {
      for (auto [place, number] : llvm::enumerate(list)) {
        Value input =
            at.orElse(b, accumulated(emitter, program.reductions[number]), identityOf(number, emitter));
        Value &sum = carried[place * halfCount + at.half];
        sum = combine(b, program.reductions[number].kind, sum, input);
      }
      for (unsigned mix : mixing)
        mixed[mix][at.number] = mixedAt(mix, at, emitter);
    });
    size_t at = sums;
    for (unsigned mix : mixing)
      at = addMixed(mix, mixed[mix], block, carried, at);
  }

  /// Scores that a lane has in a block of keys.
  size_t scoresOfLane() const { return kBlockKeys / core.pieceColumns() * core.sumsOfLane(); }

  /// The scores of a block of keys, by product; none of those that are not needed.
  SmallVector<Sums, 2> makeScores(ArrayRef<unsigned> needed, int64_t block) {
    SmallVector<Sums, 2> made(form.scores.size());
    for (unsigned i : needed) {
      if (i != needed.front() && !layout.scores[i].rows.plan.format.isExact())
        b.warpBarrier(); // or ptxas loads fragments of both products at once, and has no registers for them
      made[i] = elementsOf(multiplyScores(layout.scores[i], block));
    }
    return made;
  }

  /// A score of a lane in a block.
  struct Element {
    int64_t number, half;
    Value isThere; ///< null: it always is

    Value orElse(ThreadBuilder &b, Value value, Value other) const {
      return isThere ? arith::SelectOp::create(b, isThere, value, other).getResult() : value;
    }
  };

  /// Visits all of them, with the emitter of their row, which knows the scores that were made.
  void forElements(Value firstKey, int64_t block, ArrayRef<Sums> made,
                   llvm::function_ref<void(const Element &, ElementEmitter &)> visit) {
    Value first = core.sumColumnOf(b, lane);
    for (int64_t number = 0; number < static_cast<int64_t>(scoresOfLane()); ++number) {
      if (core.hasFewRegisters && number % kScoresAtOnce == 0)
        core.separate(b);
      Element element{number, rowOf(number), Value()};
      Value key = b.add(b.add(firstKey, first), block * kBlockKeys + columnOf(number));
      if (form.key.size % layout.keys != 0)
        element.isThere = b.less(key, form.key.size);
      current.assign(form.scores.size(), Value());
      for (auto [value, sums] : llvm::zip_equal(current, made))
        value = sums.empty() ? Value() : sums[element.number];
      ElementEmitter &emitter = *halves[element.half];
      emitter.openScope();
      setIndices(emitter, element.half, within(key, form.key, layout.keys));
      visit(element, emitter);
      emitter.closeScope();
    }
  }

  /// The row of a lane (its half), and the column from the lane's first one on, of element `number` of `elementsOf`.
  int64_t rowOf(int64_t number) const { return core.rowOf(number % core.sumsOfLane()); }
  int64_t columnOf(int64_t number) const {
    return number / core.sumsOfLane() * core.pieceColumns() + core.columnOf(number % core.sumsOfLane());
  }

  Value mixedAt(unsigned mix, const Element &at, ElementEmitter &emitter) {
    Value value = emitter.emit(program.outputs[form.mixes[mix].output].node);
    return at.orElse(b, value, arith::ConstantOp::create(b, b.getZeroAttr(value.getType())));
  }

  //===--- All in one pass ---===//

  /// Carries the largest score and the sum of exponentials of each half, then what is mixed.
  void walkOnce(const OnlineSoftmax &softmax) {
    for (ElementEmitter *half : halves)
      hoistRoots(*half, innerDims());
    SmallVector<unsigned> mixing, list{softmax.maximum, softmax.sum};
    for (unsigned i = 0; i < form.mixes.size(); ++i)
      mixing.push_back(i);
    Values carried = identitiesOf(halves, list);
    for (unsigned i : mixing)
      carried.append(zeros(columnsOf(i)));
    SmallVector<unsigned> needed;
    for (unsigned i = 0; i < form.scores.size(); ++i)
      needed.push_back(i);
    carried = overKeys(carried, [&](Value firstKey, ValueRange now) {
      loadKeys(needed, mixing, firstKey);
      Values next(now);
      for (int64_t block = 0; block < layout.keys / kBlockKeys; ++block)
        addKeysOnce(softmax, needed, mixing, firstKey, block, next);
      return next;
    });
    for (int64_t half = 0; half < halfCount; ++half) {
      Value &sum = carried[halfCount + half];
      sum = joinLanes(nn::ReduceKind::sum, sum);
    }
    finishPass(halves, list, ArrayRef<Value>(carried).take_front(2 * halfCount));
    Values factors;
    for (ElementEmitter *half : halves)
      factors.push_back(half->emit(softmax.factor));
    size_t at = 2 * halfCount;
    for (unsigned i : mixing) {
      Sums &sums = mixSums[i];
      sums.assign(carried.begin() + at, carried.begin() + at + sumsFor(columnsOf(i)));
      scale(sums, factors);
      at += sums.size();
    }
  }

  void addKeysOnce(const OnlineSoftmax &softmax, ArrayRef<unsigned> needed, ArrayRef<unsigned> mixing,
                   Value firstKey, int64_t block, Values &carried) {
    SmallVector<Sums, 2> made = makeScores(needed, block);
    Values scores(scoresOfLane()), largest(carried.begin(), carried.begin() + halfCount);
    auto maximum = nn::ReduceKind::max;
    forElements(firstKey, block, made, [&](const Element &at, ElementEmitter &emitter) {
      scores[at.number] = at.orElse(b, emitter.emit(softmax.scores), identityOf(softmax.maximum, emitter));
      largest[at.half] = combine(b, maximum, largest[at.half], scores[at.number]);
    });
    unsigned maximumNode = program.reductions[softmax.maximum].node;
    Values shifts, factors;
    for (auto [number, half] : llvm::enumerate(halves)) {
      largest[number] = joinLanes(maximum, largest[number]);
      // A row that has seen nothing yet has exponentials of zero, not of infinity less infinity.
      Value isNone = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, largest[number],
                                           identityOf(softmax.maximum, *half));
      shifts.push_back(arith::SelectOp::create(b, isNone, zero(), largest[number]));
      half->openScope();
      half->bind(softmax.scores, carried[number]);
      half->bind(maximumNode, shifts.back());
      factors.push_back(half->emit(softmax.exponential));
      half->closeScope();
      carried[number] = largest[number];
      Value &sum = carried[halfCount + number];
      sum = arith::MulFOp::create(b, sum, factors.back());
    }
    Value one = arith::ConstantOp::create(b, b.getF32FloatAttr(1));
    SmallVector<Values, 2> mixed(form.mixes.size(), Values(scoresOfLane()));
    forElements(firstKey, block, made, [&](const Element &at, ElementEmitter &emitter) {
      emitter.bind(softmax.scores, scores[at.number]);
      emitter.bind(maximumNode, shifts[at.half]);
      emitter.bind(softmax.factor, one);
      Value &sum = carried[halfCount + at.half];
      sum = arith::AddFOp::create(b, sum, emitter.emit(softmax.exponential));
      for (unsigned mix : mixing)
        mixed[mix][at.number] = mixedAt(mix, at, emitter);
    });
    size_t at = 2 * halfCount;
    for (unsigned mix : mixing) {
      scale(MutableArrayRef<Value>(carried).slice(at, sumsFor(columnsOf(mix))), factors);
      at = addMixed(mix, mixed[mix], block, carried, at);
    }
  }

  void loadKeys(ArrayRef<unsigned> needed, ArrayRef<unsigned> mixing, Value firstKey) {
    struct Filled {
      const AttentionTile &of;
      SharedTile tile;
      Value start;
      Values units;
    };
    std::deque<Filled> filled;
    auto load = [&](Filled &one) {
      StridedAccess access = accessOf(one.of);
      one.units = one.tile.load(access, one.start);
    };
    auto add = [&](const AttentionTile &tile, Value firstIndex, Value start) {
      Filled &one = filled.emplace_back(Filled{tile, tileOf(tile, firstIndex), start, {}});
      if (!core.hasFewRegisters)
        load(one);
    };
    for (unsigned i : needed)
      add(layout.scores[i].keys, firstKey, b.index(0));
    for (unsigned mix : mixing)
      if (!layout.mixed[mix].isCopyOfOther)
        add(layout.mixed[mix], b.index(0), firstKey);
    b.barrier(); // others may still read what is written over
    for (Filled &one : filled) {
      if (core.hasFewRegisters) {
        core.separate(b);
        load(one);
      }
      one.tile.store(one.units, b.index(0));
    }
    b.barrier();
  }

  Value supply(unsigned number) {
    const LoopNode &node = program.nodes[number];
    if (node.kind != LoopNode::load)
      return {};
    for (auto [scores, value] : llvm::zip(form.scores, current))
      if (node.buffer == scores.buffer)
        return value;
    return {};
  }

  //===--- Products ---===//

  /// The scores of a block of keys.
  Sums multiplyScores(const AttentionLayout::Scores &tiles, int64_t block) {
    SharedTile rowTile = tileOf(tiles.rows, firstRow), keyTile = tileOf(tiles.keys, b.index(0));
    rowTile.prepareFragments(warpRow);
    keyTile.prepareFragments(b.index(0));
    Value rowPlace = rowTile.placeOf(b.index(0)), keyPlace = keyTile.placeOf(b.index(0));
    const MatrixPlan &plan = tiles.rows.plan;
    Sums sums = zeros(kBlockKeys);
    for (int64_t first = 0; first < plan.tile.depth / kFragment; first += kBlockSteps) {
      addBlock(b, plan, loadBlock(rowTile, rowPlace, 0, first, plan.format.rowParts), keyTile, keyPlace,
               block * kBlockKeys / kFragment, first, sums);
    }
    return sums;
  }

  /// Two neighbours of a row as a register; what is left of them for the next part.
  Value takePart(Value &low, Value &high, bool isLast) {
    if (!low.getType().isF32()) { // one part, which is stored so
      Value upper =
          arith::ShLIOp::create(b, arith::ExtUIOp::create(b, b.getI32Type(), high), b.constant32(16));
      return arith::OrIOp::create(b, upper, arith::ExtUIOp::create(b, b.getI32Type(), low));
    }
    Value pair = core.roundPair(b, low, high);
    if (!isLast) {
      auto [lowPart, highPart] = extendPair(b, pair);
      low = arith::SubFOp::create(b, low, lowPart);
      high = arith::SubFOp::create(b, high, highPart);
    }
    return pair;
  }

  /// Adds the products of a block of keys, by their mixed scores, to the sums from `at` on. Returns where those end.
  size_t addMixed(unsigned mix, Values scores, int64_t block, Values &carried, size_t at) {
    const AttentionTile &tile = layout.mixed[mix];
    size_t count = sumsFor(columnsOf(mix));
    auto sums = MutableArrayRef<Value>(carried).slice(at, count);
    SharedTile columns = tileOf(tile, b.index(0));
    columns.prepareFragments(b.index(0));
    Value place = columns.placeOf(b.index(0));
    const MatrixFormat &format = tile.plan.format;
    SmallVector<Values> ofRow;
    const size_t inFragment = scores.size() / kBlockSteps;
    const bool isFull = format.number == MatrixNumber::f32;
    if (isFull)
      for (Value &score : scores)
        score = score.getType().isF32() ? score : extendToF32(b, b.getLoc(), score, tile.shape.row.narrow);
    for (int64_t part = 0; part < format.rowParts; ++part)
      for (int64_t step = 0; step < kBlockSteps; ++step) {
        auto numbers = MutableArrayRef<Value>(scores).slice(step * inFragment, inFragment);
        Values words;
        if (isFull)
          words.assign(numbers.begin(), numbers.end());
        for (size_t i = 0; !isFull && i < numbers.size(); i += 2)
          words.push_back(takePart(numbers[i], numbers[i + 1], part + 1 == format.rowParts));
        ofRow.push_back(core.rowsOf(b, lane, format.number, words));
      }
    addBlock(b, tile.plan, ofRow, columns, place, 0, block * kBlockSteps, sums);
    return at + count;
  }

  //===--- Results ---===//

  void storeRows() {
    if (form.rowOutputs.empty())
      return;
    for (int64_t half = 0; half < halfCount; ++half) {
      Value isThere = b.less(b.rem(b.div(lane, core.rowLaneStep), core.rowLanes), 1);
      if (form.row.size % layout.rows != 0)
        isThere = b.both(isThere, b.less(rows[half], form.row.size));
      b.guarded(isThere, [&] {
        halves[half]->openScope();
        setIndices(*halves[half], half, b.index(0));
        storePerRow(*halves[half]);
        halves[half]->closeScope();
      });
    }
  }

  void storeMix(const AttentionForm::Mix &mix, unsigned output, ArrayRef<Value> sums) {
    const ContractionShape &shape = mix.form.shape;
    Epilogue epilogue = codeOf(mix.form.epilogue, shape.accumulatorType, options);
    SmallVector<Value> bases;
    for (unsigned operand = 0; operand < shape.operands.size(); ++operand)
      bases.push_back(baseOf(mix.dims, operand, shape.operands[operand].offset, position));
    // Buffers of the contraction are the inputs, the scores and what this product makes.
    unsigned inputs = arguments.size() - form.mixOutputs.size() - form.rowOutputs.size();
    auto bufferOf = [&](unsigned operand) {
      unsigned buffer = shape.operands[operand].buffer;
      return arguments[buffer < inputs ? buffer : inputs + output];
    };
    Value firstColumn = core.sumColumnOf(b, lane);
    // Heads are a multiple of 8, of which the last may be but a part of an instruction's columns.
    const bool isCut = mix.column.size % core.pieceColumns() != 0;
    Values elements = elementsOf(sums);
    for (auto [element, sum] : llvm::enumerate(elements)) {
      int64_t half = rowOf(static_cast<int64_t>(element)), further = columnOf(static_cast<int64_t>(element));
      if (further >= mix.column.size)
        continue;
      Value column = b.add(firstColumn, further), row = rows[half];
      auto place = [&](unsigned operand) {
        Value at = b.add(bases[operand], b.mul(row, mix.row.strides[operand]));
        return std::make_pair(bufferOf(operand), b.add(at, b.mul(column, mix.column.strides[operand])));
      };
      Value isThere;
      if (form.row.size % layout.rows != 0)
        isThere = b.less(row, form.row.size);
      if (isCut && further + core.pieceColumns() > mix.column.size)
        isThere = b.both(isThere, b.less(column, mix.column.size));
      if (isThere)
        b.guarded(isThere, [&, value = sum] { finishElement(b, epilogue, place, value); });
      else
        finishElement(b, epilogue, place, sum);
    }
  }

  ThreadBuilder &b;
  const AttentionForm &form;
  const AttentionLayout &layout;
  const KeyRange &range;
  ValueRange arguments; ///< buffers of the kernel
  const MathOptions &options;
  const MatrixCore &core;
  const int64_t halfCount; ///< rows of a lane
  IndexRange keys;         ///< that the block needs
  Value space, lane, warpRow, firstRow;
  Value position;                       ///< of the head, row 0 and key 0
  SmallVector<int64_t> steps;           ///< of the program's dims
  Values starts;                        ///< their indices at `position`
  Values rows;                          ///< of a lane
  SmallVector<ElementEmitter *> halves; ///< one for each of them
  Values current;                       ///< scores of the element that is computed
  SmallVector<Sums, 2> mixSums;
};

} // namespace

bool hasAttention(const AttentionForm &form, const Processor &processor) {
  return AttentionLayout::plan(form, processor, [](unsigned) { return kBufferAlignment; }).has_value();
}

LogicalResult generateAttention(KernelBuilder &kernel, func::FuncOp function,
                                const GeneratorOptions &generator) {
  std::string reason;
  ValueRange outputs = function.getBody().front().getTerminator()->getOperands();
  auto form = AttentionForm::analyze(function.getArguments(), outputs, reason);
  if (!form)
    return function.emitError() << "no attention kernel can be made of this program: " << reason;
  auto planned = AttentionLayout::plan(*form, kernel.getProcessor(),
                                       [&](unsigned buffer) { return kernel.alignmentOf(buffer); });
  if (!planned)
    return function.emitError() << "a block has no room for this attention";
  const AttentionLayout &layout = *planned;
  KeyRange range(findSeenKeys(*form, layout.rows, layout.keys),
                 llvm::divideCeilSigned(form->key.size, layout.keys), layout.rows / layout.keys);
  int64_t blocks = form->products() * llvm::divideCeilSigned(form->row.size, layout.rows);
  MathOptions options = generator.math();
  unsigned inputs = function.getNumArguments();
  auto body = [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments) {
    // Those of the loop program: no buffer stands for scores.
    SmallVector<Value> buffers(arguments.buffers.begin(), arguments.buffers.begin() + inputs);
    buffers.append(form->scores.size() + form->mixes.size(), Value());
    for (unsigned output : form->rowOutputs)
      buffers.push_back(arguments.buffers[inputs + output]);
    AttentionEmitter(kernel, b, *form, layout, range, arguments, buffers, options).emit();
  };
  int64_t threads = layout.scores.front().rows.plan.threads();
  kernel.launch(blocks, threads, body, {.resident = 2, .keepsLoads = true});
  double steps = range.meanSteps * static_cast<double>(form->groupCount());
  kernel.noteProduct(std::llround(std::ceil(steps)), estimateCycles(*form, layout, blocks, steps));
  return success();
}

} // namespace ortc::gpu
