// RUN: ortc-opt %s -split-input-file -verify-diagnostics --ortc-build-update=optimizer=muon
// Breaks when an optimizer of matrices takes others, or does not say what would.

// expected-error @below {{optimizer 'muon' updates tensors of 2 dimensions, and 1 is not: 'fc.bias'; give them a group with another optimizer: --group 'fc.bias:optimizer=adamw'}}
module {
  train.tensor @w parameter "fc.weight" : tensor<3x2xf32>
  train.tensor @b parameter "fc.bias" : tensor<3xf32>
}

// -----

// expected-error @below {{and 4 are not: 'a', 'b', 'c', ...; give them a group}}
module {
  train.tensor @a parameter "a" : tensor<3xf32>
  train.tensor @b parameter "b" : tensor<3xf32>
  train.tensor @c parameter "c" : tensor<2x3x3xf32>
  train.tensor @d parameter "d" : tensor<f32>
}
