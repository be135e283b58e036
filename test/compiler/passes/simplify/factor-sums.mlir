// RUN: ortc-opt %s --ortc-factor-sums --canonicalize --cse | FileCheck %s
// Breaks when factors that change along the axes are taken out, or when sums that only such factors tell apart stay apart.

// The scale and the deviation of a channel: one sum is left for both gradients.
// CHECK-LABEL: @channels
func.func @channels(%x: tensor<4x3xf32>, %y: tensor<4x3xf32>, %g: tensor<3xf32>, %s: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %bg = nn.broadcast %g dims = [1] : tensor<3xf32> -> tensor<4x3xf32>
  %bs = nn.broadcast %s dims = [1] : tensor<3xf32> -> tensor<4x3xf32>
  %scaled = arith.mulf %x, %bg : tensor<4x3xf32>
  %p = arith.mulf %scaled, %y : tensor<4x3xf32>
  %normal = arith.mulf %y, %bs : tensor<4x3xf32>
  %q = arith.mulf %x, %normal : tensor<4x3xf32>
  %n = arith.negf %q : tensor<4x3xf32>
  // CHECK: %[[P:.*]] = arith.mulf %arg0, %arg1 : tensor<4x3xf32>
  // CHECK: %[[S:.*]] = nn.reduce  sum %[[P]] axes = [0]
  // CHECK: %[[A:.*]] = arith.mulf %[[S]], %arg2 : tensor<3xf32>
  // CHECK-NOT: nn.reduce
  // CHECK: %[[B:.*]] = arith.mulf %[[S]], %arg3 : tensor<3xf32>
  // CHECK: %[[N:.*]] = arith.negf %[[B]] : tensor<3xf32>
  // CHECK: return %[[A]], %[[N]]
  %a = nn.reduce sum %p axes = [0] : tensor<4x3xf32> -> tensor<3xf32>
  %b = nn.reduce sum %n axes = [0] : tensor<4x3xf32> -> tensor<3xf32>
  return %a, %b : tensor<3xf32>, tensor<3xf32>
}

// Dimensions behind the axis move up.
// CHECK-LABEL: @dimensions
func.func @dimensions(%x: tensor<2x4x3xf32>, %g: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %b = nn.broadcast %g dims = [0, 2] : tensor<2x3xf32> -> tensor<2x4x3xf32>
  %c = arith.constant dense<5.000000e-01> : tensor<2x4x3xf32>
  %p = arith.mulf %x, %b : tensor<2x4x3xf32>
  %h = arith.mulf %p, %c : tensor<2x4x3xf32>
  // CHECK: %[[C:.*]] = arith.constant dense<5.000000e-01> : tensor<2x3xf32>
  // CHECK: %[[S:.*]] = nn.reduce  sum %arg0 axes = [1]
  // CHECK: %[[P:.*]] = arith.mulf %[[S]], %arg1 : tensor<2x3xf32>
  // CHECK: arith.mulf %[[P]], %[[C]] : tensor<2x3xf32>
  %s = nn.reduce sum %h axes = [1] : tensor<2x4x3xf32> -> tensor<2x3xf32>
  return %s : tensor<2x3xf32>
}

// Squares of small numbers need the scale before they are taken.
// CHECK-LABEL: @range
func.func @range(%x: tensor<4xf32>) -> tensor<f32> {
  %c = arith.constant dense<1.0e+10> : tensor<4xf32>
  // CHECK: %[[P:.*]] = arith.mulf %arg0, %{{.*}} : tensor<4xf32>
  // CHECK: %[[S:.*]] = nn.reduce  sum
  // CHECK: return %[[S]]
  %s = arith.mulf %x, %c : tensor<4xf32>
  %q = arith.mulf %s, %s : tensor<4xf32>
  %r = nn.reduce sum %q axes = [0] : tensor<4xf32> -> tensor<f32>
  return %r : tensor<f32>
}

// Rows are scaled before they are squared.
// CHECK-LABEL: @scaled_rows
func.func @scaled_rows(%x: tensor<3x4xf32>, %r: tensor<3xf32>) -> tensor<3xf32> {
  %b = nn.broadcast %r dims = [0] : tensor<3xf32> -> tensor<3x4xf32>
  // CHECK: %[[P:.*]] = arith.mulf %arg0, %{{.*}} : tensor<3x4xf32>
  // CHECK: %[[Q:.*]] = arith.mulf %[[P]], %[[P]]
  // CHECK: nn.reduce  sum %[[Q]] axes = [1]
  %s = arith.mulf %x, %b : tensor<3x4xf32>
  %q = arith.mulf %s, %s : tensor<3x4xf32>
  %t = nn.reduce sum %q axes = [1] : tensor<3x4xf32> -> tensor<3xf32>
  return %t : tensor<3xf32>
}

// CHECK-LABEL: @along_the_axis
func.func @along_the_axis(%x: tensor<4x3xf32>, %g: tensor<3xf32>) -> tensor<4xf32> {
  %b = nn.broadcast %g dims = [1] : tensor<3xf32> -> tensor<4x3xf32>
  // CHECK: %[[P:.*]] = arith.mulf
  // CHECK: nn.reduce  sum %[[P]] axes = [1]
  %p = arith.mulf %x, %b : tensor<4x3xf32>
  %s = nn.reduce sum %p axes = [1] : tensor<4x3xf32> -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// Without its factors a sum of narrow numbers may overflow; a maximum is no sum.
// CHECK-LABEL: @others
func.func @others(%x: tensor<4xf16>, %y: tensor<4xf32>) -> (tensor<f16>, tensor<f32>) {
  %c = arith.constant dense<2.500000e-01> : tensor<4xf16>
  %d = arith.constant dense<2.500000e-01> : tensor<4xf32>
  // CHECK-DAG: %[[P:.*]] = arith.mulf %arg0
  // CHECK-DAG: %[[Q:.*]] = arith.mulf %arg1
  // CHECK-DAG: nn.reduce  sum %[[P]]
  // CHECK-DAG: nn.reduce  max %[[Q]]
  %p = arith.mulf %x, %c : tensor<4xf16>
  %q = arith.mulf %y, %d : tensor<4xf32>
  %s = nn.reduce sum %p axes = [0] : tensor<4xf16> -> tensor<f16>
  %t = nn.reduce max %q axes = [0] : tensor<4xf32> -> tensor<f32>
  return %s, %t : tensor<f16>, tensor<f32>
}
