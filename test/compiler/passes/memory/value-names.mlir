// RUN: ortc-opt %s --ortc-fuse-kernels --ortc-assign-regions --ortc-outline-kernels --ortc-place-buffers | FileCheck %s
// Breaks when buffers are not called what the model calls their values, or two values of a program have one name.

// CHECK-LABEL: plan.program @predict_0_program "predict"
// CHECK-DAG: plan.buffer transient {{[0-9]+}} "h" : memref<8x4xf32>
// CHECK-DAG: plan.buffer transient {{[0-9]+}} "h #2" : memref<8x5xf32>
// CHECK-DAG: plan.buffer transient {{[0-9]+}} "gradient of h" : memref<8x6xf32>
// CHECK-DAG: plan.buffer transient {{[0-9]+}} "part of MatMul:node_4" : memref<8x7xf32>
// CHECK-DAG: plan.buffer transient {{[0-9]+}} "part of the gradient of MatMul:node_4" : memref<8x8xf32>
// CHECK-DAG: plan.buffer transient {{[0-9]+}} "kernel_5" : memref<8x9xf32>
func.func @predict_0(%x: tensor<8x3xf32> {train.input = "x"}, %a: tensor<3x4xf32> {train.input = "a"},
    %b: tensor<4x5xf32> {train.input = "b"}, %c: tensor<5x6xf32> {train.input = "c"}, %d: tensor<6x7xf32> {train.input = "d"},
    %e: tensor<7x8xf32> {train.input = "e"}, %f: tensor<8x9xf32> {train.input = "f"}, %g: tensor<9x10xf32> {train.input = "g"})
    -> (tensor<8x10xf32> {train.output = "y"}) attributes {train.entry = "predict", train.binding = 0 : i64} {
  %0 = nn.dot %x, %a batch = [] x [] contract = [1] x [0] : tensor<8x3xf32>, tensor<3x4xf32> -> tensor<8x4xf32> loc(fused<{value = "h"}>["MatMul:node_1"])
  %1 = nn.dot %0, %b batch = [] x [] contract = [1] x [0] : tensor<8x4xf32>, tensor<4x5xf32> -> tensor<8x5xf32> loc(fused<{value = "h"}>["MatMul:node_2"])
  %2 = nn.dot %1, %c batch = [] x [] contract = [1] x [0] : tensor<8x5xf32>, tensor<5x6xf32> -> tensor<8x6xf32> loc(fused<{gradient_of = "h"}>[fused<"gradient">["MatMul:node_3"]])
  %3 = nn.dot %2, %d batch = [] x [] contract = [1] x [0] : tensor<8x6xf32>, tensor<6x7xf32> -> tensor<8x7xf32> loc("MatMul:node_4")
  // What is made for the gradient of a value that has a name is not that value.
  %4 = nn.dot %3, %e batch = [] x [] contract = [1] x [0] : tensor<8x7xf32>, tensor<7x8xf32> -> tensor<8x8xf32> loc(fused<"gradient">[fused<{value = "z"}>["MatMul:node_4"]])
  %5 = nn.dot %4, %f batch = [] x [] contract = [1] x [0] : tensor<8x8xf32>, tensor<8x9xf32> -> tensor<8x9xf32>
  %6 = nn.dot %5, %g batch = [] x [] contract = [1] x [0] : tensor<8x9xf32>, tensor<9x10xf32> -> tensor<8x10xf32>
  return %6 : tensor<8x10xf32>
}
