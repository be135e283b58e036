// RUN: ortc-opt %s | ortc-opt | FileCheck %s
// Printing loses no part of an operation: what is printed parses again to the same.

// CHECK: module attributes {onnx.ir_version = 8 : i64, onnx.opsets = {ai.onnx = 17 : i64}}
module attributes {onnx.ir_version = 8 : i64, onnx.opsets = {ai.onnx = 17 : i64}} {
  // CHECK: onnx.function @custom.F "custom" "F" overload "v2" ["a"] -> ["b"] attributes ["alpha"] defaults {beta = 1.000000e+00 : f32} opsets {ai.onnx = 17 : i64} {
  onnx.function @custom.F "custom" "F" overload "v2" ["a"] -> ["b"] attributes ["alpha"] defaults {beta = 1.0 : f32} opsets {"ai.onnx" = 17 : i64} {
  ^bb0(%a: !onnx.any):
    // CHECK: onnx.node "Elu" since 6(%a) {alpha = #onnx.ref<"alpha" : "float">} -> ["b"] : (!onnx.any) -> !onnx.any
    %b = onnx.node "Elu" since 6 (%a) {alpha = #onnx.ref<"alpha" : "float">} -> ["b"] : (!onnx.any) -> !onnx.any
    onnx.return %b : !onnx.any
  }
  // CHECK: onnx.graph "g" ["x"] {{\[}}["batch", ""]] -> ["y", "r"] [tensor<?x4xf32>, !onnx.any] {{\[}}["batch", ""], []] {
  onnx.graph "g" ["x"] [["batch", ""]] -> ["y", "r"] [tensor<?x4xf32>, !onnx.any] [["batch", ""], []] {
  // CHECK: ^bb0(%x: tensor<?x4xf32>):
  ^bb0(%x: tensor<?x4xf32>):
    // CHECK: %none = onnx.none
    %none = onnx.none
    // CHECK: %layer.hi = onnx.initializer "/layer/hi" input 3 dense<6.000000e+00> : tensor<f32>
    %hi = onnx.initializer "/layer/hi" input 3 dense<6.0> : tensor<f32>
    // CHECK: onnx.initializer "s" dense<["a", "b"]> : tensor<2x!onnx.string>
    %s = onnx.initializer "s" dense<["a", "b"]> : tensor<2x!onnx.string>
    // CHECK: onnx.initializer "u" dense<255> : tensor<2xui8>
    %u = onnx.initializer "u" dense<255> : tensor<2xui8>
    // CHECK: %y = onnx.node "Clip" since 13(%x, %none, %layer.hi) "clip" {} -> ["y"] : (tensor<?x4xf32>, none, tensor<f32>) -> tensor<?x4xf32>
    %y = onnx.node "Clip" since 13 (%x, %none, %hi) "clip" {} -> ["y"] : (tensor<?x4xf32>, none, tensor<f32>) -> tensor<?x4xf32>
    // CHECK: %c = onnx.node "F" of "custom" overload "v2" since 0(%y) {alpha = 5.000000e-01 : f32} -> ["c"] : (tensor<?x4xf32>) -> !onnx.seq<tensor<*xi1>>
    %c = onnx.node "F" of "custom" overload "v2" since 0 (%y) {alpha = 0.5 : f32} -> ["c"] : (tensor<?x4xf32>) -> !onnx.seq<tensor<*xi1>>
    // CHECK: onnx.node "If" since 16(%c) {} -> ["r"] graphs ["then_branch", "else_branch"] {
    // CHECK: }, {
    // CHECK: } : (!onnx.seq<tensor<*xi1>>) -> !onnx.opt<!onnx.map<i64, !onnx.opaque<"d", "n">>>
    %r = onnx.node "If" since 16 (%c) {} -> ["r"] graphs ["then_branch", "else_branch"] {
      onnx.graph "t" [] [] -> ["z"] [!onnx.sparse<tensor<2xf32>>] [[]] {
        onnx.return %y : tensor<?x4xf32>
      }
    }, {
      onnx.graph "e" [] [] -> [] [] [] {
        onnx.return
      }
    } : (!onnx.seq<tensor<*xi1>>) -> !onnx.opt<!onnx.map<i64, !onnx.opaque<"d", "n">>>
    onnx.return %y, %r : tensor<?x4xf32>, !onnx.opt<!onnx.map<i64, !onnx.opaque<"d", "n">>>
  }
}
