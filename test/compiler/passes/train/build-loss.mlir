// RUN: ortc-opt %s -split-input-file --ortc-build-loss="loss=cross_entropy:label_smoothing=0.1" | FileCheck %s
// RUN: ortc-opt %s -split-input-file --ortc-build-loss="loss=cross_entropy:ignore_index=9223372036854775807" | FileCheck %s --check-prefix=WIDE
// Breaks when a loss takes the wrong output or axis, or when class indices go unchecked.

// The only output; class indices are i64 of the logits' shape without the class axis, checked, and may be ignored.
// CHECK-LABEL: func.func private @loss_0(
// CHECK-SAME: %[[LOGITS:.*]]: tensor<4x10xf32> {train.output = "logits"}, %[[LABEL:.*]]: tensor<4xi64> {train.input = "label"}) -> (tensor<f32> {train.loss})
// CHECK: nn.log_softmax %[[LOGITS]] axis = 1
// CHECK: nn.check_index %[[LABEL]] "label" in[0, 10] ignore = -100
// WIDE: arith.constant dense<9223372036854775807> : tensor<4xi64>
func.func private @forward_train_0(%x: tensor<4x10xf32> {train.input = "x"}) -> (tensor<4x10xf32> {train.output = "logits"}) {
  return %x : tensor<4x10xf32>
}

// -----

// The first output of floating point; one loss per binding; a graph that has a label keeps its type.
// CHECK-LABEL: func.func private @loss_0(
// CHECK-SAME: tensor<4x10xf32> {train.output = "logits"}, %{{.*}}: tensor<4xi32> {train.input = "label"})
// CHECK-LABEL: func.func private @loss_1(
// CHECK-SAME: tensor<1x10xf32> {train.output = "logits"}, %{{.*}}: tensor<1xi64> {train.input = "label"})
func.func private @forward_eval_0(%x: tensor<4x10xf32> {train.input = "x"}, %i: tensor<4xi32> {train.input = "label"})
    -> (tensor<4xi32> {train.output = "best"}, tensor<4x10xf32> {train.output = "logits"}, tensor<4x10xf32> {train.output = "other"}) {
  return %i, %x, %x : tensor<4xi32>, tensor<4x10xf32>, tensor<4x10xf32>
}
func.func private @forward_train_1(%x: tensor<1x10xf32> {train.input = "x"}) -> (tensor<1x10xf32> {train.output = "logits"}) {
  return %x : tensor<1x10xf32>
}
