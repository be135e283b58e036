// RUN: ortc-opt %s -split-input-file -verify-diagnostics
// Breaks when a declaration that contradicts itself is accepted.

// expected-error @below {{C1: type 'tensor<?xf32>' must be static}}
train.tensor @tensor_c1 parameter "w" : tensor<?xf32>

// -----

// expected-error @below {{C2: not a permutation of 2 dimensions}}
train.tensor @tensor_c2 parameter "w" permutation = [0, 0] : tensor<2x3xf32>

// -----

// expected-error @below {{C3: initial value has type 'tensor<3xf32>' but must be 'tensor<2xf32>'}}
train.tensor @tensor_c3 parameter "w" initial = dense<0.0> : tensor<3xf32> : tensor<2xf32>

// -----

train.tensor @lr scalar "lr" : tensor<f64>
// expected-error @below {{C4: owner @lr is no parameter}}
train.tensor @tensor_c4 state "m" of @lr : tensor<2xf32>
