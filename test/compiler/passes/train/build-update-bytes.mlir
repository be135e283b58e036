// RUN: ortc-opt %s --ortc-build-update="optimizer=adamw8bit" | FileCheck %s
// Breaks when averages of a large tensor take more than 2 + 8/256 bytes a value, or those of a small one, or of a norm, are not whole.

// CHECK: train.tensor @large.exp_avg state "large.exp_avg" of @large {train.dtype = ui8} : tensor<64x256xi8>
// CHECK: train.tensor @large.exp_avg_absmax state "large.exp_avg_absmax" of @large : tensor<64xf32>
// CHECK: train.tensor @large.exp_avg_sq state "large.exp_avg_sq" of @large {train.dtype = ui8} : tensor<64x256xi8>
// CHECK: train.tensor @large.exp_avg_sq_absmax state "large.exp_avg_sq_absmax" of @large : tensor<64xf32>
// CHECK: train.tensor @small.exp_avg state "small.exp_avg" of @small : tensor<4095xf32>
// CHECK: train.tensor @scale.exp_avg state "scale.exp_avg" of @scale : tensor<4096xf32>
// CHECK: train.tensor @rest.exp_avg state "rest.exp_avg" of @rest {train.dtype = ui8} : tensor<17x256xi8>
train.tensor @large parameter "large" permutation = [1, 0] : tensor<128x128xf32>
train.tensor @small parameter "small" : tensor<4095xf32>
train.tensor @scale parameter "scale" : tensor<4096xf32>
train.tensor @rest parameter "rest" : tensor<4097xf32>
func.func @forward_train_0(%x: tensor<4096xf32> {train.input = "x"}) -> (tensor<4096xf32> {train.output = "y"}) {
  return %x : tensor<4096xf32>
}
func.func @backward_0(%x: tensor<4096xf32> {train.input = "x"}, %scale: tensor<4096xf32> {train.tensor = @scale})
    -> (tensor<4096xf32> {train.output = "y"}) {
  %y = arith.mulf %x, %scale : tensor<4096xf32>
  return %y : tensor<4096xf32>
}
