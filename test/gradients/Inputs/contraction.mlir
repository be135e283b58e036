// Contractions: every arrangement of batch, free and contracted dimensions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

func.func @matmul(%a: tensor<3x5xf64>, %b: tensor<5x2xf64>) -> tensor<3x2xf64> {
  %y = nn.dot %a, %b batch = [] x [] contract = [1] x [0] : tensor<3x5xf64>, tensor<5x2xf64> -> tensor<3x2xf64>
  return %y : tensor<3x2xf64>
}

func.func @matmul_transposed(%a: tensor<3x5xf64>, %b: tensor<2x5xf64>) -> tensor<3x2xf64> {
  %y = nn.dot %a, %b batch = [] x [] contract = [1] x [1] : tensor<3x5xf64>, tensor<2x5xf64> -> tensor<3x2xf64>
  return %y : tensor<3x2xf64>
}

func.func @matmul_both_transposed(%a: tensor<5x3xf64>, %b: tensor<2x5xf64>) -> tensor<3x2xf64> {
  %y = nn.dot %a, %b batch = [] x [] contract = [0] x [1] : tensor<5x3xf64>, tensor<2x5xf64> -> tensor<3x2xf64>
  return %y : tensor<3x2xf64>
}

func.func @batched(%a: tensor<4x3x5xf64>, %b: tensor<4x5x2xf64>) -> tensor<4x3x2xf64> {
  %y = nn.dot %a, %b batch = [0] x [0] contract = [2] x [1] : tensor<4x3x5xf64>, tensor<4x5x2xf64> -> tensor<4x3x2xf64>
  return %y : tensor<4x3x2xf64>
}

func.func @batch_in_the_middle(%a: tensor<3x4x5xf64>, %b: tensor<5x2x4xf64>) -> tensor<4x3x2xf64> {
  %y = nn.dot %a, %b batch = [1] x [2] contract = [2] x [0] : tensor<3x4x5xf64>, tensor<5x2x4xf64> -> tensor<4x3x2xf64>
  return %y : tensor<4x3x2xf64>
}

func.func @two_batches(%a: tensor<2x3x4x5xf64>, %b: tensor<3x5x2x6xf64>) -> tensor<2x3x4x6xf64> {
  %y = nn.dot %a, %b batch = [0, 1] x [2, 0] contract = [3] x [1] : tensor<2x3x4x5xf64>, tensor<3x5x2x6xf64> -> tensor<2x3x4x6xf64>
  return %y : tensor<2x3x4x6xf64>
}

func.func @two_contracted(%a: tensor<3x2x5xf64>, %b: tensor<5x4x2xf64>) -> tensor<3x4xf64> {
  %y = nn.dot %a, %b batch = [] x [] contract = [1, 2] x [2, 0] : tensor<3x2x5xf64>, tensor<5x4x2xf64> -> tensor<3x4xf64>
  return %y : tensor<3x4xf64>
}

func.func @contracted_out_of_order(%a: tensor<2x5x3xf64>, %b: tensor<4x5x2xf64>) -> tensor<3x4xf64> {
  %y = nn.dot %a, %b batch = [] x [] contract = [0, 1] x [2, 1] : tensor<2x5x3xf64>, tensor<4x5x2xf64> -> tensor<3x4xf64>
  return %y : tensor<3x4xf64>
}

func.func @inner(%a: tensor<5xf64>, %b: tensor<5xf64>) -> tensor<f64> {
  %y = nn.dot %a, %b batch = [] x [] contract = [0] x [0] : tensor<5xf64>, tensor<5xf64> -> tensor<f64>
  return %y : tensor<f64>
}

func.func @outer(%a: tensor<3xf64>, %b: tensor<4xf64>) -> tensor<3x4xf64> {
  %y = nn.dot %a, %b batch = [] x [] contract = [] x [] : tensor<3xf64>, tensor<4xf64> -> tensor<3x4xf64>
  return %y : tensor<3x4xf64>
}

func.func @matrix_vector(%a: tensor<3x5xf64>, %b: tensor<5xf64>) -> tensor<3xf64> {
  %y = nn.dot %a, %b batch = [] x [] contract = [1] x [0] : tensor<3x5xf64>, tensor<5xf64> -> tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @three_free(%a: tensor<2x3x5xf64>, %b: tensor<4x5x3x2xf64>) -> tensor<2x3x4x3xf64> {
  %y = nn.dot %a, %b batch = [0] x [3] contract = [2] x [1] : tensor<2x3x5xf64>, tensor<4x5x3x2xf64> -> tensor<2x3x4x3xf64>
  return %y : tensor<2x3x4x3xf64>
}

func.func @squared(%a: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %y = nn.dot %a, %a batch = [] x [] contract = [1] x [0] : tensor<3x3xf64>, tensor<3x3xf64> -> tensor<3x3xf64>
  return %y : tensor<3x3xf64>
}

