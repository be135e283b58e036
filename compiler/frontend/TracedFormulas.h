// What PyTorch's exporter leaves out of a formula, and notes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace ortc::proto {
class NodeProto;
} // namespace ortc::proto

namespace ortc::frontend {

/// Whether a Softmax or a Where belongs to an attention with a mask: a query whose keys are all hidden has weights of
/// zero in PyTorch. The exporter writes the hidden keys of a mask of truth values as the lowest finite number, and
/// leaves the guard of the Softmax out where the mask is a tensor of numbers.
bool isOfMaskedAttention(const proto::NodeProto &node);

/// The label_smoothing of a SoftmaxCrossEntropyLoss, 0 without any: ONNX has no place for it.
double findLabelSmoothing(const proto::NodeProto &node);

} // namespace ortc::frontend
