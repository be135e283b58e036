// Elementary functions, each where it is smooth.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

func.func @absf(%a: tensor<3x5xf64> {test.low = -2.0 : f64, test.high = 2.0 : f64}) -> tensor<3x5xf64> {
  %y = math.absf %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @exp(%a: tensor<3x5xf64> {test.low = -2.0 : f64, test.high = 2.0 : f64}) -> tensor<3x5xf64> {
  %y = math.exp %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @exp2(%a: tensor<3x5xf64> {test.low = -2.0 : f64, test.high = 2.0 : f64}) -> tensor<3x5xf64> {
  %y = math.exp2 %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @expm1(%a: tensor<3x5xf64> {test.low = -2.0 : f64, test.high = 2.0 : f64}) -> tensor<3x5xf64> {
  %y = math.expm1 %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @log(%a: tensor<3x5xf64> {test.low = 0.3 : f64, test.high = 3.0 : f64}) -> tensor<3x5xf64> {
  %y = math.log %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @log2(%a: tensor<3x5xf64> {test.low = 0.3 : f64, test.high = 3.0 : f64}) -> tensor<3x5xf64> {
  %y = math.log2 %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @log10(%a: tensor<3x5xf64> {test.low = 0.3 : f64, test.high = 3.0 : f64}) -> tensor<3x5xf64> {
  %y = math.log10 %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @log1p(%a: tensor<3x5xf64> {test.low = -0.6 : f64, test.high = 2.0 : f64}) -> tensor<3x5xf64> {
  %y = math.log1p %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @sqrt(%a: tensor<3x5xf64> {test.low = 0.3 : f64, test.high = 3.0 : f64}) -> tensor<3x5xf64> {
  %y = math.sqrt %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @rsqrt(%a: tensor<3x5xf64> {test.low = 0.3 : f64, test.high = 3.0 : f64}) -> tensor<3x5xf64> {
  %y = math.rsqrt %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @tanh(%a: tensor<3x5xf64> {test.low = -2.0 : f64, test.high = 2.0 : f64}) -> tensor<3x5xf64> {
  %y = math.tanh %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @erf(%a: tensor<3x5xf64> {test.low = -2.0 : f64, test.high = 2.0 : f64}) -> tensor<3x5xf64> {
  %y = math.erf %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @erfc(%a: tensor<3x5xf64> {test.low = -2.0 : f64, test.high = 2.0 : f64}) -> tensor<3x5xf64> {
  %y = math.erfc %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @sin(%a: tensor<3x5xf64> {test.low = -3.0 : f64, test.high = 3.0 : f64}) -> tensor<3x5xf64> {
  %y = math.sin %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @cos(%a: tensor<3x5xf64> {test.low = -3.0 : f64, test.high = 3.0 : f64}) -> tensor<3x5xf64> {
  %y = math.cos %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @tan(%a: tensor<3x5xf64> {test.low = -1.2 : f64, test.high = 1.2 : f64}) -> tensor<3x5xf64> {
  %y = math.tan %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @asin(%a: tensor<3x5xf64> {test.low = -0.9 : f64, test.high = 0.9 : f64}) -> tensor<3x5xf64> {
  %y = math.asin %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @acos(%a: tensor<3x5xf64> {test.low = -0.9 : f64, test.high = 0.9 : f64}) -> tensor<3x5xf64> {
  %y = math.acos %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @atan(%a: tensor<3x5xf64> {test.low = -3.0 : f64, test.high = 3.0 : f64}) -> tensor<3x5xf64> {
  %y = math.atan %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @sinh(%a: tensor<3x5xf64> {test.low = -2.0 : f64, test.high = 2.0 : f64}) -> tensor<3x5xf64> {
  %y = math.sinh %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @cosh(%a: tensor<3x5xf64> {test.low = -2.0 : f64, test.high = 2.0 : f64}) -> tensor<3x5xf64> {
  %y = math.cosh %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @asinh(%a: tensor<3x5xf64> {test.low = -3.0 : f64, test.high = 3.0 : f64}) -> tensor<3x5xf64> {
  %y = math.asinh %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @acosh(%a: tensor<3x5xf64> {test.low = 1.3 : f64, test.high = 3.0 : f64}) -> tensor<3x5xf64> {
  %y = math.acosh %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @atanh(%a: tensor<3x5xf64> {test.low = -0.9 : f64, test.high = 0.9 : f64}) -> tensor<3x5xf64> {
  %y = math.atanh %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @atan2(%a: tensor<3x5xf64> {test.low = 0.3 : f64}, %b: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %y = math.atan2 %a, %b : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @copysign(%a: tensor<3x5xf64>, %b: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %y = math.copysign %a, %b : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @fma(%a: tensor<3x5xf64>, %b: tensor<3x5xf64>, %c: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %y = math.fma %a, %b, %c : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @powf(%a: tensor<3x5xf64> {test.low = 0.4 : f64}, %b: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %y = math.powf %a, %b : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @powf_constant(%a: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %two = arith.constant dense<2.0> : tensor<3x5xf64>
  %three = arith.constant dense<3.0> : tensor<3x5xf64>
  %s = math.powf %a, %two : tensor<3x5xf64>
  %c = math.powf %a, %three : tensor<3x5xf64>
  %y = arith.addf %s, %c : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @floor(%a: tensor<3x5xf64> {test.value = dense<[[0.25, -0.75, 1.3, 2.7, -3.1], [0.1, 0.2, 0.3, 0.4, -0.1], [5.2, 6.8, -7.3, 8.4, 9.1]]> : tensor<3x5xf64>}) -> tensor<3x5xf64> {
  %f = math.floor %a : tensor<3x5xf64>
  %y = arith.mulf %f, %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @ceil(%a: tensor<3x5xf64> {test.value = dense<[[0.25, -0.75, 1.3, 2.7, -3.1], [0.1, 0.2, 0.3, 0.4, -0.1], [5.2, 6.8, -7.3, 8.4, 9.1]]> : tensor<3x5xf64>}) -> tensor<3x5xf64> {
  %f = math.ceil %a : tensor<3x5xf64>
  %y = arith.mulf %f, %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @round(%a: tensor<3x5xf64> {test.value = dense<[[0.25, -0.75, 1.3, 2.7, -3.1], [0.1, 0.2, 0.3, 0.4, -0.1], [5.2, 6.8, -7.3, 8.4, 9.1]]> : tensor<3x5xf64>}) -> tensor<3x5xf64> {
  %f = math.round %a : tensor<3x5xf64>
  %y = arith.mulf %f, %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @roundeven(%a: tensor<3x5xf64> {test.value = dense<[[0.25, -0.75, 1.3, 2.7, -3.1], [0.1, 0.2, 0.3, 0.4, -0.1], [5.2, 6.8, -7.3, 8.4, 9.1]]> : tensor<3x5xf64>}) -> tensor<3x5xf64> {
  %f = math.roundeven %a : tensor<3x5xf64>
  %y = arith.mulf %f, %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @trunc(%a: tensor<3x5xf64> {test.value = dense<[[0.25, -0.75, 1.3, 2.7, -3.1], [0.1, 0.2, 0.3, 0.4, -0.1], [5.2, 6.8, -7.3, 8.4, 9.1]]> : tensor<3x5xf64>}) -> tensor<3x5xf64> {
  %f = math.trunc %a : tensor<3x5xf64>
  %y = arith.mulf %f, %a : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

