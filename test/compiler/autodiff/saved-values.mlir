// RUN: ortc-opt %s -split-input-file -verify-diagnostics --ortc-build-loss=loss=output:y --ortc-differentiate=remark-saved
// Breaks when a rule saves other values than its comment says, or more than one that is not trained needs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

train.tensor @x parameter "x" : tensor<6xf32>
train.tensor @z parameter "z" : tensor<6xf32>
func.func private @forward_train_0(%x: tensor<6xf32> {train.tensor = @x}, %z: tensor<6xf32> {train.tensor = @z}, %c: tensor<6xi1> {train.input = "c"}) -> (tensor<f32> {train.output = "y"}) {
  // expected-remark@+1 {{saves []}}
  %0 = arith.addf %x, %z : tensor<6xf32>
  // expected-remark@+1 {{saves []}}
  %1 = arith.subf %0, %z : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0, operand 1]}}
  %2 = arith.mulf %1, %z : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 1, result 0]}}
  %3 = arith.divf %2, %z : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0, operand 1, result 0]}}
  %4 = arith.remf %3, %z : tensor<6xf32>
  // expected-remark@+1 {{saves []}}
  %5 = arith.negf %4 : tensor<6xf32>
  // expected-remark@+1 {{saves []}}
  %6 = arith.extf %5 : tensor<6xf32> to tensor<6xf64>
  // expected-remark@+1 {{saves []}}
  %7 = arith.truncf %6 : tensor<6xf64> to tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0]}}
  %8 = arith.select %c, %7, %z : tensor<6xi1>, tensor<6xf32>
  // expected-remark@+1 {{saves []}}
  %y = nn.reduce sum %8 axes = [0] : tensor<6xf32> -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// One factor is a constant: only that one is saved.
train.tensor @x parameter "x" : tensor<6xf32>
func.func private @forward_train_0(%x: tensor<6xf32> {train.tensor = @x}, %z: tensor<6xf32> {train.input = "z"}) -> (tensor<f32> {train.output = "y"}) {
  // expected-remark@+1 {{saves [operand 1]}}
  %0 = arith.mulf %x, %z : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 1]}}
  %1 = arith.divf %0, %z : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 1, result 0]}}
  %2 = arith.divf %z, %1 : tensor<6xf32>
  // expected-remark@+1 {{saves []}}
  %3 = arith.remf %2, %z : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 1]}}
  %4 = math.fma %3, %z, %x : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0, operand 1]}}
  %5 = math.powf %4, %z : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0, operand 1, result 0]}}
  %6 = math.powf %z, %5 : tensor<6xf32>
  // expected-remark@+1 {{saves []}}
  %y = nn.reduce sum %6 axes = [0] : tensor<6xf32> -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// Elementary functions.
train.tensor @x parameter "x" : tensor<6xf32>
func.func private @forward_train_0(%x: tensor<6xf32> {train.tensor = @x}) -> (tensor<f32> {train.output = "y"}) {
  // expected-remark@+1 {{saves [operand 0]}}
  %0 = math.absf %x : tensor<6xf32>
  // expected-remark@+1 {{saves [result 0]}}
  %1 = math.exp %0 : tensor<6xf32>
  // expected-remark@+1 {{saves [result 0]}}
  %2 = math.exp2 %1 : tensor<6xf32>
  // expected-remark@+1 {{saves [result 0]}}
  %3 = math.expm1 %2 : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0]}}
  %4 = math.log %3 : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0]}}
  %5 = math.log2 %4 : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0]}}
  %6 = math.log10 %5 : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0]}}
  %7 = math.log1p %6 : tensor<6xf32>
  // expected-remark@+1 {{saves [result 0]}}
  %8 = math.sqrt %7 : tensor<6xf32>
  // expected-remark@+1 {{saves [result 0]}}
  %9 = math.rsqrt %8 : tensor<6xf32>
  // expected-remark@+1 {{saves [result 0]}}
  %10 = math.tanh %9 : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0]}}
  %11 = math.erf %10 : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0]}}
  %12 = math.erfc %11 : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0]}}
  %13 = math.sin %12 : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0]}}
  %14 = math.cos %13 : tensor<6xf32>
  // expected-remark@+1 {{saves [result 0]}}
  %15 = math.tan %14 : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0]}}
  %16 = math.asin %15 : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0]}}
  %17 = math.acos %16 : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0]}}
  %18 = math.atan %17 : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0]}}
  %19 = math.sinh %18 : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0]}}
  %20 = math.cosh %19 : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0]}}
  %21 = math.asinh %20 : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0]}}
  %22 = math.acosh %21 : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0]}}
  %23 = math.atanh %22 : tensor<6xf32>
  // expected-remark@+1 {{saves []}}
  %y = nn.reduce sum %23 axes = [0] : tensor<6xf32> -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// Elementary functions of several operands.
train.tensor @x parameter "x" : tensor<6xf32>
train.tensor @z parameter "z" : tensor<6xf32>
func.func private @forward_train_0(%x: tensor<6xf32> {train.tensor = @x}, %z: tensor<6xf32> {train.tensor = @z}) -> (tensor<f32> {train.output = "y"}) {
  // expected-remark@+1 {{saves [operand 0, operand 1]}}
  %0 = math.atan2 %x, %z : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0, result 0]}}
  %1 = math.copysign %0, %z : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0, operand 1]}}
  %2 = math.fma %1, %z, %x : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0, operand 1, result 0]}}
  %3 = math.powf %2, %z : tensor<6xf32>
  %two = arith.constant dense<2.0> : tensor<6xf32>
  // expected-remark@+1 {{saves [operand 0]}}
  %4 = math.powf %3, %two : tensor<6xf32>
  // expected-remark@+1 {{saves []}}
  %y = nn.reduce sum %4 axes = [0] : tensor<6xf32> -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// What jumps saves nothing.
train.tensor @x parameter "x" : tensor<6xf32>
func.func private @forward_train_0(%x: tensor<6xf32> {train.tensor = @x}) -> (tensor<f32> {train.output = "y"}) {
  // expected-remark@+1 {{saves []}}
  %0 = math.floor %x : tensor<6xf32>
  // expected-remark@+1 {{saves []}}
  %1 = math.ceil %x : tensor<6xf32>
  // expected-remark@+1 {{saves []}}
  %2 = math.round %x : tensor<6xf32>
  // expected-remark@+1 {{saves []}}
  %3 = math.roundeven %x : tensor<6xf32>
  // expected-remark@+1 {{saves []}}
  %4 = math.trunc %x : tensor<6xf32>
  // expected-remark@+1 {{saves []}}
  %5 = nn.detach %x : tensor<6xf32>
  // expected-remark@+1 {{saves []}}
  %6 = nn.straight_through %5, %x : tensor<6xf32>
  // expected-remark@+1 {{saves []}}
  %all = nn.concat %0, %1, %2, %3, %4, %5, %6 axis = 0 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32> -> tensor<42xf32>
  // expected-remark@+1 {{saves []}}
  %y = nn.reduce sum %all axes = [0] : tensor<42xf32> -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// Movement.
train.tensor @x parameter "x" : tensor<6x4xf32>
train.tensor @v parameter "v" : tensor<f32>
func.func private @forward_train_0(%x: tensor<6x4xf32> {train.tensor = @x}, %v: tensor<f32> {train.tensor = @v}) -> (tensor<f32> {train.output = "y"}) {
  // expected-remark@+1 {{saves []}}
  %0 = nn.transpose %x perm = [1, 0] : tensor<6x4xf32> -> tensor<4x6xf32>
  // expected-remark@+1 {{saves []}}
  %1 = nn.reshape %0 : tensor<4x6xf32> -> tensor<2x12xf32>
  // expected-remark@+1 {{saves []}}
  %2 = nn.slice %1 starts = [0, 1] strides = [1, 2] : tensor<2x12xf32> -> tensor<2x5xf32>
  // expected-remark@+1 {{saves []}}
  %3 = nn.reverse %2 axes = [1] : tensor<2x5xf32>
  // expected-remark@+1 {{saves []}}
  %4 = nn.pad %3, %v low = [0, 1] high = [0, 0] interior = [0, 0] : tensor<2x5xf32>, tensor<f32> -> tensor<2x6xf32>
  // expected-remark@+1 {{saves []}}
  %5 = nn.concat %4, %2 axis = 1 : tensor<2x6xf32>, tensor<2x5xf32> -> tensor<2x11xf32>
  // expected-remark@+1 {{saves []}}
  %6 = nn.broadcast %5 dims = [0, 2] : tensor<2x11xf32> -> tensor<2x3x11xf32>
  // expected-remark@+1 {{saves []}}
  %y = nn.reduce sum %6 axes = [0, 1, 2] : tensor<2x3x11xf32> -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// Reductions.
train.tensor @x parameter "x" : tensor<6x5x4x3xf32>
func.func private @forward_train_0(%x: tensor<6x5x4x3xf32> {train.tensor = @x}) -> (tensor<f32> {train.output = "y"}) {
  // expected-remark@+1 {{saves [result 0]}}
  %0 = nn.softmax %x axis = 0 : tensor<6x5x4x3xf32>
  // expected-remark@+1 {{saves [result 0]}}
  %1 = nn.log_softmax %0 axis = 0 : tensor<6x5x4x3xf32>
  // expected-remark@+1 {{saves []}}
  %2 = nn.cumsum %1 axis = 0 : tensor<6x5x4x3xf32>
  // expected-remark@+1 {{saves [operand 0]}}
  %3 = nn.reduce prod %2 axes = [0] : tensor<6x5x4x3xf32> -> tensor<5x4x3xf32>
  // expected-remark@+1 {{saves [operand 0, result 0]}}
  %4 = nn.reduce max %3 axes = [0] : tensor<5x4x3xf32> -> tensor<4x3xf32>
  // expected-remark@+1 {{saves [operand 0, result 0]}}
  %5 = nn.reduce min %4 axes = [0] : tensor<4x3xf32> -> tensor<3xf32>
  // expected-remark@+1 {{saves [operand 0, result 0]}}
  %m, %v = nn.moments %5 axes = [0] : tensor<3xf32> -> tensor<f32>
  // expected-remark@+1 {{saves []}}
  %y = arith.addf %m, %v : tensor<f32>
  return %y : tensor<f32>
}

// -----

// The mean alone saves nothing.
train.tensor @x parameter "x" : tensor<6x3xf32>
func.func private @forward_train_0(%x: tensor<6x3xf32> {train.tensor = @x}) -> (tensor<f32> {train.output = "y"}) {
  // expected-remark@+1 {{saves []}}
  %m, %v = nn.moments %x axes = [0] : tensor<6x3xf32> -> tensor<3xf32>
  %i = nn.arg_sort %m axis = 0 : tensor<3xf32> -> tensor<2xi64>
  // expected-remark@+1 {{saves [operand 1]}}
  %0 = nn.gather_elements %m, %i axis = 0 : tensor<3xf32>, tensor<2xi64> -> tensor<2xf32>
  // expected-remark@+1 {{saves []}}
  %y = nn.reduce sum %0 axes = [0] : tensor<2xf32> -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// Products and convolutions of two trained operands.
train.tensor @a parameter "a" : tensor<4x3xf32>
train.tensor @b parameter "b" : tensor<3x32xf32>
train.tensor @w parameter "w" : tensor<3x3x2x2xf32>
func.func private @forward_train_0(%a: tensor<4x3xf32> {train.tensor = @a}, %b: tensor<3x32xf32> {train.tensor = @b}, %w: tensor<3x3x2x2xf32> {train.tensor = @w})
    -> (tensor<f32> {train.output = "y"}) {
  // expected-remark@+1 {{saves [operand 0, operand 1]}}
  %0 = nn.dot %a, %b batch = [] x [] contract = [1] x [0] : tensor<4x3xf32>, tensor<3x32xf32> -> tensor<4x32xf32>
  // expected-remark@+1 {{saves []}}
  %1 = nn.reshape %0 : tensor<4x32xf32> -> tensor<4x4x4x2xf32>
  // expected-remark@+1 {{saves [operand 0, operand 1]}}
  %2 = nn.conv %1, %w strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<4x4x4x2xf32>, tensor<3x3x2x2xf32> -> tensor<4x4x4x2xf32>
  // expected-remark@+1 {{saves [operand 0, operand 1]}}
  %3 = nn.conv_input_grad %2, %w strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<4x4x4x2xf32>, tensor<3x3x2x2xf32> -> tensor<4x4x4x2xf32>
  // expected-remark@+1 {{saves [operand 0, operand 1]}}
  %4 = nn.conv_filter_grad %3, %1 strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<4x4x4x2xf32>, tensor<4x4x4x2xf32> -> tensor<3x3x2x2xf32>
  // expected-remark@+1 {{saves []}}
  %y = nn.reduce sum %4 axes = [0, 1, 2, 3] : tensor<3x3x2x2xf32> -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// Products and convolutions with one operand that is not trained: that one is saved.
train.tensor @x parameter "x" : tensor<4x3xf32>
func.func private @forward_train_0(%x: tensor<4x3xf32> {train.tensor = @x}, %b: tensor<3x32xf32> {train.input = "b"}, %w: tensor<3x3x2x2xf32> {train.input = "w"})
    -> (tensor<f32> {train.output = "y"}) {
  // expected-remark@+1 {{saves [operand 1]}}
  %0 = nn.dot %x, %b batch = [] x [] contract = [1] x [0] : tensor<4x3xf32>, tensor<3x32xf32> -> tensor<4x32xf32>
  // expected-remark@+1 {{saves []}}
  %1 = nn.reshape %0 : tensor<4x32xf32> -> tensor<4x4x4x2xf32>
  // expected-remark@+1 {{saves [operand 1]}}
  %2 = nn.conv %1, %w strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<4x4x4x2xf32>, tensor<3x3x2x2xf32> -> tensor<4x4x4x2xf32>
  // expected-remark@+1 {{saves []}}
  %y = nn.reduce sum %2 axes = [0, 1, 2, 3] : tensor<4x4x4x2xf32> -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// Pooling: the taps of max pooling.
train.tensor @x parameter "x" : tensor<1x4x2xf32>
func.func private @forward_train_0(%x: tensor<1x4x2xf32> {train.tensor = @x}, %i: tensor<1x2x2xi8> {train.input = "i"}) -> (tensor<f32> {train.output = "y"}) {
  // expected-remark@+1 {{saves [result 1]}}
  %0, %j = nn.max_pool %x window = [2] strides = [2] padding = [0] to [0] overhang = [0] dilations = [1] : tensor<1x4x2xf32> -> tensor<1x2x2xf32>, tensor<1x2x2xi8>
  // expected-remark@+1 {{saves [operand 1]}}
  %1 = nn.max_pool_grad %0, %i window = [2] strides = [2] padding = [0] to [0] overhang = [0] dilations = [1] : tensor<1x2x2xf32>, tensor<1x2x2xi8> -> tensor<1x4x2xf32>
  // expected-remark@+1 {{saves []}}
  %2 = nn.avg_pool %1 window = [2] strides = [2] padding = [0] to [0] overhang = [0] dilations = [1] : tensor<1x4x2xf32> -> tensor<1x2x2xf32>
  // expected-remark@+1 {{saves []}}
  %3 = nn.avg_pool_grad %2 window = [2] strides = [2] padding = [0] to [0] overhang = [0] dilations = [1] : tensor<1x2x2xf32> -> tensor<1x4x2xf32>
  // expected-remark@+1 {{saves []}}
  %y = nn.reduce sum %3 axes = [0, 1, 2] : tensor<1x4x2xf32> -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// Indexing: the indices, and the operands where their values matter.
train.tensor @x parameter "x" : tensor<7xf32>
func.func private @forward_train_0(%x: tensor<7xf32> {train.tensor = @x}, %i: tensor<5xi64> {train.input = "i"}) -> (tensor<f32> {train.output = "y"}) {
  // expected-remark@+1 {{saves [operand 1]}}
  %0 = nn.gather %x, %i axis = 0 : tensor<7xf32>, tensor<5xi64> -> tensor<5xf32>
  // expected-remark@+1 {{saves [operand 0]}}
  %1 = nn.scatter_add %i, %0 axis = 0 : tensor<5xi64>, tensor<5xf32> -> tensor<7xf32>
  // expected-remark@+1 {{saves [operand 1]}}
  %2 = nn.gather_elements %1, %i axis = 0 : tensor<7xf32>, tensor<5xi64> -> tensor<5xf32>
  // expected-remark@+1 {{saves [operand 1]}}
  %3 = nn.scatter_elements set %1, %i, %2 axis = 0 : tensor<7xf32>, tensor<5xi64>, tensor<5xf32> -> tensor<7xf32>
  // expected-remark@+1 {{saves [operand 1]}}
  %4 = nn.scatter_elements add %3, %i, %2 axis = 0 : tensor<7xf32>, tensor<5xi64>, tensor<5xf32> -> tensor<7xf32>
  // expected-remark@+1 {{saves [operand 0, operand 1, operand 2]}}
  %5 = nn.scatter_elements mul %4, %i, %2 axis = 0 : tensor<7xf32>, tensor<5xi64>, tensor<5xf32> -> tensor<7xf32>
  // expected-remark@+1 {{saves [operand 0, operand 1, operand 2, result 0]}}
  %6 = nn.scatter_elements max %5, %i, %2 axis = 0 : tensor<7xf32>, tensor<5xi64>, tensor<5xf32> -> tensor<7xf32>
  // expected-remark@+1 {{saves [operand 0, operand 1, operand 2, result 0]}}
  %7 = nn.scatter_elements min %6, %i, %2 axis = 0 : tensor<7xf32>, tensor<5xi64>, tensor<5xf32> -> tensor<7xf32>
  // expected-remark@+1 {{saves []}}
  %y = nn.reduce sum %7 axes = [0] : tensor<7xf32> -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// Loops: carried values and results of the body that its rules read come out stacked, as results 2 and 3.
train.tensor @w parameter "w" : tensor<3xf32>
func.func private @forward_train_0(%w: tensor<3xf32> {train.tensor = @w}, %h: tensor<3xf32> {train.input = "h"}, %x: tensor<5x3xf32> {train.input = "x"})
    -> (tensor<f32> {train.output = "y"}) {
  // expected-remark@+1 {{saves [operand 1, operand 2, result 1, result 2, result 3]}}
  %last, %all = nn.scan 5 carry(%h) over(%x) with(%w) : (tensor<3xf32>, tensor<5x3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<5x3xf32>) {
  ^bb0(%a: tensor<3xf32>, %xi: tensor<3xf32>, %v: tensor<3xf32>):
    // expected-remark@+1 {{saves [operand 0, operand 1]}}
    %0 = arith.mulf %a, %v : tensor<3xf32>
    // expected-remark@+1 {{saves [result 0]}}
    %1 = math.exp %0 : tensor<3xf32>
    // expected-remark@+1 {{saves [operand 1]}}
    %s = arith.mulf %1, %xi : tensor<3xf32>
    // expected-remark@+1 {{saves [result 0]}}
    %2 = math.tanh %s : tensor<3xf32>
    nn.yield %2, %2 : tensor<3xf32>, tensor<3xf32>
  }
  // expected-remark@+1 {{saves []}}
  %y = nn.reduce sum %all axes = [0, 1] : tensor<5x3xf32> -> tensor<f32>
  return %y : tensor<f32>
}
