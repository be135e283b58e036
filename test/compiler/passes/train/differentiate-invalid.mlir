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

// -----

train.tensor @w parameter "w" : tensor<f32>
func.func private @forward_train_0(%w: tensor<f32> {train.tensor = @w}, %n: tensor<i32> {train.input = "n"}) -> (tensor<f32> {train.output = "y"}) {
  // expected-error @below {{a loop that may leave iterations out has no gradient}}
  %y = nn.scan 3 carry(%w) over() with() limit(%n) : (tensor<f32>, tensor<i32>) -> (tensor<f32>) {
  ^bb0(%a: tensor<f32>):
    %b = arith.mulf %a, %a : tensor<f32>
    nn.yield %b : tensor<f32>
  }
  return %y : tensor<f32>
}
