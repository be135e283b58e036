// RUN: ortc-opt %s --ortc-legalize="mode=train" | FileCheck %s
// Functions whose formulas lose digits (sinh near 0, asinh of large numbers, acos near 1) are one operation each.

// CHECK-LABEL: func.func @forward_train_0
// CHECK: math.tan
// CHECK-NEXT: math.asin
// CHECK-NEXT: math.acos
// CHECK-NEXT: math.atan
// CHECK-NEXT: math.sinh
// CHECK-NEXT: math.cosh
// CHECK-NEXT: math.asinh
// CHECK-NEXT: math.acosh
// CHECK-NEXT: math.atanh
// CHECK-NEXT: return
onnx.graph "functions" ["x"] [[]] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<4xf32>):
  %0 = onnx.node "Tan" since 7 (%x) {} -> ["0"] : (tensor<4xf32>) -> !onnx.any
  %1 = onnx.node "Asin" since 7 (%0) {} -> ["1"] : (!onnx.any) -> !onnx.any
  %2 = onnx.node "Acos" since 7 (%1) {} -> ["2"] : (!onnx.any) -> !onnx.any
  %3 = onnx.node "Atan" since 7 (%2) {} -> ["3"] : (!onnx.any) -> !onnx.any
  %4 = onnx.node "Sinh" since 9 (%3) {} -> ["4"] : (!onnx.any) -> !onnx.any
  %5 = onnx.node "Cosh" since 9 (%4) {} -> ["5"] : (!onnx.any) -> !onnx.any
  %6 = onnx.node "Asinh" since 9 (%5) {} -> ["6"] : (!onnx.any) -> !onnx.any
  %7 = onnx.node "Acosh" since 9 (%6) {} -> ["7"] : (!onnx.any) -> !onnx.any
  %y = onnx.node "Atanh" since 9 (%7) {} -> ["y"] : (!onnx.any) -> !onnx.any
  onnx.return %y : !onnx.any
}
