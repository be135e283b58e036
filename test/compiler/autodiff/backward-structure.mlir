// RUN: ortc-opt %s -split-input-file --ortc-build-loss=loss=output:y --ortc-differentiate | FileCheck %s
// Breaks when the backward part contains more operations than it needs, or reads other values of the forward part.

// Movement saves nothing: the gradient is there without any forward operation.
// CHECK-LABEL: func.func private @backward_0(
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[A:.*]] = nn.broadcast %[[ONE]] dims = [] : tensor<f32> -> tensor<2x5xf32>
// CHECK: %[[B:.*]] = nn.reverse %[[A]] axes = [1]
// CHECK: %[[C:.*]] = nn.pad %[[B]], %{{.*}} low = [1, 0] high = [0, 1] interior = [1, 0]
// CHECK: %[[D:.*]] = nn.transpose %[[C]] perm = [1, 0]
// CHECK: return %{{.*}}, %[[D]]
train.tensor @x parameter "x" : tensor<6x4xf32>
func.func private @forward_train_0(%x: tensor<6x4xf32> {train.tensor = @x}) -> (tensor<f32> {train.output = "y"}) {
  %t = nn.transpose %x perm = [1, 0] : tensor<6x4xf32> -> tensor<4x6xf32>
  %s = nn.slice %t starts = [1, 0] strides = [2, 1] : tensor<4x6xf32> -> tensor<2x5xf32>
  %r = nn.reverse %s axes = [1] : tensor<2x5xf32>
  %y = nn.reduce sum %r axes = [0, 1] : tensor<2x5xf32> -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// Pooling saves the taps alone; the gradient of a frozen filter's convolution needs no input.
// CHECK-LABEL: func.func private @backward_0(
// CHECK-SAME: %[[X:[^:]*]]: tensor<1x4x4x2xf32>
// CHECK-SAME: %[[W:[^:]*]]: tensor<3x3x2x2xf32>
// CHECK: nn.conv %[[X]], %[[W]]
// CHECK: %{{.*}}, %[[TAPS:.*]] = nn.max_pool
// CHECK: %[[G:.*]] = nn.max_pool_grad %{{.*}}, %[[TAPS]]
// CHECK: nn.conv_input_grad %[[G]], %[[W]]
// CHECK-NOT: conv_filter_grad
// CHECK: return
train.tensor @x parameter "x" : tensor<1x4x4x2xf32>
train.tensor @w constant "w" : tensor<3x3x2x2xf32>
func.func private @forward_train_0(%x: tensor<1x4x4x2xf32> {train.tensor = @x}, %w: tensor<3x3x2x2xf32> {train.tensor = @w}) -> (tensor<f32> {train.output = "y"}) {
  %c = nn.conv %x, %w strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<1x4x4x2xf32>, tensor<3x3x2x2xf32> -> tensor<1x4x4x2xf32>
  %m, %i = nn.max_pool %c window = [2, 2] strides = [2, 2] padding = [0, 0] to [0, 0] overhang = [0, 0] dilations = [1, 1] : tensor<1x4x4x2xf32> -> tensor<1x2x2x2xf32>, tensor<1x2x2x2xi8>
  %y = nn.reduce sum %m axes = [0, 1, 2, 3] : tensor<1x2x2x2xf32> -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// A weight [out, in] of a linear layer gets its gradient in that layout, without a transposition.
// CHECK-LABEL: func.func private @backward_0(
// CHECK-NOT: nn.transpose
// CHECK: nn.dot %{{.*}}, %{{.*}} batch = [] x [] contract = [0] x [0] : tensor<2x4xf32>, tensor<2x3xf32> -> tensor<4x3xf32>
// CHECK-NOT: nn.transpose
train.tensor @w parameter "w" : tensor<4x3xf32>
func.func private @forward_train_0(%x: tensor<2x3xf32> {train.input = "x"}, %w: tensor<4x3xf32> {train.tensor = @w}) -> (tensor<f32> {train.output = "y"}) {
  %h = nn.dot %x, %w batch = [] x [] contract = [1] x [1] : tensor<2x3xf32>, tensor<4x3xf32> -> tensor<2x4xf32>
  %t = math.tanh %h : tensor<2x4xf32>
  %y = nn.reduce sum %t axes = [0, 1] : tensor<2x4xf32> -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// Indices: gather gives scatter_add, and nothing of the table is read.
// CHECK-LABEL: func.func private @backward_0(
// CHECK-SAME: %[[I:[^:]*]]: tensor<5xi64>
// CHECK: %[[G:.*]] = nn.broadcast
// CHECK: nn.scatter_add %[[I]], %[[G]] axis = 0
// CHECK: return
train.tensor @table parameter "table" : tensor<7x3xf32>
func.func private @forward_train_0(%i: tensor<5xi64> {train.input = "i"}, %t: tensor<7x3xf32> {train.tensor = @table}) -> (tensor<f32> {train.output = "y"}) {
  %g = nn.gather %t, %i axis = 0 : tensor<7x3xf32>, tensor<5xi64> -> tensor<5x3xf32>
  %y = nn.reduce sum %g axes = [0, 1] : tensor<5x3xf32> -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// scan: carried values and results of the body that its rules read come out stacked, unless they do already; slices and
// invariants are read again, broadcasts made again.
// CHECK-LABEL: func.func private @backward_0(
// CHECK-SAME: %[[W:.*]]: tensor<3xf32> {train.tensor = @w}, %{{.*}}, %[[X:.*]]: tensor<5x3xf32>
// CHECK: %[[F:.*]]:4 = nn.scan 5 carry
// CHECK: ^bb0(%[[A:.[^:]*]]: tensor<3xf32>,
// CHECK: %[[E:.*]] = math.exp
// CHECK: %[[T:.*]] = math.tanh
// CHECK: nn.yield %[[T]], %[[T]], %[[E]], %[[A]] :
// CHECK: nn.scan 5 reverse carry(%{{.*}}, %{{.*}}) over({{.*}}%[[X]], %[[F]]#1, %[[F]]#2, %[[F]]#3) with(%[[W]])
train.tensor @w parameter "w" : tensor<3xf32>
func.func private @forward_train_0(%w: tensor<3xf32> {train.tensor = @w}, %h: tensor<3xf32> {train.input = "h"}, %x: tensor<5x3xf32> {train.input = "x"})
    -> (tensor<f32> {train.output = "y"}) {
  %last, %all = nn.scan 5 carry(%h) over(%x) with(%w) : (tensor<3xf32>, tensor<5x3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<5x3xf32>) {
  ^bb0(%a: tensor<3xf32>, %xi: tensor<3xf32>, %v: tensor<3xf32>):
    %0 = arith.mulf %a, %v : tensor<3xf32>
    %1 = math.exp %0 : tensor<3xf32>
    %s = arith.mulf %1, %xi : tensor<3xf32>
    %2 = math.tanh %s : tensor<3xf32>
    nn.yield %2, %2 : tensor<3xf32>, tensor<3xf32>
  }
  %y = nn.reduce sum %all axes = [0, 1] : tensor<5x3xf32> -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// scan: what follows from saved values with little work is not saved but computed again, and what chooses gradients is
// no value of its own.
// CHECK-LABEL: func.func private @backward_0(
// CHECK: %[[F:.*]]:3 = nn.scan 5 carry
// CHECK: ^bb0(%[[A:.[^:]*]]: tensor<3xf32>,
// CHECK: %[[E:.*]] = math.exp
// CHECK-NOT: nn.straight_through
// CHECK: nn.yield %{{.*}}, %{{.*}}, %[[E]] :
// CHECK: nn.scan 5 reverse carry(%{{.*}}, %{{.*}}) over({{.*}}%[[F]]#2) with(%{{.*}})
// CHECK: ^bb0({{.*}}, %[[SAVED:[^:]*]]: tensor<3xf32>, %{{[^:]*}}: tensor<3xf32>):
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[SAVED]], %[[SAVED]]
// CHECK: arith.mulf %{{.*}}, %[[SQUARE]]
train.tensor @w parameter "w" : tensor<3xf32>
func.func private @forward_train_0(%w: tensor<3xf32> {train.tensor = @w}, %h: tensor<3xf32> {train.input = "h"})
    -> (tensor<f32> {train.output = "y"}) {
  %last, %all = nn.scan 5 carry(%h) over() with(%w) : (tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<5x3xf32>) {
  ^bb0(%a: tensor<3xf32>, %v: tensor<3xf32>):
    %e = math.exp %a : tensor<3xf32>
    %chosen = nn.straight_through %e, %e : tensor<3xf32>
    %d = arith.mulf %chosen, %chosen : tensor<3xf32>
    %p = arith.mulf %d, %v : tensor<3xf32>
    nn.yield %p, %p : tensor<3xf32>, tensor<3xf32>
  }
  %y = nn.reduce sum %all axes = [0, 1] : tensor<5x3xf32> -> tensor<f32>
  return %y : tensor<f32>
}
