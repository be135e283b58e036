// RUN: ortc-opt %s --ortc-assign-regions | FileCheck %s
// Breaks when tensors overlap, or when an artifact has to store what starts as zero.

// Parameters first (12 bytes, rounded to 64), then what has a value, then zeros and parameters whose values come from
// elsewhere: 256 bytes, of which 128 are stored. What is bound has no place.
// CHECK: module attributes {plan.constant_bytes = 64 : i64, plan.persistent_bytes = 256 : i64, plan.stored_bytes = 128 : i64}
// CHECK: @moment {{.*}}plan.offset = 128 : i64, plan.region = #plan<region persistent>
train.tensor @moment state "moment" : tensor<3xf32>
// CHECK: @lr {{.*}}plan.offset = 64 : i64
train.tensor @lr scalar "lr" initial = dense<0.1> : tensor<f64> : tensor<f64>
// CHECK: @w {{.*}}plan.offset = 0 : i64
train.tensor @w parameter "w" initial = dense<1.0> : tensor<3xf32> : tensor<3xf32>
// CHECK: @absent {{.*}}plan.offset = 192 : i64
train.tensor @absent parameter "absent" : tensor<3xf32>
// CHECK: @bound {{.*}}plan.region = #plan<region external>
// CHECK-NOT: plan.offset
train.tensor @bound parameter "bound" initial = dense<1.0> : tensor<3xf32> {train.bound} : tensor<3xf32>
// CHECK: @table {{.*}}plan.offset = 0 : i64, plan.region = #plan<region constants>
train.tensor @table constant "table" initial = dense<[true, false]> : tensor<2xi1> : tensor<2xi1>
