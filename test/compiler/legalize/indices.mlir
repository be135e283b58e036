// RUN: ortc-opt %s --ortc-legalize="mode=train" --split-input-file | FileCheck %s
// Indices from data are checked under the name of their tensor and counted from the start; known ones are neither.

// CHECK-LABEL: func.func @forward_train_0
// CHECK-SAME: %[[I:.*]]: tensor<2x3xi64> {train.input = "tokens"}, %[[W:.*]]: tensor<10x4xf32>
// CHECK: %[[C:.*]] = nn.check_index %[[I]] "tokens" in{{ ?}}[-10, 10]
// CHECK: %[[LOW:.*]] = arith.cmpi slt, %[[C]]
// CHECK: %[[N:.*]] = arith.select %[[LOW]], %{{.*}}, %[[C]]
// CHECK: nn.gather %[[W]], %[[N]] axis = 0
onnx.graph "embedding" ["tokens"] [[]] -> ["y"] [!onnx.any] [[]] {
^bb0(%i: tensor<2x3xi64>):
  %w = onnx.initializer "w" dense<0.5> : tensor<10x4xf32>
  %y = onnx.node "Gather" since 13 (%w, %i) {} -> ["y"] : (tensor<10x4xf32>, tensor<2x3xi64>) -> !onnx.any
  onnx.return %y : !onnx.any
}

// -----

// CHECK-LABEL: func.func @forward_train_0
// CHECK-NOT: check_index
// CHECK: nn.slice %{{.*}} starts = [1, 0] strides = [2, 1] : tensor<10x4xf32> -> tensor<3x4xf32>
onnx.graph "known" [] [] -> ["y"] [!onnx.any] [[]] {
  %w = onnx.initializer "w" dense<0.5> : tensor<10x4xf32>
  %i = onnx.initializer "i" dense<[1, 3, -5]> : tensor<3xi64>
  %y = onnx.node "Gather" since 13 (%w, %i) {} -> ["y"] : (tensor<10x4xf32>, tensor<3xi64>) -> !onnx.any
  onnx.return %y : !onnx.any
}
