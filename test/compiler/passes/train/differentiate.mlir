// RUN: ortc-opt %s -split-input-file --ortc-build-loss=loss=mse --ortc-differentiate | FileCheck %s
// Breaks when frozen tensors are differentiated, when an unreached parameter gets an update, or when state is lost.

// Only the trained weight gets a gradient; nothing of the frozen layer's own gradient is computed.
// CHECK: train.tensor @w parameter "w"
// CHECK: train.tensor @unused constant "unused" {reason = "no gradient of the loss reaches it"}
// CHECK-LABEL: func.func private @backward_0(
// CHECK-SAME: -> (tensor<f32> {train.loss}, tensor<3xf32> {train.update = @mean}, tensor<4x3xf32> {train.gradient = @w})
// CHECK: %[[H:.*]] = nn.dot %{{.*}}, %{{.*}} batch = [] x [] contract = [1] x [0] : tensor<2x5xf32>, tensor<5x4xf32>
// CHECK: nn.dot %[[H]], %{{.*}} batch = [] x [] contract = [1] x [0] : tensor<2x4xf32>, tensor<4x3xf32>
// CHECK: nn.dot %[[H]], %{{.*}} batch = [] x [] contract = [0] x [0] : tensor<2x4xf32>, tensor<2x3xf32> -> tensor<4x3xf32>
// CHECK-NOT: nn.dot
// CHECK: return
train.tensor @frozen constant "frozen" : tensor<5x4xf32>
train.tensor @w parameter "w" : tensor<4x3xf32>
train.tensor @unused parameter "unused" : tensor<4x3xf32>
train.tensor @mean state "mean" : tensor<3xf32>
func.func private @forward_train_0(%x: tensor<2x5xf32> {train.input = "x"}, %f: tensor<5x4xf32> {train.tensor = @frozen},
    %w: tensor<4x3xf32> {train.tensor = @w}, %unused: tensor<4x3xf32> {train.tensor = @unused}, %mean: tensor<3xf32> {train.tensor = @mean})
    -> (tensor<2x3xf32> {train.output = "y"}, tensor<3xf32> {train.update = @mean}) {
  %h = nn.dot %x, %f batch = [] x [] contract = [1] x [0] : tensor<2x5xf32>, tensor<5x4xf32> -> tensor<2x4xf32>
  %y = nn.dot %h, %w batch = [] x [] contract = [1] x [0] : tensor<2x4xf32>, tensor<4x3xf32> -> tensor<2x3xf32>
  %m = arith.negf %mean : tensor<3xf32>
  return %y, %m : tensor<2x3xf32>, tensor<3xf32>
}

// -----

// A parameter that only one binding reaches gets zeros under the other.
// CHECK-LABEL: func.func private @backward_0(
// CHECK-SAME: tensor<2xf32> {train.gradient = @w})
// CHECK-LABEL: func.func private @backward_1(
// CHECK-SAME: tensor<2xf32> {train.gradient = @w})
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<2xf32>
// CHECK: return %{{.*}}, %[[ZERO]]
train.tensor @w parameter "w" : tensor<2xf32>
func.func private @forward_train_0(%x: tensor<2xf32> {train.input = "x"}, %w: tensor<2xf32> {train.tensor = @w}) -> (tensor<2xf32> {train.output = "y"}) {
  %y = arith.mulf %x, %w : tensor<2xf32>
  return %y : tensor<2xf32>
}
func.func private @forward_train_1(%x: tensor<2xf32> {train.input = "x"}, %w: tensor<2xf32> {train.tensor = @w}) -> (tensor<2xf32> {train.output = "y"}) {
  return %x : tensor<2xf32>
}

// -----

// Nothing to train: nothing is added.
// CHECK-LABEL: func.func private @forward_eval_0
// CHECK-NOT: @backward
func.func private @forward_eval_0(%x: tensor<2xf32> {train.input = "x"}) -> (tensor<2xf32> {train.output = "y"}) {
  return %x : tensor<2xf32>
}
