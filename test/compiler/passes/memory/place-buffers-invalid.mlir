// RUN: ortc-opt %s -verify-diagnostics --ortc-assign-regions --ortc-place-buffers
// Breaks when an operation that fusion forgot disappears from the program.

func.func @predict_0(%x: tensor<4xf32> {train.input = "x"}) -> (tensor<4xf32> {train.output = "y"})
    attributes {train.entry = "predict", train.binding = 0 : i64} {
  // expected-error @below {{is in no kernel}}
  %0 = math.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
