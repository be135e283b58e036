// RUN: ortc-opt %s -split-input-file --ortc-sink-gathers --canonicalize | FileCheck %s
// Breaks when rows of a small table are multiplied once for every time they are gathered, or others are not left alone.

// The bias goes along; the rows change places by their indices.
// CHECK-LABEL: func.func @projection
// CHECK-SAME: (%[[TABLE:.*]]: tensor<6x8xf32>, %[[I:.*]]: tensor<4x3xi64>, %[[W:.*]]: tensor<5x8xf32>, %[[B:.*]]: tensor<5xf32>)
// CHECK-DAG: %[[P:.*]] = nn.dot %[[TABLE]], %[[W]] batch = [] x [] contract = [1] x [1] {{.*}} -> tensor<6x5xf32>
// CHECK-DAG: %[[ROW:.*]] = nn.broadcast %[[B]] dims = [1] : tensor<5xf32> -> tensor<6x5xf32>
// CHECK-DAG: %[[S:.*]] = arith.addf %[[P]], %[[ROW]] : tensor<6x5xf32>
// CHECK-DAG: %[[J:.*]] = nn.transpose %[[I]] perm = [1, 0] : tensor<4x3xi64> -> tensor<3x4xi64>
// CHECK: %[[Y:.*]] = nn.gather %[[S]], %[[J]] axis = 0 : tensor<6x5xf32>, tensor<3x4xi64> -> tensor<3x4x5xf32>
// CHECK: return %[[Y]]
func.func @projection(%table: tensor<6x8xf32>, %i: tensor<4x3xi64>, %w: tensor<5x8xf32>, %b: tensor<5xf32>) -> tensor<3x4x5xf32> {
  %x = nn.gather %table, %i axis = 0 : tensor<6x8xf32>, tensor<4x3xi64> -> tensor<4x3x8xf32>
  %t = nn.transpose %x perm = [1, 0, 2] : tensor<4x3x8xf32> -> tensor<3x4x8xf32>
  %p = nn.dot %t, %w batch = [] x [] contract = [2] x [1] : tensor<3x4x8xf32>, tensor<5x8xf32> -> tensor<3x4x5xf32>
  %row = nn.broadcast %b dims = [2] : tensor<5xf32> -> tensor<3x4x5xf32>
  %y = arith.addf %p, %row : tensor<3x4x5xf32>
  return %y : tensor<3x4x5xf32>
}

// -----

// As the right operand, through a reshape; constants are the same for all rows.
// CHECK-LABEL: func.func @right
// CHECK-SAME: (%[[TABLE:.*]]: tensor<6x8xf32>, %[[I:.*]]: tensor<4x3xi64>, %[[W:.*]]: tensor<8x5xf32>)
// CHECK-DAG: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : tensor<6x8xf32>
// CHECK-DAG: %[[S:.*]] = arith.mulf %[[TABLE]], %[[TWO]] : tensor<6x8xf32>
// CHECK-DAG: %[[J:.*]] = nn.reshape %[[I]] : tensor<4x3xi64> -> tensor<12xi64>
// CHECK-DAG: %[[P:.*]] = nn.dot %[[W]], %[[S]] batch = [] x [] contract = [0] x [1] {{.*}} -> tensor<5x6xf32>
// CHECK: nn.gather %[[P]], %[[J]] axis = 1 : tensor<5x6xf32>, tensor<12xi64> -> tensor<5x12xf32>
func.func @right(%table: tensor<6x8xf32>, %i: tensor<4x3xi64>, %w: tensor<8x5xf32>) -> tensor<5x12xf32> {
  %two = arith.constant dense<2.0> : tensor<4x3x8xf32>
  %x = nn.gather %table, %i axis = 0 : tensor<6x8xf32>, tensor<4x3xi64> -> tensor<4x3x8xf32>
  %s = arith.mulf %x, %two : tensor<4x3x8xf32>
  %r = nn.reshape %s : tensor<4x3x8xf32> -> tensor<12x8xf32>
  %p = nn.dot %w, %r batch = [] x [] contract = [0] x [1] : tensor<8x5xf32>, tensor<12x8xf32> -> tensor<5x12xf32>
  return %p : tensor<5x12xf32>
}

// -----

// Fewer than two rows are gathered for each of the table.
// CHECK-LABEL: func.func @large_table
// CHECK: %[[X:.*]] = nn.gather
// CHECK: nn.dot %[[X]]
func.func @large_table(%table: tensor<7x8xf32>, %i: tensor<12xi64>, %w: tensor<8x5xf32>) -> tensor<12x5xf32> {
  %x = nn.gather %table, %i axis = 0 : tensor<7x8xf32>, tensor<12xi64> -> tensor<12x8xf32>
  %p = nn.dot %x, %w batch = [] x [] contract = [1] x [0] : tensor<12x8xf32>, tensor<8x5xf32> -> tensor<12x5xf32>
  return %p : tensor<12x5xf32>
}

// -----

// Every position has values of its own, or the product sums over rows.
// CHECK-LABEL: func.func @positions
// CHECK: %[[X:.*]] = nn.gather
// CHECK: %[[S:.*]] = arith.addf %[[X]]
// CHECK: nn.dot %[[X]], %[[S]]
func.func @positions(%table: tensor<6x8xf32>, %i: tensor<12xi64>, %w: tensor<12x8xf32>) -> tensor<8x8xf32> {
  %x = nn.gather %table, %i axis = 0 : tensor<6x8xf32>, tensor<12xi64> -> tensor<12x8xf32>
  %s = arith.addf %x, %w : tensor<12x8xf32>
  %p = nn.dot %x, %s batch = [] x [] contract = [0] x [0] : tensor<12x8xf32>, tensor<12x8xf32> -> tensor<8x8xf32>
  return %p : tensor<8x8xf32>
}

// -----

// A table whose gathered rows alone are updated must not be read by a product.
// CHECK-LABEL: func.func @sparse
// CHECK-SAME: %[[TABLE:[a-z0-9]+]]: tensor<6x8xf32>
// CHECK: %[[X:.*]] = nn.gather %[[TABLE]]
// CHECK: nn.dot %[[X]]
train.tensor @table parameter "table" {train.sparse} : tensor<6x8xf32>
func.func @sparse(%table: tensor<6x8xf32> {train.tensor = @table}, %i: tensor<12xi64>, %w: tensor<5x8xf32>) -> tensor<12x5xf32> {
  %x = nn.gather %table, %i axis = 0 : tensor<6x8xf32>, tensor<12xi64> -> tensor<12x8xf32>
  %p = nn.dot %x, %w batch = [] x [] contract = [1] x [1] : tensor<12x8xf32>, tensor<5x8xf32> -> tensor<12x5xf32>
  return %p : tensor<12x5xf32>
}

// -----

// Rows that nobody gathers get the gradient 0; the derivative of a root or a logarithm may be infinite there.
// CHECK-LABEL: func.func @infinite_derivatives
// CHECK-SAME: (%[[TABLE:.*]]: tensor<6x8xf32>, %[[I:.*]]: tensor<12xi64>)
// CHECK: %[[T:.*]] = math.tanh %[[TABLE]] : tensor<6x8xf32>
// CHECK: %[[X:.*]] = nn.gather %[[T]], %[[I]]
// CHECK: %[[R:.*]] = math.sqrt %[[X]] : tensor<12x8xf32>
// CHECK: math.log %[[R]] : tensor<12x8xf32>
func.func @infinite_derivatives(%table: tensor<6x8xf32>, %i: tensor<12xi64>) -> tensor<12x8xf32> {
  %x = nn.gather %table, %i axis = 0 : tensor<6x8xf32>, tensor<12xi64> -> tensor<12x8xf32>
  %t = math.tanh %x : tensor<12x8xf32>
  %r = math.sqrt %t : tensor<12x8xf32>
  %y = math.log %r : tensor<12x8xf32>
  return %y : tensor<12x8xf32>
}
