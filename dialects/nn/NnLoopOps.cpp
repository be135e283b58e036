// Verifiers and simplification of loops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"
#include "dialects/nn/ScanBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ortc::nn {

/// The type of one slice along the leading dimension.
static RankedTensorType sliceType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape().drop_front(), tensor.getElementType());
}

static RankedTensorType stackedType(Type item, int64_t count) {
  auto tensor = cast<RankedTensorType>(item);
  Shape shape{count};
  llvm::append_range(shape, tensor.getShape());
  return RankedTensorType::get(shape, tensor.getElementType());
}

LogicalResult ScanOp::verify() {
  int64_t count = getTripCount();
  if (count < 1)
    return emitOpError() << "C1: trip count " << count << " is below 1";
  if (getLimit() && getReverse())
    return emitOpError() << "C4: a limit of a loop that runs downwards";
  SmallVector<Type> arguments(getInits().getTypes());
  for (auto [i, sequence] : llvm::enumerate(getSequences())) {
    auto type = cast<RankedTensorType>(sequence.getType());
    if (type.getRank() == 0 || type.getDimSize(0) != count)
      return emitOpError() << "C2: sequence " << i << " of type " << type << " does not have " << count
                           << " slices";
    arguments.push_back(sliceType(type));
  }
  llvm::append_range(arguments, getInvariants().getTypes());
  if (!llvm::equal(arguments, getBlock().getArgumentTypes()))
    return emitOpError()
           << "C2: the body's arguments do not have the types of carried values, slices and invariants";
  auto yield = dyn_cast<YieldOp>(getBlock().getTerminator());
  if (!yield)
    return emitOpError() << "C3: the body does not end with nn.yield";
  if (yield.getNumOperands() != getNumResults() || getNumResults() < getNumCarried())
    return emitOpError() << "C3: the body yields " << yield.getNumOperands() << " values for "
                         << getNumResults() << " results";
  for (auto [i, value] : llvm::enumerate(yield.getOperands())) {
    Type wanted = i < getNumCarried() ? getInits()[i].getType() : Type(stackedType(value.getType(), count));
    Type given = i < getNumCarried() ? value.getType() : getResult(i).getType();
    if (given != wanted || getResult(i).getType() != wanted)
      return emitOpError() << "C3: result " << i << " has type " << getResult(i).getType()
                           << ", the body yields " << value.getType();
  }
  return success();
}

Value ScanOp::addInvariant(Value value) {
  getInvariantsMutable().append(value);
  return getBlock().addArgument(value.getType(), value.getLoc());
}

ScanOp ScanOp::takeWithStacked(OpBuilder &builder, ValueRange items) {
  SmallVector<Type> types(getResultTypes());
  for (Value item : items)
    types.push_back(stackedType(item.getType(), getTripCount()));
  auto fresh = ScanOp::create(builder, getLoc(), types, getTripCountAttr(), getReverseAttr(),
                              getRecomputeAttr(), getInits(), getSequences(), getInvariants(), getLimit());
  fresh.getBody().takeBody(getBody());
  getBody().emplaceBlock();
  Operation *terminator = fresh.getBlock().getTerminator();
  terminator->insertOperands(terminator->getNumOperands(), items);
  return fresh;
}

ResultRange buildScan(TensorBuilder &builder, int64_t count, bool reverse, ValueRange inits,
                      ValueRange sequences, ValueRange invariants,
                      llvm::function_ref<SmallVector<Value>(const ScanArguments &)> body) {
  Region region;
  Block &block = region.emplaceBlock();
  SmallVector<Type> types(inits.getTypes());
  ScanArguments arguments;
  auto add = [&](SmallVector<Value> &list, Type type) {
    list.push_back(block.addArgument(type, builder.getLoc()));
  };
  for (Value init : inits)
    add(arguments.carried, init.getType());
  for (Value sequence : sequences)
    add(arguments.slices, sliceType(sequence.getType()));
  for (Value invariant : invariants)
    add(arguments.invariants, invariant.getType());
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&block);
    SmallVector<Value> yielded = body(arguments);
    for (Value item : ArrayRef(yielded).drop_front(inits.size()))
      types.push_back(stackedType(item.getType(), count));
    YieldOp::create(builder, yielded);
  }
  auto scan = ScanOp::create(builder, types, builder.getI64IntegerAttr(count),
                             reverse ? builder.getUnitAttr() : UnitAttr(), UnitAttr(), inits, sequences,
                             invariants, Value());
  scan.getBody().takeBody(region);
  return scan.getResults();
}

static bool isSplatConstant(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  return constant && isa<SplatElementsAttr>(constant.getValue());
}

void ScanOp::captureOuterValues() {
  llvm::SetVector<Value> outer;
  getBody().walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (operand.getParentRegion()->isProperAncestor(&getBody()))
        outer.insert(operand);
  });
  for (Value value : outer) {
    Value inside;
    if (isSplatConstant(value))
      inside = OpBuilder::atBlockBegin(&getBlock()).clone(*value.getDefiningOp())->getResult(0);
    else
      inside = addInvariant(value);
    value.replaceUsesWithIf(
        inside, [&](OpOperand &use) { return getBody().isAncestor(use.getOwner()->getParentRegion()); });
  }
}

//===----------------------------------------------------------------------===//
// Simplification
//===----------------------------------------------------------------------===//

namespace {

/// Puts a scan together again without some of its arguments and results.
class ScanShrinker {
public:
  explicit ScanShrinker(ScanOp scan)
      : scan(scan), arguments(scan.getBlock().getNumArguments()), results(scan->getNumResults()) {}

  /// Argument i is replaced by `with` (an argument of the body, or an operation in it), if it has uses.
  void dropArgument(unsigned i, Value with) {
    if (with)
      scan.getBlock().getArgument(i).replaceAllUsesWith(with);
    arguments.set(i);
  }
  void dropResult(unsigned i) { results.set(i); }

  /// Carried value i becomes an invariant.
  void makeInvariant(unsigned i) {
    Value inside = scan.addInvariant(scan.getInits()[i]);
    arguments.resize(arguments.size() + 1);
    dropArgument(i, inside);
    dropResult(i);
  }

  bool changes() const { return arguments.any() || results.any(); }

  void apply(PatternRewriter &rewriter) {
    SmallVector<Value> inits, sequences, invariants, yielded;
    unsigned number = 0;
    auto keep = [&](ValueRange all, SmallVector<Value> &kept) {
      for (Value value : all)
        if (!arguments.test(number++))
          kept.push_back(value);
    };
    keep(scan.getInits(), inits);
    keep(scan.getSequences(), sequences);
    keep(scan.getInvariants(), invariants);
    SmallVector<Type> types;
    for (auto [i, value] : llvm::enumerate(scan.getYielded()))
      if (!results.test(i)) {
        yielded.push_back(value);
        types.push_back(scan.getResult(i).getType());
      }
    auto fresh =
        ScanOp::create(rewriter, scan.getLoc(), types, scan.getTripCountAttr(), scan.getReverseAttr(),
                       scan.getRecomputeAttr(), inits, sequences, invariants, scan.getLimit());
    fresh.getBody().takeBody(scan.getBody());
    Block &block = fresh.getBlock();
    block.eraseArguments(arguments);
    block.getTerminator()->setOperands(yielded);
    scan.getBody().emplaceBlock(); // well-formed until it is erased
    unsigned at = 0;
    SmallVector<Value> replacements;
    for (unsigned i = 0; i < scan->getNumResults(); ++i)
      replacements.push_back(results.test(i) ? outside.lookup(i) : Value(fresh.getResult(at++)));
    for (auto [old, now] : llvm::zip_equal(scan.getResults(), replacements))
      if (now)
        rewriter.replaceAllUsesWith(old, now);
    rewriter.eraseOp(scan);
  }

  /// What stands for a dropped result outside.
  llvm::DenseMap<unsigned, Value> outside;

private:
  ScanOp scan;
  llvm::BitVector arguments, results;
};

/// The arguments of the body that a result's value depends on matter; a carried value matters when it or its
/// final value does.
llvm::BitVector findLive(ScanOp scan) {
  unsigned carried = scan.getNumCarried();
  llvm::BitVector live(scan->getNumResults());
  for (unsigned i = 0; i < scan->getNumResults(); ++i)
    if (!scan.getResult(i).use_empty())
      live.set(i);
  llvm::DenseSet<Operation *> seen;
  SmallVector<Value> todo;
  auto need = [&](Value value) { todo.push_back(value); };
  for (unsigned i : live.set_bits())
    need(scan.getYielded()[i]);
  for (Operation &op : scan.getBlock().without_terminator())
    if (!isMemoryEffectFree(&op)) // checks
      for (Value operand : op.getOperands())
        need(operand);
  while (!todo.empty()) {
    Value value = todo.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      unsigned number = argument.getArgNumber();
      if (number < carried && !live.test(number)) {
        live.set(number);
        need(scan.getYielded()[number]);
      }
    } else if (seen.insert(value.getDefiningOp()).second) {
      llvm::append_range(todo, value.getDefiningOp()->getOperands());
    }
  }
  return live;
}

struct SimplifyScan : OpRewritePattern<ScanOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ScanOp scan, PatternRewriter &rewriter) const override {
    Block &block = scan.getBlock();
    // Constants of many values lie outside.
    for (auto constant : block.getOps<arith::ConstantOp>()) {
      if (isa<SplatElementsAttr>(constant.getValue()))
        continue;
      auto outer = cast<arith::ConstantOp>(rewriter.clone(*constant));
      rewriter.modifyOpInPlace(scan,
                               [&] { constant.getResult().replaceAllUsesWith(scan.addInvariant(outer)); });
      rewriter.eraseOp(constant);
      return success();
    }
    ScanShrinker shrink(scan);
    unsigned carried = scan.getNumCarried(), slices = scan.getSequences().size();
    llvm::BitVector live = findLive(scan);
    for (unsigned i = 0; i < scan->getNumResults(); ++i) {
      if (!live.test(i)) {
        shrink.dropResult(i);
        if (i < carried) { // nothing that stays reads it
          rewriter.setInsertionPointToStart(&block);
          auto type = cast<RankedTensorType>(block.getArgument(i).getType());
          Value zero =
              arith::ConstantOp::create(rewriter, scan.getLoc(), cast<TypedAttr>(rewriter.getZeroAttr(type)));
          shrink.dropArgument(i, zero);
        }
      } else if (i < carried && scan.getYielded()[i] == block.getArgument(i)) {
        shrink.outside[i] = scan.getInits()[i];
        shrink.makeInvariant(i);
      }
    }
    unsigned arguments = block.getNumArguments();
    for (unsigned i = carried; i < arguments && !shrink.changes(); ++i) {
      BlockArgument argument = block.getArgument(i);
      Value operand = scan->getOperand(i);
      if (argument.use_empty()) {
        shrink.dropArgument(i, {});
        continue;
      }
      bool isInvariant = i >= carried + slices;
      if (isInvariant && isSplatConstant(operand)) {
        rewriter.setInsertionPointToStart(&block);
        shrink.dropArgument(i, rewriter.clone(*operand.getDefiningOp())->getResult(0));
        continue;
      }
      for (unsigned earlier = isInvariant ? carried + slices : carried; earlier < i; ++earlier)
        if (scan->getOperand(earlier) == operand) {
          shrink.dropArgument(i, block.getArgument(earlier));
          break;
        }
    }
    if (!shrink.changes())
      return failure();
    rewriter.setInsertionPoint(scan);
    shrink.apply(rewriter);
    return success();
  }
};

} // namespace

void ScanOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<SimplifyScan>(context);
}

} // namespace ortc::nn
