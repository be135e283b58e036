// RUN: ortc-opt %s -split-input-file --ortc-gather-in-loops | FileCheck %s
// Breaks when rows are written in front of a loop only to be read in it, or when others than the loop lose what they read.

// CHECK-LABEL: func.func @rows
// CHECK-SAME: (%[[H:.*]]: tensor<2x4xf32>, %[[TABLE:.*]]: tensor<6x4xf32>, %[[I:.*]]: tensor<5x2xi64>)
// CHECK-NOT: nn.gather
// CHECK: nn.scan 5 carry(%[[H]]) over(%[[I]]) with(%[[TABLE]])
// CHECK: ^bb0(%[[A:.*]]: tensor<2x4xf32>, %[[J:.*]]: tensor<2xi64>, %[[T:.*]]: tensor<6x4xf32>):
// CHECK: %[[X:.*]] = nn.gather %[[T]], %[[J]] axis = 0 : tensor<6x4xf32>, tensor<2xi64> -> tensor<2x4xf32>
// CHECK: arith.addf %[[A]], %[[X]]
func.func @rows(%h: tensor<2x4xf32>, %table: tensor<6x4xf32>, %i: tensor<5x2xi64>) -> tensor<2x4xf32> {
  %x = nn.gather %table, %i axis = 0 : tensor<6x4xf32>, tensor<5x2xi64> -> tensor<5x2x4xf32>
  %last = nn.scan 5 carry(%h) over(%x) with() : (tensor<2x4xf32>, tensor<5x2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<2x4xf32>, %xi: tensor<2x4xf32>):
    %s = arith.addf %a, %xi : tensor<2x4xf32>
    nn.yield %s : tensor<2x4xf32>
  }
  return %last : tensor<2x4xf32>
}

// -----

// Read elsewhere, too.
// CHECK-LABEL: func.func @shared
// CHECK: %[[X:.*]] = nn.gather
// CHECK: nn.scan 5 carry(%{{.*}}) over(%[[X]]) with()
func.func @shared(%h: tensor<2x4xf32>, %table: tensor<6x4xf32>, %i: tensor<5x2xi64>) -> (tensor<2x4xf32>, tensor<5x2x4xf32>) {
  %x = nn.gather %table, %i axis = 0 : tensor<6x4xf32>, tensor<5x2xi64> -> tensor<5x2x4xf32>
  %last = nn.scan 5 carry(%h) over(%x) with() : (tensor<2x4xf32>, tensor<5x2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<2x4xf32>, %xi: tensor<2x4xf32>):
    %s = arith.addf %a, %xi : tensor<2x4xf32>
    nn.yield %s : tensor<2x4xf32>
  }
  return %last, %x : tensor<2x4xf32>, tensor<5x2x4xf32>
}

// -----

// A product wants rows that lie side by side; columns that are gathered are no slices of a sequence.
// CHECK-LABEL: func.func @product
// CHECK: %[[X:.*]] = nn.gather
// CHECK: %[[Y:.*]] = nn.gather
// CHECK: nn.scan 5 carry(%{{.*}}) over(%[[X]], %[[Y]]) with()
func.func @product(%h: tensor<4x4xf32>, %table: tensor<6x4xf32>, %i: tensor<5x4xi64>, %wide: tensor<5x4x6xf32>, %j: tensor<4xi64>) -> tensor<4x4xf32> {
  %x = nn.gather %table, %i axis = 0 : tensor<6x4xf32>, tensor<5x4xi64> -> tensor<5x4x4xf32>
  %y = nn.gather %wide, %j axis = 2 : tensor<5x4x6xf32>, tensor<4xi64> -> tensor<5x4x4xf32>
  %last = nn.scan 5 carry(%h) over(%x, %y) with() : (tensor<4x4xf32>, tensor<5x4x4xf32>, tensor<5x4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>, %xi: tensor<4x4xf32>, %yi: tensor<4x4xf32>):
    %p = nn.dot %a, %xi batch = [] x [] contract = [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %s = arith.addf %p, %yi : tensor<4x4xf32>
    nn.yield %s : tensor<4x4xf32>
  }
  return %last : tensor<4x4xf32>
}
