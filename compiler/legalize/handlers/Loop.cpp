// If, Loop and Scan.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop whose trip count is known and whose body keeps the types of what it carries becomes nn.scan. Where that cannot
// be (sequences, shapes that grow, values that a body needs at compile time, a condition that ends it), the
// loop is taken apart: one copy of the body for each iteration, in which the iteration's number is a
// constant.
#include "compiler/legalize/Node.h"
#include "support/Plural.h"

#include <limits>

using namespace mlir;

namespace ortc::legalize::handlers {

LogicalResult ifThenElse(Node &n) {
  const HostTensor *condition = n.constant(0);
  if (condition && (condition->size() != 1 || condition->isFloat()))
    return n.refuse("its condition is not one boolean");
  if (!condition)
    return n.refuse("its condition depends on data; only conditions known at compile time are supported");
  onnx::GraphOp branch = n.op.getGraph(condition->getInt(0) ? "then_branch" : "else_branch");
  SmallVector<Bound> outputs;
  if (!branch || branch.getBlock().getTerminator()->getNumOperands() != n.op.getNumResults())
    return n.refuse("its branch does not give its results");
  if (failed(n.walk.inlineGraph(n, branch, {}, outputs)))
    return failure();
  return n.yieldBound(outputs);
}

namespace {

/// Slice `at` along the leading dimension, which is dropped.
Value takeSlice(TensorBuilder &b, Value x, int64_t at) {
  Value slice = b.sliceAxis(x, 0, at, 1);
  return b.reshape(slice, TensorBuilder::shapeOf(slice).drop_front());
}

/// `x` as a stack of one.
Value asStack(TensorBuilder &b, Value x) {
  Shape shape{1};
  llvm::append_range(shape, TensorBuilder::shapeOf(x));
  return b.reshape(x, shape);
}

/// What Loop and Scan have in common.
struct Iteration {
  onnx::GraphOp body;
  int64_t count = 0; ///< iterations, at most
  /// Loop: the body takes iteration and condition first, and gives a condition first
  bool hasCondition = false;
  SmallVector<Bound> carried;
  SmallVector<Bound> sequences; ///< along the leading dimension
  bool reverse = false;         ///< sequences and stacked results run from the end
};

/// How many values an iteration gives, the condition apart.
int64_t countOutputs(onnx::GraphOp body, bool hasCondition) {
  return static_cast<int64_t>(body.getBlock().getTerminator()->getNumOperands()) - hasCondition;
}

class LoopBuilder {
public:
  LoopBuilder(Node &n, const Iteration &loop) : n(n), b(n.b), loop(loop) {}

  /// The last carried values, then the stacked ones.
  LogicalResult asScan(SmallVector<Bound> &results);
  LogicalResult takeApart(SmallVector<Bound> &results);

private:
  bool isTrue(const Bound &condition) {
    const HostTensor *value = condition.value ? n.walk.constantValue(condition.value) : nullptr;
    return value && value->size() == 1 && !value->isFloat() && value->getInt(0) != 0;
  }
  Value scalar(Type element, int64_t value) { return n.intConstant({value}, {}, element); }
  LogicalResult stack(ArrayRef<Bound> items, Bound &result);

  Node &n;
  TensorBuilder &b;
  Iteration loop;
};

LogicalResult LoopBuilder::asScan(SmallVector<Bound> &results) {
  SmallVector<Value> inits, over;
  SmallVector<Type> types;
  for (const Bound &bound : loop.carried) {
    if (!bound.value)
      return failure();
    inits.push_back(bound.value);
    types.push_back(bound.value.getType());
  }
  if (loop.hasCondition)
    over.push_back(b.iota(RankedTensorType::get({loop.count}, b.getI64Type()), 0));
  for (const Bound &bound : loop.sequences)
    over.push_back(bound.value);
  auto scan = nn::ScanOp::create(b, types, b.getI64IntegerAttr(loop.count),
                                 loop.reverse ? b.getUnitAttr() : UnitAttr(), UnitAttr(), inits, over,
                                 ValueRange(), Value());
  Block &body = scan.getBody().emplaceBlock();
  SmallVector<Bound> outputs;
  LogicalResult built = n.walk.attempt([&] {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&body);
    SmallVector<Bound> arguments, slices;
    for (const Bound &bound : loop.carried)
      arguments.push_back(bound.with(body.addArgument(bound.value.getType(), b.getLoc())));
    for (auto [i, sequence] : llvm::enumerate(over)) {
      Type type = RankedTensorType::get(TensorBuilder::shapeOf(sequence).drop_front(),
                                        TensorBuilder::elementOf(sequence));
      Value slice = body.addArgument(type, b.getLoc());
      slices.push_back(loop.hasCondition ? Bound{slice} : loop.sequences[i].with(slice));
    }
    if (loop.hasCondition) {
      SmallVector<Bound> leading{slices.front(), {scalar(b.getI1Type(), 1)}};
      arguments.insert(arguments.begin(), leading.begin(), leading.end());
      slices.erase(slices.begin());
    }
    arguments.append(slices);
    if (failed(n.walk.inlineGraph(n, loop.body, arguments, outputs)))
      return failure();
    if (loop.hasCondition) {
      if (!isTrue(outputs.front()))
        return failure();
      outputs.erase(outputs.begin());
    }
    for (auto [before, after] : llvm::zip(loop.carried, outputs))
      if (!after.value || after.value.getType() != before.value.getType() || !after.isLike(before))
        return failure();
    SmallVector<Value> yielded;
    for (const Bound &bound : outputs) {
      if (!bound.value)
        return failure();
      yielded.push_back(bound.value);
    }
    nn::YieldOp::create(b, ArrayRef(yielded).take_front(loop.carried.size()));
    return success();
  });
  if (failed(built)) {
    n.walk.discard(scan);
    return failure();
  }
  SmallVector<Value> items;
  for (const Bound &bound : ArrayRef(outputs).drop_front(loop.carried.size()))
    items.push_back(bound.value);
  nn::ScanOp whole = scan.takeWithStacked(b, items);
  n.walk.discard(scan);
  whole.captureOuterValues();
  for (auto [value, output] : llvm::zip_equal(whole.getResults(), outputs))
    results.push_back(output.with(value));
  return success();
}

LogicalResult LoopBuilder::stack(ArrayRef<Bound> items, Bound &result) {
  SmallVector<Value> rows;
  for (const Bound &item : items) {
    if (!item.value || item.value.getType() != items.front().value.getType())
      return n.refuse("its iterations give results of different types, which cannot be stacked");
    rows.push_back(asStack(b, item.value));
  }
  if (rows.empty())
    return n.refuse("it has no iterations, so that the shape of a stacked result is not known");
  result = items.front().with(b.concat(rows, 0));
  return success();
}

/// Whether the body itself may end the loop: it gives another condition than the one that it takes.
bool mayEnd(onnx::GraphOp body) {
  Value condition = body.getBlock().getTerminator()->getOperand(0);
  while (auto node = condition.getDefiningOp<onnx::NodeOp>()) {
    if (node.getOpType() != "Identity" || !node.getDomainName().empty())
      return true;
    condition = node.getInput(0);
  }
  return condition != body.getBlock().getArgument(1);
}

LogicalResult LoopBuilder::takeApart(SmallVector<Bound> &results) {
  int64_t nodes = 1; // a body without nodes costs something, too
  loop.body.walk([&](onnx::NodeOp) { ++nodes; });
  bool isKnown = !loop.hasCondition || !mayEnd(loop.body);
  int64_t all = elementCount({loop.count, nodes});
  if (isKnown && all > n.walk.budget().nodes.getLeft()) // each copy takes its part
    return n.expand(all);
  SmallVector<Bound> carried(loop.carried);
  std::vector<SmallVector<Bound>> stacked;
  bool isOn = true;
  for (int64_t i = 0; isOn && i < loop.count; ++i) {
    SmallVector<Bound> arguments, outputs;
    int64_t at = loop.reverse ? loop.count - 1 - i : i;
    if (loop.hasCondition)
      arguments.append({{scalar(b.getI64Type(), i)}, {scalar(b.getI1Type(), 1)}});
    arguments.append(carried);
    for (const Bound &sequence : loop.sequences)
      arguments.push_back(sequence.with(takeSlice(b, sequence.value, at)));
    if (failed(n.walk.inlineGraph(n, loop.body, arguments, outputs)))
      return failure();
    if (loop.hasCondition) {
      if (!outputs.front().value || !n.walk.constantValue(outputs.front().value))
        return n.refuse("its condition depends on data; only loops whose trip count is known at compile time "
                        "are supported");
      isOn = isTrue(outputs.front());
      outputs.erase(outputs.begin());
    }
    carried.assign(outputs.begin(), outputs.begin() + carried.size());
    stacked.resize(outputs.size() - carried.size());
    for (size_t k = 0; k < stacked.size(); ++k)
      stacked[k].push_back(outputs[carried.size() + k]);
  }
  results = carried;
  stacked.resize(countOutputs(loop.body, loop.hasCondition) - carried.size());
  for (SmallVector<Bound> &items : stacked) {
    if (loop.reverse)
      std::reverse(items.begin(), items.end());
    results.emplace_back();
    if (failed(stack(items, results.back())))
      return failure();
  }
  return success();
}

/// A loop if it can be one, else its iterations.
LogicalResult iterate(Node &n, const Iteration &loop, SmallVector<Bound> &results) {
  int64_t outputs = countOutputs(loop.body, loop.hasCondition), carried = loop.carried.size();
  if (outputs < carried || outputs < static_cast<int64_t>(n.op.getNumResults()))
    return n.refuse("its body gives " + formatCount(std::max<int64_t>(outputs, 0), "value") +
                    "; it carries " + Twine(carried) + " and has " + Twine(n.op.getNumResults()) +
                    " results");
  LoopBuilder builder(n, loop);
  bool isBounded = loop.count < std::numeric_limits<int64_t>::max();
  if (isBounded && loop.count > 1 && succeeded(builder.asScan(results)))
    return success();
  results.clear();
  return builder.takeApart(results);
}

} // namespace

LogicalResult loop(Node &n) {
  Iteration loop;
  loop.body = n.op.getGraph("body");
  loop.count = std::numeric_limits<int64_t>::max();
  loop.hasCondition = true;
  auto known = [&](unsigned i, StringRef what, int64_t &value) {
    const HostTensor *tensor = nullptr;
    if (!n.has(i))
      return success();
    if (failed(n.constant(i, what, tensor)))
      return failure();
    if (tensor->size() != 1 || tensor->isFloat())
      return n.refuse("its " + what + " is not one number");
    value = tensor->getInt(0);
    return success();
  };
  int64_t condition = 1;
  if (failed(known(0, "trip count", loop.count)) || failed(known(1, "condition", condition)))
    return failure();
  loop.count = condition ? std::max<int64_t>(loop.count, 0) : 0;
  for (unsigned i = 2; i < n.size(); ++i)
    loop.carried.push_back(n.bound(i));
  if (!loop.body || loop.body.getBlock().getNumArguments() != loop.carried.size() + 2)
    return n.refuse("its body does not take what it carries");
  SmallVector<Bound> results;
  return failed(iterate(n, loop, results)) ? failure() : n.yieldBound(results);
}

/// Moves `axis` to the front, or the front to `axis` when `back`.
static Value moveAxis(TensorBuilder &b, Value x, int64_t axis, bool back) {
  if (axis == 0)
    return x;
  SmallVector<int64_t> order;
  for (int64_t d = 0; d < TensorBuilder::rankOf(x); ++d)
    if (d != axis)
      order.push_back(d);
  order.insert(order.begin(), axis);
  return b.transpose(x, back ? nn::invertPermutation(order) : nn::Shape(order.begin(), order.end()));
}

static constexpr llvm::StringLiteral kWrongList =
    " does not have one entry for each sequence, or has a direction other than 0 and 1";

/// An attribute with an entry for each of `size` sequences; zeros without it. `wrong` becomes its name when
/// it is another list.
static SmallVector<int64_t> listOf(Node &n, StringRef name, int64_t size, StringRef &wrong) {
  SmallVector<int64_t> values = n.getInts(name);
  bool isDirection = name.ends_with("directions");
  if ((!values.empty() && static_cast<int64_t>(values.size()) != size) ||
      (isDirection && llvm::any_of(values, [](int64_t value) { return value != 0 && value != 1; })))
    wrong = name;
  values.resize(std::max<int64_t>(size, 0), 0);
  return values;
}

/// The states and sequences of a Scan from operand `first` on, without axes and directions.
static LogicalResult readScan(Node &n, unsigned first, Iteration &loop) {
  loop.body = n.op.getGraph("body");
  int64_t sequences = n.getInt("num_scan_inputs", 0), operands = static_cast<int64_t>(n.size()) - first;
  if (sequences < 1 || sequences > operands)
    return n.refuse("num_scan_inputs is " + Twine(sequences));
  int64_t states = operands - sequences;
  if (!loop.body || loop.body.getBlock().getNumArguments() != states + sequences)
    return n.refuse("its body does not take its states and slices");
  for (unsigned i = first; i < n.size(); ++i)
    (static_cast<int64_t>(i - first) < states ? loop.carried : loop.sequences).push_back(n.bound(i));
  return success();
}

LogicalResult scan(Node &n) {
  TensorBuilder &b = n.b;
  Iteration loop;
  if (failed(readScan(n, 0, loop)))
    return failure();
  const int64_t states = loop.carried.size(), outputs = countOutputs(loop.body, false) - states;
  StringRef wrong;
  auto list = [&](StringRef name, int64_t size) { return listOf(n, name, size, wrong); };
  SmallVector<int64_t> inAxes = list("scan_input_axes", loop.sequences.size()),
                       outAxes = list("scan_output_axes", outputs),
                       in = list("scan_input_directions", loop.sequences.size()),
                       out = list("scan_output_directions", outputs);
  if (!wrong.empty())
    return n.refuse("its " + wrong + kWrongList);
  auto isBackward = [](int64_t direction) { return direction != 0; };
  loop.reverse = llvm::all_of(in, isBackward) && llvm::all_of(out, isBackward);
  loop.count = -1;
  for (auto [sequence, axis, direction] : llvm::zip(loop.sequences, inAxes, in)) {
    if (failed(n.axis(axis, TensorBuilder::rankOf(sequence.value))))
      return failure();
    sequence.value = moveAxis(b, sequence.value, axis, false);
    int64_t count = TensorBuilder::shapeOf(sequence.value)[0];
    if (loop.count >= 0 && count != loop.count)
      return n.refuse("its sequences have " + Twine(loop.count) + " and " + Twine(count) + " slices");
    loop.count = count;
    if (direction && !loop.reverse)
      sequence.value = b.reverse(sequence.value, {0});
  }
  SmallVector<Bound> results;
  if (failed(iterate(n, loop, results)))
    return failure();
  for (int64_t i = 0; i < outputs; ++i) { // iterate has refused a negative number
    Value &value = results[states + i].value;
    if (out[i] && !loop.reverse)
      value = b.reverse(value, {0});
    int64_t axis = outAxes[i];
    if (failed(n.axis(axis, TensorBuilder::rankOf(value))))
      return failure();
    value = moveAxis(b, value, axis, true);
  }
  return n.yieldBound(results);
}

/// Opset 8: operand 0 holds lengths, everything has a leading dimension of samples, each of which is a loop of its own.
LogicalResult scanBatches(Node &n) {
  TensorBuilder &b = n.b;
  if (n.has(0))
    return n.refuse("lengths of its sequences; only sequences of full length are supported");
  Iteration whole;
  if (failed(readScan(n, 1, whole)))
    return failure();
  StringRef wrong;
  SmallVector<int64_t> directions = listOf(n, "directions", whole.sequences.size(), wrong);
  if (!wrong.empty())
    return n.refuse("its " + wrong + kWrongList);
  for (unsigned i = 1; i < n.size(); ++i) {
    bool isSequence = i > whole.carried.size();
    if (n.rank(i) < 1 + isSequence || n.shape(i)[0] != n.shape(n.size() - 1)[0] || n.shape(i)[0] < 1)
      return n.refuse("operand " + Twine(i) + " of shape " + shapeText(n.shape(i)) +
                      " has no dimension of samples as the others have");
  }
  int64_t batch = n.shape(n.size() - 1)[0];
  SmallVector<SmallVector<Value>> rows(std::max<int64_t>(countOutputs(whole.body, false), 0));
  SmallVector<Bound> results;
  for (int64_t sample = 0; sample < batch; ++sample) {
    Iteration loop = whole;
    for (Bound &state : loop.carried)
      state.value = takeSlice(b, state.value, sample);
    for (auto [sequence, direction] : llvm::zip_equal(loop.sequences, directions)) {
      sequence.value = takeSlice(b, sequence.value, sample);
      if (direction)
        sequence.value = b.reverse(sequence.value, {0});
      loop.count = TensorBuilder::shapeOf(sequence.value)[0];
    }
    results.clear();
    if (failed(iterate(n, loop, results)))
      return failure();
    for (auto [row, result] : llvm::zip_equal(rows, results))
      row.push_back(asStack(b, result.value));
  }
  for (auto [result, row] : llvm::zip_equal(results, rows))
    result = result.with(b.concat(row, 0));
  return n.yieldBound(results);
}

} // namespace ortc::legalize::handlers
