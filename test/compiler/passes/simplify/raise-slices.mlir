// RUN: ortc-opt %s -split-input-file --ortc-raise-slices | FileCheck %s
// Breaks when more of a gradient is computed than is kept, or when what others read is cut.

// CHECK-LABEL: func.func @product
// CHECK-SAME: (%[[DY:.*]]: tensor<64x10xf32>, %[[X:.*]]: tensor<64x32xf32>)
// CHECK: %[[S:.*]] = nn.slice %[[DY]] starts = [0, 0] strides = [1, 1] : tensor<64x10xf32> -> tensor<64x3xf32>
// CHECK: %[[G:.*]] = nn.dot %[[S]], %[[X]] batch = [] x [] contract = [0] x [0] {{.*}} -> tensor<3x32xf32>
// CHECK: return %[[G]]
func.func @product(%dy: tensor<64x10xf32>, %x: tensor<64x32xf32>) -> (tensor<3x32xf32> {train.gradient = @w}) {
  %0 = nn.dot %dy, %x batch = [] x [] contract = [0] x [0] : tensor<64x10xf32>, tensor<64x32xf32> -> tensor<10x32xf32>
  %1 = nn.slice %0 starts = [0, 0] strides = [1, 1] : tensor<10x32xf32> -> tensor<3x32xf32>
  return %1 : tensor<3x32xf32>
}

// -----

// Through a transpose, a reshape and a sum of two; a batch dimension is cut on both sides.
// CHECK-LABEL: func.func @chain
// CHECK-NOT: tensor<6x4x5xf32>
// CHECK: nn.dot {{.*}} : tensor<2x8x4xf32>, tensor<2x8x5xf32> -> tensor<2x4x5xf32>
// CHECK: nn.dot {{.*}} : tensor<2x8x4xf32>, tensor<2x8x5xf32> -> tensor<2x4x5xf32>
// CHECK: arith.addf {{.*}} : tensor<2x4x5xf32>
// CHECK: nn.reshape {{.*}} : tensor<2x4x5xf32> -> tensor<2x20xf32>
// CHECK: nn.transpose {{.*}} : tensor<2x20xf32> -> tensor<20x2xf32>
func.func @chain(%a: tensor<6x8x4xf32>, %b: tensor<6x8x5xf32>) -> (tensor<20x2xf32> {train.gradient = @w}) {
  %0 = nn.dot %a, %b batch = [0] x [0] contract = [1] x [1] : tensor<6x8x4xf32>, tensor<6x8x5xf32> -> tensor<6x4x5xf32>
  %1 = nn.dot %a, %b batch = [0] x [0] contract = [1] x [1] : tensor<6x8x4xf32>, tensor<6x8x5xf32> -> tensor<6x4x5xf32>
  %2 = arith.addf %0, %1 : tensor<6x4x5xf32>
  %3 = nn.reshape %2 : tensor<6x4x5xf32> -> tensor<6x20xf32>
  %4 = nn.transpose %3 perm = [1, 0] : tensor<6x20xf32> -> tensor<20x6xf32>
  %5 = nn.slice %4 starts = [0, 0] strides = [1, 1] : tensor<20x6xf32> -> tensor<20x2xf32>
  return %5 : tensor<20x2xf32>
}

// -----

// A bias: the sum of what is kept.
// CHECK-LABEL: func.func @bias
// CHECK: %[[S:.*]] = nn.slice %{{.*}} : tensor<2x8x8x6xf32> -> tensor<2x8x8x2xf32>
// CHECK: nn.reduce sum %[[S]] axes = [0, 1, 2] : tensor<2x8x8x2xf32> -> tensor<2xf32>
func.func @bias(%dy: tensor<2x8x8x6xf32>) -> (tensor<2xf32> {train.gradient = @b}) {
  %0 = nn.reduce sum %dy axes = [0, 1, 2] : tensor<2x8x8x6xf32> -> tensor<6xf32>
  %1 = nn.slice %0 starts = [0] strides = [1] : tensor<6xf32> -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// CHECK-LABEL: func.func @filter
// CHECK: nn.conv_filter_grad {{.*}} groups = 1 : tensor<2x8x8x3xf32>, tensor<2x8x8x2xf32> -> tensor<3x3x3x2xf32>
func.func @filter(%x: tensor<2x8x8x3xf32>, %dy: tensor<2x8x8x4xf32>) -> (tensor<3x3x3x2xf32> {train.gradient = @w}) {
  %0 = nn.conv_filter_grad %x, %dy strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1
      : tensor<2x8x8x3xf32>, tensor<2x8x8x4xf32> -> tensor<3x3x3x4xf32>
  %1 = nn.slice %0 starts = [0, 0, 0, 0] strides = [1, 1, 1, 1] : tensor<3x3x3x4xf32> -> tensor<3x3x3x2xf32>
  return %1 : tensor<3x3x3x2xf32>
}

// -----

// Whole groups, of two filters each.
// CHECK-LABEL: func.func @groups
// CHECK: nn.conv_filter_grad {{.*}} groups = 2 : tensor<2x8x8x6xf32>, tensor<2x8x8x4xf32> -> tensor<3x3x3x4xf32>
func.func @groups(%x: tensor<2x8x8x9xf32>, %dy: tensor<2x8x8x6xf32>) -> (tensor<3x3x3x4xf32> {train.gradient = @w}) {
  %0 = nn.conv_filter_grad %x, %dy strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 3
      : tensor<2x8x8x9xf32>, tensor<2x8x8x6xf32> -> tensor<3x3x3x6xf32>
  %1 = nn.slice %0 starts = [0, 0, 0, 0] strides = [1, 1, 1, 1] : tensor<3x3x3x6xf32> -> tensor<3x3x3x4xf32>
  return %1 : tensor<3x3x3x4xf32>
}

// -----

// A part of a group: all of it is computed.
// CHECK-LABEL: func.func @part_of_a_group
// CHECK: nn.conv_filter_grad {{.*}} groups = 3 {{.*}} -> tensor<3x3x3x6xf32>
// CHECK: nn.slice
func.func @part_of_a_group(%x: tensor<2x8x8x9xf32>, %dy: tensor<2x8x8x6xf32>) -> (tensor<3x3x3x3xf32> {train.gradient = @w}) {
  %0 = nn.conv_filter_grad %x, %dy strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 3
      : tensor<2x8x8x9xf32>, tensor<2x8x8x6xf32> -> tensor<3x3x3x6xf32>
  %1 = nn.slice %0 starts = [0, 0, 0, 0] strides = [1, 1, 1, 1] : tensor<3x3x3x6xf32> -> tensor<3x3x3x3xf32>
  return %1 : tensor<3x3x3x3xf32>
}

// -----

// What somebody else reads is made whole; a slice that is no gradient stays.
// CHECK-LABEL: func.func @shared
// CHECK: nn.dot {{.*}} -> tensor<10x32xf32>
// CHECK: nn.slice
// CHECK: math.tanh {{.*}} : tensor<10x32xf32>
// CHECK: nn.slice
func.func @shared(%dy: tensor<64x10xf32>, %x: tensor<64x32xf32>)
    -> (tensor<3x32xf32> {train.gradient = @w}, tensor<10x32xf32> {train.output = "all"}, tensor<3x32xf32> {train.output = "some"}) {
  %0 = nn.dot %dy, %x batch = [] x [] contract = [0] x [0] : tensor<64x10xf32>, tensor<64x32xf32> -> tensor<10x32xf32>
  %1 = nn.slice %0 starts = [0, 0] strides = [1, 1] : tensor<10x32xf32> -> tensor<3x32xf32>
  %2 = math.tanh %0 : tensor<10x32xf32>
  %3 = math.tanh %2 : tensor<10x32xf32>
  %4 = nn.slice %3 starts = [0, 0] strides = [1, 1] : tensor<10x32xf32> -> tensor<3x32xf32>
  return %1, %0, %4 : tensor<3x32xf32>, tensor<10x32xf32>, tensor<3x32xf32>
}

// -----

// Two gradients that need the same part; the gradient in front of it is computed for this part of the channels.
// CHECK-LABEL: func.func @lowest
// CHECK-SAME: (%[[DY:.*]]: tensor<2x8x8x4xf32>, %[[W:.*]]: tensor<3x3x6x4xf32>,
// CHECK: %[[S:.*]] = nn.slice %[[W]] starts = [0, 0, 0, 0] strides = [1, 1, 1, 1] : tensor<3x3x6x4xf32> -> tensor<3x3x2x4xf32>
// CHECK: %[[DX:.*]] = nn.conv_input_grad %[[DY]], %[[S]] {{.*}} -> tensor<2x8x8x2xf32>
// CHECK: %[[T:.*]] = nn.slice %{{.*}} : tensor<2x8x8x6xi8> -> tensor<2x8x8x2xi8>
// CHECK: %[[P:.*]] = nn.max_pool_grad %[[DX]], %[[T]] {{.*}} -> tensor<2x16x16x2xf32>
// CHECK: nn.conv_filter_grad %{{.*}}, %[[P]]
// CHECK: nn.reduce sum %[[P]]
// CHECK-NOT: nn.slice
func.func @lowest(%dy: tensor<2x8x8x4xf32>, %w: tensor<3x3x6x4xf32>, %taps: tensor<2x8x8x6xi8>, %x: tensor<2x16x16x3xf32>)
    -> (tensor<1x1x3x2xf32> {train.gradient = @w}, tensor<2xf32> {train.gradient = @b}) {
  %dx = nn.conv_input_grad %dy, %w strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1
      : tensor<2x8x8x4xf32>, tensor<3x3x6x4xf32> -> tensor<2x8x8x6xf32>
  %0 = nn.max_pool_grad %dx, %taps window = [2, 2] strides = [2, 2] padding = [0, 0] to [0, 0] overhang = [0, 0] dilations = [1, 1]
      : tensor<2x8x8x6xf32>, tensor<2x8x8x6xi8> -> tensor<2x16x16x6xf32>
  %1 = nn.conv_filter_grad %x, %0 strides = [1, 1] padding = [0, 0] to [0, 0] dilations = [1, 1] groups = 1
      : tensor<2x16x16x3xf32>, tensor<2x16x16x6xf32> -> tensor<1x1x3x6xf32>
  %2 = nn.slice %1 starts = [0, 0, 0, 0] strides = [1, 1, 1, 1] : tensor<1x1x3x6xf32> -> tensor<1x1x3x2xf32>
  %3 = nn.reduce sum %0 axes = [0, 1, 2] : tensor<2x16x16x6xf32> -> tensor<6xf32>
  %4 = nn.slice %3 starts = [0] strides = [1] : tensor<6xf32> -> tensor<2xf32>
  return %2, %4 : tensor<1x1x3x2xf32>, tensor<2xf32>
}
