// RUN: ortc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(ortc-tile-attention{least=1 rows=4 iteration-bytes=1152}))' | FileCheck %s
// RUN: ortc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(ortc-tile-attention{least=1 rows=4 iteration-bytes=600}))' | FileCheck %s --check-prefix=SOME
// RUN: ortc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(ortc-tile-attention{least=1 tile-bytes=640 tile-rows=2 iteration-bytes=1152}))' | FileCheck %s --check-prefix=TILES
// RUN: ortc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(ortc-tile-attention{least=1 rows=4 iteration-bytes=400}))' | FileCheck %s --check-prefix=PAIRS
// Breaks when an iteration has more or fewer heads than its bytes allow, or when a mask is repeated for heads outside.

// Six heads of 192 bytes: one iteration that is still computed again, or two. Their rows have 192 bytes, too: with tiles of
// 640 bytes they are as few as are allowed, 2.
// CHECK-LABEL: func.func @plain
// CHECK: nn.scan 1 recompute carry() over(
// CHECK: nn.dot {{.*}} batch = [0] x [0] contract = [3] x [2] : tensor<6x1x4x5xf32>, tensor<6x8x5xf32> -> tensor<6x1x4x8xf32>
// CHECK: nn.softmax {{.*}} axis = 3 : tensor<6x1x4x8xf32>
// SOME-LABEL: func.func @plain
// SOME: nn.scan 2 recompute carry() over(
// SOME: nn.dot {{.*}} tensor<3x1x4x5xf32>, tensor<3x8x5xf32> -> tensor<3x1x4x8xf32>
// TILES-LABEL: func.func @plain
// TILES: nn.softmax {{.*}} axis = 3 : tensor<6x1x2x8xf32>
func.func @plain(%q: tensor<2x3x6x5xf32>, %k: tensor<2x3x8x5xf32>, %v: tensor<2x3x8x5xf32>, %m: tensor<2x8xf32>) -> tensor<2x3x6x5xf32> {
  %s = nn.dot %q, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<2x3x6x5xf32>, tensor<2x3x8x5xf32> -> tensor<2x3x6x8xf32>
  %b = nn.broadcast %m dims = [0, 3] : tensor<2x8xf32> -> tensor<2x3x6x8xf32>
  %u = arith.addf %s, %b : tensor<2x3x6x8xf32>
  %w = nn.softmax %u axis = 3 : tensor<2x3x6x8xf32>
  %y = nn.dot %w, %v batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<2x3x6x8xf32>, tensor<2x3x8x5xf32> -> tensor<2x3x6x5xf32>
  return %y : tensor<2x3x6x5xf32>
}

// -----

// A mask that differs by sentence, not by head: it comes in once a sentence, and is repeated on a tile.
// CHECK-LABEL: func.func @by_sentence
// CHECK: nn.scan 1 recompute carry() over({{.*}} with(%arg3)
// CHECK: nn.slice {{.*}} : tensor<2x6x8xf32> -> tensor<2x4x8xf32>
// CHECK: nn.broadcast {{.*}} dims = [0, 2, 3] : tensor<2x4x8xf32> -> tensor<2x2x4x8xf32>
// CHECK: nn.reshape {{.*}} -> tensor<4x1x4x8xf32>
// SOME-LABEL: func.func @by_sentence
// SOME: nn.scan 2 recompute carry() over({{.*}} tensor<2x1x1x6x8xf32>)
// SOME: nn.broadcast {{.*}} : tensor<1x1x4x8xf32> -> tensor<2x1x4x8xf32>
func.func @by_sentence(%q: tensor<2x2x6x5xf32>, %k: tensor<2x2x8x5xf32>, %v: tensor<2x2x8x5xf32>, %m: tensor<2x6x8xf32>) -> tensor<2x2x6x5xf32> {
  %s = nn.dot %q, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<2x2x6x5xf32>, tensor<2x2x8x5xf32> -> tensor<2x2x6x8xf32>
  %b = nn.broadcast %m dims = [0, 2, 3] : tensor<2x6x8xf32> -> tensor<2x2x6x8xf32>
  %u = arith.addf %s, %b : tensor<2x2x6x8xf32>
  %w = nn.softmax %u axis = 3 : tensor<2x2x6x8xf32>
  %y = nn.dot %w, %v batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<2x2x6x8xf32>, tensor<2x2x8x5xf32> -> tensor<2x2x6x5xf32>
  return %y : tensor<2x2x6x5xf32>
}

// -----

// Two heads have as many bytes as are allowed, but three of them share a mask: an iteration has one.
// PAIRS-LABEL: func.func @shared
// PAIRS: nn.scan 6 recompute
func.func @shared(%q: tensor<2x3x6x5xf32>, %k: tensor<2x3x8x5xf32>, %v: tensor<2x3x8x5xf32>, %m: tensor<2x8xf32>) -> tensor<2x3x6x5xf32> {
  %s = nn.dot %q, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<2x3x6x5xf32>, tensor<2x3x8x5xf32> -> tensor<2x3x6x8xf32>
  %b = nn.broadcast %m dims = [0, 3] : tensor<2x8xf32> -> tensor<2x3x6x8xf32>
  %u = arith.addf %s, %b : tensor<2x3x6x8xf32>
  %w = nn.softmax %u axis = 3 : tensor<2x3x6x8xf32>
  %y = nn.dot %w, %v batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<2x3x6x8xf32>, tensor<2x3x8x5xf32> -> tensor<2x3x6x5xf32>
  return %y : tensor<2x3x6x5xf32>
}
