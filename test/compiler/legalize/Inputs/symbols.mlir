// Input of legalize-invalid.test.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
onnx.graph "g" ["x", "m"] [["batch", "time"], ["batch", ""]] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<?x?xf32>, %m: tensor<?x?xf32>):
  %y = onnx.node "Tanh" since 13 (%x) {} -> ["y"] : (tensor<?x?xf32>) -> !onnx.any
  onnx.return %y : !onnx.any
}
