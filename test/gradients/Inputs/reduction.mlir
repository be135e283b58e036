// Reductions, running sums, softmax.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

func.func @sum_inner(%x: tensor<3x5x7xf64>) -> tensor<3x5xf64> {
  %y = nn.reduce sum %x axes = [2] : tensor<3x5x7xf64> -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @sum_outer(%x: tensor<3x5x7xf64>) -> tensor<5x7xf64> {
  %y = nn.reduce sum %x axes = [0] : tensor<3x5x7xf64> -> tensor<5x7xf64>
  return %y : tensor<5x7xf64>
}

func.func @sum_two(%x: tensor<3x5x7xf64>) -> tensor<5xf64> {
  %y = nn.reduce sum %x axes = [0, 2] : tensor<3x5x7xf64> -> tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @sum_all(%x: tensor<3x2xf64>) -> tensor<f64> {
  %y = nn.reduce sum %x axes = [0, 1] : tensor<3x2xf64> -> tensor<f64>
  return %y : tensor<f64>
}

func.func @prod_inner(%x: tensor<3x5x7xf64>) -> tensor<3x5xf64> {
  %y = nn.reduce prod %x axes = [2] : tensor<3x5x7xf64> -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @prod_outer(%x: tensor<3x5x7xf64>) -> tensor<5x7xf64> {
  %y = nn.reduce prod %x axes = [0] : tensor<3x5x7xf64> -> tensor<5x7xf64>
  return %y : tensor<5x7xf64>
}

func.func @prod_two(%x: tensor<3x5x7xf64>) -> tensor<5xf64> {
  %y = nn.reduce prod %x axes = [0, 2] : tensor<3x5x7xf64> -> tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @prod_all(%x: tensor<3x2xf64>) -> tensor<f64> {
  %y = nn.reduce prod %x axes = [0, 1] : tensor<3x2xf64> -> tensor<f64>
  return %y : tensor<f64>
}

func.func @max_inner(%x: tensor<3x5x7xf64>) -> tensor<3x5xf64> {
  %y = nn.reduce max %x axes = [2] : tensor<3x5x7xf64> -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @max_outer(%x: tensor<3x5x7xf64>) -> tensor<5x7xf64> {
  %y = nn.reduce max %x axes = [0] : tensor<3x5x7xf64> -> tensor<5x7xf64>
  return %y : tensor<5x7xf64>
}

func.func @max_two(%x: tensor<3x5x7xf64>) -> tensor<5xf64> {
  %y = nn.reduce max %x axes = [0, 2] : tensor<3x5x7xf64> -> tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @max_all(%x: tensor<3x2xf64>) -> tensor<f64> {
  %y = nn.reduce max %x axes = [0, 1] : tensor<3x2xf64> -> tensor<f64>
  return %y : tensor<f64>
}

func.func @min_inner(%x: tensor<3x5x7xf64>) -> tensor<3x5xf64> {
  %y = nn.reduce min %x axes = [2] : tensor<3x5x7xf64> -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @min_outer(%x: tensor<3x5x7xf64>) -> tensor<5x7xf64> {
  %y = nn.reduce min %x axes = [0] : tensor<3x5x7xf64> -> tensor<5x7xf64>
  return %y : tensor<5x7xf64>
}

func.func @min_two(%x: tensor<3x5x7xf64>) -> tensor<5xf64> {
  %y = nn.reduce min %x axes = [0, 2] : tensor<3x5x7xf64> -> tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @min_all(%x: tensor<3x2xf64>) -> tensor<f64> {
  %y = nn.reduce min %x axes = [0, 1] : tensor<3x2xf64> -> tensor<f64>
  return %y : tensor<f64>
}

func.func @prod_of_one(%x: tensor<3x1xf64>) -> tensor<3xf64> {
  %y = nn.reduce prod %x axes = [1] : tensor<3x1xf64> -> tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @prod_of_pair(%x: tensor<3x2xf64>) -> tensor<3xf64> {
  %y = nn.reduce prod %x axes = [1] : tensor<3x2xf64> -> tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @moments(%x: tensor<3x5x7xf64>) -> (tensor<5xf64>, tensor<5xf64>) {
  %m, %v = nn.moments %x axes = [0, 2] : tensor<3x5x7xf64> -> tensor<5xf64>
  return %m, %v : tensor<5xf64>, tensor<5xf64>
}

func.func @moments_mean(%x: tensor<3x5xf64>) -> tensor<3xf64> {
  %m, %v = nn.moments %x axes = [1] : tensor<3x5xf64> -> tensor<3xf64>
  return %m : tensor<3xf64>
}

func.func @moments_variance(%x: tensor<3x5xf64>) -> tensor<3xf64> {
  %m, %v = nn.moments %x axes = [1] : tensor<3x5xf64> -> tensor<3xf64>
  return %v : tensor<3xf64>
}

func.func @cumsum(%x: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %y = nn.cumsum %x axis = 1 : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @cumsum_exclusive(%x: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %y = nn.cumsum %x axis = 1 exclusive : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @cumsum_reverse(%x: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %y = nn.cumsum %x axis = 1 reverse : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @cumsum_both(%x: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %y = nn.cumsum %x axis = 1 exclusive reverse : tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}

func.func @softmax_0(%x: tensor<3x5x2xf64>) -> tensor<3x5x2xf64> {
  %y = nn.softmax %x axis = 0 : tensor<3x5x2xf64>
  return %y : tensor<3x5x2xf64>
}

func.func @softmax_1(%x: tensor<3x5x2xf64>) -> tensor<3x5x2xf64> {
  %y = nn.softmax %x axis = 1 : tensor<3x5x2xf64>
  return %y : tensor<3x5x2xf64>
}

func.func @softmax_2(%x: tensor<3x5x2xf64>) -> tensor<3x5x2xf64> {
  %y = nn.softmax %x axis = 2 : tensor<3x5x2xf64>
  return %y : tensor<3x5x2xf64>
}

func.func @log_softmax_0(%x: tensor<3x5x2xf64>) -> tensor<3x5x2xf64> {
  %y = nn.log_softmax %x axis = 0 : tensor<3x5x2xf64>
  return %y : tensor<3x5x2xf64>
}

func.func @log_softmax_1(%x: tensor<3x5x2xf64>) -> tensor<3x5x2xf64> {
  %y = nn.log_softmax %x axis = 1 : tensor<3x5x2xf64>
  return %y : tensor<3x5x2xf64>
}

func.func @log_softmax_2(%x: tensor<3x5x2xf64>) -> tensor<3x5x2xf64> {
  %y = nn.log_softmax %x axis = 2 : tensor<3x5x2xf64>
  return %y : tensor<3x5x2xf64>
}

func.func @arg_reduce(%x: tensor<3x5xf64>) -> tensor<3xf64> {
  %i = nn.arg_reduce max %x axis = 1 : tensor<3x5xf64> -> tensor<3xi64>
  %f = arith.sitofp %i : tensor<3xi64> to tensor<3xf64>
  %m = nn.reduce max %x axes = [1] : tensor<3x5xf64> -> tensor<3xf64>
  %y = arith.mulf %f, %m : tensor<3xf64>
  return %y : tensor<3xf64>
}

// The values of a top-k: their gradient goes where they came from.
func.func @arg_sort(%x: tensor<3x5xf64>) -> tensor<3x2xf64> {
  %i = nn.arg_sort %x axis = 1 descending : tensor<3x5xf64> -> tensor<3x2xi64>
  %y = nn.gather_elements %x, %i axis = 1 : tensor<3x5xf64>, tensor<3x2xi64> -> tensor<3x2xf64>
  return %y : tensor<3x2xf64>
}
