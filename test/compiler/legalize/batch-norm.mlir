// RUN: ortc-opt %s --ortc-legalize="mode=both" | FileCheck %s --check-prefixes=CHECK,TRAIN
// RUN: ortc-opt %s --ortc-legalize="mode=both batch-norm=frozen" | FileCheck %s --check-prefix=FROZEN
// Statistics of the batch in training, running ones in evaluation; the step gives new running statistics.

// CHECK-DAG: train.tensor @scale parameter "scale"
// CHECK-DAG: train.tensor @mean state "mean"
// CHECK-DAG: train.tensor @var state "var"
// CHECK-LABEL: func.func @forward_train_0
// CHECK-SAME: %[[MEAN:[a-z0-9]*]]: tensor<3xf32> {train.tensor = @mean}
// CHECK-SAME: (tensor<2x3x4xf32> {train.output = "y"}, tensor<3xf32> {train.update = @mean}, tensor<3xf32> {train.update = @var})
// TRAIN: %[[M:.*]], %[[V:.*]] = nn.moments %{{.*}} axes = [0, 2]
// TRAIN: %[[KEPT:.*]] = arith.mulf %[[MEAN]]
// TRAIN: arith.addf %[[KEPT]]
// CHECK-LABEL: func.func @forward_eval_0
// CHECK-NOT: nn.moments
// CHECK-NOT: train.update

// Frozen statistics are state that no step changes: checkpoints hold them.
// FROZEN-DAG: train.tensor @mean state "mean"
// FROZEN-DAG: train.tensor @var state "var"
// FROZEN-NOT: nn.moments
// FROZEN-NOT: train.update
onnx.graph "norm" ["x"] [[]] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<2x3x4xf32>):
  %scale = onnx.initializer "scale" dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %bias = onnx.initializer "bias" dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %mean = onnx.initializer "mean" dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %var = onnx.initializer "var" dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %y, %m, %v = onnx.node "BatchNormalization" since 15 (%x, %scale, %bias, %mean, %var) {training_mode = 1 : i64} -> ["y", "m", "v"]
    : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (!onnx.any, !onnx.any, !onnx.any)
  onnx.return %y : !onnx.any
}
