// RUN: ortc-opt %s --ortc-update-rows --canonicalize --cse | FileCheck %s
// Breaks when rows without a gradient are touched, or a table's gradient is made whole.

train.tensor @w parameter "w" {train.sparse} : tensor<9x4xf32>
train.tensor @w.m state "w.m" of @w : tensor<9x4xf32>
train.tensor @lr scalar "lr" : tensor<f32>

// Two gathers share slots; the norm is of the rows that have a gradient.
// CHECK-LABEL: func.func @train_0
// CHECK-SAME: %[[I:[a-z0-9]+]]: tensor<3xi64>
// CHECK-SAME: %[[U:[a-z0-9]+]]: tensor<3x4xf32>
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<9x4xf32>
// CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<9x4xf32>
// CHECK-DAG: %[[LAST:.+]] = arith.constant dense<8> : tensor<5xi32>
// CHECK: %[[ALL:.+]] = nn.concat
// CHECK: %[[ORDER:.+]] = nn.arg_sort %[[ALL]] axis = 0
// CHECK: nn.cumsum
// CHECK: %[[ROWS:.+]] = nn.scatter_elements set
// CHECK: %[[IS:.+]] = arith.cmpi slt, %[[ROWS]], %[[LAST]]
// CHECK: %[[SAFE:.+]] = arith.select %[[IS]], %[[ROWS]], %[[LAST]]
// CHECK: %[[SLOTS:.+]] = nn.scatter_elements set
// CHECK: %[[A:.+]] = nn.slice %[[SLOTS]] starts = [0]
// CHECK: %[[B:.+]] = nn.slice %[[SLOTS]] starts = [3]
// CHECK: nn.scatter_add %[[A]], %[[U]] axis = 0 : tensor<3xi32>, tensor<3x4xf32> -> tensor<5x4xf32>
// CHECK: nn.scatter_add %[[B]], {{.*}} -> tensor<5x4xf32>
// CHECK: nn.reduce sum {{.*}} : tensor<5x4xf32> -> tensor<f32>
// CHECK-DAG: nn.gather %[[W]], %[[SAFE]] axis = 0
// CHECK-DAG: nn.gather %[[M]], %[[SAFE]] axis = 0
// CHECK-NOT: arith.{{.*}}tensor<9x4xf32>
// CHECK-NOT: -> tensor<9x4xf32>
// CHECK: nn.scatter %[[W]], %[[ROWS]]
// CHECK: nn.scatter %[[M]], %[[ROWS]]
func.func @train_0(%i: tensor<3xi64> {train.input = "i"}, %u: tensor<3x4xf32> {train.input = "u"},
                   %w: tensor<9x4xf32> {train.tensor = @w}, %m: tensor<9x4xf32> {train.tensor = @w.m},
                   %lr: tensor<f32> {train.tensor = @lr}, %j: tensor<1x2xi64> {train.input = "j"},
                   %v: tensor<1x2x4xf32> {train.input = "v"})
    -> (tensor<f32> {train.loss}, tensor<9x4xf32> {train.update = @w}, tensor<9x4xf32> {train.update = @w.m})
    attributes {train.entry = "train", train.binding = 0 : i64} {
  %0 = nn.scatter_add %i, %u axis = 0 : tensor<3xi64>, tensor<3x4xf32> -> tensor<9x4xf32>
  %1 = nn.scatter_add %j, %v axis = 0 : tensor<1x2xi64>, tensor<1x2x4xf32> -> tensor<9x4xf32>
  %g = arith.addf %0, %1 : tensor<9x4xf32>
  %gg = arith.mulf %g, %g : tensor<9x4xf32>
  %norm = nn.reduce sum %gg axes = [0, 1] : tensor<9x4xf32> -> tensor<f32>
  %scale = nn.broadcast %lr dims = [] : tensor<f32> -> tensor<9x4xf32>
  %m1 = arith.addf %m, %g : tensor<9x4xf32>
  %s = arith.mulf %m1, %scale : tensor<9x4xf32>
  %w1 = arith.subf %w, %s : tensor<9x4xf32>
  return %norm, %w1, %m1 : tensor<f32>, tensor<9x4xf32>, tensor<9x4xf32>
}

// Others are updated whole; limits leave zero as it is, so that a norm of clipped gradients is of the rows, too.
train.tensor @v parameter "v" : tensor<9x4xf32>

// CHECK-LABEL: func.func @train_1
// CHECK: nn.scatter_add {{.*}} -> tensor<9x4xf32>
// CHECK-NOT: nn.scatter %
func.func @train_1(%i: tensor<3xi64> {train.input = "i"}, %u: tensor<3x4xf32> {train.input = "u"},
                   %v: tensor<9x4xf32> {train.tensor = @v}) -> (tensor<9x4xf32> {train.update = @v})
    attributes {train.entry = "train", train.binding = 1 : i64} {
  %g = nn.scatter_add %i, %u axis = 0 : tensor<3xi64>, tensor<3x4xf32> -> tensor<9x4xf32>
  %v1 = arith.subf %v, %g : tensor<9x4xf32>
  return %v1 : tensor<9x4xf32>
}

// CHECK-LABEL: func.func @train_2
// CHECK-NOT: -> tensor<9x4xf32>
// CHECK: nn.reduce max {{.*}} : tensor<3x4xf32> -> tensor<f32>
// CHECK-NOT: -> tensor<9x4xf32>
// CHECK: nn.scatter %
func.func @train_2(%i: tensor<3xi64> {train.input = "i"}, %u: tensor<3x4xf32> {train.input = "u"},
                   %w: tensor<9x4xf32> {train.tensor = @w}, %lr: tensor<f32> {train.tensor = @lr})
    -> (tensor<f32> {train.loss}, tensor<9x4xf32> {train.update = @w})
    attributes {train.entry = "train", train.binding = 2 : i64} {
  %0 = nn.scatter_add %i, %u axis = 0 : tensor<3xi64>, tensor<3x4xf32> -> tensor<9x4xf32>
  %high = nn.broadcast %lr dims = [] : tensor<f32> -> tensor<9x4xf32>
  %less = arith.cmpf ult, %0, %high : tensor<9x4xf32>
  %s = arith.select %less, %0, %high : tensor<9x4xi1>, tensor<9x4xf32>
  %nan = arith.cmpf uno, %high, %high : tensor<9x4xf32>
  %g = arith.select %nan, %high, %s : tensor<9x4xi1>, tensor<9x4xf32>
  %a = math.absf %g : tensor<9x4xf32>
  %largest = nn.reduce max %a axes = [0, 1] : tensor<9x4xf32> -> tensor<f32>
  %w1 = arith.subf %w, %g : tensor<9x4xf32>
  return %largest, %w1 : tensor<f32>, tensor<9x4xf32>
}

// A choice that does not compare the two may give the limit where no gradient is: what is summed of it stays whole.
// CHECK-LABEL: func.func @train_3
// CHECK: nn.reduce max {{.*}} : tensor<9x4xf32> -> tensor<f32>
func.func @train_3(%i: tensor<3xi64> {train.input = "i"}, %u: tensor<3x4xf32> {train.input = "u"},
                   %w: tensor<9x4xf32> {train.tensor = @w}, %lr: tensor<f32> {train.tensor = @lr})
    -> (tensor<f32> {train.loss}, tensor<9x4xf32> {train.update = @w})
    attributes {train.entry = "train", train.binding = 3 : i64} {
  %0 = nn.scatter_add %i, %u axis = 0 : tensor<3xi64>, tensor<3x4xf32> -> tensor<9x4xf32>
  %one = arith.constant dense<1.0> : tensor<9x4xf32>
  %high = nn.broadcast %lr dims = [] : tensor<f32> -> tensor<9x4xf32>
  %less = arith.cmpf ult, %0, %one : tensor<9x4xf32>
  %g = arith.select %less, %high, %0 : tensor<9x4xi1>, tensor<9x4xf32>
  %a = math.absf %g : tensor<9x4xf32>
  %largest = nn.reduce max %a axes = [0, 1] : tensor<9x4xf32> -> tensor<f32>
  %w1 = arith.subf %w, %0 : tensor<9x4xf32>
  return %largest, %w1 : tensor<f32>, tensor<9x4xf32>
}
