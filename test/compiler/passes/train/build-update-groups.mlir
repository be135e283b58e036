// RUN: ortc-opt %s --ortc-build-update="optimizer=adamw groups=.*bias:optimizer=nadam,beta1=0.8;.*scale:beta2=0.9,lr=0.5" | FileCheck %s --check-prefix=GROUPS
// RUN: ortc-opt %s --ortc-build-update="optimizer=adamw no-decay=biases" | FileCheck %s --check-prefix=BIASES
// RUN: ortc-opt %s --ortc-build-update="optimizer=adamw no-decay=norms" | FileCheck %s --check-prefix=NORMS
// RUN: ortc-opt %s --ortc-build-update="optimizer=adamw no-decay=biases,norms groups=fc.*:weight_decay=0.1" | FileCheck %s --check-prefix=OWN
// RUN: ortc-opt %s --ortc-build-update="optimizer=schedule_free_sgd" | FileCheck %s --check-prefix=AHEAD
// Breaks when a group changes what is not its own, when the wrong parameters lose their decay, or training reads averages.

// Shared state and scalars of a group are its own where its keys, or its optimizer, say so.
// GROUPS: train.tensor @bias_correction1 state
// GROUPS: train.tensor @beta1 scalar "beta1" initial = dense<9.000000e-01>
// GROUPS: train.tensor @bias_correction2 state
// GROUPS: train.tensor @group0.updates state
// GROUPS: train.tensor @group0.mu_product state "group0.mu_product" initial = dense<1.000000e+00>
// GROUPS: train.tensor @group0.beta1 scalar "group0.beta1" initial = dense<8.000000e-01>
// GROUPS-NOT: group1.bias_correction1
// GROUPS: train.tensor @group1.bias_correction2 state
// GROUPS: train.tensor @group1.beta2 scalar "group1.beta2" initial = dense<9.000000e-01>
// GROUPS-NOT: group1.beta1
// GROUPS: train.tensor @group1.lr scalar "group1.lr" initial = dense<5.000000e-01>

// p (1 - lr weight_decay) of the weight, and of what --no-decay leaves.
// BIASES: func.func private @update(%[[W:[a-z0-9]+]]: tensor<3x3xf32> {train.tensor = @w}, %{{.*}}, %[[B:[a-z0-9]+]]: tensor<3xf32> {train.tensor = @b}, %{{.*}}, %[[S:[a-z0-9]+]]: tensor<3xf32> {train.tensor = @s}
// BIASES: arith.mulf %[[W]],
// BIASES-NOT: arith.mulf %[[B]],
// BIASES: arith.mulf %[[S]],
// NORMS: func.func private @update(%[[W:[a-z0-9]+]]: tensor<3x3xf32> {train.tensor = @w}, %{{.*}}, %[[B:[a-z0-9]+]]: tensor<3xf32> {train.tensor = @b}, %{{.*}}, %[[S:[a-z0-9]+]]: tensor<3xf32> {train.tensor = @s}
// NORMS: arith.mulf %[[W]],
// NORMS: arith.mulf %[[B]],
// NORMS-NOT: arith.mulf %[[S]],
// OWN: train.tensor @group0.weight_decay scalar
// OWN-NOT: "weight_decay"
// OWN: func.func private @update(

// x + (1 - momentum)(z - x) is what training reads.
// AHEAD-LABEL: func.func @backward_0(
// AHEAD-SAME: %[[W:[a-z0-9]+]]: tensor<3x3xf32> {train.tensor = @w}
// AHEAD: %[[Y:[a-z0-9]+]] = arith.addf %[[W]], %{{.*}} : tensor<3x3xf32>
// AHEAD: nn.dot %{{.*}}, %[[Y]]
train.tensor @w parameter "fc.weight" : tensor<3x3xf32>
train.tensor @b parameter "fc.bias" : tensor<3xf32>
train.tensor @s parameter "norm.scale" : tensor<3xf32>
func.func @forward_train_0(%x: tensor<4x3xf32> {train.input = "x"}) -> (tensor<4x3xf32> {train.output = "y"}) {
  return %x : tensor<4x3xf32>
}
func.func @backward_0(%x: tensor<4x3xf32> {train.input = "x"}, %w: tensor<3x3xf32> {train.tensor = @w}, %b: tensor<3xf32> {train.tensor = @b}, %s: tensor<3xf32> {train.tensor = @s})
    -> (tensor<4x3xf32> {train.output = "y"}) {
  %0 = nn.dot %x, %w batch = [] x [] contract = [1] x [0] : tensor<4x3xf32>, tensor<3x3xf32> -> tensor<4x3xf32>
  %1 = nn.broadcast %b dims = [1] : tensor<3xf32> -> tensor<4x3xf32>
  %2 = arith.addf %0, %1 : tensor<4x3xf32>
  %3 = nn.broadcast %s dims = [1] : tensor<3xf32> -> tensor<4x3xf32>
  %4 = arith.mulf %2, %3 : tensor<4x3xf32>
  return %4 : tensor<4x3xf32>
}
