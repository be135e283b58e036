// Recognise attention by its shapes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/attention/AttentionMatch.h"

#include "compiler/evaluator/HostTensor.h"
#include "dialects/nn/Elementwise.h"
#include "dialects/nn/NnShapes.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ortc::attention {

using nn::TensorBuilder;

bool hasKind(ArrayRef<Dim> dims, Dim::Kind kind) {
  return llvm::any_of(dims, [&](const Dim &dim) { return dim.kind == kind; });
}

/// The dimensions of a value of `shape` whose last two are rows and keys, with all leads.
static Dims dimsOfScores(ArrayRef<int64_t> shape) {
  Dims dims;
  int64_t outer = 1;
  for (int64_t size : shape.drop_back(2)) {
    dims.push_back(size == 1 ? Dim{} : Dim{Dim::lead, outer, size});
    outer *= size;
  }
  dims.append({Dim{Dim::row}, Dim{Dim::key}});
  return dims;
}

/// Elements of a constant that is looked at.
static constexpr int64_t kLargestConstant = int64_t(1) << 26;

namespace {

class Matcher {
public:
  bool run(nn::SoftmaxOp softmax, int64_t least);
  Match match;

private:
  bool findMix(Value weights);
  bool visit(Value value, Dims dims);
  bool visitOperands(Operation *op, const Dims &dims);
  bool visitBroadcast(nn::BroadcastOp op, const Dims &dims);
  bool visitReshape(nn::ReshapeOp op, const Dims &dims);
  bool takeScores(nn::DotOp dot, const Dims &dims);
  bool addInput(Value value, const Dims &dims);
  bool isPrivate();
  bool keepsZero(Value value);
  Value withoutLeads(arith::ConstantOp constant);

  int64_t leads = 1; ///< values of the leading index
};

} // namespace

/// Follows the weights to the one contraction that reads them.
bool Matcher::findMix(Value weights) {
  llvm::SetVector<Value> reached;
  reached.insert(weights);
  for (unsigned i = 0; i < reached.size(); ++i)
    for (Operation *user : reached[i].getUsers()) {
      if (auto dot = dyn_cast<nn::DotOp>(user)) {
        if ((match.mix && match.mix != dot) || dot.getLhs() == dot.getRhs())
          return false;
        match.mix = dot;
        match.weightsAreLeft = dot.getLhs() == reached[i];
      } else if (nn::isElementwiseForward(user) || isa<nn::ReshapeOp>(user)) {
        reached.insert(user->getResult(0));
      } else {
        return false;
      }
    }
  return match.mix != nullptr;
}

bool Matcher::visitOperands(Operation *op, const Dims &dims) {
  return llvm::all_of(op->getOperands(), [&](Value operand) { return visit(operand, dims); });
}

bool Matcher::visitBroadcast(nn::BroadcastOp op, const Dims &dims) {
  Dims inner;
  for (auto [size, target] : llvm::zip_equal(TensorBuilder::shapeOf(op.getInput()), op.getDimensions()))
    inner.push_back(size == 1 ? Dim{} : dims[target]);
  return visit(op.getInput(), inner);
}

/// Reshapes of the leading dimensions.
bool Matcher::visitReshape(nn::ReshapeOp op, const Dims &dims) {
  auto shape = TensorBuilder::shapeOf(op.getInput());
  int64_t outer = 1;
  for (const Dim &dim : ArrayRef(dims).drop_back(2)) {
    if (dim.kind == Dim::lead && dim.outer != outer)
      return addInput(op.getResult(), dims);
    outer *= dim.size;
  }
  bool keepsScores =
      shape.size() >= 2 && shape.take_back(2) == TensorBuilder::shapeOf(op.getResult()).take_back(2);
  return keepsScores ? visit(op.getInput(), dimsOfScores(shape)) : addInput(op.getResult(), dims);
}

bool Matcher::takeScores(nn::DotOp dot, const Dims &dims) {
  int64_t batches = dot.getLhsBatch().size(), rank = dims.size();
  auto isOneFree = [&](Value side, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
    return contract.size() == 1 &&
           nn::freeDimensions(TensorBuilder::rankOf(side), batch, contract).size() == 1;
  };
  auto shape = TensorBuilder::shapeOf(dot.getResult());
  if (match.scores || !isOneFree(dot.getRhs(), dot.getRhsBatch(), dot.getRhsContract()) || rank < batches + 2)
    return false;
  match.scores = dot;
  match.batch = nn::elementCount(shape.take_front(batches));
  match.groups = nn::elementCount(shape.slice(batches).drop_back(2));
  return match.batch * match.groups == leads;
}

/// What differs by head, query and key is not taken: it would have to be stored all the same. Random numbers are drawn
/// in the tile.
bool Matcher::addInput(Value value, const Dims &dims) {
  bool isSquare = hasKind(dims, Dim::row) && hasKind(dims, Dim::key);
  int64_t own = 1, outer = 1;
  bool isPrefix = true;
  for (const Dim &dim : dims)
    if (dim.kind == Dim::lead) {
      isPrefix &= dim.outer == outer;
      outer = dim.outer * dim.size;
      own *= dim.size;
    }
  if (isSquare && own == leads && value.getDefiningOp<nn::RandomOp>()) {
    match.random.insert(value);
    return true;
  }
  if (isSquare && own > 1 && (own == leads || !isPrefix))
    return false;
  match.inputs[value] = dims;
  return true;
}

bool Matcher::visit(Value value, Dims dims) {
  auto [at, isNew] = match.values.try_emplace(value, dims);
  if (!isNew)
    return at->second == dims;
  Operation *op = value.getDefiningOp();
  bool isSquare = hasKind(dims, Dim::row) && hasKind(dims, Dim::key);
  if (!op || !isSquare)
    return addInput(value, dims);
  if (op == match.softmax)
    return match.softmax.getAxis() + 1 == dims.size() && visit(match.softmax.getInput(), dims);
  if (auto dot = dyn_cast<nn::DotOp>(op); dot && dims == dimsOfScores(TensorBuilder::shapeOf(value)))
    return takeScores(dot, dims);
  if (auto broadcast = dyn_cast<nn::BroadcastOp>(op))
    return visitBroadcast(broadcast, dims);
  if (auto reshape = dyn_cast<nn::ReshapeOp>(op))
    return visitReshape(reshape, dims);
  if (nn::isElementwiseForward(op))
    return visitOperands(op, dims);
  if (auto iota = dyn_cast<nn::IotaOp>(op))
    return dims[iota.getAxis()].kind == Dim::row || dims[iota.getAxis()].kind == Dim::key ||
           addInput(value, dims);
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (isa<SplatElementsAttr>(constant.getValue()))
      return true;
    if (Value table = withoutLeads(constant)) {
      match.tables[value] = table;
      return visit(table, {Dim{Dim::row}, Dim{Dim::key}});
    }
  }
  return addInput(value, dims);
}

/// The one table [rows, keys] that a constant consists of, for every leading index; null where they differ.
Value Matcher::withoutLeads(arith::ConstantOp constant) {
  auto type = cast<RankedTensorType>(constant.getType());
  int64_t table = match.rows * match.keys;
  if (type.getNumElements() == table || type.getNumElements() > kLargestConstant)
    return {};
  auto all = evaluator::HostTensor::fromAttribute(cast<ElementsAttr>(constant.getValue()));
  if (failed(all))
    return {};
  for (int64_t i = table; i < all->size(); ++i)
    if (all->isFloat() ? !(all->getFloat(i) == all->getFloat(i - table))
                       : all->getInt(i) != all->getInt(i - table))
      return {};
  evaluator::HostTensor one(RankedTensorType::get({match.rows, match.keys}, type.getElementType()));
  one.copy(0, *all, 0, table);
  OpBuilder builder(constant);
  return arith::ConstantOp::create(builder, constant.getLoc(), one.toAttribute("mask"));
}

/// Whether nothing else reads what is computed from the scores, or the random numbers that are drawn for them.
bool Matcher::isPrivate() {
  llvm::SetVector<Operation *> reached;
  reached.insert(match.scores);
  for (Value value : match.random)
    reached.insert(value.getDefiningOp());
  for (unsigned i = 0; i < reached.size(); ++i)
    for (Operation *user : reached[i]->getUsers()) {
      if (user == match.mix)
        continue;
      if (user->getNumResults() != 1 || !match.values.contains(user->getResult(0)) ||
          match.inputs.contains(user->getResult(0)))
        return false;
      reached.insert(user);
    }
  return true;
}

/// Whether a weight of zero is mixed as zero: what stands behind the softmax multiplies weights, or drops some.
bool Matcher::keepsZero(Value value) {
  if (value == match.softmax.getResult())
    return true;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<arith::ConstantOp>(op))
    return matchPattern(value, m_AnyZeroFloat());
  if (isa<nn::ReshapeOp, nn::DetachOp, arith::ExtFOp, arith::TruncFOp, arith::NegFOp, arith::DivFOp>(op))
    return keepsZero(op->getOperand(0));
  if (isa<arith::MulFOp>(op))
    return keepsZero(op->getOperand(0)) || keepsZero(op->getOperand(1));
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return keepsZero(select.getTrueValue()) && keepsZero(select.getFalseValue());
  return false;
}

bool Matcher::run(nn::SoftmaxOp softmax, int64_t least) {
  match.softmax = softmax;
  if (!findMix(softmax.getResult()))
    return false;
  Value weights = match.weights();
  auto shape = TensorBuilder::shapeOf(weights);
  int64_t rank = shape.size();
  nn::DotOp mix = match.mix;
  auto own = match.weightsAreLeft ? mix.getLhsBatch() : mix.getRhsBatch();
  auto contract = match.weightsAreLeft ? mix.getLhsContract() : mix.getRhsContract();
  auto otherBatch = match.weightsAreLeft ? mix.getRhsBatch() : mix.getLhsBatch();
  auto otherContract = match.weightsAreLeft ? mix.getRhsContract() : mix.getLhsContract();
  if (rank < 2 || llvm::is_contained(shape, 0) || contract != ArrayRef<int64_t>{rank - 1} ||
      !llvm::equal(own, llvm::seq<int64_t>(own.size())) ||
      nn::freeDimensions(TensorBuilder::rankOf(match.mixed()), otherBatch, otherContract).size() != 1 ||
      static_cast<int64_t>(own.size()) > rank - 2)
    return false;
  leads = nn::elementCount(shape.drop_back(2));
  match.rows = shape[rank - 2];
  match.keys = shape[rank - 1];
  if (match.rows * match.keys < least)
    return false;
  match.dropsHidden = keepsZero(weights);
  return visit(weights, dimsOfScores(shape)) && match.scores && match.values.contains(softmax.getResult()) &&
         nn::elementCount(shape.take_front(own.size())) == match.batch && isPrivate();
}

std::optional<Match> matchAttention(nn::SoftmaxOp softmax, int64_t least) {
  Matcher matcher;
  if (!matcher.run(softmax, least))
    return std::nullopt;
  return std::move(matcher.match);
}

} // namespace ortc::attention
