// Kinks, ties, poles, zeros, infinities, empty tensors: gradients of PyTorch for a cotangent of ones.
// Written by make_special_points.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

func.func @addf_one_value_twice(%x: tensor<3xf64> {test.value = dense<[0x7FF0000000000000, 0x7FF8000000000000, 0.0]> : tensor<3xf64>, test.gradient = dense<[2.0, 2.0, 2.0]> : tensor<3xf64>}) -> tensor<3xf64> {
  %y = arith.addf %x, %x : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @subf_one_value_twice(%x: tensor<3xf64> {test.value = dense<[0x7FF0000000000000, 0x7FF8000000000000, 0.0]> : tensor<3xf64>, test.gradient = dense<[0.0, 0.0, 0.0]> : tensor<3xf64>}) -> tensor<3xf64> {
  %y = arith.subf %x, %x : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @mulf_zero_times_infinity(%a: tensor<4xf64> {test.value = dense<[0.0, 0x7FF0000000000000, 0.0, 0x7FF8000000000000]> : tensor<4xf64>, test.gradient = dense<[0x7FF0000000000000, 0.0, 0.0, 1.0]> : tensor<4xf64>}, %b: tensor<4xf64> {test.value = dense<[0x7FF0000000000000, 0.0, 0.0, 1.0]> : tensor<4xf64>, test.gradient = dense<[0.0, 0x7FF0000000000000, 0.0, 0x7FF8000000000000]> : tensor<4xf64>}) -> tensor<4xf64> {
  %y = arith.mulf %a, %b : tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @mulf_one_value_twice(%x: tensor<3xf64> {test.value = dense<[0x7FF0000000000000, 0.0, -3.0]> : tensor<3xf64>, test.gradient = dense<[0x7FF0000000000000, 0.0, -6.0]> : tensor<3xf64>}) -> tensor<3xf64> {
  %y = arith.mulf %x, %x : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @divf_at_zero_and_infinity(%a: tensor<5xf64> {test.value = dense<[1.0, -1.0, 0.0, 1.0, 0x7FF0000000000000]> : tensor<5xf64>, test.gradient = dense<[0x7FF0000000000000, 0x7FF0000000000000, 0.5, 0.0, 0.5]> : tensor<5xf64>}, %b: tensor<5xf64> {test.value = dense<[0.0, 0.0, 2.0, 0x7FF0000000000000, 2.0]> : tensor<5xf64>, test.gradient = dense<[0xFFF0000000000000, 0x7FF0000000000000, -0.0, -0.0, 0xFFF0000000000000]> : tensor<5xf64>}) -> tensor<5xf64> {
  %y = arith.divf %a, %b : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @divf_one_value_twice(%x: tensor<2xf64> {test.value = dense<[4.0, -0.5]> : tensor<2xf64>, test.gradient = dense<[0.0, 0.0]> : tensor<2xf64>}) -> tensor<2xf64> {
  %y = arith.divf %x, %x : tensor<2xf64>
  return %y : tensor<2xf64>
}

func.func @remf_at_jumps(%a: tensor<4xf64> {test.value = dense<[6.0, -6.0, 0.0, 1.0]> : tensor<4xf64>, test.gradient = dense<[1.0, 1.0, 1.0, 1.0]> : tensor<4xf64>}, %b: tensor<4xf64> {test.value = dense<[3.0, 3.0, 2.0, 0x7FF0000000000000]> : tensor<4xf64>, test.gradient = dense<[-2.0, 2.0, -0.0, -0.0]> : tensor<4xf64>}) -> tensor<4xf64> {
  %y = arith.remf %a, %b : tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @negf(%x: tensor<3xf64> {test.value = dense<[0x7FF0000000000000, 0x7FF8000000000000, 0.0]> : tensor<3xf64>, test.gradient = dense<[-1.0, -1.0, -1.0]> : tensor<3xf64>}) -> tensor<3xf64> {
  %y = arith.negf %x : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @truncf_out_of_range(%x: tensor<3xf64> {test.value = dense<[0x7FF0000000000000, 0.0, 0x7FF0000000000000]> : tensor<3xf64>, test.gradient = dense<[1.0, 1.0, 1.0]> : tensor<3xf64>}) -> tensor<3xf64> {
  %s = arith.truncf %x : tensor<3xf64> to tensor<3xf32>
  %y = arith.extf %s : tensor<3xf32> to tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @select_ignores_the_other_side(%c: tensor<3xi1> {test.value = dense<[true, false, true]> : tensor<3xi1>}, %a: tensor<3xf64> {test.value = dense<[1.0, 0x7FF8000000000000, 0x7FF0000000000000]> : tensor<3xf64>, test.gradient = dense<[1.0, 0.0, 1.0]> : tensor<3xf64>}, %b: tensor<3xf64> {test.value = dense<[0x7FF8000000000000, 2.0, 3.0]> : tensor<3xf64>, test.gradient = dense<[0.0, 1.0, 0.0]> : tensor<3xf64>}) -> tensor<3xf64> {
  %y = arith.select %c, %a, %b : tensor<3xi1>, tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @relu_at_zero(%x: tensor<4xf64> {test.value = dense<[-2.0, 0.0, 3.0, 0x7FF0000000000000]> : tensor<4xf64>, test.gradient = dense<[0.0, 0.0, 1.0, 1.0]> : tensor<4xf64>}) -> tensor<4xf64> {
  %zero = arith.constant dense<0.0> : tensor<4xf64>
  %positive = arith.cmpf ugt, %x, %zero : tensor<4xf64>
  %y = arith.select %positive, %x, %zero : tensor<4xi1>, tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @absf(%x: tensor<5xf64> {test.value = dense<[-2.0, 0.0, -0.0, 3.0, 0xFFF0000000000000]> : tensor<5xf64>, test.gradient = dense<[-1.0, 0.0, 0.0, 1.0, -1.0]> : tensor<5xf64>}) -> tensor<5xf64> {
  %y = math.absf %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @exp(%x: tensor<6xf64> {test.value = dense<[0xFFF0000000000000, -800.0, 0.0, 800.0, 0x7FF0000000000000, 0x7FF8000000000000]> : tensor<6xf64>, test.gradient = dense<[0.0, 0.0, 1.0, 0x7FF0000000000000, 0x7FF0000000000000, 0x7FF8000000000000]> : tensor<6xf64>}) -> tensor<6xf64> {
  %y = math.exp %x : tensor<6xf64>
  return %y : tensor<6xf64>
}

func.func @exp2(%x: tensor<5xf64> {test.value = dense<[0xFFF0000000000000, -2000.0, 0.0, 2000.0, 0x7FF0000000000000]> : tensor<5xf64>, test.gradient = dense<[0.0, 0.0, 0.6931471805599453, 0x7FF0000000000000, 0x7FF0000000000000]> : tensor<5xf64>}) -> tensor<5xf64> {
  %y = math.exp2 %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @expm1(%x: tensor<6xf64> {test.value = dense<[0xFFF0000000000000, -800.0, 0.0, 0.0, 800.0, 0x7FF0000000000000]> : tensor<6xf64>, test.gradient = dense<[0.0, 0.0, 1.0, 1.0, 0x7FF0000000000000, 0x7FF0000000000000]> : tensor<6xf64>}) -> tensor<6xf64> {
  %y = math.expm1 %x : tensor<6xf64>
  return %y : tensor<6xf64>
}

func.func @log(%x: tensor<5xf64> {test.value = dense<[0.0, -0.0, 1.0, 0x7FF0000000000000, -2.0]> : tensor<5xf64>, test.gradient = dense<[0x7FF0000000000000, 0xFFF0000000000000, 1.0, 0.0, -0.5]> : tensor<5xf64>}) -> tensor<5xf64> {
  %y = math.log %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @log2(%x: tensor<3xf64> {test.value = dense<[0.0, 1.0, 0x7FF0000000000000]> : tensor<3xf64>, test.gradient = dense<[0x7FF0000000000000, 1.4426950408889634, 0.0]> : tensor<3xf64>}) -> tensor<3xf64> {
  %y = math.log2 %x : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @log10(%x: tensor<3xf64> {test.value = dense<[0.0, 1.0, 0x7FF0000000000000]> : tensor<3xf64>, test.gradient = dense<[0x7FF0000000000000, 0.43429448190325176, 0.0]> : tensor<3xf64>}) -> tensor<3xf64> {
  %y = math.log10 %x : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @log1p(%x: tensor<4xf64> {test.value = dense<[-1.0, 0.0, 0.0, 0x7FF0000000000000]> : tensor<4xf64>, test.gradient = dense<[0x7FF0000000000000, 1.0, 1.0, 0.0]> : tensor<4xf64>}) -> tensor<4xf64> {
  %y = math.log1p %x : tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @sqrt(%x: tensor<4xf64> {test.value = dense<[0.0, 4.0, 0x7FF0000000000000, -1.0]> : tensor<4xf64>, test.gradient = dense<[0x7FF0000000000000, 0.25, 0.0, 0x7FF8000000000000]> : tensor<4xf64>}) -> tensor<4xf64> {
  %y = math.sqrt %x : tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @rsqrt(%x: tensor<4xf64> {test.value = dense<[0.0, 4.0, 0x7FF0000000000000, -1.0]> : tensor<4xf64>, test.gradient = dense<[0xFFF0000000000000, -0.0625, -0.0, 0x7FF8000000000000]> : tensor<4xf64>}) -> tensor<4xf64> {
  %y = math.rsqrt %x : tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @tanh(%x: tensor<5xf64> {test.value = dense<[0xFFF0000000000000, -400.0, 0.0, 400.0, 0x7FF0000000000000]> : tensor<5xf64>, test.gradient = dense<[0.0, 0.0, 1.0, 0.0, 0.0]> : tensor<5xf64>}) -> tensor<5xf64> {
  %y = math.tanh %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @erf(%x: tensor<5xf64> {test.value = dense<[0xFFF0000000000000, -40.0, 0.0, 40.0, 0x7FF0000000000000]> : tensor<5xf64>, test.gradient = dense<[0.0, 0.0, 1.1283791670955126, 0.0, 0.0]> : tensor<5xf64>}) -> tensor<5xf64> {
  %y = math.erf %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @erfc(%x: tensor<5xf64> {test.value = dense<[0xFFF0000000000000, -40.0, 0.0, 40.0, 0x7FF0000000000000]> : tensor<5xf64>, test.gradient = dense<[-0.0, -0.0, -1.1283791670955126, -0.0, -0.0]> : tensor<5xf64>}) -> tensor<5xf64> {
  %y = math.erfc %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @sin(%x: tensor<3xf64> {test.value = dense<[0.0, 1000000000.0, 0x7FF0000000000000]> : tensor<3xf64>, test.gradient = dense<[1.0, 0.8378871813639024, 0x7FF8000000000000]> : tensor<3xf64>}) -> tensor<3xf64> {
  %y = math.sin %x : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @cos(%x: tensor<3xf64> {test.value = dense<[0.0, 1000000000.0, 0x7FF0000000000000]> : tensor<3xf64>, test.gradient = dense<[-0.0, -0.5458434494486996, 0x7FF8000000000000]> : tensor<3xf64>}) -> tensor<3xf64> {
  %y = math.cos %x : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @tan(%x: tensor<3xf64> {test.value = dense<[0.0, 1.5707963705062866, 0x7FF0000000000000]> : tensor<3xf64>, test.gradient = dense<[1.0, 523372339060408.4, 0x7FF8000000000000]> : tensor<3xf64>}) -> tensor<3xf64> {
  %y = math.tan %x : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @asin(%x: tensor<4xf64> {test.value = dense<[-1.0, 0.0, 1.0, 2.0]> : tensor<4xf64>, test.gradient = dense<[0x7FF0000000000000, 1.0, 0x7FF0000000000000, 0x7FF8000000000000]> : tensor<4xf64>}) -> tensor<4xf64> {
  %y = math.asin %x : tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @acos(%x: tensor<4xf64> {test.value = dense<[-1.0, 0.0, 1.0, 2.0]> : tensor<4xf64>, test.gradient = dense<[0xFFF0000000000000, -1.0, 0xFFF0000000000000, 0x7FF8000000000000]> : tensor<4xf64>}) -> tensor<4xf64> {
  %y = math.acos %x : tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @atan(%x: tensor<4xf64> {test.value = dense<[0xFFF0000000000000, 0.0, 0x7FF0000000000000, 0x7FF0000000000000]> : tensor<4xf64>, test.gradient = dense<[0.0, 1.0, 0.0, 0.0]> : tensor<4xf64>}) -> tensor<4xf64> {
  %y = math.atan %x : tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @sinh(%x: tensor<4xf64> {test.value = dense<[-800.0, 0.0, 800.0, 0x7FF0000000000000]> : tensor<4xf64>, test.gradient = dense<[0x7FF0000000000000, 1.0, 0x7FF0000000000000, 0x7FF0000000000000]> : tensor<4xf64>}) -> tensor<4xf64> {
  %y = math.sinh %x : tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @cosh(%x: tensor<4xf64> {test.value = dense<[-800.0, 0.0, 800.0, 0x7FF0000000000000]> : tensor<4xf64>, test.gradient = dense<[0xFFF0000000000000, 0.0, 0x7FF0000000000000, 0x7FF0000000000000]> : tensor<4xf64>}) -> tensor<4xf64> {
  %y = math.cosh %x : tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @asinh(%x: tensor<3xf64> {test.value = dense<[0xFFF0000000000000, 0.0, 0x7FF0000000000000]> : tensor<3xf64>, test.gradient = dense<[0.0, 1.0, 0.0]> : tensor<3xf64>}) -> tensor<3xf64> {
  %y = math.asinh %x : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @acosh(%x: tensor<3xf64> {test.value = dense<[1.0, 0.5, 0x7FF0000000000000]> : tensor<3xf64>, test.gradient = dense<[0x7FF0000000000000, 0x7FF8000000000000, 0.0]> : tensor<3xf64>}) -> tensor<3xf64> {
  %y = math.acosh %x : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @atanh(%x: tensor<3xf64> {test.value = dense<[-1.0, 0.0, 1.0]> : tensor<3xf64>, test.gradient = dense<[0x7FF0000000000000, 1.0, 0x7FF0000000000000]> : tensor<3xf64>}) -> tensor<3xf64> {
  %y = math.atanh %x : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @atan2_on_the_axes(%a: tensor<4xf64> {test.value = dense<[0.0, 1.0, 0.0, 0.0]> : tensor<4xf64>, test.gradient = dense<[1.0, 0.0, -0.5, 0.0]> : tensor<4xf64>}, %b: tensor<4xf64> {test.value = dense<[1.0, 0.0, -2.0, 0.0]> : tensor<4xf64>, test.gradient = dense<[-0.0, -1.0, -0.0, -0.0]> : tensor<4xf64>}) -> tensor<4xf64> {
  %y = math.atan2 %a, %b : tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @copysign_at_zero(%a: tensor<5xf64> {test.value = dense<[0.0, -0.0, 2.0, -2.0, 2.0]> : tensor<5xf64>, test.gradient = dense<[0.0, 0.0, -1.0, -1.0, 1.0]> : tensor<5xf64>}, %b: tensor<5xf64> {test.value = dense<[1.0, -1.0, -0.0, 0.0, 0x7FF8000000000000]> : tensor<5xf64>, test.gradient = dense<[0.0, 0.0, 0.0, 0.0, 0.0]> : tensor<5xf64>}) -> tensor<5xf64> {
  %y = math.copysign %a, %b : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @fma_zero_times_infinity(%a: tensor<2xf64> {test.value = dense<[0.0, 0x7FF0000000000000]> : tensor<2xf64>, test.gradient = dense<[0x7FF0000000000000, 2.0]> : tensor<2xf64>}, %b: tensor<2xf64> {test.value = dense<[0x7FF0000000000000, 2.0]> : tensor<2xf64>, test.gradient = dense<[0.0, 0x7FF0000000000000]> : tensor<2xf64>}, %c: tensor<2xf64> {test.value = dense<[1.0, 0x7FF0000000000000]> : tensor<2xf64>, test.gradient = dense<[1.0, 1.0]> : tensor<2xf64>}) -> tensor<2xf64> {
  %y = math.fma %a, %b, %c : tensor<2xf64>
  return %y : tensor<2xf64>
}

func.func @powf_of_zero(%a: tensor<6xf64> {test.value = dense<[0.0, 0.0, 0.0, 0.0, 2.0, 0.0]> : tensor<6xf64>, test.gradient = dense<[1.0, 0.0, 0.0, 0x7FF0000000000000, 4.0, 0xFFF0000000000000]> : tensor<6xf64>}, %b: tensor<6xf64> {test.value = dense<[1.0, 2.0, 0.0, 0.5, 2.0, -1.0]> : tensor<6xf64>, test.gradient = dense<[0.0, 0.0, 0.0, 0.0, 2.772588722239781, 0xFFF0000000000000]> : tensor<6xf64>}) -> tensor<6xf64> {
  %y = math.powf %a, %b : tensor<6xf64>
  return %y : tensor<6xf64>
}

func.func @powf_negative_base(%a: tensor<3xf64> {test.value = dense<[-2.0, -3.0, -2.0]> : tensor<3xf64>, test.gradient = dense<[12.0, -6.0, 0x7FF8000000000000]> : tensor<3xf64>}, %b: tensor<3xf64> {test.value = dense<[3.0, 2.0, 0.5]> : tensor<3xf64>, test.gradient = dense<[0x7FF8000000000000, 0x7FF8000000000000, 0x7FF8000000000000]> : tensor<3xf64>}) -> tensor<3xf64> {
  %y = math.powf %a, %b : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @powf_infinite(%a: tensor<3xf64> {test.value = dense<[0x7FF0000000000000, 2.0, 0.5]> : tensor<3xf64>, test.gradient = dense<[0x7FF0000000000000, 0x7FF0000000000000, 0x7FF8000000000000]> : tensor<3xf64>}, %b: tensor<3xf64> {test.value = dense<[2.0, 0x7FF0000000000000, 0x7FF0000000000000]> : tensor<3xf64>, test.gradient = dense<[0x7FF0000000000000, 0x7FF0000000000000, -0.0]> : tensor<3xf64>}) -> tensor<3xf64> {
  %y = math.powf %a, %b : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @powf_constant_exponents(%x: tensor<3xf64> {test.value = dense<[-2.0, 0.0, 0x7FF0000000000000]> : tensor<3xf64>, test.gradient = dense<[12.0, 0.0, 0x7FF0000000000000]> : tensor<3xf64>}) -> tensor<3xf64> {
  %e = arith.constant dense<3.0> : tensor<3xf64>
  %y = math.powf %x, %e : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @powf_constant_zero(%x: tensor<3xf64> {test.value = dense<[-2.0, 0.0, 5.0]> : tensor<3xf64>, test.gradient = dense<[0.0, 0.0, 0.0]> : tensor<3xf64>}) -> tensor<3xf64> {
  %e = arith.constant dense<0.0> : tensor<3xf64>
  %y = math.powf %x, %e : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @floor_has_none(%x: tensor<4xf64> {test.value = dense<[1.5, 2.0, -2.5, -0.0]> : tensor<4xf64>, test.gradient = dense<[1.0, 2.0, -3.0, 0.0]> : tensor<4xf64>}) -> tensor<4xf64> {
  %f = math.floor %x : tensor<4xf64>
  %y = arith.mulf %f, %x : tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @ceil_has_none(%x: tensor<4xf64> {test.value = dense<[1.5, 2.0, -2.5, -0.0]> : tensor<4xf64>, test.gradient = dense<[2.0, 2.0, -2.0, 0.0]> : tensor<4xf64>}) -> tensor<4xf64> {
  %f = math.ceil %x : tensor<4xf64>
  %y = arith.mulf %f, %x : tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @roundeven_has_none(%x: tensor<4xf64> {test.value = dense<[1.5, 2.0, -2.5, -0.0]> : tensor<4xf64>, test.gradient = dense<[2.0, 2.0, -2.0, 0.0]> : tensor<4xf64>}) -> tensor<4xf64> {
  %f = math.roundeven %x : tensor<4xf64>
  %y = arith.mulf %f, %x : tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @trunc_has_none(%x: tensor<4xf64> {test.value = dense<[1.5, 2.0, -2.5, -0.0]> : tensor<4xf64>, test.gradient = dense<[1.0, 2.0, -2.0, 0.0]> : tensor<4xf64>}) -> tensor<4xf64> {
  %f = math.trunc %x : tensor<4xf64>
  %y = arith.mulf %f, %x : tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @round_has_none(%x: tensor<4xf64> {test.value = dense<[1.5, 2.0, -2.5, 0.5]> : tensor<4xf64>, test.gradient = dense<[2.0, 2.0, -3.0, 1.0]> : tensor<4xf64>}) -> tensor<4xf64> {
  %f = math.round %x : tensor<4xf64>
  %y = arith.mulf %f, %x : tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @broadcast_of_nothing(%x: tensor<2x1xf64> {test.value = dense<[[1.0], [2.0]]> : tensor<2x1xf64>, test.gradient = dense<[[0.0], [0.0]]> : tensor<2x1xf64>}) -> tensor<2x0x3xf64> {
  %y = nn.broadcast %x dims = [0, 2] : tensor<2x1xf64> -> tensor<2x0x3xf64>
  return %y : tensor<2x0x3xf64>
}

func.func @broadcast_ones(%x: tensor<1x1xf64> {test.value = dense<[[5.0]]> : tensor<1x1xf64>, test.gradient = dense<[[3.0]]> : tensor<1x1xf64>}) -> tensor<1x3xf64> {
  %y = nn.broadcast %x dims = [0, 1] : tensor<1x1xf64> -> tensor<1x3xf64>
  return %y : tensor<1x3xf64>
}

func.func @reshape_to_scalar(%x: tensor<1x1xf64> {test.value = dense<[[5.0]]> : tensor<1x1xf64>, test.gradient = dense<[[1.0]]> : tensor<1x1xf64>}) -> tensor<f64> {
  %y = nn.reshape %x : tensor<1x1xf64> -> tensor<f64>
  return %y : tensor<f64>
}

func.func @transpose_of_nothing(%x: tensor<0x3xf64> {test.value = dense<> : tensor<0x3xf64>, test.gradient = dense<> : tensor<0x3xf64>}) -> tensor<3x0xf64> {
  %y = nn.transpose %x perm = [1, 0] : tensor<0x3xf64> -> tensor<3x0xf64>
  return %y : tensor<3x0xf64>
}

func.func @slice_of_nothing(%x: tensor<2xf64> {test.value = dense<[1.0, 2.0]> : tensor<2xf64>, test.gradient = dense<[0.0, 0.0]> : tensor<2xf64>}) -> tensor<0xf64> {
  %y = nn.slice %x starts = [1] strides = [1] : tensor<2xf64> -> tensor<0xf64>
  return %y : tensor<0xf64>
}

func.func @slice_leaves_a_tail(%x: tensor<7xf64> {test.value = dense<[1.0, 0x7FF8000000000000, 0x7FF0000000000000, 4.0, 5.0, 6.0, 7.0]> : tensor<7xf64>, test.gradient = dense<[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]> : tensor<7xf64>}) -> tensor<2xf64> {
  %y = nn.slice %x starts = [0] strides = [4] : tensor<7xf64> -> tensor<2xf64>
  return %y : tensor<2xf64>
}

func.func @pad_nothing(%x: tensor<1xf64> {test.value = dense<[3.0]> : tensor<1xf64>, test.gradient = dense<[1.0]> : tensor<1xf64>}, %v: tensor<f64> {test.value = dense<0.5> : tensor<f64>, test.gradient = dense<2.0> : tensor<f64>}) -> tensor<3xf64> {
  %y = nn.pad %x, %v low = [0] high = [2] interior = [3] : tensor<1xf64>, tensor<f64> -> tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @pad_of_infinity(%x: tensor<2xf64> {test.value = dense<[0x7FF0000000000000, 0x7FF8000000000000]> : tensor<2xf64>, test.gradient = dense<[1.0, 1.0]> : tensor<2xf64>}, %v: tensor<f64> {test.value = dense<0xFFF0000000000000> : tensor<f64>, test.gradient = dense<2.0> : tensor<f64>}) -> tensor<4xf64> {
  %y = nn.pad %x, %v low = [1] high = [0] interior = [1] : tensor<2xf64>, tensor<f64> -> tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @concat_one_value_twice_and_nothing(%x: tensor<2xf64> {test.value = dense<[0x7FF0000000000000, 2.0]> : tensor<2xf64>, test.gradient = dense<[2.0, 2.0]> : tensor<2xf64>}, %n: tensor<0xf64> {test.value = dense<> : tensor<0xf64>, test.gradient = dense<> : tensor<0xf64>}) -> tensor<4xf64> {
  %y = nn.concat %x, %n, %x axis = 0 : tensor<2xf64>, tensor<0xf64>, tensor<2xf64> -> tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @reverse_of_one(%x: tensor<1x2xf64> {test.value = dense<[[1.0, 2.0]]> : tensor<1x2xf64>, test.gradient = dense<[[1.0, 1.0]]> : tensor<1x2xf64>}) -> tensor<1x2xf64> {
  %y = nn.reverse %x axes = [0, 1] : tensor<1x2xf64>
  return %y : tensor<1x2xf64>
}

func.func @detach_has_none(%x: tensor<3xf64> {test.value = dense<[1.5, -2.0, 0x7FF0000000000000]> : tensor<3xf64>, test.gradient = dense<[1.5, -2.0, 0x7FF0000000000000]> : tensor<3xf64>}) -> tensor<3xf64> {
  %d = nn.detach %x : tensor<3xf64>
  %y = arith.mulf %d, %x : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @straight_through_rounding(%x: tensor<3xf64> {test.value = dense<[-2.5, 0.5, 3.25]> : tensor<3xf64>, test.gradient = dense<[1.0, 1.0, 1.0]> : tensor<3xf64>}) -> tensor<3xf64> {
  %r = math.roundeven %x : tensor<3xf64>
  %y = nn.straight_through %r, %x : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @random_has_none(%x: tensor<2xf64> {test.value = dense<[1.0, 0x7FF0000000000000]> : tensor<2xf64>, test.gradient = dense<[1.0, 1.0]> : tensor<2xf64>}) -> tensor<2xf64> {
  %step = arith.constant dense<3> : tensor<i64>
  %bits, %more = nn.random %step key = 11 : tensor<i64> -> tensor<2xi32>
  %f = arith.sitofp %bits : tensor<2xi32> to tensor<2xf64>
  %zero = arith.constant dense<0.0> : tensor<2xf64>
  %n = arith.mulf %f, %zero : tensor<2xf64>
  %y = arith.addf %n, %x : tensor<2xf64>
  return %y : tensor<2xf64>
}

func.func @sum_of_nothing(%x: tensor<2x0xf64> {test.value = dense<> : tensor<2x0xf64>, test.gradient = dense<> : tensor<2x0xf64>}) -> tensor<2xf64> {
  %y = nn.reduce sum %x axes = [1] : tensor<2x0xf64> -> tensor<2xf64>
  return %y : tensor<2xf64>
}

func.func @sum_of_infinities(%x: tensor<3xf64> {test.value = dense<[0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000]> : tensor<3xf64>, test.gradient = dense<[1.0, 1.0, 1.0]> : tensor<3xf64>}) -> tensor<f64> {
  %y = nn.reduce sum %x axes = [0] : tensor<3xf64> -> tensor<f64>
  return %y : tensor<f64>
}

func.func @prod_zeros(%x: tensor<3x3xf64> {test.value = dense<[[2.0, 0.0, 3.0], [0.0, 0.0, 5.0], [2.0, 3.0, 4.0]]> : tensor<3x3xf64>, test.gradient = dense<[[0.0, 6.0, 0.0], [0.0, 0.0, 0.0], [12.0, 8.0, 6.0]]> : tensor<3x3xf64>}) -> tensor<3xf64> {
  %y = nn.reduce prod %x axes = [1] : tensor<3x3xf64> -> tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @max_ties(%x: tensor<3x4xf64> {test.value = dense<[[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0], [0x7FF0000000000000, 1.0, 0x7FF0000000000000, 0xFFF0000000000000]]> : tensor<3x4xf64>, test.gradient = dense<[[0.0, 0.5, 0.5, 0.0], [0.25, 0.25, 0.25, 0.25], [0.5, 0.0, 0.5, 0.0]]> : tensor<3x4xf64>}) -> tensor<3xf64> {
  %y = nn.reduce max %x axes = [1] : tensor<3x4xf64> -> tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @min_ties(%x: tensor<4xf64> {test.value = dense<[1.0, 3.0, 1.0, 2.0]> : tensor<4xf64>, test.gradient = dense<[0.5, 0.0, 0.5, 0.0]> : tensor<4xf64>}) -> tensor<f64> {
  %y = nn.reduce min %x axes = [0] : tensor<4xf64> -> tensor<f64>
  return %y : tensor<f64>
}

func.func @moments_of_equal_values(%x: tensor<2x3xf64> {test.value = dense<[[2.0, 2.0, 2.0], [1.0, 2.0, 6.0]]> : tensor<2x3xf64>, test.gradient = dense<[[0.3333333333333333, 0.3333333333333333, 0.3333333333333333], [-1.0, -0.3333333333333333, 2.3333333333333335]]> : tensor<2x3xf64>}) -> tensor<2xf64> {
  %m, %v = nn.moments %x axes = [1] : tensor<2x3xf64> -> tensor<2xf64>
  %y = arith.addf %m, %v : tensor<2xf64>
  return %y : tensor<2xf64>
}

func.func @moments_of_one(%x: tensor<2x1xf64> {test.value = dense<[[2.0], [-3.0]]> : tensor<2x1xf64>, test.gradient = dense<[[1.0], [1.0]]> : tensor<2x1xf64>}) -> tensor<2xf64> {
  %m, %v = nn.moments %x axes = [1] : tensor<2x1xf64> -> tensor<2xf64>
  %y = arith.addf %m, %v : tensor<2xf64>
  return %y : tensor<2xf64>
}

func.func @cumsum_of_infinity(%x: tensor<4xf64> {test.value = dense<[1.0, 0x7FF0000000000000, 0xFFF0000000000000, 2.0]> : tensor<4xf64>, test.gradient = dense<[3.0, 2.0, 1.0, 0.0]> : tensor<4xf64>}) -> tensor<4xf64> {
  %y = nn.cumsum %x axis = 0 exclusive : tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @softmax_extremes(%x: tensor<3x3xf64> {test.value = dense<[[0.0, 0xFFF0000000000000, 1.0], [1000.0, -1000.0, 0.0], [0x7FF0000000000000, 0x7FF0000000000000, 0x7FF0000000000000]]> : tensor<3x3xf64>, test.gradient = dense<[[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0x7FF8000000000000, 0x7FF8000000000000, 0x7FF8000000000000]]> : tensor<3x3xf64>}) -> tensor<3x3xf64> {
  %y = nn.softmax %x axis = 1 : tensor<3x3xf64>
  return %y : tensor<3x3xf64>
}

func.func @softmax_picks_one(%x: tensor<3xf64> {test.value = dense<[2.0, 2.0, 0xFFF0000000000000]> : tensor<3xf64>, test.gradient = dense<[-0.25, 0.25, -0.0]> : tensor<3xf64>}) -> tensor<1xf64> {
  %p = nn.softmax %x axis = 0 : tensor<3xf64>
  %y = nn.slice %p starts = [1] strides = [1] : tensor<3xf64> -> tensor<1xf64>
  return %y : tensor<1xf64>
}

func.func @log_softmax_extremes(%x: tensor<3xf64> {test.value = dense<[-1000.0, 1000.0, 0xFFF0000000000000]> : tensor<3xf64>, test.gradient = dense<[1.0, -1.0, 0.0]> : tensor<3xf64>}) -> tensor<1xf64> {
  %p = nn.log_softmax %x axis = 0 : tensor<3xf64>
  %y = nn.slice %p starts = [0] strides = [1] : tensor<3xf64> -> tensor<1xf64>
  return %y : tensor<1xf64>
}

func.func @arg_reduce_has_none(%x: tensor<3xf64> {test.value = dense<[1.0, 3.0, 3.0]> : tensor<3xf64>, test.gradient = dense<[1.0, 1.0, 1.0]> : tensor<3xf64>}) -> tensor<f64> {
  %i = nn.arg_reduce max %x axis = 0 : tensor<3xf64> -> tensor<i64>
  %f = arith.sitofp %i : tensor<i64> to tensor<f64>
  %m = nn.reduce sum %x axes = [0] : tensor<3xf64> -> tensor<f64>
  %y = arith.mulf %f, %m : tensor<f64>
  return %y : tensor<f64>
}

func.func @arg_sort_keeps_ties_in_order(%x: tensor<4xf64> {test.value = dense<[1.0, 3.0, 3.0, 3.0]> : tensor<4xf64>, test.gradient = dense<[0.0, 1.0, 1.0, 0.0]> : tensor<4xf64>}) -> tensor<2xf64> {
  %i = nn.arg_sort %x axis = 0 descending : tensor<4xf64> -> tensor<2xi64>
  %y = nn.gather_elements %x, %i axis = 0 : tensor<4xf64>, tensor<2xi64> -> tensor<2xf64>
  return %y : tensor<2xf64>
}

func.func @dot_over_nothing(%a: tensor<2x0xf64> {test.value = dense<> : tensor<2x0xf64>, test.gradient = dense<> : tensor<2x0xf64>}, %b: tensor<0x3xf64> {test.value = dense<> : tensor<0x3xf64>, test.gradient = dense<> : tensor<0x3xf64>}) -> tensor<2x3xf64> {
  %y = nn.dot %a, %b batch = [] x [] contract = [1] x [0] : tensor<2x0xf64>, tensor<0x3xf64> -> tensor<2x3xf64>
  return %y : tensor<2x3xf64>
}

func.func @dot_zero_times_infinity(%a: tensor<1x2xf64> {test.value = dense<[[0.0, 1.0]]> : tensor<1x2xf64>, test.gradient = dense<[[0x7FF0000000000000, 2.0]]> : tensor<1x2xf64>}, %b: tensor<2x1xf64> {test.value = dense<[[0x7FF0000000000000], [2.0]]> : tensor<2x1xf64>, test.gradient = dense<[[0.0], [1.0]]> : tensor<2x1xf64>}) -> tensor<1x1xf64> {
  %y = nn.dot %a, %b batch = [] x [] contract = [1] x [0] : tensor<1x2xf64>, tensor<2x1xf64> -> tensor<1x1xf64>
  return %y : tensor<1x1xf64>
}

func.func @dot_one_value_twice(%a: tensor<2xf64> {test.value = dense<[3.0, -4.0]> : tensor<2xf64>, test.gradient = dense<[6.0, -8.0]> : tensor<2xf64>}) -> tensor<f64> {
  %y = nn.dot %a, %a batch = [] x [] contract = [0] x [0] : tensor<2xf64>, tensor<2xf64> -> tensor<f64>
  return %y : tensor<f64>
}

func.func @conv_unread_elements(%x: tensor<1x6x1xf64> {test.value = dense<[[[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]]> : tensor<1x6x1xf64>, test.gradient = dense<[[[-1.0], [2.0], [0.0], [-1.0], [0.0], [0.0]]]> : tensor<1x6x1xf64>}, %w: tensor<2x1x1xf64> {test.value = dense<[[[2.0]], [[-1.0]]]> : tensor<2x1x1xf64>, test.gradient = dense<[[[2.0]], [[5.0]]]> : tensor<2x1x1xf64>}) -> tensor<1x2x1xf64> {
  %y = nn.conv %x, %w strides = [3] padding = [2] to [0] dilations = [2] groups = 1 : tensor<1x6x1xf64>, tensor<2x1x1xf64> -> tensor<1x2x1xf64>
  return %y : tensor<1x2x1xf64>
}

func.func @conv_input_grad_unread_elements(%g: tensor<1x2x1xf64> {test.value = dense<[[[1.0], [-2.0]]]> : tensor<1x2x1xf64>, test.gradient = dense<[[[-1.0], [1.0]]]> : tensor<1x2x1xf64>}, %w: tensor<2x1x1xf64> {test.value = dense<[[[2.0]], [[-1.0]]]> : tensor<2x1x1xf64>, test.gradient = dense<[[[-2.0]], [[-1.0]]]> : tensor<2x1x1xf64>}) -> tensor<1x6x1xf64> {
  %y = nn.conv_input_grad %g, %w strides = [3] padding = [2] to [0] dilations = [2] groups = 1 : tensor<1x2x1xf64>, tensor<2x1x1xf64> -> tensor<1x6x1xf64>
  return %y : tensor<1x6x1xf64>
}

func.func @conv_filter_grad_unread_elements(%x: tensor<1x6x1xf64> {test.value = dense<[[[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]]> : tensor<1x6x1xf64>, test.gradient = dense<[[[1.0], [-2.0], [0.0], [-2.0], [0.0], [0.0]]]> : tensor<1x6x1xf64>}, %g: tensor<1x2x1xf64> {test.value = dense<[[[1.0], [-2.0]]]> : tensor<1x2x1xf64>, test.gradient = dense<[[[1.0], [6.0]]]> : tensor<1x2x1xf64>}) -> tensor<2x1x1xf64> {
  %y = nn.conv_filter_grad %x, %g strides = [3] padding = [2] to [0] dilations = [2] groups = 1 : tensor<1x6x1xf64>, tensor<1x2x1xf64> -> tensor<2x1x1xf64>
  return %y : tensor<2x1x1xf64>
}

func.func @max_pool_ties(%x: tensor<1x4x1xf64> {test.value = dense<[[[2.0], [2.0], [1.0], [1.0]]]> : tensor<1x4x1xf64>, test.gradient = dense<[[[1.0], [0.0], [1.0], [0.0]]]> : tensor<1x4x1xf64>}) -> tensor<1x2x1xf64> {
  %y, %i = nn.max_pool %x window = [2] strides = [2] padding = [0] to [0] overhang = [0] dilations = [1] : tensor<1x4x1xf64> -> tensor<1x2x1xf64>, tensor<1x2x1xi8>
  return %y : tensor<1x2x1xf64>
}

func.func @max_pool_infinities(%x: tensor<1x5x1xf64> {test.value = dense<[[[0x7FF0000000000000], [1.0], [0x7FF0000000000000], [0xFFF0000000000000], [0xFFF0000000000000]]]> : tensor<1x5x1xf64>, test.gradient = dense<[[[2.0], [0.0], [2.0], [1.0], [0.0]]]> : tensor<1x5x1xf64>}) -> tensor<1x5x1xf64> {
  %y, %i = nn.max_pool %x window = [3] strides = [1] padding = [1] to [1] overhang = [0] dilations = [1] : tensor<1x5x1xf64> -> tensor<1x5x1xf64>, tensor<1x5x1xi8>
  return %y : tensor<1x5x1xf64>
}

func.func @max_pool_grad_repeated(%g: tensor<1x3x1xf64> {test.value = dense<[[[1.0], [0x7FF0000000000000], [2.0]]]> : tensor<1x3x1xf64>, test.gradient = dense<[[[1.0], [1.0], [1.0]]]> : tensor<1x3x1xf64>}, %i: tensor<1x3x1xi8> {test.value = dense<[[[2], [1], [1]]]> : tensor<1x3x1xi8>}) -> tensor<1x3x1xf64> {
  %y = nn.max_pool_grad %g, %i window = [3] strides = [1] padding = [1] to [1] overhang = [0] dilations = [1] : tensor<1x3x1xf64>, tensor<1x3x1xi8> -> tensor<1x3x1xf64>
  return %y : tensor<1x3x1xf64>
}

func.func @avg_pool_borders(%x: tensor<1x4x1xf64> {test.value = dense<[[[0x7FF0000000000000], [1.0], [2.0], [0x7FF8000000000000]]]> : tensor<1x4x1xf64>, test.gradient = dense<[[[0.8333333333333333], [1.1666666666666665], [1.1666666666666665], [0.8333333333333333]]]> : tensor<1x4x1xf64>}) -> tensor<1x4x1xf64> {
  %y = nn.avg_pool %x window = [3] strides = [1] padding = [1] to [1] overhang = [0] dilations = [1] : tensor<1x4x1xf64> -> tensor<1x4x1xf64>
  return %y : tensor<1x4x1xf64>
}

func.func @avg_pool_borders_counted(%x: tensor<1x4x1xf64> {test.value = dense<[[[1.0], [1.0], [2.0], [3.0]]]> : tensor<1x4x1xf64>, test.gradient = dense<[[[0.6666666666666666], [1.0], [1.0], [0.6666666666666666]]]> : tensor<1x4x1xf64>}) -> tensor<1x4x1xf64> {
  %y = nn.avg_pool %x window = [3] strides = [1] padding = [1] to [1] overhang = [0] dilations = [1] count_include_pad : tensor<1x4x1xf64> -> tensor<1x4x1xf64>
  return %y : tensor<1x4x1xf64>
}

func.func @avg_pool_grad_borders(%g: tensor<1x4x1xf64> {test.value = dense<[[[0x7FF0000000000000], [1.0], [2.0], [3.0]]]> : tensor<1x4x1xf64>, test.gradient = dense<[[[1.0], [1.0], [1.0], [1.0]]]> : tensor<1x4x1xf64>}) -> tensor<1x4x1xf64> {
  %y = nn.avg_pool_grad %g window = [3] strides = [1] padding = [1] to [1] overhang = [0] dilations = [1] : tensor<1x4x1xf64> -> tensor<1x4x1xf64>
  return %y : tensor<1x4x1xf64>
}

func.func @gather_repeated(%x: tensor<3x1xf64> {test.value = dense<[[0x7FF0000000000000], [1.0], [2.0]]> : tensor<3x1xf64>, test.gradient = dense<[[0.0], [3.0], [1.0]]> : tensor<3x1xf64>}, %i: tensor<4xi64> {test.value = dense<[1, 1, 2, 1]> : tensor<4xi64>}) -> tensor<4x1xf64> {
  %y = nn.gather %x, %i axis = 0 : tensor<3x1xf64>, tensor<4xi64> -> tensor<4x1xf64>
  return %y : tensor<4x1xf64>
}

func.func @scatter_add_repeated(%i: tensor<3xi64> {test.value = dense<[1, 1, 0]> : tensor<3xi64>}, %u: tensor<3x1xf64> {test.value = dense<[[1.0], [0x7FF0000000000000], [2.0]]> : tensor<3x1xf64>, test.gradient = dense<[[1.0], [1.0], [1.0]]> : tensor<3x1xf64>}) -> tensor<3x1xf64> {
  %y = nn.scatter_add %i, %u axis = 0 : tensor<3xi64>, tensor<3x1xf64> -> tensor<3x1xf64>
  return %y : tensor<3x1xf64>
}

func.func @gather_elements_repeated(%x: tensor<3xf64> {test.value = dense<[0x7FF0000000000000, 1.0, 2.0]> : tensor<3xf64>, test.gradient = dense<[0.0, 2.0, 1.0]> : tensor<3xf64>}, %i: tensor<3xi64> {test.value = dense<[1, 1, 2]> : tensor<3xi64>}) -> tensor<3xf64> {
  %y = nn.gather_elements %x, %i axis = 0 : tensor<3xf64>, tensor<3xi64> -> tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @scatter_set_overwrites(%x: tensor<3xf64> {test.value = dense<[1.0, 0x7FF0000000000000, 1.0]> : tensor<3xf64>, test.gradient = dense<[1.0, 0.0, 1.0]> : tensor<3xf64>}, %i: tensor<1xi64> {test.value = dense<[1]> : tensor<1xi64>}, %u: tensor<1xf64> {test.value = dense<[5.0]> : tensor<1xf64>, test.gradient = dense<[1.0]> : tensor<1xf64>}) -> tensor<3xf64> {
  %y = nn.scatter_elements set %x, %i, %u axis = 0 : tensor<3xf64>, tensor<1xi64>, tensor<1xf64> -> tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @scatter_add_to_itself(%x: tensor<2xf64> {test.value = dense<[1.0, 2.0]> : tensor<2xf64>, test.gradient = dense<[1.0, 1.0]> : tensor<2xf64>}, %i: tensor<2xi64> {test.value = dense<[1, 1]> : tensor<2xi64>}, %u: tensor<2xf64> {test.value = dense<[5.0, 0x7FF0000000000000]> : tensor<2xf64>, test.gradient = dense<[1.0, 1.0]> : tensor<2xf64>}) -> tensor<2xf64> {
  %y = nn.scatter_elements add %x, %i, %u axis = 0 : tensor<2xf64>, tensor<2xi64>, tensor<2xf64> -> tensor<2xf64>
  return %y : tensor<2xf64>
}

func.func @scatter_mul_zeros(%x: tensor<2xf64> {test.value = dense<[2.0, 3.0]> : tensor<2xf64>, test.gradient = dense<[0.0, 20.0]> : tensor<2xf64>}, %i: tensor<4xi64> {test.value = dense<[0, 0, 1, 1]> : tensor<4xi64>}, %u: tensor<4xf64> {test.value = dense<[0.0, 7.0, 4.0, 5.0]> : tensor<4xf64>, test.gradient = dense<[14.0, 0.0, 15.0, 12.0]> : tensor<4xf64>}) -> tensor<2xf64> {
  %y = nn.scatter_elements mul %x, %i, %u axis = 0 : tensor<2xf64>, tensor<4xi64>, tensor<4xf64> -> tensor<2xf64>
  return %y : tensor<2xf64>
}

func.func @scatter_max_ties(%x: tensor<3xf64> {test.value = dense<[1.0, 3.0, 0x7FF0000000000000]> : tensor<3xf64>, test.gradient = dense<[0.3333333333333333, 0.5, 0.5]> : tensor<3xf64>}, %i: tensor<5xi64> {test.value = dense<[0, 0, 1, 1, 2]> : tensor<5xi64>}, %u: tensor<5xf64> {test.value = dense<[1.0, 1.0, 3.0, 2.0, 0x7FF0000000000000]> : tensor<5xf64>, test.gradient = dense<[0.3333333333333333, 0.3333333333333333, 0.5, 0.0, 0.5]> : tensor<5xf64>}) -> tensor<3xf64> {
  %y = nn.scatter_elements max %x, %i, %u axis = 0 : tensor<3xf64>, tensor<5xi64>, tensor<5xf64> -> tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @scatter_min_ties(%x: tensor<3xf64> {test.value = dense<[1.0, 3.0, 0x7FF0000000000000]> : tensor<3xf64>, test.gradient = dense<[0.3333333333333333, 0.0, 0.5]> : tensor<3xf64>}, %i: tensor<5xi64> {test.value = dense<[0, 0, 1, 1, 2]> : tensor<5xi64>}, %u: tensor<5xf64> {test.value = dense<[1.0, 1.0, 3.0, 2.0, 0x7FF0000000000000]> : tensor<5xf64>, test.gradient = dense<[0.3333333333333333, 0.3333333333333333, 0.0, 1.0, 0.5]> : tensor<5xf64>}) -> tensor<3xf64> {
  %y = nn.scatter_elements min %x, %i, %u axis = 0 : tensor<3xf64>, tensor<5xi64>, tensor<5xf64> -> tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @scan_kink(%h: tensor<3xf64> {test.value = dense<[1.0, 0.0, -2.0]> : tensor<3xf64>, test.gradient = dense<[27.0, 0.0, 0.0]> : tensor<3xf64>}, %w: tensor<3xf64> {test.value = dense<[-3.0, 4.0, 0.0]> : tensor<3xf64>, test.gradient = dense<[-27.0, 0.0, 0.0]> : tensor<3xf64>}) -> tensor<3xf64> {
  %y = nn.scan 3 carry(%h) over() with(%w) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64> {
  ^bb0(%a: tensor<3xf64>, %v: tensor<3xf64>):
  %0 = arith.mulf %a, %v : tensor<3xf64>
  %1 = math.absf %0 : tensor<3xf64>
  nn.yield %1 : tensor<3xf64>
  }
  return %y : tensor<3xf64>
}

func.func @scan_once(%h: tensor<2xf64> {test.value = dense<[1.0, -2.0]> : tensor<2xf64>, test.gradient = dense<[0x7FF0000000000000, 0.0]> : tensor<2xf64>}, %w: tensor<2xf64> {test.value = dense<[0.0, 0x7FF0000000000000]> : tensor<2xf64>, test.gradient = dense<[0xFFF0000000000000, 0.0]> : tensor<2xf64>}) -> tensor<2xf64> {
  %y = nn.scan 1 carry(%h) over() with(%w) : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64> {
  ^bb0(%a: tensor<2xf64>, %v: tensor<2xf64>):
  %0 = arith.divf %a, %v : tensor<2xf64>
  nn.yield %0 : tensor<2xf64>
  }
  return %y : tensor<2xf64>
}

