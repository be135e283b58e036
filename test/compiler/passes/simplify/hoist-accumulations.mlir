// RUN: ortc-opt %s -split-input-file --ortc-hoist-accumulations --canonicalize | FileCheck %s
// Breaks when a loop writes a weight's gradient in every iteration, or a sum that something else reads leaves it.

// The operands are sequences already: the loop has nothing left to do.
// CHECK-LABEL: func.func @sequences
// CHECK-SAME: (%[[X:.*]]: tensor<5x2x3xf32>, %[[DY:.*]]: tensor<5x2x4xf32>)
// CHECK-NOT: nn.scan
// CHECK: nn.dot %[[X]], %[[DY]] batch = [] x [] contract = [0, 1] x [0, 1] {{.*}} -> tensor<3x4xf32>
// CHECK-NOT: nn.scan
func.func @sequences(%x: tensor<5x2x3xf32>, %dy: tensor<5x2x4xf32>) -> tensor<3x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<3x4xf32>
  %sum = nn.scan 5 carry(%zero) over(%x, %dy) with() : (tensor<3x4xf32>, tensor<5x2x3xf32>, tensor<5x2x4xf32>) -> (tensor<3x4xf32>) {
  ^bb0(%s: tensor<3x4xf32>, %xi: tensor<2x3xf32>, %dyi: tensor<2x4xf32>):
    %p = nn.dot %xi, %dyi batch = [] x [] contract = [0] x [0] : tensor<2x3xf32>, tensor<2x4xf32> -> tensor<3x4xf32>
    %t = arith.addf %s, %p : tensor<3x4xf32>
    nn.yield %t : tensor<3x4xf32>
  }
  return %sum : tensor<3x4xf32>
}

// -----

// What is computed inside is stacked, and a bias's gradient follows from the same stack.
// CHECK-LABEL: func.func @computed
// CHECK: %[[R:.*]]:2 = nn.scan 5 reverse
// CHECK-NOT: nn.dot
// CHECK-NOT: nn.reduce
// CHECK: nn.yield
// CHECK-DAG: nn.dot %{{.*}}, %[[R]]#1 batch = [] x [] contract = [0, 1] x [0, 1]
// CHECK-DAG: nn.reduce sum %[[R]]#1 axes = [0, 1]
func.func @computed(%d: tensor<2x4xf32>, %x: tensor<5x2x3xf32>) -> (tensor<2x4xf32>, tensor<3x4xf32>, tensor<4xf32>) {
  %w = arith.constant dense<0.0> : tensor<3x4xf32>
  %b = arith.constant dense<0.0> : tensor<4xf32>
  %r:3 = nn.scan 5 reverse carry(%d, %b, %w) over(%x) with()
      : (tensor<2x4xf32>, tensor<4xf32>, tensor<3x4xf32>, tensor<5x2x3xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<3x4xf32>) {
  ^bb0(%dy: tensor<2x4xf32>, %c: tensor<4xf32>, %s: tensor<3x4xf32>, %xi: tensor<2x3xf32>):
    %g = math.tanh %dy : tensor<2x4xf32>
    %p = nn.dot %xi, %g batch = [] x [] contract = [0] x [0] : tensor<2x3xf32>, tensor<2x4xf32> -> tensor<3x4xf32>
    %q = nn.reduce sum %g axes = [0] : tensor<2x4xf32> -> tensor<4xf32>
    %t = arith.addf %p, %s : tensor<3x4xf32>
    %u = arith.addf %c, %q : tensor<4xf32>
    nn.yield %g, %u, %t : tensor<2x4xf32>, tensor<4xf32>, tensor<3x4xf32>
  }
  return %r#0, %r#2, %r#1 : tensor<2x4xf32>, tensor<3x4xf32>, tensor<4xf32>
}

// -----

// The running sum itself is read: it stays.
// CHECK-LABEL: func.func @read
// CHECK: nn.scan
// CHECK: nn.dot
// CHECK: nn.yield
func.func @read(%x: tensor<5x2x3xf32>, %dy: tensor<5x2x3xf32>) -> tensor<5x3x3xf32> {
  %zero = arith.constant dense<0.0> : tensor<3x3xf32>
  %r:2 = nn.scan 5 carry(%zero) over(%x, %dy) with() : (tensor<3x3xf32>, tensor<5x2x3xf32>, tensor<5x2x3xf32>) -> (tensor<3x3xf32>, tensor<5x3x3xf32>) {
  ^bb0(%s: tensor<3x3xf32>, %xi: tensor<2x3xf32>, %dyi: tensor<2x3xf32>):
    %p = nn.dot %xi, %dyi batch = [] x [] contract = [0] x [0] : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<3x3xf32>
    %t = arith.addf %s, %p : tensor<3x3xf32>
    nn.yield %t, %t : tensor<3x3xf32>, tensor<3x3xf32>
  }
  return %r#1 : tensor<5x3x3xf32>
}

// -----

// Iterations that may be left out add nothing: a sum outside would add them. What the body does not use is dropped, the
// limit stays.
// CHECK-LABEL: func.func @limited
// CHECK-SAME: %[[N:[a-z0-9]+]]: tensor<i32>
// CHECK: nn.scan 5 carry({{.*}}) over({{.*}}) with() limit(%[[N]]) : (tensor<3x4xf32>, tensor<5x2x3xf32>, tensor<5x2x4xf32>, tensor<i32>)
// CHECK: nn.dot
func.func @limited(%x: tensor<5x2x3xf32>, %dy: tensor<5x2x4xf32>, %n: tensor<i32>) -> tensor<3x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<3x4xf32>
  %sum = nn.scan 5 carry(%zero) over(%x, %dy) with(%x) limit(%n) : (tensor<3x4xf32>, tensor<5x2x3xf32>, tensor<5x2x4xf32>, tensor<5x2x3xf32>, tensor<i32>) -> (tensor<3x4xf32>) {
  ^bb0(%s: tensor<3x4xf32>, %xi: tensor<2x3xf32>, %dyi: tensor<2x4xf32>, %unused: tensor<5x2x3xf32>):
    %p = nn.dot %xi, %dyi batch = [] x [] contract = [0] x [0] : tensor<2x3xf32>, tensor<2x4xf32> -> tensor<3x4xf32>
    %t = arith.addf %s, %p : tensor<3x4xf32>
    nn.yield %t : tensor<3x4xf32>
  }
  return %sum : tensor<3x4xf32>
}
