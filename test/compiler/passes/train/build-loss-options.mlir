// RUN: ortc-opt %s --ortc-build-loss="loss=output:total" | FileCheck %s --check-prefix=OUTPUT
// RUN: ortc-opt %s --ortc-build-loss="loss=mse loss-input=half" | FileCheck %s --check-prefix=MSE
// RUN: ortc-opt %s --ortc-build-loss="loss=none" | FileCheck %s --check-prefix=NONE
// Breaks when the loss ignores which output it was told to take, or computes in f16.

// OUTPUT: func.func private @loss_0(%[[X:.*]]: tensor<1xf32> {train.output = "total"}) -> (tensor<f32> {train.loss})
// OUTPUT-NEXT: nn.reshape %[[X]] : tensor<1xf32> -> tensor<f32>
// MSE: func.func private @loss_0(%[[X:.*]]: tensor<3xf16> {train.output = "half"}, %{{.*}}: tensor<3xf32> {train.input = "label"})
// MSE-NEXT: arith.extf %[[X]]
// NONE-NOT: @loss
func.func private @forward_train_0(%x: tensor<1xf32> {train.input = "x"}, %h: tensor<3xf16> {train.input = "h"})
    -> (tensor<1xf32> {train.output = "total"}, tensor<3xf16> {train.output = "half"}) {
  return %x, %h : tensor<1xf32>, tensor<3xf16>
}
