// RUN: ortc-opt %s --pass-pipeline='builtin.module(ortc-join-updates{buffers=12 bytes=300000 shares-rows=true},symbol-dce)' | FileCheck %s
// Breaks when updates that sum up rows are launches of their own, or come together with others.

// 128 KiB of rows each: three are one kernel, as two wait for the third, and a fourth would be one too many. An update that
// sums up nothing has other blocks.
// CHECK-LABEL: func.func @train_0
// CHECK-NOT: call @kernel_sum
// CHECK: call @kernel_point(
// CHECK: call @[[THREE:kernel_joined[_0-9]*]](
// CHECK: call @[[ONE:kernel_joined[_0-9]*]](
// CHECK-NOT: call
// CHECK: return
func.func @train_0(%a: tensor<64xf32> {train.tensor = @a}, %b: tensor<64xf32> {train.tensor = @b}, %c: tensor<64xf32> {train.tensor = @c},
                   %d: tensor<64xf32> {train.tensor = @d}, %e: tensor<64xf32> {train.tensor = @e}, %f: tensor<64xf32> {train.tensor = @f})
    -> (tensor<64xf32> {train.update = @a}, tensor<64xf32> {train.update = @b}, tensor<64xf32> {train.update = @c}, tensor<64xf32> {train.update = @d},
        tensor<64xf32> {train.update = @e}, tensor<64xf32> {train.update = @f}) attributes {train.entry = "train"} {
  %ga, %gb, %gc, %gd, %ge, %gf = call @kernel_gradients() : () -> (tensor<512x64xf32>, tensor<512x64xf32>, tensor<512x64xf32>, tensor<512x64xf32>, tensor<64xf32>, tensor<512x64xf32>)
  %na = call @kernel_sum(%a, %ga) : (tensor<64xf32>, tensor<512x64xf32>) -> tensor<64xf32>
  %ne = call @kernel_point(%e, %ge) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %nb = call @kernel_sum(%b, %gb) : (tensor<64xf32>, tensor<512x64xf32>) -> tensor<64xf32>
  %nc = call @kernel_sum(%c, %gc) : (tensor<64xf32>, tensor<512x64xf32>) -> tensor<64xf32>
  %nd = call @kernel_sum(%d, %gd) : (tensor<64xf32>, tensor<512x64xf32>) -> tensor<64xf32>
  %nf = call @kernel_sum(%f, %gf) : (tensor<64xf32>, tensor<512x64xf32>) -> tensor<64xf32>
  return %na, %nb, %nc, %nd, %ne, %nf : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}
func.func private @kernel_gradients() -> (tensor<512x64xf32>, tensor<512x64xf32>, tensor<512x64xf32>, tensor<512x64xf32>, tensor<64xf32>, tensor<512x64xf32>) attributes {plan.kind = #plan<kernel_kind loop>} {
  %0 = arith.constant dense<1.0> : tensor<512x64xf32>
  %1 = arith.constant dense<1.0> : tensor<64xf32>
  return %0, %0, %0, %0, %1, %0 : tensor<512x64xf32>, tensor<512x64xf32>, tensor<512x64xf32>, tensor<512x64xf32>, tensor<64xf32>, tensor<512x64xf32>
}
func.func private @kernel_sum(%w: tensor<64xf32>, %g: tensor<512x64xf32>) -> tensor<64xf32> attributes {plan.in_place = array<i64: 0, 0>, plan.kind = #plan<kernel_kind loop>} {
  %0 = nn.reduce sum %g axes = [0] : tensor<512x64xf32> -> tensor<64xf32>
  %1 = arith.subf %w, %0 : tensor<64xf32>
  return %1 : tensor<64xf32>
}
func.func private @kernel_point(%w: tensor<64xf32>, %g: tensor<64xf32>) -> tensor<64xf32> attributes {plan.in_place = array<i64: 0, 0>, plan.kind = #plan<kernel_kind loop>} {
  %0 = arith.subf %w, %g : tensor<64xf32>
  return %0 : tensor<64xf32>
}

// CHECK: func.func private @[[THREE]](
// CHECK-SAME: -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
// CHECK-SAME: plan.in_place = array<i64: 0, 0, 2, 1, 4, 2>
