// RUN: ortc-opt %s -verify-diagnostics --ortc-build-update=rounding-seed=0
// Breaks when elements would share what is drawn for them.

// expected-error @below {{parameter 'w' has 4294967297 elements, but at most 4294967296 are rounded at random; freeze it, or round to the nearest}}
train.tensor @w parameter "w" : tensor<4294967297xbf16>
train.tensor @v parameter "v" : tensor<4294967296xbf16>
