// RUN: ortc-opt %s --ortc-assign-regions --ortc-recompute-steps="budget=4928" | FileCheck %s
// RUN: ortc-opt %s --ortc-assign-regions --ortc-recompute-steps="budget=4928" --ortc-place-buffers | FileCheck %s --check-prefix=PLACED
// RUN: ortc-opt %s --ortc-assign-regions --ortc-recompute-steps="budget=1000000" | FileCheck %s --check-prefix=ROOM
// RUN: not ortc-opt %s --ortc-assign-regions --ortc-recompute-steps="budget=2048" 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: not ortc-opt %s --ortc-assign-regions --ortc-recompute-steps="budget=2048 of-updates=;more" 2>&1 | FileCheck %s --check-prefix=MORE
// Breaks when a budget is not kept, when a copy reads a parameter that has been updated, or when the wrong result is taken.

train.tensor @w parameter "w" : tensor<256xf32>

func.func private @cheap(%x: tensor<256xf32>, %w: tensor<256xf32>) -> tensor<256xf32>
    attributes {plan.kind = #plan<kernel_kind loop>, plan.time = 100 : i64, plan.scratch = 64 : i64} {
  %0 = arith.mulf %x, %w : tensor<256xf32>
  return %0 : tensor<256xf32>
}
func.func private @dear(%x: tensor<256xf32>) -> tensor<256xf32>
    attributes {plan.kind = #plan<kernel_kind loop>, plan.time = 9000 : i64} {
  %0 = math.tanh %x : tensor<256xf32>
  return %0 : tensor<256xf32>
}
func.func private @loss(%x: tensor<256xf32>) -> (tensor<f32>, tensor<256xf32>)
    attributes {plan.kind = #plan<kernel_kind loop>, plan.time = 100 : i64} {
  %0 = nn.reduce sum %x axes = [0] : tensor<256xf32> -> tensor<f32>
  %1 = math.exp %x : tensor<256xf32>
  return %0, %1 : tensor<f32>, tensor<256xf32>
}
func.func private @back(%g: tensor<256xf32>, %x: tensor<16x16xf32>) -> tensor<256xf32>
    attributes {plan.kind = #plan<kernel_kind loop>, plan.time = 100 : i64} {
  %0 = nn.reshape %x : tensor<16x16xf32> -> tensor<256xf32>
  %1 = arith.mulf %g, %0 : tensor<256xf32>
  return %1 : tensor<256xf32>
}
func.func private @update(%w: tensor<256xf32>, %g: tensor<256xf32>) -> tensor<256xf32>
    attributes {plan.kind = #plan<kernel_kind loop>, plan.in_place = array<i64: 0, 0>, plan.time = 100 : i64} {
  %0 = arith.subf %w, %g : tensor<256xf32>
  return %0 : tensor<256xf32>
}

// The cheap value is made again, by the same kernel, before the parameter that it reads is overwritten.
// CHECK-LABEL: func.func @train_0
// CHECK-SAME: plan.recompute = {least_bytes = {{[0-9]+}} : i64, least_time = {{[0-9]+}} : i64, plain_time = {{[0-9]+}} : i64, repeated = 1 : i64, time = {{[0-9]+}} : i64}
// CHECK: call @cheap
// CHECK: %[[LOSS:.*]]:2 = call @loss
// CHECK: %[[AGAIN:.*]] = call @cheap(%{{.*}}, %{{.*}}) {plan.repeated}
// CHECK: %[[VIEW:.*]] = nn.reshape %[[AGAIN]]
// CHECK: call @back(%{{.*}}, %[[VIEW]])
// CHECK: call @update

// 1 KiB each: four values and the loss, instead of five. Scratch is needed in steps that have room for it.
// PLACED: plan.program @train_0_program "train" binding 0 bytes 4160 peak 4160
// PLACED: plan.step @cheap({{.*}}) -> ({{.*}}) scratch {{[0-9]+}} {plan.repeated}
// PLACED: plan.recompute = {

// ROOM-NOT: plan.repeated
// REFUSED: error: --memory-budget 2048: the smallest budget found to be enough is {{[0-9]+}} bytes (entry 'train'; no plan takes less than {{[0-9]+}}); give that, or a smaller batch, or a smaller --max-workers, for the scratch of each, or train less (--freeze){{$}}
// MORE: or train less (--freeze);more
func.func @train_0(%x: tensor<256xf32> {train.input = "x"}, %w: tensor<256xf32> {train.tensor = @w})
    -> (tensor<f32> {train.loss}, tensor<256xf32> {train.update = @w}) attributes {train.entry = "train", train.binding = 0 : i64} {
  %a = func.call @dear(%x) : (tensor<256xf32>) -> tensor<256xf32>
  %b = func.call @cheap(%a, %w) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  %c = func.call @dear(%b) : (tensor<256xf32>) -> tensor<256xf32>
  %d = func.call @dear(%c) : (tensor<256xf32>) -> tensor<256xf32>
  %l:2 = func.call @loss(%d) : (tensor<256xf32>) -> (tensor<f32>, tensor<256xf32>)
  %cv = nn.reshape %c : tensor<256xf32> -> tensor<16x16xf32>
  %g1 = func.call @back(%l#1, %cv) : (tensor<256xf32>, tensor<16x16xf32>) -> tensor<256xf32>
  %bv = nn.reshape %b : tensor<256xf32> -> tensor<16x16xf32>
  %g2 = func.call @back(%g1, %bv) : (tensor<256xf32>, tensor<16x16xf32>) -> tensor<256xf32>
  %av = nn.reshape %a : tensor<256xf32> -> tensor<16x16xf32>
  %g3 = func.call @back(%g2, %av) : (tensor<256xf32>, tensor<16x16xf32>) -> tensor<256xf32>
  %n = func.call @update(%w, %g3) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  return %l#0, %n : tensor<f32>, tensor<256xf32>
}
