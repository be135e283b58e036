// RUN: ortc-opt %s --ortc-outline-kernels | FileCheck %s
// Breaks when equal kernels are compiled twice, or different ones once.

// CHECK-LABEL: func.func @entry
// CHECK: %[[A:.*]] = call @kernel_0(%{{.*}})
// CHECK: %[[B:.*]] = call @kernel_0(%[[A]])
// CHECK: call @kernel_1(%[[B]])
func.func @entry(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = plan.kernel loop (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%p: tensor<4xf32>):
    %0 = math.tanh %p : tensor<4xf32>
    plan.yield %0 : tensor<4xf32>
  }
  %b = plan.kernel loop (%a) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%other: tensor<4xf32>):
    %0 = math.tanh %other : tensor<4xf32>
    plan.yield %0 : tensor<4xf32>
  }
  %c = plan.kernel loop (%b) in_place = [0, 0] : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%p: tensor<4xf32>):
    %0 = math.tanh %p : tensor<4xf32>
    plan.yield %0 : tensor<4xf32>
  }
  return %c : tensor<4xf32>
}
// CHECK: func.func private @kernel_0{{.*}} attributes {plan.kind = #plan<kernel_kind loop>}
// CHECK: func.func private @kernel_1{{.*}} attributes {plan.in_place = array<i64: 0, 0>
