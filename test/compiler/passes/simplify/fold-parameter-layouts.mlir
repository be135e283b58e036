// RUN: ortc-opt %s -split-input-file --ortc-fold-parameter-layouts | FileCheck %s
// Breaks when a parameter that every function transposes is still stored the other way round.

// CHECK: train.tensor @w parameter "w" permutation = [1, 0] : tensor<2x3xf32>
// CHECK: func.func @f(%[[W:.*]]: tensor<3x2xf32> {train.tensor = @w}) -> tensor<3x2xf32>
// CHECK-NEXT: return %[[W]]
train.tensor @w parameter "w" : tensor<2x3xf32>
func.func @f(%w: tensor<2x3xf32> {train.tensor = @w}) -> tensor<3x2xf32> {
  %0 = nn.transpose %w perm = [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}
// CHECK: func.func @g(%{{.*}}: tensor<3x2xf32> {train.tensor = @w})
func.func @g(%w: tensor<2x3xf32> {train.tensor = @w}) -> tensor<3x2xf32> {
  %0 = nn.transpose %w perm = [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// -----

// One function reads it as it is: it stays.
// CHECK: train.tensor @w parameter "w" : tensor<2x3xf32>
// CHECK: nn.transpose
train.tensor @w parameter "w" : tensor<2x3xf32>
func.func @f(%w: tensor<2x3xf32> {train.tensor = @w}) -> tensor<3x2xf32> {
  %0 = nn.transpose %w perm = [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}
func.func @g(%w: tensor<2x3xf32> {train.tensor = @w}) -> tensor<2x3xf32> {
  return %w : tensor<2x3xf32>
}
