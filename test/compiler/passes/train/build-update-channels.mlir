// RUN: ortc-opt %s --ortc-build-update="optimizer=sgd:lr=0.1,momentum=0.9" | FileCheck %s
// Breaks when state is larger than what is trained, or when frozen channels are computed with.

// The first axis of the file is the second one as it is stored.
// CHECK: train.tensor @w.momentum_buffer state "fc.weight.momentum_buffer" permutation = [1, 0] of @w : tensor<2x3xf32>
// CHECK: func.func private @update(%[[W:.*]]: tensor<3x8xf32> {train.tensor = @w}, %[[G:.*]]: tensor<3x2xf32> {train.gradient = @w}
// CHECK: %[[OLD:.*]] = nn.slice %[[W]] starts = [0, 0] strides = [1, 1] : tensor<3x8xf32> -> tensor<3x2xf32>
// CHECK: %[[NEW:.*]] = arith.addf %[[OLD]], %{{.*}} : tensor<3x2xf32>
// CHECK: %[[REST:.*]] = nn.slice %[[W]] starts = [0, 2] strides = [1, 1] : tensor<3x8xf32> -> tensor<3x6xf32>
// CHECK: %[[ALL:.*]] = nn.concat %[[NEW]], %[[REST]] axis = 1 : tensor<3x2xf32>, tensor<3x6xf32> -> tensor<3x8xf32>
// CHECK: return %{{.*}}, %[[ALL]], %{{.*}} : tensor<i64>, tensor<3x8xf32>, tensor<3x2xf32>
train.tensor @w parameter "fc.weight" permutation = [1, 0] {train.channels = array<i64: 0, 2>} : tensor<8x3xf32>
