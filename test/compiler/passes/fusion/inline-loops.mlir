// RUN: ortc-opt %s --ortc-inline-loops | FileCheck %s
// Breaks when a loop of one iteration is left, or another one is taken apart.

// CHECK-LABEL: @once
// CHECK-NOT: nn.scan
// CHECK: %[[X:.*]] = nn.reshape %arg0 : tensor<1x3xf32> -> tensor<3xf32>
// CHECK: %[[P:.*]] = arith.mulf %[[X]], %arg1
// CHECK: %[[S:.*]] = arith.addf %arg2, %[[P]]
// CHECK: %[[ALL:.*]] = nn.reshape %[[P]] : tensor<3xf32> -> tensor<1x3xf32>
// CHECK: return %[[S]], %[[ALL]]
func.func @once(%xs: tensor<1x3xf32>, %w: tensor<3xf32>, %h: tensor<3xf32>) -> (tensor<3xf32>, tensor<1x3xf32>) {
  %last, %all = nn.scan 1 recompute carry(%h) over(%xs) with(%w)
      : (tensor<3xf32>, tensor<1x3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<1x3xf32>) {
  ^bb0(%c: tensor<3xf32>, %x: tensor<3xf32>, %v: tensor<3xf32>):
    %0 = arith.mulf %x, %v : tensor<3xf32>
    %1 = arith.addf %c, %0 : tensor<3xf32>
    nn.yield %1, %0 : tensor<3xf32>, tensor<3xf32>
  }
  return %last, %all : tensor<3xf32>, tensor<1x3xf32>
}

// CHECK-LABEL: @twice
// CHECK: nn.scan 2
func.func @twice(%xs: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %all = nn.scan 2 carry() over(%xs) with() : (tensor<2x3xf32>) -> tensor<2x3xf32> {
  ^bb0(%x: tensor<3xf32>):
    %0 = arith.mulf %x, %x : tensor<3xf32>
    nn.yield %0 : tensor<3xf32>
  }
  return %all : tensor<2x3xf32>
}
