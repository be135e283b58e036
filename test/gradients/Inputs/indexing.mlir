// Gathers and scatters, indices that repeat included.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

func.func @gather_rows(%x: tensor<5x3xf64>, %i: tensor<2x4xi64> {test.below = 5}) -> tensor<2x4x3xf64> {
  %y = nn.gather %x, %i axis = 0 : tensor<5x3xf64>, tensor<2x4xi64> -> tensor<2x4x3xf64>
  return %y : tensor<2x4x3xf64>
}

func.func @gather_inner(%x: tensor<2x5x3xf64>, %i: tensor<4xi32> {test.below = 5}) -> tensor<2x4x3xf64> {
  %y = nn.gather %x, %i axis = 1 : tensor<2x5x3xf64>, tensor<4xi32> -> tensor<2x4x3xf64>
  return %y : tensor<2x4x3xf64>
}

func.func @gather_scalar(%x: tensor<5x3xf64>, %i: tensor<i64> {test.below = 3}) -> tensor<5xf64> {
  %y = nn.gather %x, %i axis = 1 : tensor<5x3xf64>, tensor<i64> -> tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @scatter_add(%i: tensor<7xi64> {test.below = 5}, %u: tensor<2x7x3xf64>) -> tensor<2x5x3xf64> {
  %y = nn.scatter_add %i, %u axis = 1 : tensor<7xi64>, tensor<2x7x3xf64> -> tensor<2x5x3xf64>
  return %y : tensor<2x5x3xf64>
}

func.func @gather_elements(%x: tensor<4x5xf64>, %i: tensor<3x7xi64> {test.below = 5}) -> tensor<3x7xf64> {
  %y = nn.gather_elements %x, %i axis = 1 : tensor<4x5xf64>, tensor<3x7xi64> -> tensor<3x7xf64>
  return %y : tensor<3x7xf64>
}

func.func @scatter_elements_add(%x: tensor<4x5xf64>, %i: tensor<3x7xi64> {test.below = 5}, %u: tensor<3x7xf64>) -> tensor<4x5xf64> {
  %y = nn.scatter_elements add %x, %i, %u axis = 1 : tensor<4x5xf64>, tensor<3x7xi64>, tensor<3x7xf64> -> tensor<4x5xf64>
  return %y : tensor<4x5xf64>
}

func.func @scatter_elements_mul(%x: tensor<4x5xf64>, %i: tensor<3x7xi64> {test.below = 5}, %u: tensor<3x7xf64>) -> tensor<4x5xf64> {
  %y = nn.scatter_elements mul %x, %i, %u axis = 1 : tensor<4x5xf64>, tensor<3x7xi64>, tensor<3x7xf64> -> tensor<4x5xf64>
  return %y : tensor<4x5xf64>
}

func.func @scatter_elements_max(%x: tensor<4x5xf64>, %i: tensor<3x7xi64> {test.below = 5}, %u: tensor<3x7xf64>) -> tensor<4x5xf64> {
  %y = nn.scatter_elements max %x, %i, %u axis = 1 : tensor<4x5xf64>, tensor<3x7xi64>, tensor<3x7xf64> -> tensor<4x5xf64>
  return %y : tensor<4x5xf64>
}

func.func @scatter_elements_min(%x: tensor<4x5xf64>, %i: tensor<3x7xi64> {test.below = 5}, %u: tensor<3x7xf64>) -> tensor<4x5xf64> {
  %y = nn.scatter_elements min %x, %i, %u axis = 1 : tensor<4x5xf64>, tensor<3x7xi64>, tensor<3x7xf64> -> tensor<4x5xf64>
  return %y : tensor<4x5xf64>
}

func.func @scatter_elements_set(%x: tensor<4x5xf64>, %i: tensor<3x4xi64> {test.below = 5, test.distinct}, %u: tensor<3x4xf64>) -> tensor<4x5xf64> {
  %y = nn.scatter_elements set %x, %i, %u axis = 1 : tensor<4x5xf64>, tensor<3x4xi64>, tensor<3x4xf64> -> tensor<4x5xf64>
  return %y : tensor<4x5xf64>
}

