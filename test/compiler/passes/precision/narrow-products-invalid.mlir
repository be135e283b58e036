// RUN: ortc-opt %s -split-input-file --ortc-narrow-products -verify-diagnostics
// Breaks when a model of float64 is taken for one with narrow products, and nobody says so.

func.func @all_wide(%x: tensor<8x4xf64>, %w: tensor<4x2xf64>) -> tensor<8x2xf64> {
  // expected-error@below {{this product is of float64, as all of the model are, and --precision bf16 rounds those of float32; leave --precision out, or export the model in float32}}
  %y = nn.dot %x, %w batch = [] x [] contract = [1] x [0] : tensor<8x4xf64>, tensor<4x2xf64> -> tensor<8x2xf64>
  return %y : tensor<8x2xf64>
}

// -----

// A part of a model may be wide.
func.func @some_wide(%x: tensor<8x4xf64>, %w: tensor<4x2xf64>, %v: tensor<4x8xf32>) -> (tensor<8x2xf64>, tensor<4x4xf32>) {
  %y = nn.dot %x, %w batch = [] x [] contract = [1] x [0] : tensor<8x4xf64>, tensor<4x2xf64> -> tensor<8x2xf64>
  %z = nn.dot %v, %v batch = [] x [] contract = [1] x [1] : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32>
  return %y, %z : tensor<8x2xf64>, tensor<4x4xf32>
}
