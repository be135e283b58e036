// RUN: ortc-opt %s --ortc-legalize="mode=train" 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=WARNING --input-file=%t
// RUN: ortc-opt %s --ortc-legalize="mode=train train=w,step freeze=w" 2>%t | FileCheck %s --check-prefix=CHOSEN
// RUN: FileCheck %s --check-prefix=IGNORED --input-file=%t
// RUN: ortc-opt %s --ortc-legalize="mode=train train=w,step,unread materialize-gradients=step,unread" 2>&1 | FileCheck %s --check-prefix=ZEROS
// Which initializers are trained: what a gradient reaches, except lifted constants; --train and --freeze decide first.

// CHECK-NOT: constant
// CHECK: train.tensor @w parameter "w"
// CHECK-NOT: "val_1"
// CHECK: train.tensor @val_2 parameter "val_2"
// CHECK: train.tensor @val_3 parameter "val_3"
// CHECK-NOT: "step"
// CHECK: train.tensor @"const__8:0" parameter "const__8:0"
// CHECK: train.tensor @attn_mask parameter "attn_mask"
// CHECK-NOT: "table"
// CHECK-NOT: "lifted"
// CHECK-NOT: "limit"
// CHECK: func.func
// WARNING: trained although it looks like a mask or a table: 'attn_mask' (3 elements), 'zeros' (3 elements); --freeze what is no weight
// WARNING: trained although the exporter made up the name: 'val_2' (3 elements); --freeze what is a table and no weight
// CHOSEN-NOT: parameter
// CHOSEN: func.func
// ZEROS-NOT: but stay
// ZEROS: train.tensor @w parameter "w"
// ZEROS: train.tensor @step parameter "step"
// ZEROS: train.tensor @unread parameter "unread"
// IGNORED: 'step' is named by --train but stays constant: no gradient of the loss can reach it
onnx.graph "g" ["x"] [[]] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<2x3xf32>):
  %w = onnx.initializer "w" dense<0.5> : tensor<3xf32>
  %one = onnx.initializer "val_1" dense<0.5> : tensor<f32>
  %many = onnx.initializer "val_2" dense<0.5> : tensor<3xf32>
  %slope = onnx.initializer "val_3" dense<0.5> : tensor<1xf32>
  %step = onnx.initializer "step" dense<0.5> : tensor<3xf32>
  %folded = onnx.initializer "const__8:0" dense<0.5> : tensor<f32> {onnx.origin = "parameter"}
  %mask = onnx.initializer "attn_mask" dense<0.5> : tensor<3xf32>
  %zeros = onnx.initializer "zeros" dense<[0.0, -1.0e9, 0.0]> : tensor<3xf32>
  %table = onnx.initializer "table" dense<0.5> : tensor<3xf32> {onnx.origin = "buffer"}
  %lifted = onnx.initializer "lifted" dense<0.5> : tensor<3xf32> {onnx.origin = "constant"}
  %limit = onnx.initializer "limit" dense<0.5> : tensor<f32>
  %unread = onnx.initializer "unread" dense<0.5> : tensor<2xf32> {onnx.origin = "buffer"}
  %sum = onnx.node "Sum" since 13 (%x, %folded, %mask, %zeros, %table, %lifted) {} -> ["sum"] : (tensor<2x3xf32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> !onnx.any
  %clipped = onnx.node "Clip" since 13 (%sum, %limit) {} -> ["clipped"] : (!onnx.any, tensor<f32>) -> !onnx.any
  %a = onnx.node "Mul" since 14 (%clipped, %w) {} -> ["a"] : (!onnx.any, tensor<3xf32>) -> !onnx.any
  %b = onnx.node "Mul" since 14 (%a, %one) {} -> ["b"] : (!onnx.any, tensor<f32>) -> !onnx.any
  %c = onnx.node "Mul" since 14 (%b, %many) {} -> ["c"] : (!onnx.any, tensor<3xf32>) -> !onnx.any
  %d = onnx.node "PRelu" since 16 (%c, %slope) {} -> ["d"] : (!onnx.any, tensor<1xf32>) -> !onnx.any
  %e = onnx.node "Floor" since 13 (%step) {} -> ["e"] : (tensor<3xf32>) -> !onnx.any
  %y = onnx.node "Add" since 14 (%d, %e) {} -> ["y"] : (!onnx.any, !onnx.any) -> !onnx.any
  onnx.return %y : !onnx.any
}
