// RUN: ortc-opt %s --ortc-assign-regions | FileCheck %s
// Breaks when tensors overlap, or when an artifact has to store what starts as zero.

// Parameters first (12 bytes, rounded to 64), then what has a value, then zeros: 192 bytes, of which 128 are stored.
// CHECK: module attributes {plan.constant_bytes = 64 : i64, plan.persistent_bytes = 192 : i64, plan.stored_bytes = 128 : i64}
// CHECK: @moment {{.*}}plan.offset = 128 : i64, plan.region = #plan<region persistent>
train.tensor @moment state "moment" : tensor<3xf32>
// CHECK: @lr {{.*}}plan.offset = 64 : i64
train.tensor @lr scalar "lr" initial = dense<0.1> : tensor<f64> : tensor<f64>
// CHECK: @w {{.*}}plan.offset = 0 : i64
train.tensor @w parameter "w" : tensor<3xf32>
// CHECK: @table {{.*}}plan.offset = 0 : i64, plan.region = #plan<region constants>
train.tensor @table constant "table" initial = dense<[true, false]> : tensor<2xi1> : tensor<2xi1>
