// RUN: ortc-opt %s -split-input-file -canonicalize | FileCheck %s
// Breaks when a loop carries, slices or stacks what nobody needs, or keeps a table in its body.

// What does not change is no longer carried; what nobody reads is no longer computed.
// CHECK-LABEL: func.func @unused
// CHECK-SAME: (%[[H:.*]]: tensor<3xf32>, %[[W:.*]]: tensor<3xf32>, %[[X:.*]]: tensor<4x3xf32>)
// CHECK: %[[R:.*]] = nn.scan 4 carry(%[[H]]) over() with(%[[W]])
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<3xf32>, %[[B:.*]]: tensor<3xf32>):
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[A]], %[[B]]
// CHECK-NEXT: nn.yield %[[P]]
// CHECK: return %[[R]], %[[W]]
func.func @unused(%h: tensor<3xf32>, %w: tensor<3xf32>, %x: tensor<4x3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %r:4 = nn.scan 4 carry(%h, %w, %h) over(%x) with()
      : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3xf32>) {
  ^bb0(%a: tensor<3xf32>, %b: tensor<3xf32>, %c: tensor<3xf32>, %xi: tensor<3xf32>):
    %p = arith.mulf %a, %b : tensor<3xf32>
    %q = arith.addf %c, %xi : tensor<3xf32>
    nn.yield %p, %b, %q, %q : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  }
  return %r#0, %r#1 : tensor<3xf32>, tensor<3xf32>
}

// -----

// A table comes from outside, a repeated number moves in, equal operands are one.
// CHECK-LABEL: func.func @constants
// CHECK-DAG: %[[TABLE:.*]] = arith.constant dense<[1.000000e+00, 2.000000e+00]>
// CHECK: nn.scan 3 carry(%{{.*}}) over() with(%[[TABLE]])
// CHECK: ^bb0(%{{.*}}: tensor<2xf32>, %[[T:.*]]: tensor<2xf32>):
// CHECK-DAG: %[[HALF:.*]] = arith.constant dense<5.000000e-01>
// CHECK-DAG: arith.addf %{{.*}}, %[[T]]
// CHECK-DAG: arith.mulf %{{.*}}, %[[HALF]]
func.func @constants(%h: tensor<2xf32>) -> tensor<2xf32> {
  %half = arith.constant dense<0.5> : tensor<2xf32>
  %r = nn.scan 3 carry(%h) over() with(%half, %half) : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>) {
  ^bb0(%a: tensor<2xf32>, %b: tensor<2xf32>, %c: tensor<2xf32>):
    %table = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %0 = arith.addf %a, %table : tensor<2xf32>
    %1 = arith.mulf %0, %b : tensor<2xf32>
    %2 = arith.mulf %1, %c : tensor<2xf32>
    nn.yield %2 : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}

// -----

// A check stays although nobody looks at it.
// CHECK-LABEL: func.func @check
// CHECK: nn.scan 4 carry() over(%{{.*}}) with()
// CHECK: nn.check_index
func.func @check(%i: tensor<4xi64>) {
  %r = nn.scan 4 carry() over(%i) with() : (tensor<4xi64>) -> (tensor<4xi64>) {
  ^bb0(%a: tensor<i64>):
    %0 = nn.check_index %a "i" in [0, 10] : tensor<i64>
    nn.yield %0 : tensor<i64>
  }
  return
}
