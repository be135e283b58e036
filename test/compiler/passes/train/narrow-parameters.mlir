// RUN: ortc-opt %s --ortc-narrow-parameters | FileCheck %s
// Breaks when initial values are not rounded to the nearest, or when what is computed changes its type.

// 1 + 2^-8 is a tie, and goes to the even one; 1 + 3 2^-8 too.
// CHECK: train.tensor @w parameter "w" initial = dense<[1.000000e+00, 1.015630e+00, 0x7F80, 0x7FC0]> : tensor<4xbf16> : tensor<4xbf16>
train.tensor @w parameter "w" initial = dense<[1.00390625, 1.01171875, 3.4e38, 0x7FC00000]> : tensor<4xf32> : tensor<4xf32>
// CHECK: train.tensor @v parameter "v" permutation = [1, 0] : tensor<2x3xbf16>
train.tensor @v parameter "v" permutation = [1, 0] : tensor<2x3xf32>
// CHECK: train.tensor @s parameter "s" initial = dense<2.500000e-01> : tensor<2xbf16> : tensor<2xbf16>
train.tensor @s parameter "s" initial = dense<0.25> : tensor<2xf32> : tensor<2xf32>
// CHECK: train.tensor @c constant "c" : tensor<4xf32>
train.tensor @c constant "c" : tensor<4xf32>

// CHECK-LABEL: func.func private @f(
// CHECK-SAME: %[[W:.*]]: tensor<4xbf16> {train.tensor = @w}, %[[C:.*]]: tensor<4xf32> {train.tensor = @c}, %[[V:.*]]: tensor<3x2xbf16> {train.tensor = @v})
// CHECK-SAME: -> (tensor<4xf32> {train.output = "y"}, tensor<3x2xf32> {train.gradient = @v})
// CHECK: %[[WIDE:.*]] = arith.extf %[[W]]
// CHECK: %[[V_WIDE:.*]] = arith.extf %[[V]]
// CHECK: %[[Y:.*]] = arith.addf %[[WIDE]], %[[C]] : tensor<4xf32>
// CHECK: return %[[Y]], %[[V_WIDE]]
func.func private @f(%w: tensor<4xf32> {train.tensor = @w}, %c: tensor<4xf32> {train.tensor = @c}, %v: tensor<3x2xf32> {train.tensor = @v}) -> (tensor<4xf32> {train.output = "y"}, tensor<3x2xf32> {train.gradient = @v}) {
  %y = arith.addf %w, %c : tensor<4xf32>
  return %y, %v : tensor<4xf32>, tensor<3x2xf32>
}
