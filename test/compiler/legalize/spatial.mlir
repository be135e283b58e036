// RUN: ortc-opt %s --ortc-legalize="mode=train" --split-input-file | FileCheck %s
// Spatial operators become channels-last with transposes around them; a wrong permutation or padding would show here.

// CHECK-LABEL: func.func @forward_train_0
// CHECK-SAME: (%[[X:.*]]: tensor<2x4x8x6xf32> {train.input = "x"}, %[[W:.*]]: tensor<6x2x3x3xf32> {train.tensor = @w}
// CHECK-SAME: %[[B:.*]]: tensor<6xf32> {train.tensor = @b})
// CHECK-SAME: -> (tensor<2x6x4x6xf32> {train.output = "y"})
// CHECK-DAG: %[[XT:.*]] = nn.transpose %[[X]] perm = [0, 2, 3, 1]
// CHECK-DAG: %[[WT:.*]] = nn.transpose %[[W]] perm = [2, 3, 1, 0]
// CHECK: %[[Y:.*]] = nn.conv %[[XT]], %[[WT]] strides = [2, 1] padding = [0, 1] to [1, 1] dilations = [1, 1] groups = 2
// CHECK: %[[BIAS:.*]] = nn.broadcast %[[B]] dims = [3]
// CHECK: %[[SUM:.*]] = arith.addf %[[Y]], %[[BIAS]]
// CHECK: nn.transpose %[[SUM]] perm = [0, 3, 1, 2]
onnx.graph "conv" ["x"] [[]] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<2x4x8x6xf32>):
  %w = onnx.initializer "w" dense<0.5> : tensor<6x2x3x3xf32>
  %b = onnx.initializer "b" dense<0.5> : tensor<6xf32>
  %y = onnx.node "Conv" since 11 (%x, %w, %b) {auto_pad = "SAME_UPPER", group = 2 : i64, strides = array<i64: 2, 1>} -> ["y"]
    : (tensor<2x4x8x6xf32>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> !onnx.any
  onnx.return %y : !onnx.any
}

// -----

// CHECK-LABEL: func.func @forward_train_0
// CHECK: nn.conv_input_grad {{.*}} strides = [2] padding = [1] to [0] {{.*}} tensor<1x3x2xf32>, tensor<3x4x2xf32> -> tensor<1x6x4xf32>
onnx.graph "transposed" ["x"] [[]] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<1x2x3xf32>):
  %w = onnx.initializer "w" dense<0.5> : tensor<2x4x3xf32>
  %y = onnx.node "ConvTranspose" since 11 (%x, %w) {output_padding = array<i64: 1>, pads = array<i64: 1, 1>, strides = array<i64: 2>} -> ["y"]
    : (tensor<1x2x3xf32>, tensor<2x4x3xf32>) -> !onnx.any
  onnx.return %y : !onnx.any
}

// -----

// Rounding up adds an overhang, and no window starts in the padding behind the input.
// CHECK-LABEL: func.func @forward_train_0
// CHECK: nn.max_pool {{.*}} window = [3, 2] strides = [2, 2] padding = [0, 0] to [0, 1] overhang = [1, 0] {{.*}} -> tensor<1x3x3x1xf32>
onnx.graph "ceil" ["x"] [[]] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<1x1x6x5xf32>):
  %y = onnx.node "MaxPool" since 12 (%x) {ceil_mode = 1 : i64, kernel_shape = array<i64: 3, 2>, pads = array<i64: 0, 0, 0, 1>, strides = array<i64: 2, 2>} -> ["y"]
    : (tensor<1x1x6x5xf32>) -> !onnx.any
  onnx.return %y : !onnx.any
}

// -----

// Positions are computed from the taps: here in i32, for a volume of 2^31 and more in i64.
// CHECK-LABEL: func.func @forward_train_0
// CHECK: %{{.*}}, %[[TAPS:.*]] = nn.max_pool {{.*}} -> tensor<1x3x1xf32>, tensor<1x3x1xi8>
// CHECK: arith.extsi %[[TAPS]] : tensor<1x3x1xi8> to tensor<1x3x1xi32>
onnx.graph "indices" ["x"] [[]] -> ["y", "i"] [!onnx.any, !onnx.any] [[], []] {
^bb0(%x: tensor<1x1x6xf32>):
  %y, %i = onnx.node "MaxPool" since 12 (%x) {kernel_shape = array<i64: 2>, strides = array<i64: 2>} -> ["y", "i"]
    : (tensor<1x1x6xf32>) -> (!onnx.any, !onnx.any)
  onnx.return %y, %i : !onnx.any, !onnx.any
}

// -----

// CHECK-LABEL: func.func @forward_train_0
// CHECK: %{{.*}}, %[[TAPS:.*]] = nn.max_pool {{.*}} -> tensor<1x2049x1xf32>, tensor<1x2049x1xi8>
// CHECK: arith.extsi %[[TAPS]] : tensor<1x2049x1xi8> to tensor<1x2049x1xi64>
onnx.graph "large" ["x"] [[]] -> ["y", "i"] [!onnx.any, !onnx.any] [[], []] {
^bb0(%x: tensor<1x1x2148532224xf32>):
  %y, %i = onnx.node "MaxPool" since 12 (%x) {kernel_shape = array<i64: 2>, strides = array<i64: 1048576>} -> ["y", "i"]
    : (tensor<1x1x2148532224xf32>) -> (!onnx.any, !onnx.any)
  onnx.return %y, %i : !onnx.any, !onnx.any
}

// -----

// Axes of a permutation count from the end where they are negative, as TorchScript writes them.
// CHECK-LABEL: func.func @forward_train_0
// CHECK: nn.transpose %{{.*}} perm = [0, 2, 1] : tensor<2x3x4xf32> -> tensor<2x4x3xf32>
onnx.graph "permuted" ["x"] [[]] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<2x3x4xf32>):
  %y = onnx.node "Transpose" since 13 (%x) {perm = array<i64: 0, -1, -2>} -> ["y"] : (tensor<2x3x4xf32>) -> !onnx.any
  onnx.return %y : !onnx.any
}
