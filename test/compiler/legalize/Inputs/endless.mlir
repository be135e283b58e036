// Input of legalize-invalid.test.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
onnx.graph "g" ["x"] [[]] -> ["y"] [tensor<3xf32>] [[]] {
^bb0(%x: tensor<3xf32>):
  %none = onnx.none
  %y = onnx.node "Loop" since 16(%none, %none, %x) {} -> ["y"] graphs ["body"] {
    onnx.graph "b" ["i", "c", "v"] [[], [], []] -> ["c", "v"] [tensor<i1>, tensor<3xf32>] [[], []] {
    ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<3xf32>):
      onnx.return %c, %v : tensor<i1>, tensor<3xf32>
    }
  } : (none, none, tensor<3xf32>) -> tensor<3xf32>
  onnx.return %y : tensor<3xf32>
}
