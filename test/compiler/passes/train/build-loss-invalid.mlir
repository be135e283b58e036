// RUN: ortc-opt %s -split-input-file -verify-diagnostics --ortc-build-loss
// RUN: not ortc-opt %s -split-input-file --ortc-build-loss="loss=mse loss-input=nothing" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not ortc-opt %s -split-input-file --ortc-build-loss="loss=output:x" 2>&1 | FileCheck %s --check-prefix=OUTPUT
// RUN: not ortc-opt %s -split-input-file --ortc-build-loss="loss=mse loss-input=y" 2>&1 | FileCheck %s --check-prefix=INTEGER
// RUN: not ortc-opt %s -split-input-file --ortc-build-loss="loss=nosuch" 2>&1 | FileCheck %s --check-prefix=SPEC
// Breaks when a loss that does not fit is built anyway.

// NAME: error: the graph has no output 'nothing' for the loss; its outputs are "x"
// OUTPUT: error: output 'x' of type f32[4,3] cannot be the loss
// INTEGER: error: a loss needs a floating-point output, not i64[4]
// SPEC: error: there is no loss 'nosuch'
// expected-error @below {{the graph has no floating-point output for the loss; its outputs are "x", "y"}}
func.func private @forward_train_0(%x: tensor<4xi64> {train.input = "x"}) -> (tensor<4xi64> {train.output = "x"}, tensor<4xi64> {train.output = "y"}) {
  return %x, %x : tensor<4xi64>, tensor<4xi64>
}

// -----

// expected-error @below {{output 'x' is one number, and loss cross_entropy needs classes; if the graph computes its loss, give --loss output:x}}
func.func private @forward_train_0(%x: tensor<f32> {train.input = "x"}) -> (tensor<f32> {train.output = "x"}) {
  return %x : tensor<f32>
}

// -----

// expected-error @below {{the label has type f32[4] but loss cross_entropy needs i64[4]}}
func.func private @forward_train_0(%x: tensor<4x3xf32> {train.input = "x"}, %l: tensor<4xf32> {train.input = "label"}) -> (tensor<4x3xf32> {train.output = "x"}) {
  return %x : tensor<4x3xf32>
}
