// RUN: ortc-opt %s --ortc-build-update="optimizer=sgd:lr=0.1,momentum=0.9 rounding-seed=3 accumulate=2" | FileCheck %s --check-prefixes=CHECK,RANDOM
// RUN: ortc-opt %s --ortc-build-update="optimizer=sgd:lr=0.1,momentum=0.9 accumulate=2" | FileCheck %s --check-prefixes=CHECK,NEAREST
// Breaks when a bf16 parameter is updated in bf16, or gets state of bf16.

// CHECK-DAG: train.tensor @w.momentum_buffer state "fc.weight.momentum_buffer" permutation = [1, 0] of @w : tensor<2x3xf32>
// CHECK-DAG: train.tensor @w.accumulated state "fc.weight.accumulated" permutation = [1, 0] of @w : tensor<2x3xf32>
// CHECK: func.func private @update(%[[W:.*]]: tensor<3x2xbf16> {train.tensor = @w}, %{{.*}}: tensor<3x2xf32> {train.gradient = @w}, %[[STEP:.*]]: tensor<i64> {train.tensor = @step}
// CHECK-SAME: tensor<3x2xbf16> {train.update = @w}
// CHECK: %[[WIDE:.*]] = arith.extf %[[W]] : tensor<3x2xbf16> to tensor<3x2xf32>
// CHECK: %[[NEW:.*]] = arith.addf %[[WIDE]], %{{.*}} : tensor<3x2xf32>
// NEAREST: arith.truncf %[[NEW]] : tensor<3x2xf32> to tensor<3x2xbf16>
// NEAREST-NOT: nn.random
// RANDOM: %[[DRAWN:.*]], %{{.*}} = nn.random %[[STEP]] key = {{[0-9]+}} : tensor<i64> -> tensor<3x2xi32>
// RANDOM: arith.bitcast %[[NEW]] : tensor<3x2xf32> to tensor<3x2xi32>
// RANDOM: arith.bitcast %{{.*}} : tensor<3x2xi16> to tensor<3x2xbf16>
// RANDOM-NOT: arith.truncf %{{.*}} : tensor<3x2xf32> to tensor<3x2xbf16>
train.tensor @w parameter "fc.weight" permutation = [1, 0] : tensor<2x3xbf16>
