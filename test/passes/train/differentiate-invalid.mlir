// RUN: ortc-opt %s -split-input-file -verify-diagnostics --ortc-build-loss=loss=output:y --ortc-differentiate
// Breaks when an operation without a rule is taken for one without a gradient.

train.tensor @w parameter "w" : tensor<f32>
func.func private @forward_train_0(%w: tensor<f32> {train.tensor = @w}) -> (tensor<f32> {train.output = "y"}) {
  // expected-error @below {{no gradient rule for 'math.cbrt'}}
  %y = math.cbrt %w : tensor<f32>
  return %y : tensor<f32>
}

// -----

train.tensor @w parameter "w" : tensor<f32>
// expected-error @below {{argument 0 bears no train attribute}}
func.func private @forward_train_0(%w: tensor<f32>) -> (tensor<f32> {train.output = "y"}) {
  return %w : tensor<f32>
}

// -----

train.tensor @w parameter "w" : tensor<f32>
// expected-error @below {{result 0 bears no train attribute}}
func.func private @forward_train_0(%w: tensor<f32> {train.tensor = @w}) -> (tensor<f32>, tensor<f32> {train.output = "y"}) {
  return %w, %w : tensor<f32>, tensor<f32>
}
