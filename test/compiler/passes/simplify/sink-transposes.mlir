// RUN: ortc-opt %s -split-input-file --ortc-sink-transposes | FileCheck %s
// Breaks when transposes around channels-last operations stay, or when one is moved at a cost.

// CHECK-LABEL: func.func @elementwise_cancels
// CHECK-SAME: (%[[X:.*]]: tensor<2x4x4x3xf32>)
// CHECK-NOT: nn.transpose
// CHECK: %[[Y:.*]] = math.tanh %[[X]] : tensor<2x4x4x3xf32>
// CHECK: return %[[Y]]
func.func @elementwise_cancels(%x: tensor<2x4x4x3xf32>) -> tensor<2x4x4x3xf32> {
  %0 = nn.transpose %x perm = [0, 3, 1, 2] : tensor<2x4x4x3xf32> -> tensor<2x3x4x4xf32>
  %1 = math.tanh %0 : tensor<2x3x4x4xf32>
  %2 = nn.transpose %1 perm = [0, 2, 3, 1] : tensor<2x3x4x4xf32> -> tensor<2x4x4x3xf32>
  return %2 : tensor<2x4x4x3xf32>
}

// -----

// What chooses gradients passes values on.
// CHECK-LABEL: func.func @chosen_gradient
// CHECK-SAME: (%[[X:.*]]: tensor<2x4x4x3xf32>)
// CHECK-NOT: nn.transpose
// CHECK: nn.detach
// CHECK: %[[Y:.*]] = nn.straight_through
// CHECK-NOT: nn.transpose
// CHECK: return %[[Y]]
func.func @chosen_gradient(%x: tensor<2x4x4x3xf32>) -> tensor<2x4x4x3xf32> {
  %0 = nn.transpose %x perm = [0, 3, 1, 2] : tensor<2x4x4x3xf32> -> tensor<2x3x4x4xf32>
  %1 = nn.detach %0 : tensor<2x3x4x4xf32>
  %2 = nn.straight_through %1, %0 : tensor<2x3x4x4xf32>
  %3 = nn.transpose %2 perm = [0, 2, 3, 1] : tensor<2x3x4x4xf32> -> tensor<2x4x4x3xf32>
  return %3 : tensor<2x4x4x3xf32>
}

// -----

// CHECK-LABEL: func.func @bias_follows
// CHECK: nn.broadcast %{{.*}} dims = [3] : tensor<3xf32> -> tensor<2x4x4x3xf32>
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK: return %[[SUM]]
func.func @bias_follows(%x: tensor<2x4x4x3xf32>, %b: tensor<3xf32>) -> tensor<2x4x4x3xf32> {
  %0 = nn.transpose %x perm = [0, 3, 1, 2] : tensor<2x4x4x3xf32> -> tensor<2x3x4x4xf32>
  %1 = nn.broadcast %b dims = [1] : tensor<3xf32> -> tensor<2x3x4x4xf32>
  %2 = arith.addf %0, %1 : tensor<2x3x4x4xf32>
  %3 = nn.transpose %2 perm = [0, 2, 3, 1] : tensor<2x3x4x4xf32> -> tensor<2x4x4x3xf32>
  return %3 : tensor<2x4x4x3xf32>
}

// -----

// CHECK-LABEL: func.func @reduction_renames
// CHECK: nn.reduce sum %{{.*}} axes = [1, 2] : tensor<2x4x5x3xf32> -> tensor<2x3xf32>
// CHECK-NOT: nn.transpose
func.func @reduction_renames(%x: tensor<2x4x5x3xf32>) -> tensor<2x3xf32> {
  %0 = nn.transpose %x perm = [0, 3, 1, 2] : tensor<2x4x5x3xf32> -> tensor<2x3x4x5xf32>
  %1 = nn.reduce sum %0 axes = [2, 3] : tensor<2x3x4x5xf32> -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: func.func @dot_absorbs
// CHECK: nn.dot %{{.*}}, %{{.*}} batch = [0, 2] x [0, 2] contract = [3] x [3]
// CHECK-NOT: nn.transpose
func.func @dot_absorbs(%q: tensor<2x5x4x8xf32>, %k: tensor<2x6x4x8xf32>) -> tensor<2x4x5x6xf32> {
  %0 = nn.transpose %q perm = [0, 2, 1, 3] : tensor<2x5x4x8xf32> -> tensor<2x4x5x8xf32>
  %1 = nn.transpose %k perm = [0, 2, 1, 3] : tensor<2x6x4x8xf32> -> tensor<2x4x6x8xf32>
  %2 = nn.dot %0, %1 batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<2x4x5x8xf32>, tensor<2x4x6x8xf32> -> tensor<2x4x5x6xf32>
  return %2 : tensor<2x4x5x6xf32>
}

// -----

// A transpose of unit dimensions moves nothing.
// CHECK-LABEL: func.func @unit_dimensions
// CHECK: nn.reshape %{{.*}} : tensor<2x1x1x3xf32> -> tensor<2x3x1x1xf32>
func.func @unit_dimensions(%x: tensor<2x1x1x3xf32>) -> tensor<2x3x1x1xf32> {
  %0 = nn.transpose %x perm = [0, 3, 1, 2] : tensor<2x1x1x3xf32> -> tensor<2x3x1x1xf32>
  return %0 : tensor<2x3x1x1xf32>
}

// -----

// The other operand has another layout: permuting it would cost what is gained.
// CHECK-LABEL: func.func @other_layout_stays
// CHECK: %[[T:.*]] = nn.transpose
// CHECK: arith.addf %[[T]]
func.func @other_layout_stays(%x: tensor<3x2xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = nn.transpose %x perm = [1, 0] : tensor<3x2xf32> -> tensor<2x3xf32>
  %1 = arith.addf %0, %y : tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// -----

// Neither a transposed splat nor the broadcast beside it may hand its transpose to the other, for ever.
// CHECK-LABEL: func.func @free_operands
// CHECK-NOT: nn.transpose
func.func @free_operands(%b: tensor<f32>) -> tensor<3x2x6xf32> {
  %c = arith.constant dense<2.5> : tensor<3x6x2xf32>
  %0 = nn.transpose %c perm = [0, 2, 1] : tensor<3x6x2xf32> -> tensor<3x2x6xf32>
  %1 = nn.broadcast %b dims = [] : tensor<f32> -> tensor<3x2x6xf32>
  %2 = arith.mulf %1, %0 : tensor<3x2x6xf32>
  return %2 : tensor<3x2x6xf32>
}
