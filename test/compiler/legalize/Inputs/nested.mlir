// Input of legalize-invalid.test: neither loop can stay one, because shapes depend on their counters.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
onnx.graph "g" ["x"] [[]] -> ["y"] [tensor<f32>] [[]] {
^bb0(%x: tensor<f32>):
  %none = onnx.none
  %zero = onnx.initializer "zero" dense<0> : tensor<i64>
  %one = onnx.initializer "one" dense<1> : tensor<i64>
  %n = onnx.initializer "n" dense<900> : tensor<i64>
  %y = onnx.node "Loop" since 16(%n, %none, %x) "outer" {} -> ["y"] graphs ["body"] {
    onnx.graph "a" ["i", "c", "v"] [[], [], []] -> ["c", "w"] [tensor<i1>, tensor<f32>] [[], []] {
    ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<f32>):
      %u = onnx.node "Loop" since 16(%n, %none, %v) "inner" {} -> ["u"] graphs ["body"] {
        onnx.graph "b" ["j", "d", "p"] [[], [], []] -> ["d", "q"] [tensor<i1>, tensor<f32>] [[], []] {
        ^bb0(%j: tensor<i64>, %d: tensor<i1>, %p: tensor<f32>):
          %r = onnx.node "Range" since 11(%zero, %j, %one) {} -> ["r"] : (tensor<i64>, tensor<i64>, tensor<i64>) -> !onnx.any
          %k = onnx.node "Size" since 21(%r) {} -> ["k"] : (!onnx.any) -> tensor<i64>
          %f = onnx.node "Cast" since 21(%k) {to = 1 : i64} -> ["f"] : (tensor<i64>) -> tensor<f32>
          %q = onnx.node "Add" since 14(%p, %f) {} -> ["q"] : (tensor<f32>, tensor<f32>) -> tensor<f32>
          onnx.return %d, %q : tensor<i1>, tensor<f32>
        }
      } : (tensor<i64>, none, tensor<f32>) -> tensor<f32>
      %r = onnx.node "Range" since 11(%zero, %i, %one) {} -> ["r"] : (tensor<i64>, tensor<i64>, tensor<i64>) -> !onnx.any
      %k = onnx.node "Size" since 21(%r) {} -> ["k"] : (!onnx.any) -> tensor<i64>
      %f = onnx.node "Cast" since 21(%k) {to = 1 : i64} -> ["f"] : (tensor<i64>) -> tensor<f32>
      %w = onnx.node "Add" since 14(%u, %f) {} -> ["w"] : (tensor<f32>, tensor<f32>) -> tensor<f32>
      onnx.return %c, %w : tensor<i1>, tensor<f32>
    }
  } : (tensor<i64>, none, tensor<f32>) -> tensor<f32>
  onnx.return %y : tensor<f32>
}
