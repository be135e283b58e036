// Attention and its gradients on matrix cores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A warp makes the scores of 16 rows and of the keys of a step in registers, where a matrix core leaves them: on
// NVIDIA, lane 4g + q has rows g and g + 8 and, of every eight keys, 2q and 2q + 1; on AMD, lane 16g + r has row r and,
// of every 16 keys, 4g to 4g + 3; a wavefront of 32 lanes also has those 8 further. The program between the products
// runs there. Its results already lie as the core takes rows of the product along the keys, or nearly so
// (MatrixCore::rowsOf).
#include "compiler/backends/gpu/attention/AttentionKernel.h"

#include "compiler/backends/emit/LoopWalk.h"
#include "compiler/backends/emit/Reduction.h"
#include "compiler/backends/gpu/attention/AttentionCycles.h"
#include "compiler/backends/gpu/attention/AttentionPlaces.h"
#include "compiler/backends/gpu/attention/AttentionProducts.h"
#include "compiler/backends/gpu/product/ScalarAccess.h"
#include "compiler/kernels/attention/OnlineSoftmax.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <deque>

using namespace mlir;

namespace ortc::gpu {

namespace {

/// Scores of a lane that are computed side by side where registers are few.
constexpr int64_t kScoresAtOnce = 4;

class AttentionEmitter : LoopWalk {
public:
  AttentionEmitter(KernelBuilder &kernel, ThreadBuilder &builder, const AttentionForm &form,
                   const AttentionLayout &layout, const KeyRange &range,
                   const KernelBuilder::Arguments &arguments, ValueRange buffers, const MathOptions &options)
      : LoopWalk(builder, form.program, buffers), b(builder), form(form), layout(layout),
        arguments(arguments.buffers), options(options), core(*layout.scores.front().rows.plan.core),
        laneRows(core.rowsOfLane()), places(builder, form, layout, range, arguments.buffers,
                                            kernel.sharedSpace(builder, layout.bytes, kLineAlignment)),
        products(builder, form, layout, places), mixedSums(form.mixes.size()) {}

  void emit() {
    places.place(b.thread(), b.block());
    std::deque<ElementEmitter> owned;
    for (int64_t laneRow = 0; laneRow < laneRows; ++laneRow) {
      ElementEmitter &emitter = owned.emplace_back(b, program, buffers, options);
      places.setIndices(emitter, laneRow, b.index(0));
      emitter.setSupplier([this](unsigned node) { return supply(node); });
      emitters.push_back(&emitter);
    }
    products.loadRows();
    if (auto softmax = findOnlineSoftmax(program))
      walkOnce(*softmax);
    else
      for (unsigned pass = 0; pass < program.passes; ++pass)
        walkKeys(pass);
    storeRows();
    places.place(b.threadAgain(), b.blockAgain()); // the passes want all registers
    for (auto [number, mix] : llvm::enumerate(form.mixes))
      storeMix(mix, form.mixOutputs[number], mixedSums[number]);
  }

private:
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

  /// Reductions and mixes that a pass makes, by number, and the products of scores that it needs for them.
  struct Pass {
    SmallVector<unsigned> reductions, mixes, scores;
  };

  /// All keys of the block: fills the tiles of each step, then add(firstKey, block, carried) for each of its blocks.
  Values overKeys(const Pass &pass, Values carried, llvm::function_ref<void(Value, int64_t, Values &)> add) {
    Values result = places.overKeys(std::move(carried), [&](Value firstKey, ValueRange now) {
      products.loadKeys(pass.scores, pass.mixes, firstKey);
      Values next(now);
      for (int64_t block = 0; block < layout.keys / kBlockKeys; ++block)
        add(firstKey, block, next);
      return next;
    });
    for (auto [laneRow, emitter] : llvm::enumerate(emitters)) // indices of the last key end with the loop
      places.setIndices(*emitter, static_cast<int64_t>(laneRow), b.index(0));
    return result;
  }

  /// A pass carries, for each reduction, a value of each of the lane's rows, then the sums of its mixes.
  Values firstCarried(const Pass &pass) {
    Values carried = identitiesOf(emitters, pass.reductions);
    for (unsigned mix : pass.mixes)
      carried.append(products.mixedZeros(mix));
    return carried;
  }
  size_t reducedValues(const Pass &pass) const { return pass.reductions.size() * laneRows; }
  /// Visits the sums: visit(mix, sums).
  void forSums(const Pass &pass, MutableArrayRef<Value> carried,
               llvm::function_ref<void(unsigned, MutableArrayRef<Value>)> visit) {
    carried = carried.drop_front(reducedValues(pass));
    for (unsigned mix : pass.mixes) {
      visit(mix, carried.take_front(products.mixedValues(mix)));
      carried = carried.drop_front(products.mixedValues(mix));
    }
  }

  void walkKeys(unsigned number) {
    Pass pass{reductionsOf(number), {}, scoresOf(number)};
    for (auto [i, mix] : llvm::enumerate(form.mixes))
      if (program.outputs[mix.output].pass == number)
        pass.mixes.push_back(i);
    if (pass.reductions.empty() && pass.mixes.empty())
      return;
    for (ElementEmitter *emitter : emitters)
      hoistPass(*emitter, number, places.innerDims());
    Values carried =
        overKeys(pass, firstCarried(pass), [&](Value firstKey, int64_t block, Values &carriedOn) {
          addKeys(pass, firstKey, block, carriedOn);
        });
    Values results;
    for (size_t i = 0; i < reducedValues(pass); ++i)
      results.push_back(joinLanes(program.reductions[pass.reductions[i / laneRows]].kind, carried[i]));
    finishPass(emitters, pass.reductions, results);
    forSums(pass, carried, [&](unsigned mix, MutableArrayRef<Value> sums) {
      mixedSums[mix].assign(sums.begin(), sums.end());
    });
  }

  /// Joins the values that the lanes of a row have.
  Value joinLanes(nn::ReduceKind kind, Value value) {
    for (int64_t lanes = 1; lanes < core.rowLanes; lanes *= 2)
      value = combine(b, kind, value, b.shuffleXor(value, lanes * core.rowLaneStep));
    return value;
  }

  /// Adds a block of the keys from `firstKey` on to what is carried.
  void addKeys(const Pass &pass, Value firstKey, int64_t block, Values &carried) {
    SmallVector<Values, 2> made = products.makeScores(pass.scores, block);
    SmallVector<Values, 2> mixed(form.mixes.size(), Values(products.scoresOfLane()));
    forElements(firstKey, block, made, [&](const Element &at, ElementEmitter &emitter) {
      for (auto [place, number] : llvm::enumerate(pass.reductions)) {
        Value input =
            at.orElse(b, accumulated(emitter, program.reductions[number]), identityOf(number, emitter));
        Value &reduced = carried[place * laneRows + at.laneRow];
        reduced = combine(b, program.reductions[number].kind, reduced, input);
      }
      for (unsigned mix : pass.mixes)
        mixed[mix][at.number] = mixedAt(mix, at, emitter);
    });
    forSums(pass, carried, [&](unsigned mix, MutableArrayRef<Value> sums) {
      products.addMixed(mix, mixed[mix], block, sums);
    });
  }

  /// A score of a lane in a block.
  struct Element {
    int64_t number, laneRow;
    Value isThere; ///< null: it always is

    Value orElse(ThreadBuilder &b, Value value, Value other) const {
      return isThere ? b.choose(isThere, value, other) : value;
    }
  };

  /// Visits all of them, with the emitter of their row, which knows the scores that were made.
  void forElements(Value firstKey, int64_t block, ArrayRef<Values> made,
                   llvm::function_ref<void(const Element &, ElementEmitter &)> visit) {
    Value first = core.sumColumnOf(b, places.getLane());
    for (int64_t number = 0; number < static_cast<int64_t>(products.scoresOfLane()); ++number) {
      if (core.hasFewRegisters && number % kScoresAtOnce == 0)
        core.separate(b);
      Element element{number, products.laneRowOf(number), Value()};
      Value key = b.add(b.add(firstKey, first), block * kBlockKeys + products.columnOf(number));
      if (form.key.size % layout.keys != 0)
        element.isThere = b.less(key, form.key.size);
      current.assign(form.scores.size(), Value());
      for (auto [value, scores] : llvm::zip_equal(current, made))
        value = scores.empty() ? Value() : scores[element.number];
      ElementEmitter &emitter = *emitters[element.laneRow];
      emitter.openScope();
      places.setIndices(emitter, element.laneRow, places.withinKeys(key));
      visit(element, emitter);
      emitter.closeScope();
    }
  }

  Value mixedAt(unsigned mix, const Element &at, ElementEmitter &emitter) {
    Value value = emitter.emit(program.outputs[form.mixes[mix].output].node);
    return at.orElse(b, value, arith::ConstantOp::create(b, b.getZeroAttr(value.getType())));
  }

  //===--- All in one pass ---===//

  /// Carries the largest score and the sum of exponentials of each of the lane's rows, then what is mixed.
  void walkOnce(const OnlineSoftmax &softmax) {
    for (ElementEmitter *emitter : emitters)
      hoistRoots(*emitter, places.innerDims());
    Pass pass{{softmax.maximum, softmax.sum}, {}, {}};
    for (unsigned i = 0; i < form.mixes.size(); ++i)
      pass.mixes.push_back(i);
    for (unsigned i = 0; i < form.scores.size(); ++i)
      pass.scores.push_back(i);
    Values carried =
        overKeys(pass, firstCarried(pass), [&](Value firstKey, int64_t block, Values &carriedOn) {
          addKeysOnce(softmax, pass, firstKey, block, carriedOn);
        });
    for (int64_t laneRow = 0; laneRow < laneRows; ++laneRow) {
      Value &sum = carried[laneRows + laneRow];
      sum = joinLanes(nn::ReduceKind::sum, sum);
    }
    finishPass(emitters, pass.reductions, ArrayRef<Value>(carried).take_front(reducedValues(pass)));
    Values factors;
    for (ElementEmitter *emitter : emitters)
      factors.push_back(emitter->emit(softmax.factor));
    forSums(pass, carried, [&](unsigned mix, MutableArrayRef<Value> sums) {
      mixedSums[mix].assign(sums.begin(), sums.end());
      products.scale(mixedSums[mix], factors);
    });
  }

  /// The maximum that scores are compared with, and the factor of sums of earlier keys, for each of the lane's rows.
  struct RowFactors {
    Values shifts, factors;
  };

  /// Lets sums of exponentials count from the largest scores so far, `largest` of what each lane has seen.
  RowFactors raiseMaxima(const OnlineSoftmax &softmax, Values largest, Values &carried) {
    unsigned maximumNode = program.reductions[softmax.maximum].node;
    RowFactors result;
    for (auto [laneRow, emitter] : llvm::enumerate(emitters)) {
      largest[laneRow] = joinLanes(nn::ReduceKind::max, largest[laneRow]);
      // A row that has seen nothing yet has exponentials of zero, not of infinity less infinity.
      Value isNone = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, largest[laneRow],
                                           identityOf(softmax.maximum, *emitter));
      Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
      result.shifts.push_back(b.choose(isNone, zero, largest[laneRow]));
      emitter->openScope();
      emitter->bind(softmax.scores, carried[laneRow]);
      emitter->bind(maximumNode, result.shifts.back());
      result.factors.push_back(emitter->emit(softmax.exponential));
      emitter->closeScope();
      carried[laneRow] = largest[laneRow];
      Value &sum = carried[laneRows + laneRow];
      sum = arith::MulFOp::create(b, sum, result.factors.back());
    }
    return result;
  }

  void addKeysOnce(const OnlineSoftmax &softmax, const Pass &pass, Value firstKey, int64_t block,
                   Values &carried) {
    SmallVector<Values, 2> made = products.makeScores(pass.scores, block);
    Values scores(products.scoresOfLane()), largest(carried.begin(), carried.begin() + laneRows);
    auto maximum = nn::ReduceKind::max;
    forElements(firstKey, block, made, [&](const Element &at, ElementEmitter &emitter) {
      scores[at.number] = at.orElse(b, emitter.emit(softmax.scores), identityOf(softmax.maximum, emitter));
      largest[at.laneRow] = combine(b, maximum, largest[at.laneRow], scores[at.number]);
    });
    auto [shifts, factors] = raiseMaxima(softmax, largest, carried);
    Value one = arith::ConstantOp::create(b, b.getF32FloatAttr(1));
    SmallVector<Values, 2> mixed(form.mixes.size(), Values(products.scoresOfLane()));
    forElements(firstKey, block, made, [&](const Element &at, ElementEmitter &emitter) {
      emitter.bind(softmax.scores, scores[at.number]);
      emitter.bind(program.reductions[softmax.maximum].node, shifts[at.laneRow]);
      emitter.bind(softmax.factor, one);
      Value &sum = carried[laneRows + at.laneRow];
      sum = arith::AddFOp::create(b, sum, emitter.emit(softmax.exponential));
      for (unsigned mix : pass.mixes)
        mixed[mix][at.number] = mixedAt(mix, at, emitter);
    });
    forSums(pass, carried, [&](unsigned mix, MutableArrayRef<Value> sums) {
      products.scale(sums, factors);
      products.addMixed(mix, mixed[mix], block, sums);
    });
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

  //===--- Results ---===//

  void storeRows() {
    if (form.rowOutputs.empty())
      return;
    for (int64_t laneRow = 0; laneRow < laneRows; ++laneRow) {
      Value isThere = b.less(b.rem(b.div(places.getLane(), core.rowLaneStep), core.rowLanes), 1);
      if (form.row.size % layout.rows != 0)
        isThere = b.both(isThere, b.less(places.getRow(laneRow), form.row.size));
      b.guarded(isThere, [&] {
        ElementEmitter &emitter = *emitters[laneRow];
        emitter.openScope();
        places.setIndices(emitter, laneRow, b.index(0));
        storePerRow(emitter);
        emitter.closeScope();
      });
    }
  }

  void storeMix(const AttentionForm::Mix &mix, unsigned output, ArrayRef<Value> sums) {
    const ContractionShape &shape = mix.form.shape;
    Epilogue epilogue = codeOf(mix.form.epilogue, shape.accumulatorType, options);
    SmallVector<Value> bases;
    for (unsigned operand = 0; operand < shape.operands.size(); ++operand)
      bases.push_back(places.baseOf(mix.dims, operand, shape.operands[operand].offset, places.getPosition()));
    // Buffers of the contraction are the inputs, the scores and what this product makes.
    unsigned inputs = arguments.size() - form.mixOutputs.size() - form.rowOutputs.size();
    auto bufferOf = [&](unsigned operand) {
      unsigned buffer = shape.operands[operand].buffer;
      return arguments[buffer < inputs ? buffer : inputs + output];
    };
    Value firstColumn = core.sumColumnOf(b, places.getLane());
    // Heads are a multiple of 8, of which the last may be but a part of an instruction's columns.
    const bool isCut = mix.column.size % core.pieceColumns() != 0;
    Values elements = products.elementsOf(sums);
    for (auto [element, sum] : llvm::enumerate(elements)) {
      int64_t further = products.columnOf(static_cast<int64_t>(element));
      if (further >= mix.column.size)
        continue;
      Value column = b.add(firstColumn, further);
      Value row = places.getRow(products.laneRowOf(static_cast<int64_t>(element)));
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
  ValueRange arguments; ///< buffers of the kernel
  const MathOptions &options;
  const MatrixCore &core;
  const int64_t laneRows; ///< rows of a lane
  AttentionPlaces places;
  AttentionProducts products;
  SmallVector<ElementEmitter *> emitters; ///< one for each of the lane's rows
  Values current;                         ///< scores of the element that is computed
  SmallVector<Values, 2> mixedSums;       ///< by mix
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
  double meanSteps = range.meanSteps * static_cast<double>(form->groupCount());
  kernel.noteProduct(std::llround(std::ceil(meanSteps)), estimateCycles(*form, layout, blocks, meanSteps));
  return success();
}

} // namespace ortc::gpu
