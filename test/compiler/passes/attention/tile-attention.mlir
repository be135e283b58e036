// RUN: ortc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(ortc-tile-attention{least=1 rows=4}))' | FileCheck %s
// Breaks when attention is not tiled, or with other numbers, or when what should stay is taken.

// A scale and a mask that differs by sentence: a loop over all heads.
// CHECK-LABEL: func.func @plain
// CHECK: nn.scan 6 recompute carry() over(
// CHECK: nn.slice {{.*}} starts = [0, 0, 0, 0]
// CHECK: nn.dot {{.*}} batch = [0] x [0] contract = [3] x [2] : tensor<1x1x4x5xf32>, tensor<1x8x5xf32> -> tensor<1x1x4x8xf32>
// CHECK: nn.softmax {{.*}} axis = 3 : tensor<1x1x4x8xf32>
// CHECK: nn.dot {{.*}} batch = [0] x [0] contract = [3] x [1] : tensor<1x1x4x8xf32>, tensor<1x8x5xf32> -> tensor<1x1x4x5xf32>
// CHECK: nn.slice {{.*}} starts = [0, 0, 4, 0]
// CHECK: nn.dot {{.*}} tensor<1x1x2x5xf32>
// CHECK-NOT: tensor<2x3x6x8xf32>
func.func @plain(%q: tensor<2x3x6x5xf32>, %k: tensor<2x3x8x5xf32>, %v: tensor<2x3x8x5xf32>, %m: tensor<2x8xf32>) -> tensor<2x3x6x5xf32> {
  %c = arith.constant dense<0.5> : tensor<2x3x6x8xf32>
  %s = nn.dot %q, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<2x3x6x5xf32>, tensor<2x3x8x5xf32> -> tensor<2x3x6x8xf32>
  %t = arith.mulf %s, %c : tensor<2x3x6x8xf32>
  %b = nn.broadcast %m dims = [0, 3] : tensor<2x8xf32> -> tensor<2x3x6x8xf32>
  %u = arith.addf %t, %b : tensor<2x3x6x8xf32>
  %w = nn.softmax %u axis = 3 : tensor<2x3x6x8xf32>
  %y = nn.dot %w, %v batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<2x3x6x8xf32>, tensor<2x3x8x5xf32> -> tensor<2x3x6x5xf32>
  return %y : tensor<2x3x6x5xf32>
}

// -----

// Of a causal mask, every tile sees the keys up to its last row.
// CHECK-LABEL: func.func @causal
// CHECK: nn.scan 3 recompute
// CHECK: nn.softmax {{.*}} tensor<1x1x4x4xf32>
// CHECK: nn.softmax {{.*}} tensor<1x1x4x8xf32>
func.func @causal(%q: tensor<3x8x5xf32>, %k: tensor<3x8x5xf32>, %v: tensor<3x8x5xf32>) -> tensor<3x8x5xf32> {
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %low = arith.constant dense<0xFF800000> : tensor<8x8xf32>
  %i = nn.iota axis = 0 : tensor<8x8xi64>
  %j = nn.iota axis = 1 : tensor<8x8xi64>
  %is = arith.cmpi sle, %j, %i : tensor<8x8xi64>
  %m = arith.select %is, %zero, %low : tensor<8x8xi1>, tensor<8x8xf32>
  %s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : tensor<3x8x5xf32>, tensor<3x8x5xf32> -> tensor<3x8x8xf32>
  %b = nn.broadcast %m dims = [1, 2] : tensor<8x8xf32> -> tensor<3x8x8xf32>
  %t = arith.addf %s, %b : tensor<3x8x8xf32>
  %w = nn.softmax %t axis = 2 : tensor<3x8x8xf32>
  %y = nn.dot %w, %v batch = [0] x [0] contract = [2] x [1] : tensor<3x8x8xf32>, tensor<3x8x5xf32> -> tensor<3x8x5xf32>
  return %y : tensor<3x8x5xf32>
}

// -----

// A mask of whole tiles that differs by sentence, not by head: a loop over sentences, so that it is not repeated.
// CHECK-LABEL: func.func @by_sentence
// CHECK: nn.scan 2 recompute carry() over({{.*}}tensor<2x1x1x8x8xf32>
// CHECK: nn.softmax {{.*}} tensor<3x1x4x8xf32>
func.func @by_sentence(%q: tensor<2x3x8x5xf32>, %k: tensor<2x3x8x5xf32>, %v: tensor<2x3x8x5xf32>, %m: tensor<2x1x8x8xf32>) -> tensor<2x3x8x5xf32> {
  %s = nn.dot %q, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<2x3x8x5xf32>, tensor<2x3x8x5xf32> -> tensor<2x3x8x8xf32>
  %b = nn.broadcast %m dims = [0, 1, 2, 3] : tensor<2x1x8x8xf32> -> tensor<2x3x8x8xf32>
  %u = arith.addf %s, %b : tensor<2x3x8x8xf32>
  %w = nn.softmax %u axis = 3 : tensor<2x3x8x8xf32>
  %y = nn.dot %w, %v batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<2x3x8x8xf32>, tensor<2x3x8x5xf32> -> tensor<2x3x8x5xf32>
  return %y : tensor<2x3x8x5xf32>
}

// -----

// Two query heads for each key head, and the weights on the right.
// CHECK-LABEL: func.func @grouped
// CHECK: nn.scan 3 recompute
// CHECK: nn.dot {{.*}} tensor<1x2x4x5xf32>, tensor<1x8x5xf32> -> tensor<1x2x4x8xf32>
// CHECK: nn.transpose {{.*}} perm = [0, 1, 4, 2, 3]
func.func @grouped(%q: tensor<3x2x8x5xf32>, %k: tensor<3x8x5xf32>, %v: tensor<3x8x7xf32>) -> tensor<3x7x2x8xf32> {
  %s = nn.dot %q, %k batch = [0] x [0] contract = [3] x [2] : tensor<3x2x8x5xf32>, tensor<3x8x5xf32> -> tensor<3x2x8x8xf32>
  %w = nn.softmax %s axis = 3 : tensor<3x2x8x8xf32>
  %y = nn.dot %v, %w batch = [0] x [0] contract = [1] x [3] : tensor<3x8x7xf32>, tensor<3x2x8x8xf32> -> tensor<3x7x2x8xf32>
  return %y : tensor<3x7x2x8xf32>
}

// -----

// Dropout draws in the tile, from the index of the iteration.
// CHECK-LABEL: func.func @dropout
// CHECK: nn.scan 3 recompute
// CHECK: nn.random {{.*}} -> tensor<1x1x4x8xi32>
// CHECK: nn.random {{.*}} -> tensor<1x1x4x8xi32>
// CHECK-NOT: nn.random
func.func @dropout(%q: tensor<3x8x5xf32>, %k: tensor<3x8x5xf32>, %v: tensor<3x8x5xf32>, %step: tensor<i64>) -> tensor<3x8x5xf32> {
  %c = arith.constant dense<1000> : tensor<3x8x8xi32>
  %zero = arith.constant dense<0.0> : tensor<3x8x8xf32>
  %s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : tensor<3x8x5xf32>, tensor<3x8x5xf32> -> tensor<3x8x8xf32>
  %w = nn.softmax %s axis = 2 : tensor<3x8x8xf32>
  %r, %r2 = nn.random %step key = 7 : tensor<i64> -> tensor<3x8x8xi32>
  %keep = arith.cmpi ult, %r, %c : tensor<3x8x8xi32>
  %d = arith.select %keep, %w, %zero : tensor<3x8x8xi1>, tensor<3x8x8xf32>
  %y = nn.dot %d, %v batch = [0] x [0] contract = [2] x [1] : tensor<3x8x8xf32>, tensor<3x8x5xf32> -> tensor<3x8x5xf32>
  return %y : tensor<3x8x5xf32>
}

// -----

// Weights that something else reads stay, and so do scores that are added to others.
// CHECK-LABEL: func.func @read_elsewhere
// CHECK-NOT: nn.scan
func.func @read_elsewhere(%q: tensor<3x8x5xf32>, %k: tensor<3x8x5xf32>, %v: tensor<3x8x5xf32>) -> (tensor<3x8x5xf32>, tensor<3x8x8xf32>) {
  %s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : tensor<3x8x5xf32>, tensor<3x8x5xf32> -> tensor<3x8x8xf32>
  %w = nn.softmax %s axis = 2 : tensor<3x8x8xf32>
  %y = nn.dot %w, %v batch = [0] x [0] contract = [2] x [1] : tensor<3x8x8xf32>, tensor<3x8x5xf32> -> tensor<3x8x5xf32>
  return %y, %w : tensor<3x8x5xf32>, tensor<3x8x8xf32>
}

// -----

// CHECK-LABEL: func.func @two_scores
// CHECK-NOT: nn.scan
func.func @two_scores(%q: tensor<3x8x5xf32>, %k: tensor<3x8x5xf32>, %p: tensor<3x8x5xf32>, %v: tensor<3x8x5xf32>) -> tensor<3x8x5xf32> {
  %s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : tensor<3x8x5xf32>, tensor<3x8x5xf32> -> tensor<3x8x8xf32>
  %r = nn.dot %q, %p batch = [0] x [0] contract = [2] x [2] : tensor<3x8x5xf32>, tensor<3x8x5xf32> -> tensor<3x8x8xf32>
  %t = arith.addf %s, %r : tensor<3x8x8xf32>
  %w = nn.softmax %t axis = 2 : tensor<3x8x8xf32>
  %y = nn.dot %w, %v batch = [0] x [0] contract = [2] x [1] : tensor<3x8x8xf32>, tensor<3x8x5xf32> -> tensor<3x8x5xf32>
  return %y : tensor<3x8x5xf32>
}

// -----

// What is not zero behind the softmax is mixed for hidden keys, too.
// CHECK-LABEL: func.func @added_behind
// CHECK: nn.softmax {{.*}} tensor<1x1x4x8xf32>
// CHECK: nn.softmax {{.*}} tensor<1x1x4x8xf32>
func.func @added_behind(%q: tensor<3x8x5xf32>, %k: tensor<3x8x5xf32>, %v: tensor<3x8x5xf32>) -> tensor<3x8x5xf32> {
  %low = arith.constant dense<0xFF800000> : tensor<3x8x8xf32>
  %c = arith.constant dense<0.1> : tensor<3x8x8xf32>
  %i = nn.iota axis = 1 : tensor<3x8x8xi64>
  %j = nn.iota axis = 2 : tensor<3x8x8xi64>
  %is = arith.cmpi sle, %j, %i : tensor<3x8x8xi64>
  %s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : tensor<3x8x5xf32>, tensor<3x8x5xf32> -> tensor<3x8x8xf32>
  %t = arith.select %is, %s, %low : tensor<3x8x8xi1>, tensor<3x8x8xf32>
  %w = nn.softmax %t axis = 2 : tensor<3x8x8xf32>
  %a = arith.addf %w, %c : tensor<3x8x8xf32>
  %y = nn.dot %a, %v batch = [0] x [0] contract = [2] x [1] : tensor<3x8x8xf32>, tensor<3x8x5xf32> -> tensor<3x8x5xf32>
  return %y : tensor<3x8x5xf32>
}

// -----

// One condition, once for the keys before and once for those behind.
// CHECK-LABEL: func.func @both_ways
// CHECK: nn.softmax {{.*}} tensor<1x1x4x4xf32>
// CHECK: nn.softmax {{.*}} tensor<1x1x4x8xf32>
// CHECK: nn.softmax {{.*}} tensor<1x1x4x8xf32>
// CHECK: nn.softmax {{.*}} tensor<1x1x4x4xf32>
func.func @both_ways(%q: tensor<3x8x5xf32>, %k: tensor<3x8x5xf32>, %v: tensor<3x8x5xf32>) -> (tensor<3x8x5xf32>, tensor<3x8x5xf32>) {
  %low = arith.constant dense<0xFF800000> : tensor<3x8x8xf32>
  %i = nn.iota axis = 1 : tensor<3x8x8xi64>
  %j = nn.iota axis = 2 : tensor<3x8x8xi64>
  %is = arith.cmpi sle, %j, %i : tensor<3x8x8xi64>
  %s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : tensor<3x8x5xf32>, tensor<3x8x5xf32> -> tensor<3x8x8xf32>
  %t = arith.select %is, %s, %low : tensor<3x8x8xi1>, tensor<3x8x8xf32>
  %w = nn.softmax %t axis = 2 : tensor<3x8x8xf32>
  %y = nn.dot %w, %v batch = [0] x [0] contract = [2] x [1] : tensor<3x8x8xf32>, tensor<3x8x5xf32> -> tensor<3x8x5xf32>
  %not = arith.cmpi slt, %j, %i : tensor<3x8x8xi64>
  %s2 = nn.dot %k, %q batch = [0] x [0] contract = [2] x [2] : tensor<3x8x5xf32>, tensor<3x8x5xf32> -> tensor<3x8x8xf32>
  %t2 = arith.select %not, %low, %s2 : tensor<3x8x8xi1>, tensor<3x8x8xf32>
  %w2 = nn.softmax %t2 axis = 2 : tensor<3x8x8xf32>
  %y2 = nn.dot %w2, %v batch = [0] x [0] contract = [2] x [1] : tensor<3x8x8xf32>, tensor<3x8x5xf32> -> tensor<3x8x5xf32>
  return %y, %y2 : tensor<3x8x5xf32>, tensor<3x8x5xf32>
}

// -----

// Scores of constants are no mask, and keys that an unknown mask may hide, too, stay.
// CHECK-LABEL: func.func @known_scores
// CHECK: nn.scan 3 recompute
func.func @known_scores(%m: tensor<8x8xf32>, %v: tensor<3x8x5xf32>) -> tensor<3x8x5xf32> {
  %q = arith.constant dense<0.5> : tensor<3x8x5xf32>
  %s = nn.dot %q, %q batch = [0] x [0] contract = [2] x [2] : tensor<3x8x5xf32>, tensor<3x8x5xf32> -> tensor<3x8x8xf32>
  %b = nn.broadcast %m dims = [1, 2] : tensor<8x8xf32> -> tensor<3x8x8xf32>
  %t = arith.addf %s, %b : tensor<3x8x8xf32>
  %w = nn.softmax %t axis = 2 : tensor<3x8x8xf32>
  %y = nn.dot %w, %v batch = [0] x [0] contract = [2] x [1] : tensor<3x8x8xf32>, tensor<3x8x5xf32> -> tensor<3x8x5xf32>
  return %y : tensor<3x8x5xf32>
}

// -----

// Random numbers that heads share stay shared.
// CHECK-LABEL: func.func @shared_noise
// CHECK: nn.random {{.*}} -> tensor<8x8xi32>
// CHECK: nn.scan 3 recompute
// CHECK-NOT: nn.random
func.func @shared_noise(%q: tensor<3x8x5xf32>, %k: tensor<3x8x5xf32>, %v: tensor<3x8x5xf32>, %step: tensor<i64>) -> tensor<3x8x5xf32> {
  %zero = arith.constant dense<0.0> : tensor<3x8x8xf32>
  %c = arith.constant dense<1000> : tensor<3x8x8xi32>
  %s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : tensor<3x8x5xf32>, tensor<3x8x5xf32> -> tensor<3x8x8xf32>
  %w = nn.softmax %s axis = 2 : tensor<3x8x8xf32>
  %r, %r2 = nn.random %step key = 7 : tensor<i64> -> tensor<8x8xi32>
  %b = nn.broadcast %r dims = [1, 2] : tensor<8x8xi32> -> tensor<3x8x8xi32>
  %keep = arith.cmpi ult, %b, %c : tensor<3x8x8xi32>
  %d = arith.select %keep, %w, %zero : tensor<3x8x8xi1>, tensor<3x8x8xf32>
  %y = nn.dot %d, %v batch = [0] x [0] contract = [2] x [1] : tensor<3x8x8xf32>, tensor<3x8x5xf32> -> tensor<3x8x5xf32>
  return %y : tensor<3x8x5xf32>
}

// -----

// A mask that another attention has beside a second one, a window of four keys.
// CHECK-LABEL: func.func @shared_mask
// CHECK: nn.softmax {{.*}} tensor<1x1x4x4xf32>
// CHECK: nn.softmax {{.*}} tensor<1x1x4x7xf32>
// CHECK: nn.softmax {{.*}} tensor<1x1x4x4xf32>
// CHECK: nn.softmax {{.*}} tensor<1x1x4x8xf32>
func.func @shared_mask(%q: tensor<3x8x5xf32>, %k: tensor<3x8x5xf32>, %v: tensor<3x8x5xf32>) -> (tensor<3x8x5xf32>, tensor<3x8x5xf32>) {
  %low = arith.constant dense<0xFF800000> : tensor<3x8x8xf32>
  %three = arith.constant dense<3> : tensor<3x8x8xi64>
  %i = nn.iota axis = 1 : tensor<3x8x8xi64>
  %j = nn.iota axis = 2 : tensor<3x8x8xi64>
  %is = arith.cmpi sle, %j, %i : tensor<3x8x8xi64>
  %end = arith.addi %j, %three : tensor<3x8x8xi64>
  %near = arith.cmpi sge, %end, %i : tensor<3x8x8xi64>
  %s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : tensor<3x8x5xf32>, tensor<3x8x5xf32> -> tensor<3x8x8xf32>
  %n = arith.select %near, %s, %low : tensor<3x8x8xi1>, tensor<3x8x8xf32>
  %t = arith.select %is, %n, %low : tensor<3x8x8xi1>, tensor<3x8x8xf32>
  %w = nn.softmax %t axis = 2 : tensor<3x8x8xf32>
  %y = nn.dot %w, %v batch = [0] x [0] contract = [2] x [1] : tensor<3x8x8xf32>, tensor<3x8x5xf32> -> tensor<3x8x5xf32>
  %s2 = nn.dot %k, %q batch = [0] x [0] contract = [2] x [2] : tensor<3x8x5xf32>, tensor<3x8x5xf32> -> tensor<3x8x8xf32>
  %t2 = arith.select %is, %s2, %low : tensor<3x8x8xi1>, tensor<3x8x8xf32>
  %w2 = nn.softmax %t2 axis = 2 : tensor<3x8x8xf32>
  %y2 = nn.dot %w2, %v batch = [0] x [0] contract = [2] x [1] : tensor<3x8x8xf32>, tensor<3x8x5xf32> -> tensor<3x8x5xf32>
  return %y, %y2 : tensor<3x8x5xf32>, tensor<3x8x5xf32>
}
