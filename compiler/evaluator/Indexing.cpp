// Gathers and scatters on host tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/evaluator/Kernels.h"

#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;

namespace ortc::evaluator {

/// Reports the first index outside [0, limit).
static LogicalResult checkRange(Operation *op, const HostTensor &indices, int64_t limit) {
  for (int64_t i = 0; i < indices.size(); ++i)
    if (indices.getInt(i) < 0 || indices.getInt(i) >= limit)
      return op->emitError() << "index " << indices.getInt(i) << " is not in [0, " << limit << ")";
  return success();
}

/// For gather and scatter_add: calls `visit(position in the sliced tensor, position in the table)`.
template <typename Visit>
static void overSlices(ArrayRef<int64_t> table, int64_t axis, const HostTensor &indices, Visit visit) {
  int64_t outer = nn::elementCount(table.take_front(axis)),
          inner = nn::elementCount(table.drop_front(axis + 1));
  int64_t at = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < indices.size(); ++i)
      for (int64_t k = 0; k < inner; ++k)
        visit(at++, (o * table[axis] + indices.getInt(i)) * inner + k);
}

/// For gather_elements and scatter_elements: calls `visit(position in the indices, position in the data)`.
template <typename Visit>
static void overElements(ArrayRef<int64_t> data, int64_t axis, const HostTensor &indices, Visit visit) {
  if (indices.size() == 0)
    return;
  auto strides = nn::rowMajorStrides(data);
  SmallVector<int64_t> index(data.size(), 0);
  int64_t at = 0;
  do {
    int64_t from = 0;
    for (auto [d, i] : llvm::enumerate(index))
      from += (static_cast<int64_t>(d) == axis ? indices.getInt(at) : i) * strides[d];
    visit(at++, from);
  } while (nextIndex(index, indices.getShape()));
}

static double meet(nn::ScatterMode mode, double old, double update) {
  switch (mode) {
  case nn::ScatterMode::set:
    return update;
  case nn::ScatterMode::add:
    return old + update;
  case nn::ScatterMode::mul:
    return old * update;
  case nn::ScatterMode::max:
    return std::isnan(old) || old >= update ? old : update;
  case nn::ScatterMode::min:
    return std::isnan(old) || old <= update ? old : update;
  }
  llvm_unreachable("all modes are listed");
}

static int64_t meet(nn::ScatterMode mode, int64_t old, int64_t update) {
  switch (mode) {
  case nn::ScatterMode::set:
    return update;
  case nn::ScatterMode::add:
    return static_cast<int64_t>(uint64_t(old) + uint64_t(update));
  case nn::ScatterMode::mul:
    return static_cast<int64_t>(uint64_t(old) * uint64_t(update));
  case nn::ScatterMode::max:
    return std::max(old, update);
  case nn::ScatterMode::min:
    return std::min(old, update);
  }
  llvm_unreachable("all modes are listed");
}

/// result[to] = mode(result[to], updates[from]).
static void apply(HostTensor &result, int64_t to, nn::ScatterMode mode, const HostTensor &updates,
                  int64_t from) {
  if (result.isFloat())
    result.setFloat(to, meet(mode, result.getFloat(to), updates.getFloat(from)));
  else
    result.setInt(to, meet(mode, result.getInt(to), updates.getInt(from)));
}

FamilyResult evaluateIndexing(Operation *op, Operands operands) {
  const FailureOr<Results> outOfRange = failure();
  return llvm::TypeSwitch<Operation *, FamilyResult>(op)
      .Case([&](nn::CheckIndexOp op) -> FamilyResult {
        for (int64_t i = 0; i < operands[0]->size(); ++i) {
          int64_t value = operands[0]->getInt(i);
          bool ignored = op.getIgnore() && value == static_cast<int64_t>(*op.getIgnore());
          if (!ignored &&
              (value < static_cast<int64_t>(op.getLower()) || value >= static_cast<int64_t>(op.getUpper()))) {
            op.emitError() << "index " << value << " of " << op.getTensor() << " is out of range";
            return outOfRange;
          }
        }
        return single(*operands[0]);
      })
      .Case([&](nn::GatherOp op) -> FamilyResult {
        HostTensor result(resultType(op));
        if (failed(checkRange(op, *operands[1], operands[0]->getShape()[op.getAxis()])))
          return outOfRange;
        overSlices(operands[0]->getShape(), op.getAxis(), *operands[1],
                   [&](int64_t at, int64_t from) { result.copy(at, *operands[0], from); });
        return single(std::move(result));
      })
      .Case([&](nn::ScatterAddOp op) -> FamilyResult {
        HostTensor result(resultType(op));
        if (failed(checkRange(op, *operands[0], result.getShape()[op.getAxis()])))
          return outOfRange;
        overSlices(result.getShape(), op.getAxis(), *operands[0], [&](int64_t at, int64_t to) {
          apply(result, to, nn::ScatterMode::add, *operands[1], at);
        });
        return single(std::move(result));
      })
      .Case([&](nn::ScatterOp op) -> FamilyResult {
        HostTensor result = *operands[0];
        int64_t rows = result.getShape()[0], columns = nn::elementCount(result.getShape().drop_front());
        for (int64_t i = 0; i < operands[1]->size(); ++i)
          for (int64_t row = operands[1]->getInt(i), column = 0; row < rows && column < columns; ++column)
            apply(result, row * columns + column, nn::ScatterMode::set, *operands[2], i * columns + column);
        return single(std::move(result));
      })
      .Case([&](nn::GatherElementsOp op) -> FamilyResult {
        HostTensor result(resultType(op));
        if (failed(checkRange(op, *operands[1], operands[0]->getShape()[op.getAxis()])))
          return outOfRange;
        overElements(operands[0]->getShape(), op.getAxis(), *operands[1],
                     [&](int64_t at, int64_t from) { result.copy(at, *operands[0], from); });
        return single(std::move(result));
      })
      .Case([&](nn::ScatterElementsOp op) -> FamilyResult {
        HostTensor result = *operands[0];
        if (failed(checkRange(op, *operands[1], result.getShape()[op.getAxis()])))
          return outOfRange;
        overElements(result.getShape(), op.getAxis(), *operands[1],
                     [&](int64_t at, int64_t to) { apply(result, to, op.getMode(), *operands[2], at); });
        return single(std::move(result));
      })
      .Default([](Operation *) { return FamilyResult(); });
}

} // namespace ortc::evaluator
