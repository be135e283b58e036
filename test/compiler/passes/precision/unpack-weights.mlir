// RUN: ortc-opt %s --ortc-unpack-weights | FileCheck %s
// Breaks when all numbers of a packed weight are in memory at once, or when a part is not the one that its product needs.

// Rows in four equal panels: slices of the integers, no copies of them.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: (%[[X:.*]]: tensor<8x64xf32>, %[[Q:.*]]: tensor<128x2x32xi8>, %[[S:.*]]: tensor<128x1xf32>)
// CHECK-NOT: tensor<128x64xf32>
// CHECK: %[[QS:.*]] = nn.reshape %[[Q]] : tensor<128x2x32xi8> -> tensor<4x32x2x32xi8>
// CHECK: %[[SS:.*]] = nn.reshape %[[S]] : tensor<128x1xf32> -> tensor<4x32x1xf32>
// CHECK: %[[ALL:.*]] = nn.scan 4 carry() over(%[[QS]], %[[SS]]) with(%[[X]])
// CHECK: %[[WIDE:.*]] = arith.sitofp {{.*}} : tensor<32x1x2x32xi8> to tensor<32x1x2x32xf32>
// CHECK: %[[BY:.*]] = nn.broadcast {{.*}} dims = [0, 1] : tensor<32x1xf32> -> tensor<32x1x2x32xf32>
// CHECK: arith.mulf %[[WIDE]], %[[BY]]
// CHECK: nn.dot {{.*}} contract = [1] x [1] : tensor<8x64xf32>, tensor<32x64xf32> -> tensor<8x32xf32>
// CHECK: nn.transpose %[[ALL]] perm = [1, 0, 2]
// CHECK: nn.reshape {{.*}} -> tensor<8x128xf32>
func.func @rows(%x: tensor<8x64xf32>, %q: tensor<128x2x32xi8>, %s: tensor<128x1xf32>) -> tensor<8x128xf32> {
  %w = nn.unpack %q, %s : tensor<128x2x32xi8>, tensor<128x1xf32> -> tensor<128x64xf32>
  %y = nn.dot %x, %w batch = [] x [] contract = [1] x [1] : tensor<8x64xf32>, tensor<128x64xf32> -> tensor<8x128xf32>
  return %y : tensor<8x128xf32>
}

// 70 rows are five panels of 16; the last one has its last row again and again.
// CHECK-LABEL: func.func @rows_left_over
// CHECK: arith.constant dense<{{.*}}[64, 65, 66, 67, 68, 69, 69, 69, 69, 69, 69, 69, 69, 69, 69, 69]]> : tensor<5x16xi64>
// CHECK: nn.scan 5
// CHECK: nn.gather {{.*}} axis = 0 : tensor<70x2x32xi8>, tensor<16xi64> -> tensor<16x2x32xi8>
// CHECK: nn.gather {{.*}} axis = 0 : tensor<70x1xf32>, tensor<16xi64> -> tensor<16x1xf32>
// CHECK: nn.slice {{.*}} : tensor<8x80xf32> -> tensor<8x70xf32>
func.func @rows_left_over(%x: tensor<8x64xf32>, %q: tensor<70x2x32xi8>, %s: tensor<70x1xf32>) -> tensor<8x70xf32> {
  %w = nn.unpack %q, %s : tensor<70x2x32xi8>, tensor<70x1xf32> -> tensor<70x64xf32>
  %y = nn.dot %x, %w batch = [] x [] contract = [1] x [1] : tensor<8x64xf32>, tensor<70x64xf32> -> tensor<8x70xf32>
  return %y : tensor<8x70xf32>
}

// The other direction, a group of columns at a time, of rows that were filled up; two groups share a scale.
// CHECK-LABEL: func.func @columns
// CHECK-NOT: tensor<70x128xf32>
// CHECK-DAG: %[[GROUPS:.*]] = arith.constant dense<{{\[}}[0], [1], [2], [3]]> : tensor<4x1xi64>
// CHECK-DAG: %[[BLOCKS:.*]] = arith.constant dense<{{\[}}[0], [0], [1], [1]]> : tensor<4x1xi64>
// CHECK: nn.scan 4 carry() over(%[[GROUPS]], %[[BLOCKS]])
// CHECK: nn.gather {{.*}} axis = 1 : tensor<70x4x16xi8>, tensor<1xi64> -> tensor<70x1x16xi8>
// CHECK: arith.shli
// CHECK: arith.shrsi
// CHECK: nn.dot {{.*}} contract = [1] x [0] : tensor<8x70xf32>, tensor<70x32xf32> -> tensor<8x32xf32>
// CHECK: nn.slice {{.*}} : tensor<8x128xf32> -> tensor<8x96xf32>
func.func @columns(%x: tensor<8x70xf32>, %q: tensor<70x4x16xi8>, %s: tensor<70x2xf32>) -> tensor<8x96xf32> {
  %w = nn.unpack %q, %s : tensor<70x4x16xi8>, tensor<70x2xf32> -> tensor<70x128xf32>
  %v = nn.slice %w starts = [0, 0] strides = [1, 1] : tensor<70x128xf32> -> tensor<70x96xf32>
  %y = nn.dot %x, %v batch = [] x [] contract = [1] x [0] : tensor<8x70xf32>, tensor<70x96xf32> -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}

// On the left, moved and rounded: the same is done to parts, and the product's rounding to panels.
// CHECK-LABEL: func.func @left
// CHECK: nn.scan 4
// CHECK: nn.transpose {{.*}} : tensor<32x64xf32> -> tensor<64x32xf32>
// CHECK: arith.truncf {{.*}} : tensor<64x32xf32> to tensor<64x32xbf16>
// CHECK: arith.extf
// CHECK: nn.dot {{.*}} contract = [0] x [0] : tensor<64x32xf32>, tensor<64x8xf32> -> tensor<32x8xf32>
// CHECK: arith.truncf {{.*}} : tensor<32x8xf32> to tensor<32x8xbf16>
// CHECK: nn.yield {{.*}} : tensor<32x8xbf16>
// CHECK: -> tensor<128x8xbf16>
func.func @left(%x: tensor<64x8xf32>, %q: tensor<128x2x32xi8>, %s: tensor<128x1xf32>) -> tensor<128x8xbf16> {
  %w = nn.unpack %q, %s : tensor<128x2x32xi8>, tensor<128x1xf32> -> tensor<128x64xf32>
  %t = nn.transpose %w perm = [1, 0] : tensor<128x64xf32> -> tensor<64x128xf32>
  %n = arith.truncf %t : tensor<64x128xf32> to tensor<64x128xbf16>
  %e = arith.extf %n : tensor<64x128xbf16> to tensor<64x128xf32>
  %y = nn.dot %e, %x batch = [] x [] contract = [0] x [0] : tensor<64x128xf32>, tensor<64x8xf32> -> tensor<128x8xf32>
  %z = arith.truncf %y : tensor<128x8xf32> to tensor<128x8xbf16>
  return %z : tensor<128x8xbf16>
}

// CHECK-LABEL: func.func @rows_of_a_table
// CHECK: nn.gather %{{.*}}, %[[I:.*]] axis = 0 : tensor<40x3x16xi8>, tensor<5xi64> -> tensor<5x3x16xi8>
// CHECK: nn.gather %{{.*}}, %[[I]] axis = 0 : tensor<40x3xf32>, tensor<5xi64> -> tensor<5x3xf32>
// CHECK-NOT: tensor<40x96xf32>
// CHECK: return {{.*}} : tensor<5x70xf32>
func.func @rows_of_a_table(%i: tensor<5xi64>, %q: tensor<40x3x16xi8>, %s: tensor<40x3xf32>) -> tensor<5x70xf32> {
  %w = nn.unpack %q, %s : tensor<40x3x16xi8>, tensor<40x3xf32> -> tensor<40x96xf32>
  %v = nn.slice %w starts = [0, 0] strides = [1, 1] : tensor<40x96xf32> -> tensor<40x70xf32>
  %y = nn.gather %v, %i axis = 0 : tensor<40x70xf32>, tensor<5xi64> -> tensor<5x70xf32>
  return %y : tensor<5x70xf32>
}

// A loop takes the integers, and has a loop over panels in it.
// CHECK-LABEL: func.func @in_a_loop
// CHECK-NOT: tensor<128x64xf32>,
// CHECK: nn.scan 3
// CHECK: nn.scan 4
// CHECK: nn.dot {{.*}} tensor<32x64xf32> -> tensor<8x32xf32>
func.func @in_a_loop(%x: tensor<3x8x64xf32>, %q: tensor<128x2x32xi8>, %s: tensor<128x1xf32>) -> tensor<3x8x128xf32> {
  %w = nn.unpack %q, %s : tensor<128x2x32xi8>, tensor<128x1xf32> -> tensor<128x64xf32>
  %y = nn.scan 3 carry() over(%x) with(%w) : (tensor<3x8x64xf32>, tensor<128x64xf32>) -> tensor<3x8x128xf32> {
  ^bb0(%a: tensor<8x64xf32>, %b: tensor<128x64xf32>):
    %c = nn.dot %a, %b batch = [] x [] contract = [1] x [1] : tensor<8x64xf32>, tensor<128x64xf32> -> tensor<8x128xf32>
    nn.yield %c : tensor<8x128xf32>
  }
  return %y : tensor<3x8x128xf32>
}

// CHECK-LABEL: func.func @other_readers
// CHECK: arith.sitofp
// CHECK: nn.reshape {{.*}} -> tensor<128x64xf32>
// CHECK: arith.negf
func.func @other_readers(%q: tensor<128x2x32xi8>, %s: tensor<128x1xf32>) -> tensor<128x64xf32> {
  %w = nn.unpack %q, %s : tensor<128x2x32xi8>, tensor<128x1xf32> -> tensor<128x64xf32>
  %y = arith.negf %w : tensor<128x64xf32>
  return %y : tensor<128x64xf32>
}
