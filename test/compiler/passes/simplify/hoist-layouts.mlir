// RUN: ortc-opt %s -split-input-file --ortc-hoist-layouts --canonicalize | FileCheck %s
// Breaks when a loop lays out in every iteration what it multiplies with, or when contractions change that have no use for it.

// CHECK-LABEL: func.func @transposed
// CHECK-SAME: (%[[H:.*]]: tensor<32x8xf32>, %[[W:.*]]: tensor<128x8xf32>)
// CHECK: %[[T:.*]] = nn.transpose %[[W]] perm = [1, 0] : tensor<128x8xf32> -> tensor<8x128xf32>
// CHECK: %[[R:.*]] = nn.reshape %[[T]] : tensor<8x128xf32> -> tensor<8x2x64xf32>
// CHECK: %[[P:.*]] = nn.transpose %[[R]] perm = [1, 0, 2] : tensor<8x2x64xf32> -> tensor<2x8x64xf32>
// CHECK: nn.scan 5 carry(%[[H]]) over() with(%[[P]])
// CHECK: ^bb0(%[[A:.*]]: tensor<32x8xf32>, %[[V:.*]]: tensor<2x8x64xf32>):
// CHECK: %[[DOT:.*]] = nn.dot %[[A]], %[[V]] batch = [] x [] contract = [1] x [1] {{.*}} -> tensor<32x2x64xf32>
// CHECK: nn.reshape %[[DOT]] : tensor<32x2x64xf32> -> tensor<32x128xf32>
func.func @transposed(%h: tensor<32x8xf32>, %w: tensor<128x8xf32>) -> tensor<32x8xf32> {
  %last = nn.scan 5 carry(%h) over() with(%w) : (tensor<32x8xf32>, tensor<128x8xf32>) -> tensor<32x8xf32> {
  ^bb0(%a: tensor<32x8xf32>, %v: tensor<128x8xf32>):
    %d = nn.dot %a, %v batch = [] x [] contract = [1] x [1] : tensor<32x8xf32>, tensor<128x8xf32> -> tensor<32x128xf32>
    %s = nn.slice %d starts = [0, 16] strides = [1, 1] : tensor<32x128xf32> -> tensor<32x8xf32>
    nn.yield %s : tensor<32x8xf32>
  }
  return %last : tensor<32x8xf32>
}

// -----

// A part of an invariant, and columns that are no whole panel: moved as they are.
// CHECK-LABEL: func.func @part
// CHECK-SAME: (%[[H:.*]]: tensor<32x20xf32>, %[[W:.*]]: tensor<60x20xf32>)
// CHECK: %[[S:.*]] = nn.slice %[[W]] starts = [40, 0]
// CHECK: %[[T:.*]] = nn.transpose %[[S]] perm = [1, 0]
// CHECK: nn.scan 5 carry(%[[H]]) over() with(%{{.*}})
// CHECK-NOT: nn.slice
// CHECK: return
func.func @part(%h: tensor<32x20xf32>, %w: tensor<60x20xf32>) -> tensor<32x20xf32> {
  %last = nn.scan 5 carry(%h) over() with(%w) : (tensor<32x20xf32>, tensor<60x20xf32>) -> tensor<32x20xf32> {
  ^bb0(%a: tensor<32x20xf32>, %v: tensor<60x20xf32>):
    %part = nn.slice %v starts = [40, 0] strides = [1, 1] : tensor<60x20xf32> -> tensor<20x20xf32>
    %d = nn.dot %a, %part batch = [] x [] contract = [1] x [1] : tensor<32x20xf32>, tensor<20x20xf32> -> tensor<32x20xf32>
    nn.yield %d : tensor<32x20xf32>
  }
  return %last : tensor<32x20xf32>
}

// -----

// Few rows; an operand that changes; one whose vectors lie side by side as they are.
// CHECK-LABEL: func.func @stay
// CHECK-NOT: nn.transpose
// CHECK: return
func.func @stay(%h: tensor<8x64xf32>, %g: tensor<32x64xf32>, %w: tensor<64x64xf32>) -> (tensor<8x64xf32>, tensor<64x64xf32>, tensor<32x64xf32>) {
  %r:3 = nn.scan 5 carry(%h, %w, %g) over() with(%w) : (tensor<8x64xf32>, tensor<64x64xf32>, tensor<32x64xf32>, tensor<64x64xf32>) -> (tensor<8x64xf32>, tensor<64x64xf32>, tensor<32x64xf32>) {
  ^bb0(%a: tensor<8x64xf32>, %b: tensor<64x64xf32>, %c: tensor<32x64xf32>, %v: tensor<64x64xf32>):
    %few = nn.dot %a, %v batch = [] x [] contract = [1] x [1] : tensor<8x64xf32>, tensor<64x64xf32> -> tensor<8x64xf32>
    %changes = nn.dot %v, %b batch = [] x [] contract = [1] x [1] : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %there = nn.dot %c, %v batch = [] x [] contract = [1] x [0] : tensor<32x64xf32>, tensor<64x64xf32> -> tensor<32x64xf32>
    nn.yield %few, %changes, %there : tensor<8x64xf32>, tensor<64x64xf32>, tensor<32x64xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<8x64xf32>, tensor<64x64xf32>, tensor<32x64xf32>
}
