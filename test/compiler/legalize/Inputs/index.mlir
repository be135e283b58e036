// Input of legalize-invalid.test.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
onnx.graph "g" [] [] -> ["y"] [!onnx.any] [[]] {
  %w = onnx.initializer "w" dense<0.5> : tensor<10x4xf32>
  %i = onnx.initializer "i" dense<[1, 10]> : tensor<2xi64>
  %y = onnx.node "Gather" since 13 (%w, %i) {} -> ["y"] : (tensor<10x4xf32>, tensor<2xi64>) -> !onnx.any
  onnx.return %y : !onnx.any
}
