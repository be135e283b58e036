// Kinks, ties, zeros: exact gradients for a cotangent of ones. The conventions are PyTorch's.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

func.func @absf_at_zero(%x: tensor<3xf64> {test.value = dense<[-2.0, 0.0, 3.0]> : tensor<3xf64>, test.gradient = dense<[-1.0, 0.0, 1.0]> : tensor<3xf64>}) -> tensor<3xf64> {
  %y = math.absf %x : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @relu_at_zero(%x: tensor<3xf64> {test.value = dense<[-2.0, 0.0, 3.0]> : tensor<3xf64>, test.gradient = dense<[0.0, 0.0, 1.0]> : tensor<3xf64>}) -> tensor<3xf64> {
  %zero = arith.constant dense<0.0> : tensor<3xf64>
  %positive = arith.cmpf ugt, %x, %zero : tensor<3xf64>
  %y = arith.select %positive, %x, %zero : tensor<3xi1>, tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @floor_has_none(%x: tensor<2xf64> {test.value = dense<[1.5, 2.0]> : tensor<2xf64>, test.gradient = dense<[1.0, 2.0]> : tensor<2xf64>}) -> tensor<2xf64> {
  %f = math.floor %x : tensor<2xf64>
  %y = arith.mulf %f, %x : tensor<2xf64>
  return %y : tensor<2xf64>
}

func.func @powf_of_zero(%x: tensor<4xf64> {test.value = dense<[0.0, 0.0, 0.0, 2.0]> : tensor<4xf64>, test.gradient = dense<[1.0, 0.0, 0.0, 4.0]> : tensor<4xf64>},
                        %e: tensor<4xf64> {test.value = dense<[1.0, 2.0, 0.0, 2.0]> : tensor<4xf64>}) -> tensor<4xf64> {
  %y = math.powf %x, %e : tensor<4xf64>
  return %y : tensor<4xf64>
}

func.func @powf_exponent_at_zero_base(%x: tensor<2xf64> {test.value = dense<[0.0, 1.0]> : tensor<2xf64>},
                                      %e: tensor<2xf64> {test.value = dense<[1.5, 2.0]> : tensor<2xf64>, test.gradient = dense<[0.0, 0.0]> : tensor<2xf64>}) -> tensor<2xf64> {
  %y = math.powf %x, %e : tensor<2xf64>
  return %y : tensor<2xf64>
}

func.func @powf_negative_base(%x: tensor<2xf64> {test.value = dense<[-2.0, -3.0]> : tensor<2xf64>, test.gradient = dense<[12.0, 27.0]> : tensor<2xf64>}) -> tensor<2xf64> {
  %three = arith.constant dense<3.0> : tensor<2xf64>
  %y = math.powf %x, %three : tensor<2xf64>
  return %y : tensor<2xf64>
}

func.func @reduce_max_ties(%x: tensor<2x4xf64> {test.value = dense<[[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0]]> : tensor<2x4xf64>,
                                                test.gradient = dense<[[0.0, 0.5, 0.5, 0.0], [0.25, 0.25, 0.25, 0.25]]> : tensor<2x4xf64>}) -> tensor<2xf64> {
  %y = nn.reduce max %x axes = [1] : tensor<2x4xf64> -> tensor<2xf64>
  return %y : tensor<2xf64>
}

func.func @reduce_min_ties(%x: tensor<4xf64> {test.value = dense<[1.0, 3.0, 1.0, 2.0]> : tensor<4xf64>, test.gradient = dense<[0.5, 0.0, 0.5, 0.0]> : tensor<4xf64>}) -> tensor<f64> {
  %y = nn.reduce min %x axes = [0] : tensor<4xf64> -> tensor<f64>
  return %y : tensor<f64>
}

func.func @reduce_prod_zeros(%x: tensor<3x3xf64> {test.value = dense<[[2.0, 0.0, 3.0], [0.0, 0.0, 5.0], [2.0, 3.0, 4.0]]> : tensor<3x3xf64>,
                                                  test.gradient = dense<[[0.0, 6.0, 0.0], [0.0, 0.0, 0.0], [12.0, 8.0, 6.0]]> : tensor<3x3xf64>}) -> tensor<3xf64> {
  %y = nn.reduce prod %x axes = [1] : tensor<3x3xf64> -> tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @max_pool_ties(%x: tensor<1x1x4x1xf64> {test.value = dense<[[[[2.0], [2.0], [1.0], [1.0]]]]> : tensor<1x1x4x1xf64>,
                                                  test.gradient = dense<[[[[1.0], [0.0], [1.0], [0.0]]]]> : tensor<1x1x4x1xf64>}) -> tensor<1x1x2x1xf64> {
  %y, %i = nn.max_pool %x window = [1, 2] strides = [1, 2] padding = [0, 0] to [0, 0] overhang = [0, 0] dilations = [1, 1] : tensor<1x1x4x1xf64> -> tensor<1x1x2x1xf64>, tensor<1x1x2x1xi32>
  return %y : tensor<1x1x2x1xf64>
}

func.func @gather_repeated(%x: tensor<3x1xf64> {test.value = dense<1.0> : tensor<3x1xf64>, test.gradient = dense<[[0.0], [3.0], [1.0]]> : tensor<3x1xf64>},
                           %i: tensor<4xi64> {test.value = dense<[1, 1, 2, 1]> : tensor<4xi64>}) -> tensor<4x1xf64> {
  %y = nn.gather %x, %i axis = 0 : tensor<3x1xf64>, tensor<4xi64> -> tensor<4x1xf64>
  return %y : tensor<4x1xf64>
}

func.func @scatter_set_overwrites(%x: tensor<3xf64> {test.value = dense<1.0> : tensor<3xf64>, test.gradient = dense<[1.0, 0.0, 1.0]> : tensor<3xf64>},
                                  %i: tensor<1xi64> {test.value = dense<1> : tensor<1xi64>},
                                  %u: tensor<1xf64> {test.value = dense<5.0> : tensor<1xf64>, test.gradient = dense<1.0> : tensor<1xf64>}) -> tensor<3xf64> {
  %y = nn.scatter_elements set %x, %i, %u axis = 0 : tensor<3xf64>, tensor<1xi64>, tensor<1xf64> -> tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @scatter_mul_zeros(%x: tensor<2xf64> {test.value = dense<[2.0, 3.0]> : tensor<2xf64>, test.gradient = dense<[0.0, 20.0]> : tensor<2xf64>},
                             %i: tensor<4xi64> {test.value = dense<[0, 0, 1, 1]> : tensor<4xi64>},
                             %u: tensor<4xf64> {test.value = dense<[0.0, 7.0, 4.0, 5.0]> : tensor<4xf64>, test.gradient = dense<[14.0, 0.0, 15.0, 12.0]> : tensor<4xf64>}) -> tensor<2xf64> {
  %y = nn.scatter_elements mul %x, %i, %u axis = 0 : tensor<2xf64>, tensor<4xi64>, tensor<4xf64> -> tensor<2xf64>
  return %y : tensor<2xf64>
}

func.func @detach_has_none(%x: tensor<2xf64> {test.value = dense<[1.5, -2.0]> : tensor<2xf64>, test.gradient = dense<[1.5, -2.0]> : tensor<2xf64>}) -> tensor<2xf64> {
  %d = nn.detach %x : tensor<2xf64>
  %y = arith.mulf %d, %x : tensor<2xf64>
  return %y : tensor<2xf64>
}

func.func @straight_through_rounding(%x: tensor<3xf64> {test.value = dense<[-2.5, 0.5, 3.25]> : tensor<3xf64>, test.gradient = dense<[1.0, 1.0, 1.0]> : tensor<3xf64>}) -> tensor<3xf64> {
  %rounded = math.roundeven %x : tensor<3xf64>
  %y = nn.straight_through %rounded, %x : tensor<3xf64>
  return %y : tensor<3xf64>
}
