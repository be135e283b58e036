// Compute the part of a gradient that is kept.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the gradients upwards: slice(f(x)) becomes f(slice(x)) where nothing but equal slices reads f(x), until an
// operation does not go with that. So the gradient of what the lowest layer gives is computed for its trained channels
// alone, where no layer below needs the others. What this does not do: take parts out of loops, whose sums stay whole.
#include "compiler/passes/simplify/Passes.h"
#include "dialects/nn/Elementwise.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ortc::simplify {

using nn::TensorBuilder;

#define GEN_PASS_DEF_RAISESLICESPASS
#include "compiler/passes/simplify/Passes.h.inc"

namespace {

/// The part of a value that a slice keeps.
struct Part {
  SmallVector<int64_t> starts, sizes;

  Part select(ArrayRef<int64_t> dims) const {
    Part part;
    for (int64_t dim : dims)
      part.add(starts[dim], sizes[dim]);
    return part;
  }
  void add(int64_t start, int64_t size) {
    starts.push_back(start);
    sizes.push_back(size);
  }
};

class Raiser {
public:
  explicit Raiser(Operation *slice) : b(slice->getLoc(), slice) {}

  /// The part of `value` that `slice` takes, computed from parts; null where that does not go.
  Value raise(nn::SliceOp slice);
  SmallVector<nn::SliceOp> more; ///< slices that were made

private:
  Value take(Value value, const Part &part);
  Value raiseReshape(nn::ReshapeOp op, const Part &part);
  Value raiseDot(nn::DotOp op, const Part &part);
  Value raiseFilterGrad(nn::ConvFilterGradOp op, const Part &part);
  Value raiseInputGrad(nn::ConvInputGradOp op, const Part &part);
  Value raisePoolGrad(Operation *op, const Part &part);

  TensorBuilder b;
};

} // namespace

static Part wholeOf(Value value) {
  Part part;
  for (int64_t size : TensorBuilder::shapeOf(value))
    part.add(0, size);
  return part;
}

Value Raiser::take(Value value, const Part &part) {
  Value taken = b.slice(value, part.starts, part.sizes);
  if (auto slice = taken.getDefiningOp<nn::SliceOp>())
    more.push_back(slice);
  return taken;
}

/// A dimension that is cut must be one of the input, with as much in front of it; the others are whole.
Value Raiser::raiseReshape(nn::ReshapeOp op, const Part &part) {
  ArrayRef<int64_t> shape = TensorBuilder::shapeOf(op.getResult()),
                    from = TensorBuilder::shapeOf(op.getInput());
  std::optional<size_t> cut;
  for (size_t i = 0; i < shape.size(); ++i)
    if (part.sizes[i] != shape[i]) {
      if (cut)
        return {};
      cut = i;
    }
  int64_t before = nn::elementCount(shape.take_front(*cut));
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] != shape[*cut] || nn::elementCount(from.take_front(i)) != before)
      continue;
    Part inner = wholeOf(op.getInput());
    inner.starts[i] = part.starts[*cut];
    inner.sizes[i] = part.sizes[*cut];
    return b.reshape(take(op.getInput(), inner), part.sizes);
  }
  return {};
}

Value Raiser::raiseDot(nn::DotOp op, const Part &part) {
  Part lhs = wholeOf(op.getLhs()), rhs = wholeOf(op.getRhs());
  size_t next = 0;
  auto put = [&](Part &to, int64_t dim) {
    to.starts[dim] = part.starts[next];
    to.sizes[dim] = part.sizes[next];
  };
  for (auto [left, right] : llvm::zip_equal(op.getLhsBatch(), op.getRhsBatch())) {
    put(lhs, left);
    put(rhs, right);
    ++next;
  }
  auto putFree = [&](Part &to, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
    for (int64_t dim = 0, rank = to.sizes.size(); dim < rank; ++dim)
      if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim)) {
        put(to, dim);
        ++next;
      }
  };
  putFree(lhs, op.getLhsBatch(), op.getLhsContract());
  putFree(rhs, op.getRhsBatch(), op.getRhsContract());
  return b.dot(take(op.getLhs(), lhs), take(op.getRhs(), rhs), op.getLhsBatch(), op.getRhsBatch(),
               op.getLhsContract(), op.getRhsContract(), op.getExact());
}

/// Of a filter with groups, whole groups from the first on.
Value Raiser::raiseFilterGrad(nn::ConvFilterGradOp op, const Part &part) {
  ArrayRef<int64_t> shape = TensorBuilder::shapeOf(op.getResult());
  if (op.getResult().getType() != op.getFilterType()) // in parts
    return {};
  int64_t rank = shape.size(), channels = rank - 2, features = rank - 1, groups = op.getGroups();
  for (int64_t i = 0; i < channels; ++i)
    if (part.sizes[i] != shape[i])
      return {};
  Part input = wholeOf(op.getInput()), gradient = wholeOf(op.getGradient());
  gradient.starts.back() = part.starts[features];
  gradient.sizes.back() = part.sizes[features];
  if (groups == 1) {
    input.starts.back() = part.starts[channels];
    input.sizes.back() = part.sizes[channels];
  } else {
    int64_t each = shape[features] / groups;
    if (part.sizes[channels] != shape[channels] || part.starts[features] != 0 ||
        part.sizes[features] % each != 0)
      return {};
    groups = part.sizes[features] / each;
    input.sizes.back() = groups * shape[channels];
  }
  auto type = RankedTensorType::get(part.sizes, TensorBuilder::elementOf(op.getResult()));
  Value in = take(op.getInput(), input), out = take(op.getGradient(), gradient);
  return nn::ConvFilterGradOp::create(b, type, in, out, op.getStrides(), op.getPaddingLow(),
                                      op.getPaddingHigh(), op.getDilations(), groups);
}

/// Whether `part` is of samples and channels, the outer dimensions of `value`.
static bool isWholeInSpace(Value value, const Part &part) {
  ArrayRef<int64_t> shape = TensorBuilder::shapeOf(value);
  return llvm::equal(shape.drop_front().drop_back(), ArrayRef(part.sizes).drop_front().drop_back());
}

Value Raiser::raiseInputGrad(nn::ConvInputGradOp op, const Part &part) {
  if (!isWholeInSpace(op.getResult(), part) || op.getGroups() != 1)
    return {};
  Part gradient = wholeOf(op.getGradient()), filter = wholeOf(op.getFilter());
  gradient.starts.front() = part.starts.front();
  gradient.sizes.front() = part.sizes.front();
  size_t channels = filter.sizes.size() - 2;
  filter.starts[channels] = part.starts.back();
  filter.sizes[channels] = part.sizes.back();
  auto type = RankedTensorType::get(part.sizes, TensorBuilder::elementOf(op.getResult()));
  Value out = take(op.getGradient(), gradient), weights = take(op.getFilter(), filter);
  return nn::ConvInputGradOp::create(b, type, out, weights, op.getStrides(), op.getPaddingLow(),
                                     op.getPaddingHigh(), op.getDilations(), op.getGroups());
}

/// All operands have samples and channels like the result.
Value Raiser::raisePoolGrad(Operation *op, const Part &part) {
  if (!isWholeInSpace(op->getResult(0), part))
    return {};
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    Part inner = wholeOf(operand);
    inner.starts.front() = part.starts.front();
    inner.sizes.front() = part.sizes.front();
    inner.starts.back() = part.starts.back();
    inner.sizes.back() = part.sizes.back();
    operands.push_back(take(operand, inner));
  }
  Operation *moved = b.clone(*op);
  moved->setOperands(operands);
  moved->getResult(0).setType(RankedTensorType::get(part.sizes, TensorBuilder::elementOf(op->getResult(0))));
  return moved->getResult(0);
}

/// Whether all that reads the input of `slice` are slices like it.
static bool areAllAlike(nn::SliceOp slice) {
  return llvm::all_of(slice.getInput().getUsers(), [&](Operation *user) {
    auto other = dyn_cast<nn::SliceOp>(user);
    return other && other.getType() == slice.getType() && other.getStarts() == slice.getStarts() &&
           other.getStrides() == slice.getStrides();
  });
}

Value Raiser::raise(nn::SliceOp slice) {
  Value value = slice.getInput();
  Operation *op = value.getDefiningOp();
  if (!op || !areAllAlike(slice) || op->getNumResults() != 1 || op->getBlock() != slice->getBlock() ||
      !llvm::all_of(slice.getStrides(), [](int64_t stride) { return stride == 1; }))
    return {};
  Part part{llvm::to_vector(slice.getStarts()), llvm::to_vector(TensorBuilder::shapeOf(slice.getResult()))};
  b.setInsertionPoint(op);
  b.setLoc(op->getLoc());
  if (nn::isElementwise(op)) {
    auto operands =
        llvm::map_to_vector(op->getOperands(), [&](Value operand) { return take(operand, part); });
    return nn::createElementwise(b, op, operands, part.sizes);
  }
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](nn::TransposeOp transpose) {
        Part inner = wholeOf(transpose.getInput());
        for (auto [i, from] : llvm::enumerate(transpose.getPermutation())) {
          inner.starts[from] = part.starts[i];
          inner.sizes[from] = part.sizes[i];
        }
        return b.transpose(take(transpose.getInput(), inner), transpose.getPermutation());
      })
      .Case([&](nn::BroadcastOp broadcast) {
        Part inner = part.select(broadcast.getDimensions());
        for (auto [i, size] : llvm::enumerate(TensorBuilder::shapeOf(broadcast.getInput())))
          if (size == 1) {
            inner.starts[i] = 0;
            inner.sizes[i] = 1;
          }
        return b.broadcast(take(broadcast.getInput(), inner), part.sizes, broadcast.getDimensions());
      })
      .Case([&](nn::ReduceOp reduce) {
        Part inner = wholeOf(reduce.getInput());
        for (int64_t dim = 0, kept = 0, rank = inner.sizes.size(); dim < rank; ++dim)
          if (!llvm::is_contained(reduce.getAxes(), dim)) {
            inner.starts[dim] = part.starts[kept];
            inner.sizes[dim] = part.sizes[kept++];
          }
        return b.reduce(reduce.getKind(), take(reduce.getInput(), inner), reduce.getAxes());
      })
      .Case([&](nn::ReshapeOp reshape) { return raiseReshape(reshape, part); })
      .Case([&](nn::DotOp dot) { return raiseDot(dot, part); })
      .Case([&](nn::ConvFilterGradOp grad) { return raiseFilterGrad(grad, part); })
      .Case([&](nn::ConvInputGradOp grad) { return raiseInputGrad(grad, part); })
      .Case<nn::MaxPoolGradOp, nn::AvgPoolGradOp>([&](auto grad) { return raisePoolGrad(grad, part); })
      .Default([](Operation *) { return Value(); });
}

namespace {

struct RaiseSlicesPass : impl::RaiseSlicesPassBase<RaiseSlicesPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    Operation *exit = function.getBody().front().getTerminator();
    SmallVector<nn::SliceOp> todo;
    for (unsigned i = 0; i < exit->getNumOperands(); ++i)
      if (function.getResultAttr(i, train::kGradient))
        findSlices(exit->getOperand(i), todo);
    llvm::SetVector<Operation *> left(todo.begin(), todo.end());
    // A slice that waits for others like it gets another turn when one of them has come.
    for (bool isChanged = true; isChanged;) {
      isChanged = false;
      for (Operation *slice : left.getArrayRef().vec())
        if (left.contains(slice))
          isChanged |= raise(cast<nn::SliceOp>(slice), left);
    }
  }

  static bool raise(nn::SliceOp slice, llvm::SetVector<Operation *> &left) {
    Operation *producer = slice.getInput().getDefiningOp();
    Raiser raiser(slice);
    Value raised = raiser.raise(slice);
    if (!raised)
      return false;
    for (Operation *user : llvm::make_early_inc_range(producer->getUsers())) {
      user->getResult(0).replaceAllUsesWith(raised);
      left.remove(user);
      user->erase();
    }
    producer->erase();
    left.insert_range(raiser.more);
    return true;
  }

  /// Those that a gradient is made of by elementwise operations: of a loss that is scaled, it is a product.
  static void findSlices(Value value, SmallVector<nn::SliceOp> &found) {
    SmallVector<Value> stack{value};
    llvm::DenseSet<Value> seen;
    while (!stack.empty()) {
      Value next = stack.pop_back_val();
      Operation *op = next.getDefiningOp();
      if (!op || !seen.insert(next).second)
        continue;
      if (auto slice = dyn_cast<nn::SliceOp>(op))
        found.push_back(slice);
      else if (nn::isElementwise(op))
        llvm::append_range(stack, op->getOperands());
    }
  }
};

} // namespace
} // namespace ortc::simplify
