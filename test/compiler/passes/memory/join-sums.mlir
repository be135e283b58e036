// RUN: ortc-opt %s --pass-pipeline='builtin.module(ortc-join-sums{buffers=12 bytes=300000},symbol-dce)' | FileCheck %s
// Breaks when a sum waits for what it leads to or for too much, or when kernels come together whose blocks differ.

// Sums of one shape; the second is of the first one's result, so they do not come together.
// CHECK-LABEL: func.func @train_0
// CHECK: %[[IN:.*]]:2 = call @kernel_inputs
// CHECK: %[[SUM:.*]] = call @kernel_sum(%[[IN]]#0)
// CHECK: %[[WIDE:.*]] = call @kernel_wide(%[[SUM]])
// CHECK: %[[SUMS:.*]]:2 = call @[[JOINED:kernel_joined[_0-9]*]](%[[WIDE]], %[[IN]]#1)
// CHECK: return %[[SUMS]]#1, %[[SUMS]]#0
func.func @train_0() -> (tensor<64xf32> {train.output = "s"}, tensor<64xf32> {train.output = "t"}) attributes {train.entry = "train"} {
  %x, %y = call @kernel_inputs() : () -> (tensor<512x64xf32>, tensor<512x64xf32>)
  %s = call @kernel_sum(%x) : (tensor<512x64xf32>) -> tensor<64xf32>
  %w = call @kernel_wide(%s) : (tensor<64xf32>) -> tensor<512x64xf32>
  %t = call @kernel_sum(%w) : (tensor<512x64xf32>) -> tensor<64xf32>
  %u = call @kernel_sum(%y) : (tensor<512x64xf32>) -> tensor<64xf32>
  return %u, %t : tensor<64xf32>, tensor<64xf32>
}

// 128 KiB each: a third one waits with two, a fourth one does not wait with three. Sums of 256 rows have other blocks.
// CHECK-LABEL: func.func @train_1
// CHECK: call @kernel_less(
// CHECK: call @[[THREE:kernel_joined[_0-9]*]](%{{.*}}, %{{.*}}, %{{.*}})
// CHECK: call @kernel_sum(
func.func @train_1() -> (tensor<64xf32> {train.output = "s"}, tensor<64xf32> {train.output = "t"}, tensor<64xf32> {train.output = "u"}, tensor<64xf32> {train.output = "v"}, tensor<64xf32> {train.output = "w"}) attributes {train.entry = "train"} {
  %x, %y = call @kernel_inputs() : () -> (tensor<512x64xf32>, tensor<512x64xf32>)
  %z, %a = call @kernel_inputs() : () -> (tensor<512x64xf32>, tensor<512x64xf32>)
  %b = call @kernel_part(%x) : (tensor<512x64xf32>) -> tensor<256x64xf32>
  %0 = call @kernel_less(%b) : (tensor<256x64xf32>) -> tensor<64xf32>
  %1 = call @kernel_sum(%x) : (tensor<512x64xf32>) -> tensor<64xf32>
  %2 = call @kernel_sum(%y) : (tensor<512x64xf32>) -> tensor<64xf32>
  %3 = call @kernel_sum(%z) : (tensor<512x64xf32>) -> tensor<64xf32>
  %4 = call @kernel_sum(%a) : (tensor<512x64xf32>) -> tensor<64xf32>
  return %0, %1, %2, %3, %4 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

// Few numbers come together, too; but for what a tensor becomes, and for what reads a tensor whose new value others read.
// CHECK-LABEL: func.func @train_2
// CHECK: call @kernel_few(
// CHECK: call @kernel_step(
// CHECK: call @kernel_joined{{[_0-9]*}}(%arg1, %{{.*}}) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
// CHECK-NOT: call
func.func @train_2(%step: tensor<f32> {train.tensor = @step}, %rate: tensor<f32> {train.tensor = @rate})
    -> (tensor<f32> {train.update = @step}, tensor<f32> {train.output = "a"}, tensor<f32> {train.output = "b"}, tensor<f32> {train.output = "c"})
    attributes {train.entry = "train"} {
  %old = call @kernel_few(%step) : (tensor<f32>) -> tensor<f32>
  %new = call @kernel_step(%step) : (tensor<f32>) -> tensor<f32>
  %a = call @kernel_few(%rate) : (tensor<f32>) -> tensor<f32>
  %b = call @kernel_few(%new) : (tensor<f32>) -> tensor<f32>
  return %new, %old, %a, %b : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
}

func.func private @kernel_inputs() -> (tensor<512x64xf32>, tensor<512x64xf32>) attributes {plan.kind = #plan<kernel_kind loop>} {
  %0 = arith.constant dense<1.0> : tensor<512x64xf32>
  return %0, %0 : tensor<512x64xf32>, tensor<512x64xf32>
}
func.func private @kernel_sum(%x: tensor<512x64xf32>) -> tensor<64xf32> attributes {plan.kind = #plan<kernel_kind loop>} {
  %0 = nn.reduce sum %x axes = [0] : tensor<512x64xf32> -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @kernel_wide(%x: tensor<64xf32>) -> tensor<512x64xf32> attributes {plan.kind = #plan<kernel_kind loop>} {
  %0 = nn.broadcast %x dims = [1] : tensor<64xf32> -> tensor<512x64xf32>
  return %0 : tensor<512x64xf32>
}
func.func private @kernel_part(%x: tensor<512x64xf32>) -> tensor<256x64xf32> attributes {plan.kind = #plan<kernel_kind loop>} {
  %0 = nn.slice %x starts = [0, 0] strides = [1, 1] : tensor<512x64xf32> -> tensor<256x64xf32>
  return %0 : tensor<256x64xf32>
}
func.func private @kernel_less(%x: tensor<256x64xf32>) -> tensor<64xf32> attributes {plan.kind = #plan<kernel_kind loop>} {
  %0 = nn.reduce sum %x axes = [0] : tensor<256x64xf32> -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @kernel_few(%x: tensor<f32>) -> tensor<f32> attributes {plan.kind = #plan<kernel_kind loop>} {
  %0 = math.exp %x : tensor<f32>
  return %0 : tensor<f32>
}
func.func private @kernel_step(%x: tensor<f32>) -> tensor<f32> attributes {plan.in_place = array<i64: 0, 0>, plan.kind = #plan<kernel_kind loop>} {
  %0 = arith.addf %x, %x : tensor<f32>
  return %0 : tensor<f32>
}

// CHECK: func.func private @[[JOINED]](%{{.*}}: tensor<512x64xf32>, %{{.*}}: tensor<512x64xf32>) -> (tensor<64xf32>, tensor<64xf32>)
// CHECK-SAME: plan.in_place = array<i64>, plan.kind = #plan<kernel_kind joined>
