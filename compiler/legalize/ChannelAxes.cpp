// Where the output channels of a weight lie.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/ChannelAxes.h"

#include "compiler/frontend/FakeQuantizers.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"

#include <optional>

using namespace mlir;

namespace ortc::legalize {

/// The only axis with more than one element; nothing where there are more.
static std::optional<int64_t> onlyAxis(ArrayRef<int64_t> shape) {
  std::optional<int64_t> found;
  for (auto [axis, size] : llvm::enumerate(shape)) {
    if (size == 1)
      continue;
    if (found)
      return std::nullopt;
    found = axis;
  }
  return found;
}

/// The axis that a layer gives its output channels, or nothing.
static std::optional<int64_t> axisOf(onnx::NodeOp node, unsigned operand, int64_t rank) {
  StringRef op = node.getOpType();
  if (op == "Conv" && operand == 1)
    return 0;
  if (op == "ConvTranspose" && operand == 1 && node.getInt("group", 1) == 1)
    return 1;
  if (op == "Gemm" && operand == 1)
    return node.getInt("transB", 0) != 0 ? 0 : 1;
  if (op == "MatMul" && rank >= 2)
    return operand == 1 ? rank - 1 : rank - 2;
  return std::nullopt;
}

/// Whether the node gives its first operand on with the same axes.
static bool passesAxes(onnx::NodeOp node) {
  StringRef op = node.getOpType();
  return op == "Identity" || op == "Cast" ||
         (op == frontend::kFakeQuantize && node.getDomainName() == frontend::kOwnDomain);
}

static std::optional<SmallVector<int64_t>> permutationOf(onnx::NodeOp node, int64_t rank) {
  if (node.getOpType() != "Transpose")
    return std::nullopt;
  SmallVector<int64_t> permutation(node.getInts("perm"));
  if (!node.getOnnxAttr("perm"))
    permutation = llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, rank)));
  return static_cast<int64_t>(permutation.size()) == rank ? std::optional(permutation) : std::nullopt;
}

Expected<int64_t> findChannelAxis(onnx::InitializerOp initializer) {
  auto type = cast<RankedTensorType>(initializer.getOutput().getType());
  int64_t rank = type.getRank();
  if (type.getNumElements() <= 1)
    return 0;
  if (std::optional<int64_t> axis = onlyAxis(type.getShape()))
    return *axis;
  std::optional<int64_t> found;
  struct View {
    Value value;
    SmallVector<int64_t> axes; ///< of the initializer, for each of the value
  };
  SmallVector<View> todo{{initializer.getOutput(), llvm::to_vector(llvm::seq<int64_t>(0, rank))}};
  while (!todo.empty()) {
    View view = todo.pop_back_val();
    for (OpOperand &use : view.value.getUses()) {
      auto node = dyn_cast<onnx::NodeOp>(use.getOwner());
      if (!node)
        return Status::refusal("it is read by a part of the graph that has no output channels");
      if (node.getOpType() == "Shape" || node.getOpType() == "Size")
        continue;
      if (use.getOperandNumber() == 0 && passesAxes(node)) {
        todo.push_back({node.getResult(0), view.axes});
        continue;
      }
      if (std::optional<SmallVector<int64_t>> permutation = permutationOf(node, rank)) {
        auto axes = llvm::map_to_vector(*permutation, [&](int64_t from) { return view.axes[from]; });
        todo.push_back({node.getResult(0), axes});
        continue;
      }
      std::optional<int64_t> axis = axisOf(node, use.getOperandNumber(), rank);
      if (!axis)
        return Status::refusal("it is read by " + node.getOpType().str() +
                               ", whose output channels are no part of it");
      if (found && *found != view.axes[*axis])
        return Status::refusal("its readers have their output channels along different axes of it");
      found = view.axes[*axis];
    }
  }
  if (!found)
    return Status::refusal("no layer reads it");
  return *found;
}

} // namespace ortc::legalize
