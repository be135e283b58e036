// RUN: ortc-opt %s --ortc-build-loss=loss=output:y --ortc-differentiate="mutate-operation=math.exp mutate-operand=0 mutate-factor=1.5" | FileCheck %s
// Breaks when the mutation that proves the gradient tests is not applied.

// CHECK-LABEL: func.func private @backward_0(
// CHECK: %[[Y:.*]] = math.exp
// CHECK: %[[FACTOR:.*]] = arith.constant dense<1.500000e+00>
// CHECK: arith.mulf %[[Y]], %[[FACTOR]]
train.tensor @w parameter "w" : tensor<f32>
func.func private @forward_train_0(%w: tensor<f32> {train.tensor = @w}) -> (tensor<f32> {train.output = "y"}) {
  %y = math.exp %w : tensor<f32>
  return %y : tensor<f32>
}
