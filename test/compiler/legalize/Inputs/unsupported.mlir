// Input of legalize-invalid.test.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
onnx.graph "g" ["x", "s"] [[], []] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<2x3xf32>, %s: tensor<2xi64>):
  %w = onnx.initializer "w" dense<0.5> : tensor<4xf32>
  %k = onnx.initializer "k" dense<0.5> : tensor<1x16x3xf32>
  %l = onnx.node "LSTM" since 14 (%x, %k, %k) "recurrent" {hidden_size = 4 : i64} -> ["l"] : (tensor<2x3xf32>, tensor<1x16x3xf32>, tensor<1x16x3xf32>) -> !onnx.any
  %t = onnx.node "Tanh" since 13 (%l) {} -> ["t"] : (!onnx.any) -> !onnx.any
  %f = onnx.node "Fold" of "acme" since 0 (%t) {} -> ["f"] : (!onnx.any) -> !onnx.any
  %f2 = onnx.node "Fold" of "acme" since 0 (%x) {} -> ["f2"] : (tensor<2x3xf32>) -> !onnx.any
  %later = onnx.node "Gelu" since 0 (%x) {} -> ["later"] : (tensor<2x3xf32>) -> !onnx.any
  %r = onnx.node "Reshape" since 14 (%x, %s) {} -> ["r"] : (tensor<2x3xf32>, tensor<2xi64>) -> !onnx.any
  %a = onnx.node "Add" since 14 (%x, %w) {} -> ["a"] : (tensor<2x3xf32>, tensor<4xf32>) -> !onnx.any
  %g, %g2 = onnx.node "FastGelu" of "com.microsoft" since 0 (%x) {} -> ["g", "g2"] : (tensor<2x3xf32>) -> (!onnx.any, !onnx.any)
  %n = onnx.node "Neg" since 13 (%g2) {} -> ["n"] : (!onnx.any) -> !onnx.any
  %y = onnx.node "Sum" since 13 (%f2, %later, %r, %a, %f, %n) {} -> ["y"] : (!onnx.any, !onnx.any, !onnx.any, !onnx.any, !onnx.any, !onnx.any) -> !onnx.any
  onnx.return %y : !onnx.any
}
