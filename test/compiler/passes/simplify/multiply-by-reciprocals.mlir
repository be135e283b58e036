// RUN: ortc-opt %s --ortc-multiply-by-reciprocals | FileCheck %s
// Breaks when quotients that are rounded change by an ulp, or when elements are divided by what is known.

// CHECK-LABEL: @constant
func.func @constant(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant dense<1.250000e+00> : tensor<4xf32>
  // CHECK: %[[R:.*]] = arith.constant dense<8.000000e-01>
  // CHECK: arith.mulf %arg0, %[[R]]
  // CHECK-NOT: arith.divf
  %y = arith.divf %x, %c : tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: @broadcast
func.func @broadcast(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %c = arith.constant dense<3.000000e+00> : tensor<f32>
  %b = nn.broadcast %c dims = [] : tensor<f32> -> tensor<2x3xf32>
  // CHECK: arith.mulf
  // CHECK-NOT: arith.divf
  %y = arith.divf %x, %b : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// Quantisation: the last bit decides where a quotient is rounded to, unless the division is exact.
// CHECK-LABEL: @rounded
func.func @rounded(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = arith.constant dense<1.250000e+00> : tensor<4xf32>
  %two = arith.constant dense<2.000000e+00> : tensor<4xf32>
  // CHECK: arith.divf
  %y = arith.divf %x, %c : tensor<4xf32>
  %moved = arith.addf %y, %two : tensor<4xf32>
  %r = math.roundeven %moved : tensor<4xf32>
  // CHECK: arith.mulf
  %z = arith.divf %x, %two : tensor<4xf32>
  %s = math.floor %z : tensor<4xf32>
  return %r, %s : tensor<4xf32>, tensor<4xf32>
}

// A sum of quotients is no step.
// CHECK-LABEL: @reduced
func.func @reduced(%x: tensor<4xf32>) -> tensor<i32> {
  %c = arith.constant dense<1.250000e+00> : tensor<4xf32>
  // CHECK: arith.mulf
  %y = arith.divf %x, %c : tensor<4xf32>
  %s = nn.reduce sum %y axes = [0] : tensor<4xf32> -> tensor<f32>
  %i = arith.fptosi %s : tensor<f32> to tensor<i32>
  return %i : tensor<i32>
}

// The reciprocal of a denormal number is infinite, that of a huge one denormal; nothing is known about an argument.
// CHECK-LABEL: @kept
func.func @kept(%x: tensor<4xf32>, %d: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %tiny = arith.constant dense<1.000000e-40> : tensor<4xf32>
  %huge = arith.constant dense<3.000000e+38> : tensor<4xf32>
  // CHECK-COUNT-3: arith.divf
  %a = arith.divf %x, %tiny : tensor<4xf32>
  %b = arith.divf %x, %huge : tensor<4xf32>
  %c = arith.divf %x, %d : tensor<4xf32>
  return %a, %b, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
