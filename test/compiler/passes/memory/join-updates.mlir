// RUN: ortc-opt %s --pass-pipeline='builtin.module(ortc-join-updates{buffers=12 bytes=1200},symbol-dce)' | FileCheck %s
// Breaks when an update waits for what it should not wait for, or is joined with other numbers.

// Updates of little are joined apart from those of much: @kernel_0 of 4 bytes and @kernel_1 of 256 are two groups. What
// something else reads, what reads more than 1200 bytes, and what sums up many elements stays alone, and so does @kernel_2,
// which writes a tensor that the others read.
// CHECK-LABEL: func.func @train_0
// CHECK-DAG: call @kernel_gradients
// CHECK-DAG: call @kernel_read(
// CHECK-DAG: call @kernel_large(
// CHECK-DAG: call @kernel_summed(
// CHECK-DAG: call @kernel_2(
// CHECK-NOT: @kernel_0
// CHECK-NOT: @kernel_1
// CHECK: call @[[ONE:kernel_joined[_0-9]*]](
// CHECK: call @[[OTHER:kernel_joined[_0-9]*]](
// CHECK-NOT: call
// CHECK: return
func.func @train_0(%rate: tensor<f32> {train.tensor = @rate},
                   %a: tensor<1xf32> {train.tensor = @a}, %b: tensor<1xf32> {train.tensor = @b},
                   %c: tensor<64xf32> {train.tensor = @c}, %d: tensor<64xf32> {train.tensor = @d},
                   %e: tensor<1xf32> {train.tensor = @e}, %f: tensor<512xf32> {train.tensor = @f},
                   %h: tensor<1xf32> {train.tensor = @h})
    -> (tensor<1xf32> {train.update = @a}, tensor<1xf32> {train.update = @b}, tensor<64xf32> {train.update = @c}, tensor<8x8xf32> {train.update = @d},
        tensor<1xf32> {train.update = @e}, tensor<1xf32> {train.output = "e"}, tensor<512xf32> {train.update = @f}, tensor<1xf32> {train.update = @h},
        tensor<f32> {train.update = @rate})
    attributes {train.entry = "train"} {
  %ga, %gb, %gc, %gd, %gf, %gh = call @kernel_gradients() : () -> (tensor<1xf32>, tensor<1xf32>, tensor<64xf32>, tensor<64xf32>, tensor<512xf32>, tensor<64xf32>)
  %na = call @kernel_0(%a, %ga, %rate) : (tensor<1xf32>, tensor<1xf32>, tensor<f32>) -> tensor<1xf32>
  %nb = call @kernel_0(%b, %gb, %rate) : (tensor<1xf32>, tensor<1xf32>, tensor<f32>) -> tensor<1xf32>
  %nc = call @kernel_1(%c, %gc, %rate) : (tensor<64xf32>, tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %nd = call @kernel_1(%d, %gd, %rate) : (tensor<64xf32>, tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %nd2 = nn.reshape %nd : tensor<64xf32> -> tensor<8x8xf32>
  %ne = call @kernel_read(%e, %ga, %rate) : (tensor<1xf32>, tensor<1xf32>, tensor<f32>) -> tensor<1xf32>
  %nf = call @kernel_large(%f, %gf, %rate) : (tensor<512xf32>, tensor<512xf32>, tensor<f32>) -> tensor<512xf32>
  %nh = call @kernel_summed(%h, %gh) : (tensor<1xf32>, tensor<64xf32>) -> tensor<1xf32>
  %nr = call @kernel_2(%rate) : (tensor<f32>) -> tensor<f32>
  return %na, %nb, %nc, %nd2, %ne, %ne, %nf, %nh, %nr : tensor<1xf32>, tensor<1xf32>, tensor<64xf32>, tensor<8x8xf32>, tensor<1xf32>, tensor<1xf32>, tensor<512xf32>, tensor<1xf32>, tensor<f32>
}
func.func private @kernel_gradients() -> (tensor<1xf32>, tensor<1xf32>, tensor<64xf32>, tensor<64xf32>, tensor<512xf32>, tensor<64xf32>) attributes {plan.kind = #plan<kernel_kind loop>} {
  %0 = arith.constant dense<1.0> : tensor<1xf32>
  %1 = arith.constant dense<1.0> : tensor<64xf32>
  %2 = arith.constant dense<1.0> : tensor<512xf32>
  %3 = arith.constant dense<1.0> : tensor<64xf32>
  return %0, %0, %1, %1, %2, %3 : tensor<1xf32>, tensor<1xf32>, tensor<64xf32>, tensor<64xf32>, tensor<512xf32>, tensor<64xf32>
}
func.func private @kernel_0(%w: tensor<1xf32>, %g: tensor<1xf32>, %r: tensor<f32>) -> tensor<1xf32> attributes {plan.in_place = array<i64: 0, 0, 1, 0>, plan.kind = #plan<kernel_kind loop>} {
  %0 = nn.broadcast %r dims = [] : tensor<f32> -> tensor<1xf32>
  %1 = arith.mulf %g, %0 : tensor<1xf32>
  %2 = arith.subf %w, %1 : tensor<1xf32>
  return %2 : tensor<1xf32>
}
func.func private @kernel_1(%w: tensor<64xf32>, %g: tensor<64xf32>, %r: tensor<f32>) -> tensor<64xf32> attributes {plan.in_place = array<i64: 0, 0>, plan.kind = #plan<kernel_kind loop>} {
  %0 = nn.broadcast %r dims = [] : tensor<f32> -> tensor<64xf32>
  %1 = arith.mulf %g, %0 : tensor<64xf32>
  %2 = arith.subf %w, %1 : tensor<64xf32>
  return %2 : tensor<64xf32>
}
func.func private @kernel_2(%r: tensor<f32>) -> tensor<f32> attributes {plan.in_place = array<i64: 0, 0>, plan.kind = #plan<kernel_kind loop>} {
  %0 = arith.addf %r, %r : tensor<f32>
  return %0 : tensor<f32>
}
func.func private @kernel_read(%w: tensor<1xf32>, %g: tensor<1xf32>, %r: tensor<f32>) -> tensor<1xf32> attributes {plan.kind = #plan<kernel_kind loop>} {
  %0 = nn.broadcast %r dims = [] : tensor<f32> -> tensor<1xf32>
  %1 = arith.addf %g, %0 : tensor<1xf32>
  %2 = arith.subf %w, %1 : tensor<1xf32>
  return %2 : tensor<1xf32>
}
func.func private @kernel_large(%w: tensor<512xf32>, %g: tensor<512xf32>, %r: tensor<f32>) -> tensor<512xf32> attributes {plan.in_place = array<i64: 0, 0>, plan.kind = #plan<kernel_kind loop>} {
  %0 = arith.subf %w, %g : tensor<512xf32>
  return %0 : tensor<512xf32>
}
func.func private @kernel_summed(%w: tensor<1xf32>, %g: tensor<64xf32>) -> tensor<1xf32> attributes {plan.kind = #plan<kernel_kind loop>} {
  %0 = nn.reshape %g : tensor<64xf32> -> tensor<64x1xf32>
  %1 = nn.reduce sum %0 axes = [0] : tensor<64x1xf32> -> tensor<1xf32>
  %2 = arith.addf %w, %1 : tensor<1xf32>
  return %2 : tensor<1xf32>
}

// The scalar comes in once; of pairs that may share memory those of a tensor and its new value are left.
// CHECK: func.func private @[[ONE]](%{{.*}}: tensor<1xf32>, %{{.*}}: tensor<1xf32>, %{{.*}}: tensor<f32>, %{{.*}}: tensor<1xf32>, %{{.*}}: tensor<1xf32>) -> (tensor<1xf32>, tensor<1xf32>)
// CHECK-SAME: plan.in_place = array<i64: 0, 0, 3, 1>, plan.kind = #plan<kernel_kind joined>
