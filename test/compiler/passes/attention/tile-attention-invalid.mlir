// RUN: ortc-opt %s --pass-pipeline='builtin.module(func.func(ortc-tile-attention{least=1 rows=1}))' -verify-diagnostics
// Breaks when so many tiles are asked for that their code has no end, and nobody says so.

func.func @small_tiles(%q: tensor<3x257x5xf32>, %k: tensor<3x8x5xf32>, %v: tensor<3x8x5xf32>) -> tensor<3x257x5xf32> {
  %s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : tensor<3x257x5xf32>, tensor<3x8x5xf32> -> tensor<3x257x8xf32>
  // expected-error@below {{attention of 257 queries in tiles of 1 is more code than 256 tiles; ask for 2 queries a tile or more}}
  %w = nn.softmax %s axis = 2 : tensor<3x257x8xf32>
  %y = nn.dot %w, %v batch = [0] x [0] contract = [2] x [1] : tensor<3x257x8xf32>, tensor<3x8x5xf32> -> tensor<3x257x5xf32>
  return %y : tensor<3x257x5xf32>
}
