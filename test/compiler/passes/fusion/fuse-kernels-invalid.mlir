// RUN: ortc-opt %s -ortc-fuse-kernels -split-input-file -verify-diagnostics
// Breaks when an operation that no generator makes is not named.

func.func @composite(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{no kernel can be made of this operation: operation nn.softmax is no loop operation}}
  %y = nn.softmax %x axis = 1 : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
