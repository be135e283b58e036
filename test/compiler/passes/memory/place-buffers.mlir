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

// -----

// A loop works on its carried value in place; slices and items move on; reverse loops run downwards over the same places.
// CHECK-LABEL: plan.program @predict_0_program "predict"
// CHECK: plan.step @copy_0(%{{.*}}) -> (%{{.*}})
// CHECK-DAG: %[[H:.*]] = plan.buffer transient {{.*}} "copy_0{{.*}}" : memref<2xf32>
// CHECK-DAG: %[[X:.*]] = plan.buffer external 1 "x" strides = [8] : memref<2xf32>
// CHECK-DAG: %[[Y:.*]] = plan.buffer transient {{.*}} "stacked{{.*}}" strides = [8] : memref<2xf32>
// CHECK: plan.loop 4 reverse {
// CHECK-NEXT: plan.step @kernel_{{.*}}(%[[H]], %[[X]]) -> (%{{.*}}, %[[Y]])
// CHECK-NOT: plan.step @copy
// CHECK: }
// CHECK: plan.step @copy
func.func @predict_0(%h: tensor<2xf32> {train.input = "h"}, %x: tensor<4x2xf32> {train.input = "x"})
    -> (tensor<2xf32> {train.output = "last"}, tensor<4x2xf32> {train.output = "all"}) attributes {train.entry = "predict", train.binding = 0 : i64} {
  %last, %all = nn.scan 4 reverse carry(%h) over(%x) with() : (tensor<2xf32>, tensor<4x2xf32>) -> (tensor<2xf32>, tensor<4x2xf32>) {
  ^bb0(%a: tensor<2xf32>, %xi: tensor<2xf32>):
    %new, %item = plan.kernel loop (%a, %xi) in_place = [0, 0] : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    ^bb0(%p: tensor<2xf32>, %q: tensor<2xf32>):
      %0 = arith.addf %p, %q : tensor<2xf32>
      %1 = arith.mulf %0, %q : tensor<2xf32>
      plan.yield %0, %1 : tensor<2xf32>, tensor<2xf32>
    }
    nn.yield %new, %item : tensor<2xf32>, tensor<2xf32>
  }
  return %last, %all : tensor<2xf32>, tensor<4x2xf32>
}

// -----

// Carried values that change places: through copies. A loop in a loop: its buffers move with both.
// CHECK-LABEL: plan.program @predict_0_program "predict"
// CHECK-DAG: plan.buffer external 2 "x" strides = [24, 8] : memref<2xf32>
// CHECK: plan.loop 3 {
// CHECK: plan.loop 3 {
// CHECK: plan.step @copy
func.func @predict_0(%h: tensor<2xf32> {train.input = "h"}, %g: tensor<2xf32> {train.input = "g"}, %x: tensor<3x3x2xf32> {train.input = "x"})
    -> (tensor<2xf32> {train.output = "last"}) attributes {train.entry = "predict", train.binding = 0 : i64} {
  %r:2 = nn.scan 3 carry(%h, %g) over(%x) with() : (tensor<2xf32>, tensor<2xf32>, tensor<3x3x2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  ^bb0(%a: tensor<2xf32>, %b: tensor<2xf32>, %xs: tensor<3x2xf32>):
    %s = nn.scan 3 carry(%a) over(%xs) with() : (tensor<2xf32>, tensor<3x2xf32>) -> (tensor<2xf32>) {
    ^bb0(%c: tensor<2xf32>, %xi: tensor<2xf32>):
      %new = plan.kernel loop (%c, %xi) in_place = [0, 0] : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>) {
      ^bb0(%p: tensor<2xf32>, %q: tensor<2xf32>):
        %0 = arith.addf %p, %q : tensor<2xf32>
        plan.yield %0 : tensor<2xf32>
      }
      nn.yield %new : tensor<2xf32>
    }
    nn.yield %b, %s : tensor<2xf32>, tensor<2xf32>
  }
  return %r#0 : tensor<2xf32>
}
