// RUN: ortc-opt %s -split-input-file --ortc-contract-convolutions | FileCheck %s
// Breaks when a convolution over the whole image no longer reaches the contraction generator, or one with windows does.

// The window is the image: strides do not matter.
// CHECK-LABEL: func.func @image
// CHECK-SAME: (%[[X:.*]]: tensor<5x4x6x3xf32>, %[[W:.*]]: tensor<4x6x3x8xf32>, %[[DY:.*]]: tensor<5x1x1x8xf32>)
func.func @image(%x: tensor<5x4x6x3xf32>, %w: tensor<4x6x3x8xf32>, %dy: tensor<5x1x1x8xf32>)
    -> (tensor<5x1x1x8xf32>, tensor<5x4x6x3xf32>, tensor<4x6x3x8xf32>) {
  // CHECK-DAG: %[[PRODUCT:.*]] = nn.dot %[[X]], %[[W]] batch = [] x [] contract = [1, 2, 3] x [0, 1, 2] {{.*}} -> tensor<5x8xf32>
  // CHECK-DAG: %[[Y:.*]] = nn.reshape %[[PRODUCT]] : tensor<5x8xf32> -> tensor<5x1x1x8xf32>
  %y = nn.conv %x, %w strides = [2, 2] padding = [0, 0] to [0, 0] dilations = [1, 1] groups = 1 : tensor<5x4x6x3xf32>, tensor<4x6x3x8xf32> -> tensor<5x1x1x8xf32>
  // CHECK-DAG: %[[DX:.*]] = nn.dot %{{.*}}, %[[W]] batch = [] x [] contract = [1] x [3] {{.*}} -> tensor<5x4x6x3xf32>
  %dx = nn.conv_input_grad %dy, %w strides = [2, 2] padding = [0, 0] to [0, 0] dilations = [1, 1] groups = 1 : tensor<5x1x1x8xf32>, tensor<4x6x3x8xf32> -> tensor<5x4x6x3xf32>
  // CHECK-DAG: %[[DW:.*]] = nn.dot %[[X]], %{{.*}} batch = [] x [] contract = [0] x [0] {{.*}} -> tensor<4x6x3x8xf32>
  %dw = nn.conv_filter_grad %x, %dy strides = [2, 2] padding = [0, 0] to [0, 0] dilations = [1, 1] groups = 1 : tensor<5x4x6x3xf32>, tensor<5x1x1x8xf32> -> tensor<4x6x3x8xf32>
  // CHECK: return %[[Y]], %[[DX]], %[[DW]]
  return %y, %dx, %dw : tensor<5x1x1x8xf32>, tensor<5x4x6x3xf32>, tensor<4x6x3x8xf32>
}

// -----

// One position a window, with and without strides, groups and padding; and real windows.
// CHECK-LABEL: func.func @stays
// CHECK-NOT: nn.dot
func.func @stays(%x: tensor<2x8x8x4xf32>, %w: tensor<1x1x4x4xf32>, %g: tensor<1x1x2x4xf32>, %v: tensor<3x3x4x4xf32>)
    -> (tensor<2x4x4x4xf32>, tensor<2x8x8x4xf32>, tensor<2x10x10x4xf32>, tensor<2x6x6x4xf32>, tensor<2x8x8x4xf32>) {
  // CHECK: nn.conv %{{.*}} strides = [1, 1]
  %4 = nn.conv %x, %w strides = [1, 1] padding = [0, 0] to [0, 0] dilations = [1, 1] groups = 1 : tensor<2x8x8x4xf32>, tensor<1x1x4x4xf32> -> tensor<2x8x8x4xf32>
  // CHECK: nn.conv %{{.*}} strides = [2, 2]
  %0 = nn.conv %x, %w strides = [2, 2] padding = [0, 0] to [0, 0] dilations = [1, 1] groups = 1 : tensor<2x8x8x4xf32>, tensor<1x1x4x4xf32> -> tensor<2x4x4x4xf32>
  // CHECK: nn.conv %{{.*}} groups = 2
  %1 = nn.conv %x, %g strides = [1, 1] padding = [0, 0] to [0, 0] dilations = [1, 1] groups = 2 : tensor<2x8x8x4xf32>, tensor<1x1x2x4xf32> -> tensor<2x8x8x4xf32>
  // CHECK: nn.conv %{{.*}} padding = [1, 1] to [1, 1]
  %2 = nn.conv %x, %w strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<2x8x8x4xf32>, tensor<1x1x4x4xf32> -> tensor<2x10x10x4xf32>
  // CHECK: nn.conv %{{.*}} : tensor<2x8x8x4xf32>, tensor<3x3x4x4xf32>
  %3 = nn.conv %x, %v strides = [1, 1] padding = [0, 0] to [0, 0] dilations = [1, 1] groups = 1 : tensor<2x8x8x4xf32>, tensor<3x3x4x4xf32> -> tensor<2x6x6x4xf32>
  return %0, %1, %2, %3, %4 : tensor<2x4x4x4xf32>, tensor<2x8x8x4xf32>, tensor<2x10x10x4xf32>, tensor<2x6x6x4xf32>, tensor<2x8x8x4xf32>
}
