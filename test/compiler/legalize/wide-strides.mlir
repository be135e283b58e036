// RUN: ortc-opt %s --ortc-legalize="mode=train" | FileCheck %s
// Wrong here: strides of which one step leads out of the input, a million of them being a million loops of the gradient.

// CHECK-LABEL: func.func @forward_train_0
// CHECK: nn.conv {{.*}} strides = [5]
// CHECK: nn.conv {{.*}} strides = [2]
// CHECK: nn.conv_input_grad {{.*}} strides = [1]
onnx.graph "g" ["x"] [["", "", ""]] -> ["y", "z", "t"] [!onnx.any, !onnx.any, !onnx.any] [[], [], []] {
^bb0(%x: tensor<1x2x5xf32>):
  %w = onnx.initializer "w" dense<1.0> : tensor<2x2x1xf32>
  %y = onnx.node "Conv" since 11 (%x, %w) "wide" {strides = array<i64: 1000000>} -> ["y"] : (tensor<1x2x5xf32>, tensor<2x2x1xf32>) -> !onnx.any
  %z = onnx.node "Conv" since 11 (%x, %w) "narrow" {strides = array<i64: 2>} -> ["z"] : (tensor<1x2x5xf32>, tensor<2x2x1xf32>) -> !onnx.any
  %t = onnx.node "ConvTranspose" since 11 (%y, %w) "back" {strides = array<i64: 1000000>} -> ["t"] : (!onnx.any, tensor<2x2x1xf32>) -> !onnx.any
  onnx.return %y, %z, %t : !onnx.any, !onnx.any, !onnx.any
}
