// RUN: ortc-opt %s -split-input-file --ortc-place-buffers | FileCheck %s
// Breaks when scratch has a place of its own for the whole program, or lies on a value that its step needs.

func.func private @large(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {plan.kind = #plan<kernel_kind loop>, plan.scratch = 1000 : i64} {
  %0 = math.exp %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @small(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32>
    attributes {plan.kind = #plan<kernel_kind loop>, plan.scratch = 64 : i64} {
  %0 = arith.addf %x, %y : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @none(%x: tensor<64xf32>) -> tensor<64xf32> attributes {plan.kind = #plan<kernel_kind loop>, plan.scratch = 0 : i64} {
  %0 = math.tanh %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}

// 256 bytes a value. The first step has one value and 1024 bytes of scratch; the others' three values and scratch lie in the same bytes.
// CHECK-LABEL: plan.program @predict_0_program "predict" binding 0 bytes 1280 peak 1280
// CHECK: %[[A:.*]] = plan.buffer transient 1024 "large"
// CHECK: plan.step @large(%{{.*}}) -> (%[[A]]) scratch 0 :
// CHECK: %[[B:.*]] = plan.buffer transient 0 "none"
// CHECK: plan.step @none(%[[A]]) -> (%[[B]]) : memref
// CHECK: plan.step @small(%[[A]], %[[B]]) -> (%{{.*}}) scratch 256 :
func.func @predict_0(%x: tensor<64xf32> {train.input = "x"}) -> (tensor<64xf32> {train.output = "y"})
    attributes {train.entry = "predict", train.binding = 0 : i64} {
  %a = func.call @large(%x) : (tensor<64xf32>) -> tensor<64xf32>
  %b = func.call @none(%a) : (tensor<64xf32>) -> tensor<64xf32>
  %c = func.call @small(%a, %b) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %c : tensor<64xf32>
}

// -----

func.func private @cell(%h: tensor<64xf32>, %x: tensor<64xf32>) -> tensor<64xf32>
    attributes {plan.kind = #plan<kernel_kind loop>, plan.in_place = array<i64: 0, 0>, plan.scratch = 128 : i64} {
  %0 = arith.addf %h, %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @start(%h: tensor<64xf32>) -> tensor<64xf32> attributes {plan.kind = #plan<kernel_kind loop>} {
  %0 = math.tanh %h : tensor<64xf32>
  return %0 : tensor<64xf32>
}

// In a loop: in the arena of its body, which lies beside the carried value.
// CHECK-LABEL: plan.program @predict_0_program "predict" binding 0 bytes 384 peak 384
// CHECK: plan.buffer transient 0 "start"
// CHECK: plan.loop 4 {
// CHECK-NEXT: plan.step @cell(%{{.*}}, %{{.*}}) -> (%{{.*}}) scratch 256 :
func.func @predict_0(%h: tensor<64xf32> {train.input = "h"}, %x: tensor<4x64xf32> {train.input = "x"})
    -> (tensor<64xf32> {train.output = "last"}) attributes {train.entry = "predict", train.binding = 0 : i64} {
  %s = func.call @start(%h) : (tensor<64xf32>) -> tensor<64xf32>
  %last = nn.scan 4 carry(%s) over(%x) with() : (tensor<64xf32>, tensor<4x64xf32>) -> (tensor<64xf32>) {
  ^bb0(%a: tensor<64xf32>, %xi: tensor<64xf32>):
    %new = func.call @cell(%a, %xi) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    nn.yield %new : tensor<64xf32>
  }
  return %last : tensor<64xf32>
}
