// Elementwise arithmetic.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

func.func @addf(%a: tensor<3x5xf64>, %b: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %y = arith.addf %a, %b : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @subf(%a: tensor<3x5xf64>, %b: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %y = arith.subf %a, %b : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @mulf(%a: tensor<3x5xf64>, %b: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %y = arith.mulf %a, %b : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @divf(%a: tensor<3x5xf64>, %b: tensor<3x5xf64> {test.low = 0.5 : f64}) -> tensor<3x5xf64> {
  %y = arith.divf %a, %b : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @remf(%a: tensor<3x5xf64> {test.value = dense<[[5.25, -7.5, 1.0, 0.25, 9.125], [3.3, 4.4, -5.5, 6.6, 7.7], [1.1, 2.2, 3.3, -4.4, 5.5]]> : tensor<3x5xf64>}, %b: tensor<3x5xf64> {test.value = dense<[[2.0, 3.0, -1.75, 1.5, 2.5], [1.1563, 1.7, 1.3, -1.9, 2.1], [0.7, 0.9, 1.3, 1.7, 1.9]]> : tensor<3x5xf64>}) -> tensor<3x5xf64> {
  %y = arith.remf %a, %b : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @negf(%a: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %y = arith.negf %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @one_value_twice(%a: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %s = arith.mulf %a, %a : tensor<3x5xf64>
  %y = arith.addf %s, %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @select(%a: tensor<3x5xf64>, %b: tensor<3x5xf64>, %c: tensor<3x5xi1> {test.below = 2}) -> tensor<3x5xf64> {
  %y = arith.select %c, %a, %b : tensor<3x5xi1>, tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @relu(%a: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %zero = arith.constant dense<0.0> : tensor<3x5xf64>
  %c = arith.cmpf ugt, %a, %zero : tensor<3x5xf64>
  %y = arith.select %c, %a, %zero : tensor<3x5xi1>, tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @casts(%a: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %n = arith.truncf %a : tensor<3x5xf64> to tensor<3x5xf32>
  %s = arith.mulf %n, %n : tensor<3x5xf32>
  %y = arith.extf %s : tensor<3x5xf32> to tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @two_results(%a: tensor<3x5xf64>, %b: tensor<3x5xf64>) -> (tensor<3x5xf64>, tensor<3x5xf64>) {
  %y = arith.mulf %a, %b : tensor<3x5xf64>
  %z = arith.subf %y, %a : tensor<3x5xf64>
  return %y, %z : tensor<3x5xf64>, tensor<3x5xf64>
}

func.func @unused_argument(%a: tensor<3x5xf64>, %b: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %y = arith.negf %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

