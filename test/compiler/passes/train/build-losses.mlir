// RUN: ortc-opt %s --ortc-build-loss="loss=a=mse@x:weight=0.5;b=margin_ranking@x+y" | FileCheck %s
// RUN: ortc-opt %s --ortc-build-loss="loss=l1@y:weight=2" | FileCheck %s --check-prefix=ONE
// RUN: not ortc-opt %s --ortc-build-loss="loss=a=mse@x;c=mse@y" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not ortc-opt %s --ortc-build-loss="loss=a=mse@x;a=mse@y" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not ortc-opt %s --ortc-build-loss="loss=margin_ranking@x+loss.c" 2>&1 | FileCheck %s --check-prefix=SHAPES
// Breaks when losses share a label, are added without their weights, or bindings have weights of their own.

// CHECK: train.tensor @loss.a.weight scalar {{.*}}dense<5.000000e-01>
// CHECK: train.tensor @loss.b.weight scalar {{.*}}dense<1.000000e+00>
// CHECK-NOT: train.tensor @
// CHECK: func.func private @loss_0(%[[X:.*]]: tensor<3xf32> {train.output = "x"}, %[[A:.*]]: tensor<3xf32> {train.input = "label.a"}, %[[Y:.*]]: tensor<3xf32> {train.output = "y"}, %[[B:.*]]: tensor<3xf32> {train.input = "label.b"}, %[[WA:.*]]: tensor<f64> {train.tensor = @loss.a.weight}, %[[WB:.*]]: tensor<f64> {train.tensor = @loss.b.weight}) -> (tensor<f32> {train.loss}, tensor<f32> {train.output = "loss.a"}, tensor<f32> {train.output = "loss.b"})
// CHECK: %[[FA:.*]] = arith.truncf %[[WA]]
// CHECK: %[[PA:.*]] = arith.mulf %[[LA:.*]], %[[FA]]
// CHECK: %[[FB:.*]] = arith.truncf %[[WB]]
// CHECK: %[[PB:.*]] = arith.mulf %[[LB:.*]], %[[FB]]
// CHECK: %[[SUM:.*]] = arith.addf %[[PA]], %[[PB]]
// CHECK-NEXT: return %[[SUM]], %[[LA]], %[[LB]]
// CHECK: func.func private @loss_1
// ONE: train.tensor @loss.weight scalar {{.*}}dense<2.000000e+00>
// ONE: func.func private @loss_0(%{{.*}}: tensor<3xf32> {train.output = "y"}, %{{.*}}: tensor<3xf32> {train.input = "label"}, %{{.*}}: tensor<f64> {train.tensor = @loss.weight}) -> (tensor<f32> {train.loss})
// NAME: error: the graph has an output named 'loss.c', which is the name of the value of loss 'c'; give the loss another name
// TWICE: error: two losses are called 'a', which would share the label 'label.a'; give each a name of its own
// SHAPES: error: the outputs that loss margin_ranking reads do not fit together: INPUT1 has type f32[3], INPUT2 has type f32[1]
func.func private @forward_train_0(%x: tensor<3xf32> {train.input = "x"}, %c: tensor<1xf32> {train.input = "c"})
    -> (tensor<3xf32> {train.output = "x"}, tensor<3xf32> {train.output = "y"}, tensor<1xf32> {train.output = "loss.c"}) {
  return %x, %x, %c : tensor<3xf32>, tensor<3xf32>, tensor<1xf32>
}
func.func private @forward_train_1(%x: tensor<3xf32> {train.input = "x"}, %c: tensor<1xf32> {train.input = "c"})
    -> (tensor<3xf32> {train.output = "x"}, tensor<3xf32> {train.output = "y"}, tensor<1xf32> {train.output = "loss.c"}) {
  return %x, %x, %c : tensor<3xf32>, tensor<3xf32>, tensor<1xf32>
}
