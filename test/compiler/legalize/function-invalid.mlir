// RUN: not ortc-opt %s --ortc-inline-functions --ortc-legalize="mode=train" 2>&1 | FileCheck %s
// Wrong here: a refusal that does not say which function its node stands in.

// CHECK: 2 parts of the model cannot be compiled:
// CHECK-NEXT: Softmax (since opset 13) 'call/inner/normalize' of function 'Inner': axis 9 is out of range for 2 dimensions
// CHECK-NEXT: Softmax (since opset 13) 'plain': axis 8 is out of range for 2 dimensions
module {
  onnx.function @d.Outer "d" "Outer" ["a"] -> ["b"] attributes [] defaults {} opsets {} {
  ^bb0(%a: !onnx.any):
    %b = onnx.node "Inner" of "d" since 0 (%a) "inner" {} -> ["b"] : (!onnx.any) -> !onnx.any
    onnx.return %b : !onnx.any
  }
  onnx.function @d.Inner "d" "Inner" ["v"] -> ["w"] attributes [] defaults {} opsets {} {
  ^bb0(%v: !onnx.any):
    %w = onnx.node "Softmax" since 13 (%v) "normalize" {axis = 9 : i64} -> ["w"] : (!onnx.any) -> !onnx.any
    onnx.return %w : !onnx.any
  }
  onnx.graph "g" ["x"] [["", ""]] -> ["y", "z"] [!onnx.any, !onnx.any] [[], []] {
  ^bb0(%x: tensor<2x3xf32>):
    %y = onnx.node "Outer" of "d" since 0 (%x) "call" {} -> ["y"] : (tensor<2x3xf32>) -> !onnx.any
    %z = onnx.node "Softmax" since 13 (%x) "plain" {axis = 8 : i64} -> ["z"] : (tensor<2x3xf32>) -> !onnx.any
    onnx.return %y, %z : !onnx.any, !onnx.any
  }
}
