// RUN: ortc-opt %s --ortc-legalize="mode=both batch-norm=train" 2>&1 | FileCheck %s
// RUN: ortc-opt %s --ortc-legalize="mode=both" 2>&1 | FileCheck %s --check-prefix=DEFAULT
// A batch norm whose statistics are moments of its own input keeps them with any flag, and the flag's advice is for others.

// CHECK: remark: --batch-norm train does nothing: no BatchNormalization of the model has running statistics, so each stays as it is
// DEFAULT-NOT: remark
// CHECK-LABEL: func.func @forward_train_0
// CHECK-NOT: train.update
// CHECK-LABEL: func.func @forward_eval_0
onnx.graph "norm" ["x"] [[]] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<2x3x4xf32>):
  %scale = onnx.initializer "scale" dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %bias = onnx.initializer "bias" dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %m = onnx.node "ReduceMean" since 13 (%x) {axes = array<i64: 0, 2>, keepdims = 0 : i64} -> ["m"] : (tensor<2x3x4xf32>) -> !onnx.any
  %q = onnx.node "Mul" since 14 (%x, %x) {} -> ["q"] : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> !onnx.any
  %v = onnx.node "ReduceMean" since 13 (%q) {axes = array<i64: 0, 2>, keepdims = 0 : i64} -> ["v"] : (!onnx.any) -> !onnx.any
  %y = onnx.node "BatchNormalization" since 15 (%x, %scale, %bias, %m, %v) {} -> ["y"]
    : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, !onnx.any, !onnx.any) -> !onnx.any
  onnx.return %y : !onnx.any
}
