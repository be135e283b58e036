// The head of a model in chunks of rows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/ChunkHead.h"

#include "dialects/nn/Elementwise.h"
#include "dialects/nn/NnShapes.h"
#include "dialects/nn/ScanBuilder.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

/// A product of fewer rows reads the weights more often than it computes with them.
static constexpr int64_t kLeastChunkRows = 64;

static bool isFloat(Value value) { return isa<FloatType>(TensorBuilder::elementOf(value)); }

namespace {

/// A product and what follows from it up to the sum. Values between have the dimensions of the rows first.
class Head {
public:
  explicit Head(nn::DotOp product) : product(product) {}

  bool match();
  int64_t getRows() const { return rows; }
  int64_t getRowBytes() const;
  Value getSum() { return sum.getResult(); }
  FailureOr<Value> chunk(TensorBuilder &b, int64_t size, Value seed,
                         const autodiff::DifferentiateOptions &options, Differentiation &what);

private:
  /// What the loop takes.
  struct Input {
    Value value; ///< outside, in the form that the loop takes: rows first, or as it is
    bool isRows = false;
  };

  Value findCounted();
  bool check(Value value, int64_t rowRank);
  bool checkOperands(Operation *op, int64_t rowRank);
  bool addInput(Value value, int64_t rowRank);
  Value make(TensorBuilder &b, Value value);
  Value makeOperation(TensorBuilder &b, Value value);
  RankedTensorType typeOf(Value value, int64_t rowRank) const;

  nn::DotOp product;
  nn::ReduceOp sum;
  llvm::SetVector<Operation *> hot; ///< what is computed from the product, and the product
  int64_t rows = 1, chunkSize = 1;
  llvm::DenseMap<Value, int64_t> rowRanks; ///< of all values of the head: how many dimensions are rows
  llvm::MapVector<Value, bool> inputs;     ///< beside the product's: whether each has rows
  llvm::DenseMap<Value, Value> made;       ///< on the chunk
};

/// Rows in another order: those that count come first.
class PackedRows {
public:
  /// `counted`: i1 of all rows, or null, where all of them count in the order that they have.
  PackedRows(TensorBuilder &b, Value counted, int64_t rows);

  /// [rows, tail...] in the new order.
  Value pack(TensorBuilder &b, Value value) const {
    auto type = TensorBuilder::typeOf(value);
    return order ? Value(nn::GatherOp::create(b, type, value, order, /*axis=*/0)) : value;
  }
  /// Back again; zeros of rows that do not count.
  Value unpack(TensorBuilder &b, Value value) const;
  /// Chunks of `size` rows that have one that counts; null where all of them do.
  Value countChunks(TensorBuilder &b, int64_t size) const;

private:
  Value counted, order, number, places;
};

} // namespace

PackedRows::PackedRows(TensorBuilder &b, Value mask, int64_t rows) {
  if (!mask)
    return;
  counted = b.reshape(mask, {rows});
  Value one = b.cast(counted, b.getI32Type());
  number = b.sum(one, {0});
  order = nn::ArgSortOp::create(b, one.getType(), one, /*axis=*/0, /*descending=*/true);
  Value before =
      nn::CumSumOp::create(b, one.getType(), one, /*axis=*/0, /*exclusive=*/true, /*reverse=*/false);
  places = b.select(counted, before, b.zerosLike(before));
}

Value PackedRows::unpack(TensorBuilder &b, Value value) const {
  if (!order)
    return value;
  Value there = nn::GatherOp::create(b, TensorBuilder::typeOf(value), value, places, /*axis=*/0);
  return b.select(b.broadcast(counted, TensorBuilder::shapeOf(value), {0}), there, b.zerosLike(there));
}

Value PackedRows::countChunks(TensorBuilder &b, int64_t size) const {
  if (!order)
    return Value();
  Value all = b.addScalar(number, static_cast<double>(size - 1));
  return arith::DivSIOp::create(b, all, b.constantLike(all, static_cast<double>(size)));
}

/// Which rows have a term of the sum that is not zero whatever their logits are: i1 of the rows, known before them;
/// null where it is not to be seen.
Value Head::findCounted() {
  Value value = sum.getInput();
  while (Operation *op = value.getDefiningOp()) {
    auto select = dyn_cast<arith::SelectOp>(op);
    if (select && matchPattern(select.getFalseValue(), m_AnyZeroFloat()) &&
        !hot.contains(select.getCondition().getDefiningOp()) &&
        TensorBuilder::typeOf(select.getCondition()).getNumElements() == rows)
      return select.getCondition();
    if (!select && !isa<nn::ReshapeOp, arith::NegFOp, arith::MulFOp>(op))
      return Value();
    value = select ? select.getTrueValue() : op->getOperand(0);
  }
  return Value();
}

/// Follows the product to its only sum over everything.
bool Head::match() {
  int64_t freeRank = TensorBuilder::rankOf(product.getResult()) - 1;
  if (!product.getLhsBatch().empty() || product.getLhsContract().size() != 1 || freeRank < 1 ||
      TensorBuilder::rankOf(product.getRhs()) != 2)
    return false;
  rows = nn::elementCount(TensorBuilder::shapeOf(product.getResult()).drop_back());
  hot.insert(product);
  for (unsigned i = 0; i < hot.size(); ++i)
    for (Operation *user : hot[i]->getUsers()) {
      auto reduce = dyn_cast<nn::ReduceOp>(user);
      if (!reduce || TensorBuilder::rankOf(reduce.getResult()) > 0) {
        if (user->getNumResults() != 1 || user->getNumRegions() != 0)
          return false;
        hot.insert(user);
      } else if (reduce.getKind() != nn::ReduceKind::sum || (sum && sum != reduce)) {
        return false;
      } else {
        sum = reduce;
      }
    }
  if (!sum || !isFloat(sum.getResult()) || rows < 1)
    return false;
  // Rows come first; what else there is, is summed up with them.
  int64_t rank = TensorBuilder::rankOf(sum.getInput());
  return llvm::any_of(llvm::seq<int64_t>(rank + 1), [&](int64_t rowRank) {
    rowRanks.clear();
    inputs.clear();
    return check(sum.getInput(), rowRank) && llvm::all_of(hot, [&](Operation *op) {
             return rowRanks.contains(op->getResult(0)) && !inputs.contains(op->getResult(0));
           });
  });
}

static int64_t bytesOf(Value value) {
  auto type = TensorBuilder::typeOf(value);
  return type.getNumElements() * (type.getElementTypeBitWidth() / 8);
}

int64_t Head::getRowBytes() const { return bytesOf(nn::DotOp(product).getResult()) / rows; }

/// Nothing computed is taken that is as large as the logits: its gradient would exist for all rows.
bool Head::addInput(Value value, int64_t rowRank) {
  inputs[value] = rowRank > 0;
  return isa<BlockArgument>(value) || TensorBuilder::typeOf(value).getNumElements() <
                                          TensorBuilder::typeOf(product.getResult()).getNumElements();
}

bool Head::checkOperands(Operation *op, int64_t rowRank) {
  return llvm::all_of(op->getOperands(), [&](Value operand) { return check(operand, rowRank); });
}

/// Whether `value`, whose first `rowRank` dimensions are the rows, can be computed on some of them.
bool Head::check(Value value, int64_t rowRank) {
  auto [at, isNew] = rowRanks.try_emplace(value, rowRank);
  if (!isNew)
    return at->second == rowRank;
  auto shape = TensorBuilder::shapeOf(value);
  if (nn::elementCount(shape.take_front(rowRank)) != rows)
    return false;
  Operation *op = value.getDefiningOp();
  if (!op)
    return addInput(value, rowRank);
  if (op == product)
    return rowRank + 1 == static_cast<int64_t>(shape.size());
  if (auto constant = dyn_cast<arith::ConstantOp>(op);
      constant && isa<SplatElementsAttr>(constant.getValue()))
    return true;
  if (auto iota = dyn_cast<nn::IotaOp>(op); iota && static_cast<int64_t>(iota.getAxis()) >= rowRank)
    return true;
  if (nn::isElementwiseForward(op))
    return checkOperands(op, rowRank);
  if (auto broadcast = dyn_cast<nn::BroadcastOp>(op)) {
    ArrayRef<int64_t> dims = broadcast.getDimensions();
    if (llvm::all_of(dims, [&](int64_t dim) { return dim >= rowRank; })) {
      int64_t known = rowRanks.try_emplace(broadcast.getInput(), 0).first->second;
      return known == 0 && addInput(broadcast.getInput(), 0);
    }
    auto inner = TensorBuilder::shapeOf(broadcast.getInput());
    bool hasAllRows = static_cast<int64_t>(dims.size()) >= rowRank &&
                      llvm::equal(dims.take_front(rowRank), llvm::seq<int64_t>(rowRank)) &&
                      inner.take_front(rowRank) == shape.take_front(rowRank);
    return hasAllRows ? check(broadcast.getInput(), rowRank) : addInput(value, rowRank);
  }
  if (auto reshape = dyn_cast<nn::ReshapeOp>(op)) {
    auto inner = TensorBuilder::shapeOf(reshape.getInput());
    size_t tail = shape.size() - rowRank;
    bool keepsTail = inner.size() > tail && inner.take_back(tail) == shape.take_back(tail);
    return keepsTail ? check(reshape.getInput(), inner.size() - tail) : addInput(value, rowRank);
  }
  if (auto softmax = dyn_cast<nn::LogSoftmaxOp>(op))
    return static_cast<int64_t>(softmax.getAxis()) >= rowRank && checkOperands(op, rowRank);
  if (auto softmax = dyn_cast<nn::SoftmaxOp>(op))
    return static_cast<int64_t>(softmax.getAxis()) >= rowRank && checkOperands(op, rowRank);
  if (auto gather = dyn_cast<nn::GatherElementsOp>(op)) {
    auto axis = static_cast<int64_t>(gather.getAxis());
    if (axis == rowRank - 1 && shape[axis] == 1) // the dimension of what is picked from a row
      at->second = --rowRank;
    return axis >= rowRank && checkOperands(op, rowRank);
  }
  if (auto reduce = dyn_cast<nn::ReduceOp>(op))
    return llvm::all_of(reduce.getAxes(), [&](int64_t axis) { return axis >= rowRank; }) &&
           checkOperands(op, rowRank);
  return addInput(value, rowRank);
}

/// On a chunk, rows are one dimension.
RankedTensorType Head::typeOf(Value value, int64_t rowRank) const {
  SmallVector<int64_t> shape{chunkSize};
  llvm::append_range(shape, TensorBuilder::shapeOf(value).drop_front(rowRank));
  return RankedTensorType::get(shape, TensorBuilder::elementOf(value));
}

Value Head::makeOperation(TensorBuilder &b, Value value) {
  Operation *op = value.getDefiningOp();
  int64_t rowRank = rowRanks.lookup(value), shift = rowRank - 1;
  RankedTensorType type = typeOf(value, rowRank);
  SplatElementsAttr splat;
  if (matchPattern(value, m_Constant(&splat)))
    return arith::ConstantOp::create(b, splat.resizeSplat(type));
  if (auto iota = dyn_cast<nn::IotaOp>(op))
    return b.iota(type, static_cast<int64_t>(iota.getAxis()) - shift);
  if (isa<nn::ReshapeOp>(op))
    return b.reshape(make(b, op->getOperand(0)), type.getShape());
  if (auto broadcast = dyn_cast<nn::BroadcastOp>(op)) {
    SmallVector<int64_t> dims;
    bool hasRows = rowRanks.lookup(broadcast.getInput()) > 0;
    if (hasRows)
      dims.push_back(0);
    for (int64_t dim : broadcast.getDimensions().drop_front(hasRows ? rowRank : 0))
      dims.push_back(dim - shift);
    return b.broadcast(make(b, broadcast.getInput()), type.getShape(), dims);
  }
  if (auto softmax = dyn_cast<nn::LogSoftmaxOp>(op))
    return b.logSoftmax(make(b, softmax.getInput()), static_cast<int64_t>(softmax.getAxis()) - shift);
  if (auto softmax = dyn_cast<nn::SoftmaxOp>(op))
    return b.softmax(make(b, softmax.getInput()), static_cast<int64_t>(softmax.getAxis()) - shift);
  if (auto gather = dyn_cast<nn::GatherElementsOp>(op))
    return nn::GatherElementsOp::create(b, type, make(b, gather.getInput()), make(b, gather.getIndices()),
                                        static_cast<int64_t>(gather.getAxis()) - shift);
  if (auto reduce = dyn_cast<nn::ReduceOp>(op)) {
    SmallVector<int64_t> axes;
    for (int64_t axis : reduce.getAxes())
      axes.push_back(axis - shift);
    return b.reduce(reduce.getKind(), make(b, reduce.getInput()), axes);
  }
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(make(b, operand));
  return nn::createElementwise(b, op, operands, type.getShape());
}

Value Head::make(TensorBuilder &b, Value value) {
  if (Value there = made.lookup(value))
    return there;
  Value result = makeOperation(b, value);
  return made[value] = result;
}

/// The sum, as the loop gives it; what it reads joins the sources. `seed` is the gradient of the sum.
FailureOr<Value> Head::chunk(TensorBuilder &b, int64_t size, Value seed,
                             const autodiff::DifferentiateOptions &options, Differentiation &what) {
  chunkSize = size;
  int64_t count = rows / size, rank = TensorBuilder::rankOf(product.getLhs());
  PackedRows packed(b, findCounted(), rows);
  auto parted = [&](Value value, ArrayRef<int64_t> tail) {
    SmallVector<int64_t> all{rows}, shape{count, size};
    llvm::append_range(all, tail);
    llvm::append_range(shape, tail);
    return b.reshape(packed.pack(b, b.reshape(value, all)), shape);
  };
  // Activations with the contracted dimension last; their gradient goes back the same way.
  int64_t contracted = product.getLhsContract().front();
  SmallVector<int64_t> order = llvm::to_vector(nn::freeDimensions(rank, {}, {contracted}));
  order.push_back(contracted);
  Value x = b.transpose(product.getLhs(), order);
  SmallVector<Value> sequences{parted(x, {TensorBuilder::shapeOf(x).back()})}, invariants{product.getRhs()},
      rowInputs, fixedInputs;
  for (auto [value, hasRows] : inputs) {
    (hasRows ? rowInputs : fixedInputs).push_back(value);
    if (hasRows)
      sequences.push_back(parted(value, TensorBuilder::shapeOf(value).drop_front(rowRanks.lookup(value))));
    else
      invariants.push_back(value);
  }
  SmallVector<Value> carried{b.zerosLike(sum.getResult())}, summed,
      stacked; // inputs with sums, or rows, of gradients
  for (auto [i, value] : llvm::enumerate(invariants))
    if (isFloat(value)) {
      carried.push_back(b.zerosLike(value));
      summed.push_back(i == 0 ? product.getRhs() : fixedInputs[i - 1]);
    }
  for (auto [i, value] : llvm::enumerate(sequences))
    if (isFloat(value))
      stacked.push_back(i == 0 ? x : rowInputs[i - 1]);
  invariants.push_back(seed);
  bool isDone = true;
  auto results =
      nn::buildScan(b, count, false, carried, sequences, invariants, [&](const nn::ScanArguments &now) {
        made.clear();
        made[product.getResult()] = b.dot(now.slices[0], now.invariants[0], {}, {}, {1},
                                          product.getRhsContract(), product.getExact());
        for (auto [value, slice] : llvm::zip_equal(rowInputs, ArrayRef(now.slices).drop_front()))
          made[value] = slice;
        for (auto [value, whole] :
             llvm::zip_equal(fixedInputs, ArrayRef(now.invariants).drop_front().drop_back()))
          made[value] = whole;
        Value terms = make(b, sum.getInput());
        Value part = b.sum(terms, llvm::to_vector(llvm::seq<int64_t>(TensorBuilder::rankOf(terms))));
        SmallVector<Value> withRespectTo;
        for (Value value : ArrayRef(now.invariants).drop_back())
          if (isFloat(value))
            withRespectTo.push_back(value);
        for (Value value : now.slices)
          if (isFloat(value))
            withRespectTo.push_back(value);
        auto gradients = autodiff::differentiate(b, part, now.invariants.back(), withRespectTo, options);
        isDone = succeeded(gradients);
        SmallVector<Value> yielded{b.add(now.carried[0], part)};
        for (auto [i, value] : llvm::enumerate(withRespectTo)) {
          Value gradient = isDone ? gradients->gradients[i] : Value();
          if (!gradient)
            gradient = b.zerosLike(value);
          yielded.push_back(i < summed.size() ? b.add(now.carried[i + 1], gradient) : gradient);
        }
        return yielded;
      });
  auto scan = cast<nn::ScanOp>(results[0].getDefiningOp());
  if (!isDone)
    return failure();
  scan.setRecompute(true); // sums stay inside: outside, they would need the logits of all rows
  scan.captureOuterValues();
  b.setInsertionPoint(scan);
  if (Value limit = packed.countChunks(b, size))
    scan.getLimitMutable().assign(limit);
  b.setInsertionPointAfter(scan);
  auto add = [&](Value input, Value gradient) {
    what.sources.push_back(input);
    what.cotangents.push_back(b.reshape(gradient, TensorBuilder::shapeOf(input)));
  };
  for (auto [input, gradient] : llvm::zip_equal(summed, scan.getFinals().drop_front()))
    add(input, gradient);
  for (auto [input, gradient] : llvm::zip_equal(stacked, scan.getStacked())) {
    SmallVector<int64_t> all{rows};
    llvm::append_range(all, TensorBuilder::shapeOf(gradient).drop_front(2));
    add(input, packed.unpack(b, b.reshape(gradient, all)));
  }
  return b.detach(scan.getResult(0));
}

/// The most rows, not more than `most`, of which `all` is a multiple.
static int64_t largestDivisor(int64_t all, int64_t most) {
  int64_t size = std::min(all, most);
  while (size > 1 && all % size != 0)
    --size;
  return std::max<int64_t>(size, 1);
}

/// The head with the most logits that is worth it, and the rows of its chunks.
static std::optional<std::pair<Head, int64_t>> findHead(TensorBuilder &builder, std::optional<int64_t> rows,
                                                        int64_t bytes) {
  std::optional<std::pair<Head, int64_t>> largest;
  int64_t most = 0;
  Block *block = builder.getInsertionBlock();
  for (Operation &op : llvm::make_range(block->begin(), builder.getInsertionPoint())) {
    auto product = dyn_cast<nn::DotOp>(op);
    if (!product || bytesOf(product.getResult()) <= most)
      continue;
    Head head(product);
    // The sum of the weights' gradients lives as long as the loop; at once, it may be part of their update.
    int64_t least = (bytes + bytesOf(product.getRhs())) / 2 * 3;
    if ((!rows && bytesOf(product.getResult()) < least) || !head.match())
      continue;
    int64_t size = largestDivisor(head.getRows(), rows ? *rows : bytes / head.getRowBytes());
    if (size == head.getRows() || (!rows && size < kLeastChunkRows))
      continue;
    most = bytesOf(product.getResult());
    largest.emplace(std::move(head), size);
  }
  return largest;
}

/// What of the block is computed from `value`, in order.
static llvm::SetVector<Operation *> findUsers(Value value) {
  llvm::DenseSet<Value> reached{value};
  llvm::SetVector<Operation *> users;
  for (Operation &op : *value.getParentBlock())
    if (llvm::any_of(op.getOperands(), [&](Value operand) { return reached.contains(operand); })) {
      users.insert(&op);
      reached.insert(op.result_begin(), op.result_end());
    }
  return users;
}

LogicalResult chunkHead(TensorBuilder &builder, std::optional<int64_t> rows, int64_t bytes,
                        const autodiff::DifferentiateOptions &options, Differentiation &what) {
  auto found = findHead(builder, rows, bytes);
  if (!found)
    return success();
  auto &[head, size] = *found;
  llvm::SetVector<Operation *> users = findUsers(head.getSum());
  auto ofSum = autodiff::differentiate(builder, what.sources, what.cotangents, {head.getSum()}, options);
  if (failed(ofSum))
    return failure();
  Value seed = ofSum->gradients.front();
  if (!seed || seed == head.getSum() || findUsers(head.getSum()).contains(seed.getDefiningOp()))
    return success();
  FailureOr<Value> sum = head.chunk(builder, size, seed, options, what);
  if (failed(sum))
    return failure();
  IRMapping mapping;
  mapping.map(head.getSum(), *sum);
  what.replaced[head.getSum()] = *sum;
  for (Operation *user : users) {
    Operation *now = builder.clone(*user, mapping);
    for (auto [before, after] : llvm::zip_equal(user->getResults(), now->getResults()))
      what.replaced[before] = after;
  }
  for (Value &source : what.sources)
    if (Value now = what.replaced.lookup(source))
      source = now;
  return success();
}

} // namespace ortc::train
