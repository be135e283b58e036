// RUN: ortc-opt %s -verify-diagnostics --ortc-narrow-parameters
// Breaks when a parameter loses more than half of its bits.

// expected-error @below {{parameter 'w' is of type 'f64', but those that are stored as bf16 are of f32 before; freeze it, or train without --parameters bf16}}
train.tensor @w parameter "w" : tensor<2xf64>
