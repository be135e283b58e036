// RUN: ortc-opt %s --ortc-legalize="mode=eval shape=batch=4,time=6" --split-input-file | FileCheck %s
// Shape arithmetic is evaluated while walking: only the reshape is left, under the shapes of the binding.

// CHECK-LABEL: func.func @forward_eval_0
// CHECK-SAME: (%[[X:.*]]: tensor<4x6x8xf32> {train.input = "x"}) -> (tensor<4x6x2x4xf32> {train.output = "y"})
// CHECK-NEXT: %[[Y:.*]] = nn.reshape %[[X]] : tensor<4x6x8xf32> -> tensor<4x6x2x4xf32>
// CHECK-NEXT: return %[[Y]]
onnx.graph "heads" ["x"] [["batch", "time", ""]] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<?x?x8xf32>):
  %zero = onnx.initializer "zero" dense<[0, 1]> : tensor<2xi64>
  %heads = onnx.initializer "heads" dense<[2, -1]> : tensor<2xi64>
  %s = onnx.node "Shape" since 13 (%x) {} -> ["s"] : (tensor<?x?x8xf32>) -> !onnx.any
  %g = onnx.node "Gather" since 13 (%s, %zero) {axis = 0 : i64} -> ["g"] : (!onnx.any, tensor<2xi64>) -> !onnx.any
  %c = onnx.node "Concat" since 13 (%g, %heads) {axis = 0 : i64} -> ["c"] : (!onnx.any, tensor<2xi64>) -> !onnx.any
  %y = onnx.node "Reshape" since 14 (%x, %c) {} -> ["y"] : (tensor<?x?x8xf32>, !onnx.any) -> !onnx.any
  onnx.return %y : !onnx.any
}

// -----

// A branch whose condition is known takes the place of the node; the other one is not looked at.
// CHECK-LABEL: func.func @forward_eval_0
// CHECK-NEXT: math.tanh
// CHECK-NEXT: return
onnx.graph "branch" ["x"] [["batch", "time"]] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<?x?xf32>):
  %c = onnx.initializer "c" dense<true> : tensor<i1>
  %y = onnx.node "If" since 13 (%c) {} -> ["y"] graphs ["then_branch", "else_branch"] {
    onnx.graph "then" [] [] -> ["a"] [!onnx.any] [[]] {
      %a = onnx.node "Tanh" since 13 (%x) {} -> ["a"] : (tensor<?x?xf32>) -> !onnx.any
      onnx.return %a : !onnx.any
    }
  }, {
    onnx.graph "else" [] [] -> ["b"] [!onnx.any] [[]] {
      %b = onnx.node "Unknown" of "somewhere" since 0 (%x) {} -> ["b"] : (tensor<?x?xf32>) -> !onnx.any
      onnx.return %b : !onnx.any
    }
  } : (tensor<i1>) -> !onnx.any
  onnx.return %y : !onnx.any
}

// -----

// A constant of 2^40 elements that are all alike is never listed: the sum is left to the program.
// CHECK-LABEL: func.func @forward_eval_0
// CHECK: nn.reduce sum
onnx.graph "huge" ["x"] [["batch", "time"]] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<?x?xf32>):
  %n = onnx.initializer "n" dense<1099511627776> : tensor<1xi64>
  %c = onnx.node "ConstantOfShape" since 21 (%n) {} -> ["c"] : (tensor<1xi64>) -> !onnx.any
  %s = onnx.node "ReduceSum" since 13 (%c) {} -> ["s"] : (!onnx.any) -> !onnx.any
  %y = onnx.node "Add" since 14 (%x, %s) {} -> ["y"] : (tensor<?x?xf32>, !onnx.any) -> !onnx.any
  onnx.return %y : !onnx.any
}
