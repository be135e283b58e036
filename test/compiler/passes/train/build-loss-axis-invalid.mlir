// RUN: ortc-opt %s -verify-diagnostics --ortc-build-loss="loss=cross_entropy:axis=3"
// A class axis that the output does not have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// expected-error @below {{loss cross_entropy: axis 3 is outside the output's 2 dimensions}}
func.func private @forward_train_0(%x: tensor<4x3xf32> {train.input = "x"}) -> (tensor<4x3xf32> {train.output = "x"}) {
  return %x : tensor<4x3xf32>
}
