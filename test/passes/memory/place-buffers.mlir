// RUN: ortc-opt %s -split-input-file --ortc-assign-regions --ortc-outline-kernels --ortc-place-buffers | FileCheck %s
// Breaks when an update overwrites a parameter before its last reader, or is not written in place.

train.tensor @w parameter "w" : tensor<4xf32>
// CHECK-LABEL: plan.program @train_0_program "train"
// CHECK-DAG: %[[W:.*]] = plan.buffer persistent 0 "w" : memref<4xf32>
// CHECK-DAG: %[[LOSS:.*]] = plan.buffer transient {{.*}} "loss" "loss" : memref<f32>
// The reader of the old value comes first, then the guard, then the update in place.
// CHECK: plan.step @kernel_{{.*}}(%{{.*}}) -> (%{{.*}}) : memref<4xf32> -> memref<f32>
// CHECK: plan.guard
// CHECK: plan.step @kernel_{{.*}}(%{{.*}}, %{{.*}}) -> (%{{.*}}) : memref<4xf32>, memref<4xf32> -> memref<4xf32>
// CHECK-NOT: plan.step
func.func @train_0(%x: tensor<4xf32> {train.input = "x"}, %w: tensor<4xf32> {train.tensor = @w})
    -> (tensor<4xf32> {train.update = @w}, tensor<f32> {train.loss}) attributes {train.entry = "train", train.binding = 0 : i64} {
  %new = plan.kernel loop (%x, %w) in_place = [1, 0] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%p: tensor<4xf32>, %q: tensor<4xf32>):
    %0 = arith.subf %q, %p : tensor<4xf32>
    plan.yield %0 : tensor<4xf32>
  }
  %loss = plan.kernel loop (%w) : (tensor<4xf32>) -> tensor<f32> {
  ^bb0(%p: tensor<4xf32>):
    %0 = nn.reduce sum %p axes = [0] : tensor<4xf32> -> tensor<f32>
    plan.yield %0 : tensor<f32>
  }
  return %new, %loss : tensor<4xf32>, tensor<f32>
}

// -----

// The kernel may not write in place (no pair): the new value goes through the transient region and a copy.
train.tensor @w parameter "w" : tensor<4xf32>
// CHECK-LABEL: plan.program @train_0_program "train"
// CHECK: plan.step @kernel_0
// CHECK: plan.step @copy_0(%{{.*}}) -> (%{{.*}})
func.func @train_0(%w: tensor<4xf32> {train.tensor = @w}) -> (tensor<4xf32> {train.update = @w})
    attributes {train.entry = "train", train.binding = 0 : i64} {
  %new = plan.kernel loop (%w) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%p: tensor<4xf32>):
    %0 = nn.reverse %p axes = [0] : tensor<4xf32>
    plan.yield %0 : tensor<4xf32>
  }
  return %new : tensor<4xf32>
}
