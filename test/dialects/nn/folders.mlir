// RUN: ortc-opt %s --canonicalize | FileCheck %s
// Breaks when movement that moves nothing stays, or an empty input reaches a kernel.

// CHECK-LABEL: func.func @concat_without_empty_inputs
// CHECK: nn.concat %{{.*}}, %{{.*}} axis = 0 : tensor<2xf32>, tensor<3xf32> -> tensor<5xf32>
func.func @concat_without_empty_inputs(%a: tensor<2xf32>, %e: tensor<0xf32>, %b: tensor<3xf32>) -> tensor<5xf32> {
  %0 = nn.concat %a, %e, %b axis = 0 : tensor<2xf32>, tensor<0xf32>, tensor<3xf32> -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// CHECK-LABEL: func.func @transposes_cancel
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>)
// CHECK-NEXT: return %[[X]]
func.func @transposes_cancel(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = nn.transpose %x perm = [2, 0, 1] : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
  %1 = nn.transpose %0 perm = [1, 2, 0] : tensor<4x2x3xf32> -> tensor<2x3x4xf32>
  return %1 : tensor<2x3x4xf32>
}

// CHECK-LABEL: func.func @broadcasts_merge
// CHECK: nn.broadcast %{{.*}} dims = [2] : tensor<4xf32> -> tensor<2x3x4xf32>
func.func @broadcasts_merge(%x: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %0 = nn.broadcast %x dims = [1] : tensor<4xf32> -> tensor<3x4xf32>
  %1 = nn.broadcast %0 dims = [1, 2] : tensor<3x4xf32> -> tensor<2x3x4xf32>
  return %1 : tensor<2x3x4xf32>
}
