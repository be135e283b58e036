// RUN: ortc-opt %S/Inputs/mlp.mlir --ortc-build-loss --ortc-differentiate --ortc-build-update=optimizer=adam --ortc-compose-entries | FileCheck %s --check-prefixes=CHECK,WHOLE
// RUN: ortc-opt %S/Inputs/mlp.mlir --ortc-build-loss --ortc-differentiate --ortc-build-update=optimizer=adam --ortc-compose-entries=gradients=true | FileCheck %s --check-prefixes=CHECK,CUT
// RUN: ortc-opt %S/Inputs/mlp.mlir --ortc-build-loss=loss=none --ortc-differentiate --ortc-build-update --ortc-compose-entries | FileCheck %s --check-prefix=PREDICT
// RUN: not ortc-opt %S/Inputs/mlp.mlir --ortc-build-loss --ortc-differentiate --ortc-compose-entries 2>&1 | FileCheck %s --check-prefix=ORDER
// Breaks when an entry takes or gives too much: a label to predict with, an update from gradients.

// CHECK-NOT: func.func private
// CHECK-LABEL: func.func @train_0(
// CHECK-SAME: train.input = "label"
// CHECK-SAME: -> (tensor<f32> {train.loss}, tensor<7xf32> {train.update = @mean}, tensor<i64> {train.update = @step},
// CHECK-SAME: attributes {train.binding = 0 : i64, train.entry = "train"}
// CHECK-LABEL: func.func @eval_0(
// CHECK-SAME: -> (tensor<f32> {train.loss}, tensor<5x3xf32> {train.output = "logits"})
// CHECK-LABEL: func.func @predict_0(
// CHECK-NOT: label
// CHECK-SAME: -> (tensor<5x3xf32> {train.output = "logits"})
// WHOLE-NOT: func.func
// CUT-LABEL: func.func @gradients_0(
// CUT-NOT: train.update
// CUT-SAME: -> (tensor<f32> {train.loss}, tensor<7xf32> {train.gradient = @mean}, tensor<4x7xf32> {train.gradient = @w1},
// CUT-LABEL: func.func @update_0(
// CUT-SAME: %[[MEAN:.*]]: tensor<7xf32> {train.gradient = @mean}
// CUT-SAME: -> (tensor<7xf32> {train.update = @mean},
// CUT: return %[[MEAN]],

// PREDICT-NOT: @train_0
// PREDICT-NOT: @eval_0
// PREDICT: func.func @predict_0(
// ORDER: error: gradients without @update: run ortc-build-update first
