// RUN: ortc-opt %s -split-input-file --ortc-outline-kernels --ortc-cut-backward | FileCheck %s
// Breaks when forward depends on cotangents, when backward computes what forward has, or when state is read after a step
// has changed it.

train.tensor @w parameter "w" : tensor<4xf32>
train.tensor @s state "s" : tensor<4xf32>
// CHECK-LABEL: func.func @forward_0
// CHECK-SAME: %[[X:[^:]*]]: tensor<4xf32> {train.input = "x"}, %[[S:[^:]*]]: tensor<4xf32> {train.tensor = @s}, %[[W:[^:]*]]: tensor<4xf32> {train.tensor = @w})
// CHECK-SAME: -> (tensor<4xf32> {train.output = "y"}, tensor<4xf32> {train.update = @s}, tensor<4xf32> {train.saved = 0 : i64}, tensor<4xf32> {train.saved = 1 : i64})
// CHECK-SAME: train.entry = "forward"
// CHECK: %[[H:.*]]:2 = call @kernel_0(%[[X]], %[[S]])
// CHECK: %[[Y:.*]] = call @kernel_1(%[[H]]#0, %[[W]])
// CHECK: return %[[Y]], %[[H]]#1, %[[H]]#0, %[[S]]

// The hidden value is saved, and the state as it was; the parameter and the output are read where they are.
// CHECK-LABEL: func.func @backward_0
// CHECK-SAME: %[[C:[^:]*]]: tensor<4xf32> {train.backward, train.input = "y.cotangent"}
// CHECK-SAME: tensor<4xf32> {train.output = "y"}
// CHECK-SAME: tensor<4xf32> {train.saved = 0 : i64}
// CHECK-SAME: tensor<4xf32> {train.saved = 1 : i64}
// CHECK-SAME: -> (tensor<4xf32> {train.backward, train.gradient = @w})
// CHECK-SAME: train.entry = "backward"
// CHECK-NOT: call @kernel_0
// CHECK: call @kernel_2
func.func @forward_backward_0(
    %x: tensor<4xf32> {train.input = "x"}, %w: tensor<4xf32> {train.tensor = @w}, %s: tensor<4xf32> {train.tensor = @s},
    %c: tensor<4xf32> {train.backward, train.input = "y.cotangent"})
    -> (tensor<4xf32> {train.output = "y"}, tensor<4xf32> {train.update = @s}, tensor<4xf32> {train.backward, train.gradient = @w})
    attributes {train.entry = "forward_backward", train.binding = 0 : i64} {
  %h:2 = plan.kernel loop (%x, %s) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%p: tensor<4xf32>, %q: tensor<4xf32>):
    %0 = math.tanh %p : tensor<4xf32>
    %1 = arith.addf %q, %p : tensor<4xf32>
    plan.yield %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
  %y = plan.kernel loop (%h#0, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%p: tensor<4xf32>, %q: tensor<4xf32>):
    %0 = arith.mulf %p, %q : tensor<4xf32>
    plan.yield %0 : tensor<4xf32>
  }
  %g = plan.kernel loop (%c, %y, %h#0, %s) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%p: tensor<4xf32>, %q: tensor<4xf32>, %r: tensor<4xf32>, %t: tensor<4xf32>):
    %0 = arith.mulf %p, %r : tensor<4xf32>
    %1 = arith.mulf %0, %q : tensor<4xf32>
    %2 = arith.addf %1, %t : tensor<4xf32>
    plan.yield %2 : tensor<4xf32>
  }
  return %y, %h#1, %g : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
