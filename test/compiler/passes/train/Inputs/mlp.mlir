// A multi-layer perceptron with a running statistic: the forward functions of a program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
train.tensor @w1 parameter "fc1.weight" permutation = [1, 0] : tensor<7x4xf32>
train.tensor @b1 parameter "fc1.bias" : tensor<7xf32>
train.tensor @w2 parameter "fc2.weight" : tensor<7x3xf32>
train.tensor @unused parameter "unused" : tensor<3xf32>
train.tensor @mean state "running_mean" : tensor<7xf32>
func.func private @forward_train_0(%x: tensor<5x4xf32> {train.input = "x"}, %w1: tensor<4x7xf32> {train.tensor = @w1}, %b1: tensor<7xf32> {train.tensor = @b1}, %w2: tensor<7x3xf32> {train.tensor = @w2}, %u: tensor<3xf32> {train.tensor = @unused}, %mean: tensor<7xf32> {train.tensor = @mean})
    -> (tensor<5x3xf32> {train.output = "logits"}, tensor<7xf32> {train.update = @mean}) {
  %0 = nn.dot %x, %w1 batch = [] x [] contract = [1] x [0] : tensor<5x4xf32>, tensor<4x7xf32> -> tensor<5x7xf32>
  %1 = nn.broadcast %b1 dims = [1] : tensor<7xf32> -> tensor<5x7xf32>
  %2 = arith.addf %0, %1 : tensor<5x7xf32>
  %3 = math.tanh %2 : tensor<5x7xf32>
  %4 = nn.dot %3, %w2 batch = [] x [] contract = [1] x [0] : tensor<5x7xf32>, tensor<7x3xf32> -> tensor<5x3xf32>
  %5 = nn.reduce sum %3 axes = [0] : tensor<5x7xf32> -> tensor<7xf32>
  %6 = arith.addf %mean, %5 : tensor<7xf32>
  return %4, %6 : tensor<5x3xf32>, tensor<7xf32>
}
func.func private @forward_eval_0(%x: tensor<5x4xf32> {train.input = "x"}, %w1: tensor<4x7xf32> {train.tensor = @w1}, %b1: tensor<7xf32> {train.tensor = @b1}, %w2: tensor<7x3xf32> {train.tensor = @w2}, %mean: tensor<7xf32> {train.tensor = @mean})
    -> (tensor<5x3xf32> {train.output = "logits"}) {
  %0 = nn.dot %x, %w1 batch = [] x [] contract = [1] x [0] : tensor<5x4xf32>, tensor<4x7xf32> -> tensor<5x7xf32>
  %1 = nn.broadcast %mean dims = [1] : tensor<7xf32> -> tensor<5x7xf32>
  %2 = arith.addf %0, %1 : tensor<5x7xf32>
  %3 = math.tanh %2 : tensor<5x7xf32>
  %4 = nn.dot %3, %w2 batch = [] x [] contract = [1] x [0] : tensor<5x7xf32>, tensor<7x3xf32> -> tensor<5x3xf32>
  return %4 : tensor<5x3xf32>
}
