// RUN: ortc-opt %s --split-input-file --ortc-differentiate='head-chunk=3' --canonicalize | FileCheck %s
// Breaks when the head is not computed in chunks of rows, or where something else reads logits.

// Six rows, three at a time: the sum and the weights' gradient are carried, that of the activations is stacked.
// CHECK-LABEL: func.func private @backward_0
// CHECK: nn.scan 2 recompute carry({{.*}}) over({{.*}}) with({{.*}}) : {{.*}} -> (tensor<f32>, tensor<5x4xf32>, tensor<2x3x4xf32>)
// CHECK: nn.dot {{.*}} tensor<3x4xf32>, tensor<5x4xf32> -> tensor<3x5xf32>
// CHECK: nn.log_softmax {{.*}} axis = 1 : tensor<3x5xf32>
// CHECK: nn.yield {{.*}} : tensor<f32>, tensor<5x4xf32>, tensor<3x4xf32>
// CHECK-NOT: tensor<2x3x5xf32>
train.tensor @w parameter "w" : tensor<5x4xf32>
train.tensor @e parameter "e" : tensor<7x4xf32>
func.func private @forward_train_0(%x: tensor<2x3xi64> {train.input = "x"}, %e: tensor<7x4xf32> {train.tensor = @e}, %w: tensor<5x4xf32> {train.tensor = @w}) -> (tensor<2x3x5xf32> {train.output = "y"}) {
  %h = nn.gather %e, %x axis = 0 : tensor<7x4xf32>, tensor<2x3xi64> -> tensor<2x3x4xf32>
  %y = nn.dot %h, %w batch = [] x [] contract = [2] x [1] : tensor<2x3x4xf32>, tensor<5x4xf32> -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}
func.func private @loss_0(%y: tensor<2x3x5xf32> {train.output = "y"}, %t: tensor<2x3x5xf32> {train.input = "label"}) -> (tensor<f32> {train.loss}) {
  %p = nn.log_softmax %y axis = 2 : tensor<2x3x5xf32>
  %m = arith.mulf %p, %t : tensor<2x3x5xf32>
  %s = nn.reduce sum %m axes = [0, 1, 2] : tensor<2x3x5xf32> -> tensor<f32>
  %l = arith.negf %s : tensor<f32>
  return %l : tensor<f32>
}

// -----

// A sum over the rows alone is another loss.
// CHECK-LABEL: func.func private @backward_0
// CHECK-NOT: nn.scan
train.tensor @w parameter "w" : tensor<5x4xf32>
func.func private @forward_train_0(%x: tensor<6x4xf32> {train.input = "x"}, %w: tensor<5x4xf32> {train.tensor = @w}) -> (tensor<6x5xf32> {train.output = "y"}) {
  %y = nn.dot %x, %w batch = [] x [] contract = [1] x [1] : tensor<6x4xf32>, tensor<5x4xf32> -> tensor<6x5xf32>
  return %y : tensor<6x5xf32>
}
func.func private @loss_0(%y: tensor<6x5xf32> {train.output = "y"}) -> (tensor<f32> {train.loss}) {
  %c = nn.reduce sum %y axes = [0] : tensor<6x5xf32> -> tensor<5xf32>
  %m = arith.mulf %c, %c : tensor<5xf32>
  %s = nn.reduce sum %m axes = [0] : tensor<5xf32> -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// The sum itself is the loss; logits that have something else as large beside them stay whole.
// CHECK-LABEL: func.func private @backward_0
// CHECK: %[[S:.*]]:{{.*}} = nn.scan 2 recompute
// CHECK: %[[D:.*]] = nn.detach %[[S]]#0
// CHECK: return %[[D]]
train.tensor @w parameter "w" : tensor<5x4xf32>
func.func private @forward_train_0(%x: tensor<6x4xf32> {train.input = "x"}, %w: tensor<5x4xf32> {train.tensor = @w}) -> (tensor<6x5xf32> {train.output = "y"}) {
  %y = nn.dot %x, %w batch = [] x [] contract = [1] x [1] : tensor<6x4xf32>, tensor<5x4xf32> -> tensor<6x5xf32>
  return %y : tensor<6x5xf32>
}
func.func private @loss_0(%y: tensor<6x5xf32> {train.output = "y"}) -> (tensor<f32> {train.loss}) {
  %m = arith.mulf %y, %y : tensor<6x5xf32>
  %s = nn.reduce sum %m axes = [0, 1] : tensor<6x5xf32> -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// CHECK-LABEL: func.func private @backward_0
// CHECK-NOT: nn.scan
train.tensor @w parameter "w" : tensor<5x4xf32>
train.tensor @u parameter "u" : tensor<6x5xf32>
func.func private @forward_train_0(%x: tensor<6x4xf32> {train.input = "x"}, %w: tensor<5x4xf32> {train.tensor = @w}, %u: tensor<6x5xf32> {train.tensor = @u}) -> (tensor<6x5xf32> {train.output = "y"}) {
  %y = nn.dot %x, %w batch = [] x [] contract = [1] x [1] : tensor<6x4xf32>, tensor<5x4xf32> -> tensor<6x5xf32>
  %r = nn.reverse %u axes = [0] : tensor<6x5xf32>
  %z = arith.addf %y, %r : tensor<6x5xf32>
  return %z : tensor<6x5xf32>
}
func.func private @loss_0(%y: tensor<6x5xf32> {train.output = "y"}) -> (tensor<f32> {train.loss}) {
  %m = arith.mulf %y, %y : tensor<6x5xf32>
  %s = nn.reduce sum %m axes = [0, 1] : tensor<6x5xf32> -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// Rows with a label that counts come first, in the order that they have, and chunks without one are left out.
// CHECK-LABEL: func.func private @backward_0
// CHECK: %[[COUNTED:.*]] = arith.cmpi ne
// CHECK: %[[ONE:.*]] = arith.extui %[[COUNTED]]
// CHECK: %[[NUMBER:.*]] = nn.reduce sum %[[ONE]]
// CHECK: %[[ORDER:.*]] = nn.arg_sort %[[ONE]] axis = 0 descending
// CHECK: nn.gather %{{.*}}, %[[ORDER]] axis = 0 : tensor<6x4xf32>
// CHECK: %[[LIMIT:.*]] = arith.divsi
// CHECK: nn.scan 2 recompute carry({{.*}}) over({{.*}}) with({{.*}}) limit(%[[LIMIT]])
// CHECK: arith.select {{.*}} : tensor<6x4xi1>, tensor<6x4xf32>
train.tensor @w parameter "w" : tensor<5x4xf32>
train.tensor @e parameter "e" : tensor<7x4xf32>
func.func private @forward_train_0(%x: tensor<6xi64> {train.input = "x"}, %e: tensor<7x4xf32> {train.tensor = @e}, %w: tensor<5x4xf32> {train.tensor = @w}) -> (tensor<6x5xf32> {train.output = "y"}) {
  %h = nn.gather %e, %x axis = 0 : tensor<7x4xf32>, tensor<6xi64> -> tensor<6x4xf32>
  %y = nn.dot %h, %w batch = [] x [] contract = [1] x [1] : tensor<6x4xf32>, tensor<5x4xf32> -> tensor<6x5xf32>
  return %y : tensor<6x5xf32>
}
func.func private @loss_0(%y: tensor<6x5xf32> {train.output = "y"}, %t: tensor<6xi32> {train.input = "label"}) -> (tensor<f32> {train.loss}) {
  %p = nn.log_softmax %y axis = 1 : tensor<6x5xf32>
  %each = nn.reduce max %p axes = [1] : tensor<6x5xf32> -> tensor<6xf32>
  %ignored = arith.constant dense<-100> : tensor<6xi32>
  %zero = arith.constant dense<0.0> : tensor<6xf32>
  %counted = arith.cmpi ne, %t, %ignored : tensor<6xi32>
  %kept = arith.select %counted, %each, %zero : tensor<6xi1>, tensor<6xf32>
  %s = nn.reduce sum %kept axes = [0] : tensor<6xf32> -> tensor<f32>
  return %s : tensor<f32>
}
