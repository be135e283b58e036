// What PyTorch's exporter leaves out of a formula, and notes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/TracedFormulas.h"

#include "compiler/frontend/InitializerOrigins.h"
#include "compiler/frontend/onnx.pb.h"

#include <charconv>

namespace ortc::frontend {

bool isOfMaskedAttention(const proto::NodeProto &node) {
  if (!node.domain().empty() || (node.op_type() != "Softmax" && node.op_type() != "Where"))
    return false;
  TracedOperation operation = findOperation(node);
  // Query, key, value, mask.
  return operation.target == "torch.ops.aten.scaled_dot_product_attention.default" &&
         operation.positional.size() > 3 && operation.positional[3] != "None";
}

double findLabelSmoothing(const proto::NodeProto &node) {
  if (!node.domain().empty() || node.op_type() != "SoftmaxCrossEntropyLoss")
    return 0;
  TracedOperation operation = findOperation(node);
  // Scores, labels, weights, reduction, what is ignored, and it.
  if (operation.target != "torch.ops.aten.cross_entropy_loss.default" || operation.positional.size() < 6)
    return 0;
  const std::string &text = operation.positional[5];
  double smoothing = 0;
  std::from_chars(text.data(), text.data() + text.size(), smoothing);
  return smoothing > 0 && smoothing <= 1 ? smoothing : 0;
}

} // namespace ortc::frontend
