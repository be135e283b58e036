// RUN: ortc-opt %s --ortc-build-update="optimizer=sgd:lr=0.1" | FileCheck %s --check-prefix=SGD
// RUN: ortc-opt %s --ortc-build-update="optimizer=sgd:lr=0.1,momentum=0.9" | FileCheck %s --check-prefix=MOMENTUM
// RUN: ortc-opt %s --ortc-build-update="optimizer=adamw groups=.*bias:weight_decay=0,lr_scale=2;.*:lr_scale=3" | FileCheck %s --check-prefix=GROUPS
// RUN: ortc-opt %s --ortc-build-update="clip-value=0.5 clip-norm=2" | FileCheck %s --check-prefix=CLIP
// Breaks when state loses its parameter's layout, when a hyper-parameter is not settable, or a zero one costs anything.

// SGD: train.tensor @step state "step" : tensor<i64>
// SGD-NEXT: train.tensor @lr scalar "lr" initial = dense<1.000000e-01> : tensor<f64> : tensor<f64>
// SGD-NOT: train.tensor
// SGD: func.func private @update(
// SGD-SAME: -> (tensor<i64> {train.update = @step}, tensor<3x2xf32> {train.update = @w}, tensor<3xf32> {train.update = @b})

// MOMENTUM: train.tensor @w.momentum_buffer state "fc.weight.momentum_buffer" permutation = [1, 0] of @w : tensor<2x3xf32>
// MOMENTUM: train.tensor @b.momentum_buffer state "fc.bias.momentum_buffer" of @b : tensor<3xf32>
// MOMENTUM: tensor<3x2xf32> {train.update = @w.momentum_buffer}

// The first group that matches; a weight decay of zero is compiled out.
// GROUPS: train.tensor @group1.lr_scale scalar "group1.lr_scale" initial = dense<3.000000e+00>
// GROUPS-NOT: group0.weight_decay
// GROUPS: train.tensor @group0.lr_scale scalar "group0.lr_scale" initial = dense<2.000000e+00>

// CLIP: train.tensor @clip_value scalar "clip_value" initial = dense<5.000000e-01>
// CLIP: train.tensor @clip_norm scalar "clip_norm" initial = dense<2.000000e+00>
train.tensor @w parameter "fc.weight" permutation = [1, 0] : tensor<2x3xf32>
train.tensor @b parameter "fc.bias" : tensor<3xf32>
train.tensor @c constant "table" : tensor<3xf32>
