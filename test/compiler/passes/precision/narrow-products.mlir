// RUN: ortc-opt %s -split-input-file --ortc-narrow-products | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: ortc-opt %s -split-input-file --ortc-narrow-products='type=f16 differentiated=true' | FileCheck %s --check-prefixes=CHECK,WHOLE
// Breaks when a product multiplies numbers that the narrow type does not have, when a gradient is lost at a rounding, or when
// anything else is rounded.

// Both operands and the result; a forward function keeps the way of the gradient.
// CHECK-LABEL: func.func @product
// CHECK-SAME: (%[[X:.*]]: tensor<8x4xf32>, %[[W:.*]]: tensor<4x2xf32>)
// FORWARD-DAG: %[[XN:.*]] = arith.truncf %[[X]] : tensor<8x4xf32> to tensor<8x4xbf16>
// FORWARD-DAG: %[[XE:.*]] = arith.extf %[[XN]] : tensor<8x4xbf16> to tensor<8x4xf32>
// FORWARD-DAG: %[[XS:.*]] = nn.straight_through %[[XE]], %[[X]]
// FORWARD-DAG: %[[WN:.*]] = arith.truncf %[[W]]
// FORWARD-DAG: %[[WE:.*]] = arith.extf %[[WN]]
// FORWARD-DAG: %[[WS:.*]] = nn.straight_through %[[WE]], %[[W]]
// FORWARD: %[[Y:.*]] = nn.dot %[[XS]], %[[WS]]
// FORWARD: %[[YN:.*]] = arith.truncf %[[Y]]
// FORWARD: %[[YE:.*]] = arith.extf %[[YN]]
// FORWARD: %[[YS:.*]] = nn.straight_through %[[YE]], %[[Y]]
// FORWARD: math.exp %[[YS]]
// WHOLE-DAG: %[[XN:.*]] = arith.truncf %[[X]] : tensor<8x4xf32> to tensor<8x4xf16>
// WHOLE-DAG: %[[XE:.*]] = arith.extf %[[XN]]
// WHOLE-DAG: %[[WN:.*]] = arith.truncf %[[W]]
// WHOLE-DAG: %[[WE:.*]] = arith.extf %[[WN]]
// WHOLE-NOT: straight_through
// WHOLE: %[[Y:.*]] = nn.dot %[[XE]], %[[WE]]
// WHOLE: %[[YN:.*]] = arith.truncf %[[Y]]
// WHOLE: %[[YE:.*]] = arith.extf %[[YN]]
// WHOLE: math.exp %[[YE]]
func.func @product(%x: tensor<8x4xf32>, %w: tensor<4x2xf32>) -> tensor<8x2xf32> {
  %y = nn.dot %x, %w batch = [] x [] contract = [1] x [0] : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
  %e = math.exp %y : tensor<8x2xf32>
  return %e : tensor<8x2xf32>
}

// -----

// What was rounded is not rounded again, and movement moves what was.
// CHECK-LABEL: func.func @shared
// CHECK-SAME: (%[[X:.*]]: tensor<4x4xf32>)
// CHECK: arith.truncf %[[X]]
// CHECK-NOT: arith.truncf
// CHECK: nn.transpose
// CHECK: nn.dot
// CHECK: arith.truncf
// CHECK-NOT: arith.truncf
// CHECK: nn.dot
// CHECK: arith.truncf
// CHECK-NOT: arith.truncf
// CHECK: return
func.func @shared(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %t = nn.transpose %x perm = [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  %y = nn.dot %x, %t batch = [] x [] contract = [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %z = nn.dot %y, %x batch = [] x [] contract = [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %z : tensor<4x4xf32>
}

// -----

// The gradient of a parameter is a sum of f32, also where it is moved and added up.
// CHECK-LABEL: func.func @gradient
// WHOLE-COUNT-2: arith.truncf %arg{{[01]}}
// WHOLE-NOT: arith.truncf
// WHOLE: return
func.func @gradient(%x: tensor<8x4xf32>, %dy: tensor<8x2xf32>) -> (tensor<2x4xf32> {train.gradient = @w}) {
  %g = nn.dot %x, %dy batch = [] x [] contract = [0] x [0] : tensor<8x4xf32>, tensor<8x2xf32> -> tensor<4x2xf32>
  %s = arith.addf %g, %g : tensor<4x2xf32>
  %t = nn.transpose %s perm = [1, 0] : tensor<4x2xf32> -> tensor<2x4xf32>
  return %t : tensor<2x4xf32>
}

// -----

// float64 is for checking, and stays what it is; so does what is no product, or an exact one.
// CHECK-LABEL: func.func @others
// CHECK-NOT: arith.truncf
// CHECK: return
func.func @others(%x: tensor<4x4xf64>, %y: tensor<4x4xf32>) -> (tensor<4x4xf64>, tensor<4xf32>) {
  %d = nn.dot %x, %x batch = [] x [] contract = [1] x [0] : tensor<4x4xf64>, tensor<4x4xf64> -> tensor<4x4xf64>
  %e = nn.dot %y, %y batch = [] x [] contract = [1] x [0] exact : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %s = nn.softmax %e axis = 1 : tensor<4x4xf32>
  %r = nn.reduce sum %s axes = [0] : tensor<4x4xf32> -> tensor<4xf32>
  return %d, %r : tensor<4x4xf64>, tensor<4xf32>
}

// -----

// A weight that a loop multiplies with is rounded once, outside; behind differentiation the loop takes it narrow, and stacks narrow
// what products read.
// CHECK-LABEL: func.func @loop
// FORWARD: %[[N:.*]] = arith.truncf %arg1
// FORWARD: %[[E:.*]] = arith.extf %[[N]]
// FORWARD: %[[S:.*]] = nn.straight_through %[[E]], %arg1
// FORWARD: nn.scan 5 carry(%arg0) over() with(%arg1, %[[S]])
// FORWARD: nn.dot
// WHOLE: %[[N:.*]] = arith.truncf %arg1 : tensor<8x8xf32> to tensor<8x8xf16>
// WHOLE: %[[R:.*]]:2 = nn.scan 5 carry(%arg0) over() with(%arg1, %[[N]]) {{.*}} -> (tensor<4x8xf32>, tensor<5x4x8xf16>)
// WHOLE: ^bb0(%[[A:.*]]: tensor<4x8xf32>, %{{.*}}: tensor<8x8xf32>, %[[W:.*]]: tensor<8x8xf16>):
// WHOLE: arith.extf %[[W]]
// WHOLE: nn.dot
// WHOLE: nn.yield %{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<4x8xf16>
// WHOLE: arith.extf %[[R]]#1 : tensor<5x4x8xf16> to tensor<5x4x8xf32>
func.func @loop(%h: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<5x4x8xf32>) {
  %last, %all = nn.scan 5 carry(%h) over() with(%w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<5x4x8xf32>) {
  ^bb0(%a: tensor<4x8xf32>, %v: tensor<8x8xf32>):
    %d = nn.dot %a, %v batch = [] x [] contract = [1] x [0] : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    nn.yield %d, %d : tensor<4x8xf32>, tensor<4x8xf32>
  }
  return %last, %all : tensor<4x8xf32>, tensor<5x4x8xf32>
}

// -----

// Integers stay what they are, beside constants that are integers, too; beside fractions they are rounded.
// CHECK-LABEL: func.func @integers
// CHECK-NOT: arith.truncf
// CHECK: nn.dot
// CHECK-NOT: arith.truncf
// CHECK: nn.dot
// CHECK-NOT: arith.truncf
// CHECK: return
func.func @integers(%x: tensor<8x2xi8>) -> (tensor<8x2xf32>, tensor<8x2xf32>) {
  %f = arith.sitofp %x : tensor<8x2xi8> to tensor<8x2xf32>
  %zero = arith.constant dense<3.0> : tensor<8x2xf32>
  %d = arith.subf %f, %zero : tensor<8x2xf32>
  %c = arith.constant dense<[[1.0, -2.0], [0.0, 127.0]]> : tensor<2x2xf32>
  %y = nn.dot %f, %c batch = [] x [] contract = [1] x [0] : tensor<8x2xf32>, tensor<2x2xf32> -> tensor<8x2xf32>
  %z = nn.dot %d, %c batch = [] x [] contract = [1] x [0] : tensor<8x2xf32>, tensor<2x2xf32> -> tensor<8x2xf32>
  return %y, %z : tensor<8x2xf32>, tensor<8x2xf32>
}

// -----

// CHECK-LABEL: func.func @fractions
// CHECK-COUNT-3: arith.truncf
// CHECK: return
func.func @fractions(%x: tensor<8x2xi8>) -> tensor<8x2xf32> {
  %f = arith.sitofp %x : tensor<8x2xi8> to tensor<8x2xf32>
  %c = arith.constant dense<[[1.0, -2.0], [0.5, 127.0]]> : tensor<2x2xf32>
  %y = nn.dot %f, %c batch = [] x [] contract = [1] x [0] : tensor<8x2xf32>, tensor<2x2xf32> -> tensor<8x2xf32>
  return %y : tensor<8x2xf32>
}
