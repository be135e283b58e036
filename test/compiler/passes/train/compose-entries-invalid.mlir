// RUN: ortc-opt %s -split-input-file -verify-diagnostics --ortc-compose-entries
// Breaks when parts that do not fit are joined.

func.func private @forward_eval_0(%x: tensor<f32> {train.input = "x"}) -> (tensor<f32> {train.output = "y"}) {
  return %x : tensor<f32>
}
// expected-error @below {{argument 0 has type 'tensor<2xf32>' but "train.output" = "y" is 'tensor<f32>'}}
func.func private @loss_0(%y: tensor<2xf32> {train.output = "y"}) -> (tensor<2xf32> {train.loss}) {
  return %y : tensor<2xf32>
}

// -----

func.func private @forward_eval_0(%x: tensor<f32> {train.input = "label"}) -> (tensor<f32> {train.output = "y"}) {
  return %x : tensor<f32>
}
// expected-error @unknown {{input 'label' is used as f32[] and as f32[2]}}
func.func private @loss_0(%y: tensor<2xf32> {train.input = "label"}) -> (tensor<2xf32> {train.loss}) {
  return %y : tensor<2xf32>
}
