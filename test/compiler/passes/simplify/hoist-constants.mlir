// RUN: ortc-opt %s --ortc-hoist-constants="limit=8" | FileCheck %s
// RUN: ortc-opt %s --ortc-hoist-constants="limit=64" | FileCheck %s --check-prefix=LITERAL
// Breaks when kernels would have to carry large literals, or when equal ones are stored twice.

// CHECK: train.tensor @constant_0 constant "constant_0" initial = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]>
// CHECK-NOT: train.tensor
// CHECK: func.func @f(%[[X:.*]]: tensor<3xf32>, %[[C:.*]]: tensor<3xf32> {train.tensor = @constant_0})
// CHECK: arith.addf %[[X]], %[[C]]
// LITERAL-NOT: train.tensor
// LITERAL: arith.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]>
func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  %c = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %0 = arith.addf %x, %c : tensor<3xf32>
  // A splat is a literal of any size.
  // CHECK: arith.constant dense<5.000000e-01>
  %s = arith.constant dense<0.5> : tensor<3xf32>
  %1 = arith.mulf %0, %s : tensor<3xf32>
  return %1 : tensor<3xf32>
}
// CHECK: func.func @g(%{{.*}}: tensor<3xf32> {train.tensor = @constant_0})
func.func @g() -> tensor<3xf32> {
  %c = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  return %c : tensor<3xf32>
}
