// RUN: ortc-opt %s --ortc-build-update="schedule=lr=exponential:gamma=0.5 step-outputs=grad_norm" | FileCheck %s --check-prefix=RATE
// RUN: ortc-opt %s --ortc-build-update="ema=decay=0.9 swa=start=3" | FileCheck %s --check-prefix=AVERAGES
// RUN: ortc-opt %s --ortc-build-update="regularize=.*bias:l2=0.5;.*weight:max_norm=1" | FileCheck %s --check-prefix=PENALTY
// RUN: not ortc-opt %s --ortc-build-update=ema=decay=2 2>&1 | FileCheck %s --check-prefix=DECAY
// Breaks when a rate does not follow the step, an average is of old values, or a limit is of other slices than the file's.

// The scalar stays the base; a step reads what the number of steps makes of it.
// RATE: train.tensor @lr scalar "lr" initial = dense<1.000000e-03>
// RATE: func.func private @update({{.*}}, %[[STEP:.*]]: tensor<i64> {train.tensor = @step}, %[[LR:.*]]: tensor<f64> {train.tensor = @lr})
// RATE: %[[NORM:.*]] = math.sqrt
// RATE: %[[COUNT:.*]] = arith.sitofp %[[STEP]]
// RATE: arith.mulf %[[LR]],
// RATE: return {{.*}}%[[NORM]]

// AVERAGES: train.tensor @w.ema state "fc.weight.ema" permutation = [1, 0] of @w : tensor<2x3xf32>
// AVERAGES: train.tensor @w.swa state "fc.weight.swa" permutation = [1, 0] of @w : tensor<2x3xf32>
// AVERAGES: func.func private @update(%[[W:.*]]: tensor<3x2xf32> {train.tensor = @w}, %{{.*}}, %[[EMA:arg[0-9]+]]: tensor<3x2xf32> {train.tensor = @w.ema}
// AVERAGES: %[[NEW:.*]] = arith.addf %[[W]],
// AVERAGES: %[[LEFT:.*]] = arith.subf %[[NEW]], %[[EMA]]

// Gradients of l2 |w|^2; norms of rows of the file, which are stored as columns.
// PENALTY: train.tensor @regularize0.l2 scalar "regularize0.l2" initial = dense<5.000000e-01>
// PENALTY: func.func private @update(%{{.*}}, %[[B:.*]]: tensor<3xf32> {train.tensor = @b}, %[[G:.*]]: tensor<3xf32> {train.gradient = @b}
// PENALTY: %[[PULL:.*]] = arith.mulf %[[B]],
// PENALTY: arith.addf %[[G]], %[[PULL]]
// PENALTY: nn.reduce sum %{{.*}} axes = [0] : tensor<3x2xf32> -> tensor<2xf32>

// DECAY: error: average: decay is '2' but must be a number of at least 0 and below 1
train.tensor @w parameter "fc.weight" permutation = [1, 0] : tensor<2x3xf32>
train.tensor @b parameter "fc.bias" : tensor<3xf32>
