// RUN: ortc-opt %s -ortc-expand-composites='column-rows=2048 whole-column-bytes=524288 column-groups=66' -split-input-file | FileCheck %s
// Breaks when a GPU's sum over rows takes launches that it does not need, or keeps a few blocks busy.

// 24 groups of 32 columns, but no more rows than a block has.
// CHECK-LABEL: func.func @few_rows
// CHECK-NOT: nn.reshape
// CHECK: nn.reduce sum %{{.*}} axes = [0] : tensor<2048x768xf32> -> tensor<768xf32>
func.func @few_rows(%x: tensor<2048x768xf32>) -> tensor<768xf32> {
  %y = nn.reduce sum %x axes = [0] : tensor<2048x768xf32> -> tensor<768xf32>
  return %y : tensor<768xf32>
}

// -----

// 25088 rows are at least 13 parts of 2048; 16 parts are whole rows of pixels.
// CHECK-LABEL: func.func @parts
// CHECK: %[[CUT:.*]] = nn.reshape %{{.*}} : tensor<32x28x28x32xf32> -> tensor<16x1568x32xf32>
// CHECK: %[[PARTS:.*]] = nn.reduce sum %[[CUT]] axes = [1] : tensor<16x1568x32xf32> -> tensor<16x32xf32>
// CHECK: nn.reduce sum %[[PARTS]] axes = [0] : tensor<16x32xf32> -> tensor<32xf32>
func.func @parts(%x: tensor<32x28x28x32xf32>) -> tensor<32xf32> {
  %y = nn.reduce sum %x axes = [0, 1, 2] : tensor<32x28x28x32xf32> -> tensor<32xf32>
  return %y : tensor<32xf32>
}

// -----

// 66 groups of columns are blocks enough.
// CHECK-LABEL: func.func @many_columns
// CHECK-NOT: nn.reshape
// CHECK: nn.reduce sum
func.func @many_columns(%x: tensor<4096x2081xf32>) -> tensor<2081xf32> {
  %y = nn.reduce sum %x axes = [0] : tensor<4096x2081xf32> -> tensor<2081xf32>
  return %y : tensor<2081xf32>
}

// -----

// One group less.
// CHECK-LABEL: func.func @fewer_columns
// CHECK: nn.reshape %{{.*}} : tensor<4096x2080xf32> -> tensor<2x2048x2080xf32>
func.func @fewer_columns(%x: tensor<4096x2080xf32>) -> tensor<2080xf32> {
  %y = nn.reduce sum %x axes = [0] : tensor<4096x2080xf32> -> tensor<2080xf32>
  return %y : tensor<2080xf32>
}

// -----

// 512 KiB are whole.
// CHECK-LABEL: func.func @little
// CHECK-NOT: nn.reshape
// CHECK: nn.reduce sum
func.func @little(%x: tensor<4096x32xf32>) -> tensor<32xf32> {
  %y = nn.reduce sum %x axes = [0] : tensor<4096x32xf32> -> tensor<32xf32>
  return %y : tensor<32xf32>
}

// -----

// A sum along rows is cut as for CPUs.
// CHECK-LABEL: func.func @along_rows
// CHECK: nn.reshape %{{.*}} : tensor<65536xf32> -> tensor<16x4096xf32>
func.func @along_rows(%x: tensor<65536xf32>) -> tensor<f32> {
  %y = nn.reduce sum %x axes = [0] : tensor<65536xf32> -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// Moments have the same parts.
// CHECK-LABEL: func.func @moments
// CHECK: %[[CUT:.*]] = nn.reshape %{{.*}} : tensor<8x56x56x32xf32> -> tensor<16x1568x32xf32>
// CHECK: nn.reduce sum %[[CUT]] axes = [1]
// CHECK: nn.reduce sum %{{.*}} axes = [1] : tensor<16x1568x32xf32> -> tensor<16x32xf32>
func.func @moments(%x: tensor<8x56x56x32xf32>) -> (tensor<32xf32>, tensor<32xf32>) {
  %mean, %variance = nn.moments %x axes = [0, 1, 2] : tensor<8x56x56x32xf32> -> tensor<32xf32>
  return %mean, %variance : tensor<32xf32>, tensor<32xf32>
}

// -----

// CHECK-LABEL: func.func @moments_of_few_rows
// CHECK-NOT: nn.reshape
// CHECK: nn.reduce sum %{{.*}} axes = [0, 1, 2] : tensor<32x7x7x512xf32> -> tensor<512xf32>
// CHECK: nn.reduce sum %{{.*}} axes = [0, 1, 2] : tensor<32x7x7x512xf32> -> tensor<512xf32>
func.func @moments_of_few_rows(%x: tensor<32x7x7x512xf32>) -> (tensor<512xf32>, tensor<512xf32>) {
  %mean, %variance = nn.moments %x axes = [0, 1, 2] : tensor<32x7x7x512xf32> -> tensor<512xf32>
  return %mean, %variance : tensor<512xf32>, tensor<512xf32>
}
