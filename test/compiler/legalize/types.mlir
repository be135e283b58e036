// RUN: ortc-opt %s --ortc-legalize="mode=train" --split-input-file | FileCheck %s
// Integers of the program are signless: what the file said stays beside arguments and results, or 200 would become -56.

// CHECK-LABEL: func.func @forward_train_0
// CHECK-SAME: %{{.*}}: tensor<2xi8> {train.dtype = ui8, train.input = "x"}, %{{.*}}: tensor<2xi8> {train.input = "s"}
// CHECK-SAME: -> (tensor<2xi8> {train.dtype = ui8, train.output = "y"}, tensor<2xi8> {train.output = "z"})
onnx.graph "unsigned" ["x", "s"] [[], []] -> ["y", "z"] [!onnx.any, !onnx.any] [[], []] {
^bb0(%x: tensor<2xui8>, %s: tensor<2xi8>):
  %y = onnx.node "Add" since 14 (%x, %x) {} -> ["y"] : (tensor<2xui8>, tensor<2xui8>) -> !onnx.any
  %z = onnx.node "Add" since 14 (%s, %s) {} -> ["z"] : (tensor<2xi8>, tensor<2xi8>) -> !onnx.any
  onnx.return %y, %z : !onnx.any, !onnx.any
}

// -----

// A narrow weight is a cast of a master in f32, and what repeats elements works on f32: its gradient is a sum.
// CHECK: train.tensor @w parameter "w" {{.*}} : tensor<3xf32>
// CHECK-LABEL: func.func @forward_train_0
// CHECK: %[[W:.*]] = arith.truncf %{{.*}} : tensor<3xf32> to tensor<3xf16>
// CHECK: %[[WIDE:.*]] = arith.extf %[[W]] : tensor<3xf16> to tensor<3xf32>
// CHECK: nn.broadcast %[[WIDE]] {{.*}} -> tensor<2x3xf32>
onnx.graph "narrow" ["x"] [[]] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<2x3xf16>):
  %w = onnx.initializer "w" dense<0.5> : tensor<3xf16>
  %s = onnx.initializer "s" dense<[2, 3]> : tensor<2xi64>
  %e = onnx.node "Expand" since 13 (%w, %s) {} -> ["e"] : (tensor<3xf16>, tensor<2xi64>) -> !onnx.any
  %y = onnx.node "Mul" since 14 (%x, %e) {} -> ["y"] : (tensor<2x3xf16>, !onnx.any) -> !onnx.any
  onnx.return %y : !onnx.any
}
