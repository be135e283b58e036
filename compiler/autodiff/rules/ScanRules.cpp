// Gradient of loops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The engine differentiates the body where it stands, in a copy of the loop: cotangents come in as extra
// arguments. What it appends moves to the body of a second loop that runs the other way round. Forward values
// that this body reads come out of the forward loop as stacked results, unless they are arguments or cheap to
// compute again.
#include "compiler/autodiff/rules/Rules.h"

#include "compiler/autodiff/Differentiate.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ortc::autodiff {

static bool isFloat(Value value) { return isa<FloatType>(TensorBuilder::elementOf(value)); }

/// What costs no more than loading its result.
static bool isCheap(Operation *op) {
  return isa<arith::ConstantOp, nn::IotaOp, nn::BroadcastOp, nn::ReshapeOp>(op);
}

/// What costs little beside storing and loading its result.
static bool isSimple(Operation *op) {
  return isCheap(op) ||
         isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp, arith::CmpFOp, arith::SelectOp>(op);
}

/// In front of `end`, where gradients have been taken: what chooses them is nothing but another name of a value.
static void dropChosenGradients(Operation *end) {
  for (Operation &op :
       llvm::make_early_inc_range(llvm::make_range(end->getBlock()->begin(), end->getIterator()))) {
    if (!isa<nn::DetachOp, nn::StraightThroughOp>(op))
      continue;
    op.getResult(0).replaceAllUsesWith(op.getOperand(0));
    op.erase();
  }
}

/// Simple operations that may stand for one saved value.
static constexpr size_t kSimpleOperations = 6;

namespace {

class ScanGradient {
public:
  ScanGradient(nn::ScanOp op, GradientRequest &request)
      : op(op), request(request), b(request.builder), carried(op.getNumCarried()),
        arguments(op.getBlock().getNumArguments()), isVaried(arguments), isReached(arguments),
        isUseful(op->getNumResults()) {}

  Gradients run();

private:
  void findVaried();
  void findUseful();
  bool differentiateBody();
  void resolve(Value value);
  void repeatSimple();
  bool collectSimple(Value value, const llvm::SetVector<Value> &kept, llvm::SetVector<Operation *> &needed);
  nn::ScanOp buildForward();
  Gradients buildBackward(nn::ScanOp forward);
  bool isActive(unsigned argument) const { return isVaried.test(argument) && isReached.test(argument); }
  bool isInvariant(unsigned argument) { return argument >= carried + op.getSequences().size(); }

  nn::ScanOp op;
  GradientRequest &request;
  TensorBuilder &b;
  unsigned carried, arguments;
  llvm::BitVector isVaried;  ///< arguments of floating point that depend on what is differentiated for
  llvm::BitVector isReached; ///< arguments that a result with a cotangent depends on
  llvm::BitVector isUseful;  ///< yielded values that have a cotangent and are varied
  llvm::DenseSet<Value> varied;

  nn::ScanOp work;                              ///< the copy that is differentiated
  llvm::DenseMap<unsigned, Value> cotangents;   ///< of yielded values, as arguments of `work`
  SmallVector<unsigned> wanted;                 ///< arguments that get a gradient
  SmallVector<Value> gradients;                 ///< of these
  SmallVector<Operation *> backward;            ///< what the engine appended
  llvm::SetVector<Value> saved;                 ///< to be stacked
  llvm::SetVector<Operation *> repeated;        ///< to be computed again, in their order
  llvm::SetVector<Value> sequences, invariants; ///< arguments to be read again
};

void ScanGradient::findVaried() {
  Block &block = op.getBlock();
  for (unsigned i = 0; i < arguments; ++i)
    if (request.wants(i) && isFloat(block.getArgument(i)))
      isVaried.set(i);
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned i : isVaried.set_bits())
      varied.insert(block.getArgument(i));
    for (Operation &inner : block.without_terminator())
      if (llvm::any_of(inner.getOperands(), [&](Value operand) { return varied.contains(operand); }))
        for (Value result : inner.getResults())
          if (isFloat(result))
            varied.insert(result);
    for (unsigned i = 0; i < carried; ++i)
      if (!isVaried.test(i) && varied.contains(op.getYielded()[i])) {
        isVaried.set(i);
        changed = true;
      }
  }
}

void ScanGradient::findUseful() {
  Block &block = op.getBlock();
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    if (request.hasCotangent(i) && varied.contains(op.getYielded()[i]))
      isUseful.set(i);
  for (bool changed = true; changed;) {
    changed = false;
    llvm::DenseSet<Value> useful;
    for (unsigned i : isUseful.set_bits())
      useful.insert(op.getYielded()[i]);
    for (Operation &inner : llvm::reverse(block.without_terminator()))
      if (llvm::any_of(inner.getResults(),
                       [&](Value result) { return useful.contains(result) && varied.contains(result); }))
        useful.insert(inner.operand_begin(), inner.operand_end());
    for (unsigned i = 0; i < arguments; ++i) {
      if (!isVaried.test(i) || isReached.test(i) || !useful.contains(block.getArgument(i)))
        continue;
      isReached.set(i);
      if (i < carried && varied.contains(op.getYielded()[i]) && !isUseful.test(i)) {
        isUseful.set(i);
        changed = true;
      }
    }
  }
}

bool ScanGradient::differentiateBody() {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op);
  work = cast<nn::ScanOp>(b.clone(*op));
  Block &block = work.getBlock();
  Operation *terminator = block.getTerminator();
  TensorBuilder inner(op.getLoc(), terminator);
  SmallVector<Value> outputs, seeds, withRespectTo;
  for (unsigned i : isUseful.set_bits()) {
    outputs.push_back(terminator->getOperand(i));
    seeds.push_back(cotangents[i] = block.addArgument(outputs.back().getType(), op.getLoc()));
  }
  for (unsigned i = 0; i < arguments; ++i)
    if (isActive(i) && (i < carried || request.wants(i))) {
      wanted.push_back(i);
      withRespectTo.push_back(block.getArgument(i));
    }
  Operation *mark = inner.scalar(b.getF32Type(), 0).getDefiningOp();
  auto result = differentiate(inner, outputs, seeds, withRespectTo, request.options);
  if (failed(result)) {
    work.erase();
    return false;
  }
  gradients = result->gradients;
  dropChosenGradients(mark);
  for (Operation *each = mark->getNextNode(); each != terminator; each = each->getNextNode())
    backward.push_back(each);
  llvm::DenseSet<Operation *> appended(backward.begin(), backward.end());
  auto need = [&](Value value) {
    if (value && !appended.contains(value.getDefiningOp()))
      resolve(value);
  };
  for (Operation *each : backward)
    for (Value operand : each->getOperands())
      need(operand);
  for (Value gradient : gradients)
    need(gradient);
  mark->erase();
  repeatSimple();
  return true;
}

/// Decides how a forward value comes to the backward loop.
void ScanGradient::resolve(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    unsigned number = argument.getArgNumber();
    if (number >= arguments)
      return; // a cotangent
    if (number < carried)
      saved.insert(value);
    else
      (isInvariant(number) ? invariants : sequences).insert(value);
    return;
  }
  Operation *definition = value.getDefiningOp();
  if (!op.getRecompute() && !isCheap(definition)) {
    saved.insert(value);
    return;
  }
  if (repeated.contains(definition))
    return;
  for (Value operand : definition->getOperands())
    resolve(operand);
  repeated.insert(definition); // after what it needs
}

/// Whether few simple operations, collected in `needed`, compute `value` from what the backward loop has:
/// values that are
/// `kept`, and arguments that it reads outside.
bool ScanGradient::collectSimple(Value value, const llvm::SetVector<Value> &kept,
                                 llvm::SetVector<Operation *> &needed) {
  SmallVector<Value> stack{value};
  while (!stack.empty()) {
    Value next = stack.pop_back_val();
    if (kept.contains(next) || sequences.contains(next) || invariants.contains(next))
      continue;
    Operation *op = next.getDefiningOp();
    if (!op || !isSimple(op))
      return false;
    if (repeated.contains(op) || !needed.insert(op))
      continue;
    if (needed.size() > kSimpleOperations)
      return false;
    stack.append(op->operand_begin(), op->operand_end());
  }
  return true;
}

/// Computes again what follows from other saved values with little work.
void ScanGradient::repeatSimple() {
  auto isEarlier = [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); };
  auto stacked = work.getYielded().drop_front(carried);
  llvm::SetVector<Value> kept;
  SmallVector<Operation *> definitions;
  for (Value value : saved) {
    Operation *definition = value.getDefiningOp();
    if (!definition || llvm::is_contained(stacked, value))
      kept.insert(value);
    else if (!llvm::is_contained(definitions, definition))
      definitions.push_back(definition);
  }
  // Earlier ones are kept, what follows from them is not.
  llvm::sort(definitions, isEarlier);
  for (Operation *definition : definitions)
    for (Value value : definition->getResults()) {
      llvm::SetVector<Operation *> needed;
      if (!saved.contains(value) || kept.contains(value))
        continue;
      if (collectSimple(value, kept, needed))
        repeated.insert(needed.begin(), needed.end());
      else
        kept.insert(value);
    }
  saved.remove_if([&](Value value) { return !kept.contains(value); });
  SmallVector<Operation *> order = repeated.takeVector();
  llvm::sort(order, isEarlier);
  repeated.insert(order.begin(), order.end());
}

/// The loop with the saved values as further results. Its body still has the cotangents and what the engine appended.
nn::ScanOp ScanGradient::buildForward() {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(work);
  auto stacked = work.getYielded().drop_front(carried);
  SmallVector<Value> items;
  for (Value value : saved)
    if (!llvm::is_contained(stacked, value))
      items.push_back(value);
  nn::ScanOp forward = work.takeWithStacked(b, items);
  work.erase();
  return forward;
}

Gradients ScanGradient::buildBackward(nn::ScanOp forward) {
  SmallVector<Value> inits, over, with;
  SmallVector<Type> types;
  SmallVector<unsigned> back, sums, stacks; // arguments whose gradients are carried, summed up, stacked
  for (unsigned i : wanted)
    (i < carried ? back : isInvariant(i) ? sums : stacks).push_back(i);
  for (unsigned i : back)
    inits.push_back(isUseful.test(i) && request.hasCotangent(i) ? request.cotangent(i)
                                                                : b.zerosLike(op->getOperand(i)));
  llvm::DenseMap<unsigned, Value> gradientOf;
  for (auto [i, gradient] : llvm::zip_equal(wanted, gradients))
    gradientOf[i] = gradient;
  llvm::erase_if(sums, [&](unsigned i) { return !gradientOf.lookup(i); });
  llvm::erase_if(stacks, [&](unsigned i) { return !gradientOf.lookup(i); });
  for (unsigned i : sums)
    inits.push_back(b.zerosLike(op->getOperand(i)));
  for (Value init : inits)
    types.push_back(init.getType());
  for (unsigned i : stacks)
    types.push_back(op->getOperand(i).getType());
  SmallVector<unsigned> items; // stacked results with a cotangent
  for (unsigned i : isUseful.set_bits())
    if (i >= carried) {
      items.push_back(i);
      over.push_back(request.cotangent(i));
    }
  for (Value argument : sequences)
    over.push_back(forward->getOperand(cast<BlockArgument>(argument).getArgNumber()));
  for (Value value : saved) {
    auto yielded = forward.getYielded().drop_front(carried);
    over.push_back(forward.getStacked()[llvm::find(yielded, value) - yielded.begin()]);
  }
  for (Value argument : invariants)
    with.push_back(forward->getOperand(cast<BlockArgument>(argument).getArgNumber()));

  auto scan =
      nn::ScanOp::create(b, types, op.getTripCountAttr(), op.getReverse() ? UnitAttr() : b.getUnitAttr(),
                         UnitAttr(), inits, over, with, Value());
  Block &block = scan.getBody().emplaceBlock();
  TensorBuilder inner(op.getLoc(), op.getContext());
  inner.setInsertionPointToEnd(&block);
  IRMapping mapping;
  auto argument = [&](Type type) { return block.addArgument(type, op.getLoc()); };
  SmallVector<Value> sumsSoFar, yielded;
  for (unsigned i : back) {
    Value incoming = argument(op->getOperand(i).getType());
    if (isUseful.test(i))
      mapping.map(cotangents.lookup(i), incoming);
  }
  for (unsigned i : sums)
    sumsSoFar.push_back(argument(op->getOperand(i).getType()));
  for (unsigned i : items)
    mapping.map(cotangents.lookup(i), argument(cotangents.lookup(i).getType()));
  for (Value value : sequences)
    mapping.map(value, argument(value.getType()));
  for (Value value : saved)
    mapping.map(value, argument(value.getType()));
  for (Value value : invariants)
    mapping.map(value, argument(value.getType()));
  for (Operation *each : repeated)
    inner.clone(*each, mapping);
  for (Operation *each : backward) {
    each->moveBefore(&block, block.end());
    for (OpOperand &operand : each->getOpOperands())
      operand.set(mapping.lookupOrDefault(operand.get()));
  }
  auto inside = [&](unsigned i) {
    Value gradient = gradientOf.lookup(i);
    return gradient ? mapping.lookupOrDefault(gradient) : inner.zerosLike(op.getBlock().getArgument(i));
  };
  for (unsigned i : back)
    yielded.push_back(inside(i));
  for (auto [i, sum] : llvm::zip_equal(sums, sumsSoFar))
    yielded.push_back(addGradients(inner, sum, inside(i)));
  for (unsigned i : stacks)
    yielded.push_back(inside(i));
  nn::YieldOp::create(inner, yielded);

  Gradients results(op->getNumOperands(), noGradient("the results do not depend on it"));
  unsigned at = 0;
  for (ArrayRef<unsigned> list : {ArrayRef(back), ArrayRef(sums), ArrayRef(stacks)})
    for (unsigned i : list)
      results[i] = Gradient(scan.getResult(at++));
  return results;
}

Gradients ScanGradient::run() {
  findVaried();
  findUseful();
  if (isReached.none())
    return Gradients(op->getNumOperands(), noGradient("the results do not depend on it"));
  if (!differentiateBody())
    return {};
  nn::ScanOp forward = buildForward();
  Gradients results = buildBackward(forward);
  Block &block = forward.getBlock();
  block.eraseArguments(arguments, block.getNumArguments() - arguments);
  request.replacement = forward;
  return results;
}

} // namespace

// "nn.scan": results = the body iterated
// gradients = a scan in the other direction over the gradient of the body; those of invariants are summed on the way
// saved: carried values and results of the body that its gradient reads, stacked; what is cheap is computed again, with
// `recompute` all but carried values
// special points: those of the body
// accumulates: gradients of the invariants
static Gradients differentiateScan(nn::ScanOp op, GradientRequest &request) {
  if (op.getLimit()) {
    op.emitError() << "a loop that may leave iterations out has no gradient";
    return {};
  }
  return ScanGradient(op, request).run();
}

void attachScanRules(MLIRContext *context) { attachRule<nn::ScanOp, differentiateScan>(context); }

} // namespace ortc::autodiff
