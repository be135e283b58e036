// Shape and data movement.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

func.func @broadcast_new(%x: tensor<5xf64>) -> tensor<3x5x2xf64> {
  %y = nn.broadcast %x dims = [1] : tensor<5xf64> -> tensor<3x5x2xf64>
  return %y : tensor<3x5x2xf64>
}

func.func @broadcast_unit(%x: tensor<3x1xf64>) -> tensor<3x4x5xf64> {
  %y = nn.broadcast %x dims = [0, 2] : tensor<3x1xf64> -> tensor<3x4x5xf64>
  return %y : tensor<3x4x5xf64>
}

func.func @broadcast_unit_kept(%x: tensor<1x3xf64>) -> tensor<1x3xf64> {
  %y = nn.broadcast %x dims = [0, 1] : tensor<1x3xf64> -> tensor<1x3xf64>
  return %y : tensor<1x3xf64>
}

func.func @broadcast_scalar(%x: tensor<f64>) -> tensor<3x2xf64> {
  %y = nn.broadcast %x dims = [] : tensor<f64> -> tensor<3x2xf64>
  return %y : tensor<3x2xf64>
}

func.func @reshape(%x: tensor<2x6xf64>) -> tensor<3x1x4xf64> {
  %y = nn.reshape %x : tensor<2x6xf64> -> tensor<3x1x4xf64>
  return %y : tensor<3x1x4xf64>
}

func.func @transpose(%x: tensor<2x3x5xf64>) -> tensor<5x2x3xf64> {
  %y = nn.transpose %x perm = [2, 0, 1] : tensor<2x3x5xf64> -> tensor<5x2x3xf64>
  return %y : tensor<5x2x3xf64>
}

func.func @slice(%x: tensor<7x5xf64>) -> tensor<3x2xf64> {
  %y = nn.slice %x starts = [1, 0] strides = [2, 3] : tensor<7x5xf64> -> tensor<3x2xf64>
  return %y : tensor<3x2xf64>
}

func.func @slice_tail(%x: tensor<7x6xf64>) -> tensor<2x4xf64> {
  %y = nn.slice %x starts = [0, 2] strides = [3, 1] : tensor<7x6xf64> -> tensor<2x4xf64>
  return %y : tensor<2x4xf64>
}

func.func @pad(%x: tensor<3x2xf64>, %v: tensor<f64>) -> tensor<8x5xf64> {
  %y = nn.pad %x, %v low = [1, 0] high = [0, 2] interior = [2, 1] : tensor<3x2xf64>, tensor<f64> -> tensor<8x5xf64>
  return %y : tensor<8x5xf64>
}

func.func @concat(%a: tensor<2x3xf64>, %b: tensor<2x1xf64>, %c: tensor<2x4xf64>) -> tensor<2x8xf64> {
  %y = nn.concat %a, %b, %c axis = 1 : tensor<2x3xf64>, tensor<2x1xf64>, tensor<2x4xf64> -> tensor<2x8xf64>
  return %y : tensor<2x8xf64>
}

func.func @concat_twice(%a: tensor<2x3xf64>) -> tensor<4x3xf64> {
  %y = nn.concat %a, %a axis = 0 : tensor<2x3xf64>, tensor<2x3xf64> -> tensor<4x3xf64>
  return %y : tensor<4x3xf64>
}

func.func @reverse(%x: tensor<2x3x5xf64>) -> tensor<2x3x5xf64> {
  %y = nn.reverse %x axes = [0, 2] : tensor<2x3x5xf64>
  return %y : tensor<2x3x5xf64>
}

// Central differences do not see a constant either when it is a whole number.
func.func @detach(%a: tensor<2x3xf64> {test.value = dense<[[0.25, -0.75, 1.3], [5.2, 6.8, -7.3]]> : tensor<2x3xf64>}) -> tensor<2x3xf64> {
  %f = math.floor %a : tensor<2x3xf64>
  %d = nn.detach %f : tensor<2x3xf64>
  %y = arith.mulf %d, %a : tensor<2x3xf64>
  return %y : tensor<2x3xf64>
}

// The mask of dropout is the same in every evaluation, and no part of the gradient.
func.func @random(%x: tensor<4x5xf64>) -> tensor<4x5xf64> {
  %step = arith.constant dense<3> : tensor<i64>
  %bits, %more = nn.random %step key = 11 : tensor<i64> -> tensor<4x5xi32>
  %limit = arith.constant dense<1073741824> : tensor<4x5xi32>
  %mask = arith.cmpi uge, %bits, %limit : tensor<4x5xi32>
  %s = math.sin %x : tensor<4x5xf64>
  %zero = arith.constant dense<0.0> : tensor<4x5xf64>
  %y = arith.select %mask, %s, %zero : tensor<4x5xi1>, tensor<4x5xf64>
  return %y : tensor<4x5xf64>
}

func.func @straight_through(%x: tensor<3x2xf64>) -> tensor<3x2xf64> {
  %value = math.sin %x : tensor<3x2xf64>
  %through = math.sin %x : tensor<3x2xf64>
  %y = nn.straight_through %value, %through : tensor<3x2xf64>
  return %y : tensor<3x2xf64>
}
