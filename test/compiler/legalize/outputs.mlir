// RUN: ortc-opt %s --ortc-legalize="mode=train" 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=NOTE --input-file=%t
// RUN: ortc-opt %s --ortc-legalize="mode=train loss-outputs=probabilities" | FileCheck %s
// RUN: not ortc-opt %s --ortc-legalize="mode=train loss-outputs=label" 2>&1 | FileCheck %s --check-prefix=REFUSED
// Outputs that the loss does not need are left out when they cannot be compiled, and what only they read is not trained.

// CHECK: train.tensor @w parameter "w"
// CHECK-NOT: "threshold"
// CHECK: func.func
// CHECK-SAME: train.output = "probabilities"
// CHECK-NOT: train.output
// NOTE: output 'label' is left out, as the loss does not need it: ai.onnx.ml.Imputer 'imputer': the operator is not supported
// REFUSED: ai.onnx.ml.Imputer (since opset 1) 'imputer': the operator is not supported
onnx.graph "g" ["x"] [[]] -> ["label", "probabilities"] [tensor<2x3xi64>, !onnx.any] [[], []] {
^bb0(%x: tensor<2x3xf32>):
  %w = onnx.initializer "w" dense<0.5> : tensor<3xf32>
  %threshold = onnx.initializer "threshold" dense<0.5> : tensor<3xf32>
  %y = onnx.node "Mul" since 14 (%x, %w) {} -> ["probabilities"] : (tensor<2x3xf32>, tensor<3xf32>) -> !onnx.any
  %z = onnx.node "Sub" since 14 (%y, %threshold) {} -> ["z"] : (!onnx.any, tensor<3xf32>) -> !onnx.any
  %label = onnx.node "Imputer" of "ai.onnx.ml" since 1 (%z) "imputer" {} -> ["label"] : (!onnx.any) -> !onnx.any
  onnx.return %label, %y : !onnx.any, !onnx.any
}
