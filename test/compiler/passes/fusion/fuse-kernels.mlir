// RUN: ortc-opt %s -ortc-fuse-kernels -split-input-file | FileCheck %s
// Breaks when what one loop nest computes is cut apart, or when kernels come together that must not.

// CHECK-LABEL: func.func @row_kernel
// CHECK: %[[Y:.*]] = plan.kernel
// CHECK-SAME: loop
// CHECK-SAME: in_place = [0, 0]
// CHECK-NOT: plan.kernel
// CHECK: return %[[Y]]
func.func @row_kernel(%x: tensor<64x100xf32>) -> tensor<64x100xf32> {
  %m = nn.reduce max %x axes = [1] : tensor<64x100xf32> -> tensor<64xf32>
  %b = nn.broadcast %m dims = [0] : tensor<64xf32> -> tensor<64x100xf32>
  %d = arith.subf %x, %b : tensor<64x100xf32>
  %e = math.exp %d : tensor<64x100xf32>
  %s = nn.reduce sum %e axes = [1] : tensor<64x100xf32> -> tensor<64xf32>
  %c = nn.broadcast %s dims = [0] : tensor<64xf32> -> tensor<64x100xf32>
  %y = arith.divf %e, %c : tensor<64x100xf32>
  return %y : tensor<64x100xf32>
}

// -----

// Sums over rows and over columns of the same tensor have no loop nest in common.
// CHECK-LABEL: func.func @two_directions
// CHECK: plan.kernel
// CHECK: nn.reduce
// CHECK: plan.kernel
// CHECK: nn.reduce
func.func @two_directions(%x: tensor<64x100xf32>) -> (tensor<64xf32>, tensor<100xf32>) {
  %r = nn.reduce sum %x axes = [1] : tensor<64x100xf32> -> tensor<64xf32>
  %c = nn.reduce sum %x axes = [0] : tensor<64x100xf32> -> tensor<100xf32>
  return %r, %c : tensor<64xf32>, tensor<100xf32>
}

// -----

// A reshape between kernels is no kernel, and one inside a kernel is index arithmetic.
// CHECK-LABEL: func.func @reshapes
// CHECK-NOT: plan.kernel{{.*}}nn.reshape
// CHECK: %[[A:.*]] = plan.kernel
// CHECK: nn.reshape %{{.*}} : tensor<4x6xf32> -> tensor<24xf32>
// CHECK: arith.addf
// CHECK: plan.yield
// CHECK: %[[R:.*]] = nn.reshape %[[A]] : tensor<24xf32> -> tensor<2x12xf32>
// CHECK: return %[[R]]
func.func @reshapes(%x: tensor<4x6xf32>) -> tensor<2x12xf32> {
  %e = math.tanh %x : tensor<4x6xf32>
  %f = nn.reshape %e : tensor<4x6xf32> -> tensor<24xf32>
  %g = arith.addf %f, %f : tensor<24xf32>
  %r = nn.reshape %g : tensor<24xf32> -> tensor<2x12xf32>
  return %r : tensor<2x12xf32>
}

// -----

// The square root of a column is not repeated for every row.
// CHECK-LABEL: func.func @no_repetition
// CHECK: plan.kernel
// CHECK: math.sqrt %{{.*}} : tensor<100xf32>
// CHECK: plan.yield %{{.*}} : tensor<100xf32>
// CHECK: plan.kernel
// CHECK: nn.broadcast
func.func @no_repetition(%x: tensor<64x100xf32>, %v: tensor<100xf32>) -> tensor<64x100xf32> {
  %s = math.sqrt %v : tensor<100xf32>
  %b = nn.broadcast %s dims = [1] : tensor<100xf32> -> tensor<64x100xf32>
  %y = arith.mulf %x, %b : tensor<64x100xf32>
  return %y : tensor<64x100xf32>
}

// -----

// The two multiplications would be one kernel, but then it would wait for itself through the check.
// CHECK-LABEL: func.func @no_cycle
// CHECK: plan.kernel
// CHECK: arith.addi
// CHECK: plan.kernel
// CHECK-SAME: check
// CHECK: plan.kernel
// CHECK: arith.muli
func.func @no_cycle(%x: tensor<64xi64>) -> tensor<64xi64> {
  %a = arith.addi %x, %x : tensor<64xi64>
  %c = nn.check_index %a "index" in [0, 10] : tensor<64xi64>
  %m = arith.muli %a, %c : tensor<64xi64>
  return %m : tensor<64xi64>
}

// -----

// What only an update needs runs after the loss: not in a kernel with what the loss needs.
// CHECK-LABEL: func.func @updates_apart
// CHECK: plan.kernel
// CHECK: math.exp
// CHECK: plan.yield %{{.*}} : tensor<64xf32>
// CHECK: plan.kernel
// CHECK: arith.addf
func.func @updates_apart(%p: tensor<64xf32>) -> (tensor<64xf32> {train.output = "y"}, tensor<64xf32> {train.update = @p}) {
  %y = math.exp %p : tensor<64xf32>
  %n = arith.addf %p, %y : tensor<64xf32>
  return %y, %n : tensor<64xf32>, tensor<64xf32>
}

// -----

// A gradient for the host ends the forward part where the update of a step would: in narrow types the same tensors are
// kept rounded, for the same bits.
// CHECK-LABEL: func.func @gradients_apart
// CHECK: plan.kernel
// CHECK: math.exp
// CHECK: plan.yield %{{.*}} : tensor<64xf32>
// CHECK: plan.kernel
// CHECK: arith.addf
func.func @gradients_apart(%p: tensor<64xf32>) -> (tensor<64xf32> {train.loss}, tensor<64xf32> {train.gradient = @p}) {
  %y = math.exp %p : tensor<64xf32>
  %n = arith.addf %p, %y : tensor<64xf32>
  return %y, %n : tensor<64xf32>, tensor<64xf32>
}

// -----

// A product that makes a large gradient updates the parameter, where it lies.
// CHECK-LABEL: func.func @update_behind_product
// CHECK: plan.kernel contraction({{.*}}) in_place = [2, 0]
// CHECK: nn.dot
// CHECK: arith.subf
// CHECK-NOT: plan.kernel
// CHECK: return
func.func @update_behind_product(%x: tensor<64x1024xf32>, %g: tensor<64x1024xf32>, %p: tensor<1024x1024xf32>) -> (tensor<1024x1024xf32> {train.update = @p}) {
  %d = nn.dot %x, %g batch = [] x [] contract = [0] x [0] : tensor<64x1024xf32>, tensor<64x1024xf32> -> tensor<1024x1024xf32>
  %n = arith.subf %p, %d : tensor<1024x1024xf32>
  return %n : tensor<1024x1024xf32>
}

// -----

// So does a convolution that has whole sums before it stores any,
// CHECK-LABEL: func.func @update_behind_filter_gradient
// CHECK: plan.kernel conv({{.*}}) in_place = [2, 0]
// CHECK: nn.conv_filter_grad
// CHECK: arith.subf
// CHECK-NOT: plan.kernel
// CHECK: return
func.func @update_behind_filter_gradient(%x: tensor<2x7x7x256xf32>, %g: tensor<2x7x7x256xf32>, %p: tensor<3x3x256x256xf32>) -> (tensor<3x3x256x256xf32> {train.update = @p}) {
  %d = nn.conv_filter_grad %x, %g strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<2x7x7x256xf32>, tensor<2x7x7x256xf32> -> tensor<3x3x256x256xf32>
  %n = arith.subf %p, %d : tensor<3x3x256x256xf32>
  return %n : tensor<3x3x256x256xf32>
}

// -----

// but not one that sums in memory,
// CHECK-LABEL: func.func @update_behind_sums_in_memory
// CHECK: plan.kernel conv
// CHECK: plan.kernel loop
func.func @update_behind_sums_in_memory(%x: tensor<2x7x7x256xf32>, %g: tensor<2x7x7x256xf32>, %p: tensor<5x5x256x256xf32>) -> (tensor<5x5x256x256xf32> {train.update = @p}) {
  %d = nn.conv_filter_grad %x, %g strides = [1, 1] padding = [2, 2] to [2, 2] dilations = [1, 1] groups = 1 : tensor<2x7x7x256xf32>, tensor<2x7x7x256xf32> -> tensor<5x5x256x256xf32>
  %n = arith.subf %p, %d : tensor<5x5x256x256xf32>
  return %n : tensor<5x5x256x256xf32>
}

// -----

// nor one that reads more than it makes: the images would wait for the last reader of the filter.
// CHECK-LABEL: func.func @update_behind_large_images
// CHECK: plan.kernel conv
// CHECK: plan.kernel loop
func.func @update_behind_large_images(%x: tensor<8x28x28x256xf32>, %g: tensor<8x28x28x256xf32>, %p: tensor<3x3x256x256xf32>) -> (tensor<3x3x256x256xf32> {train.update = @p}) {
  %d = nn.conv_filter_grad %x, %g strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<8x28x28x256xf32>, tensor<8x28x28x256xf32> -> tensor<3x3x256x256xf32>
  %n = arith.subf %p, %d : tensor<3x3x256x256xf32>
  return %n : tensor<3x3x256x256xf32>
}

// -----

// Whichever of its operands is the image: that of a transposed convolution is the second one.
// CHECK-LABEL: func.func @update_behind_large_transposed_images
// CHECK: plan.kernel conv
// CHECK: plan.kernel loop
func.func @update_behind_large_transposed_images(%g: tensor<4x28x28x64xf32>, %x: tensor<4x28x28x1024xf32>, %p: tensor<3x3x64x1024xf32>) -> (tensor<3x3x64x1024xf32> {train.update = @p}) {
  %d = nn.conv_filter_grad %g, %x strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<4x28x28x64xf32>, tensor<4x28x28x1024xf32> -> tensor<3x3x64x1024xf32>
  %n = arith.subf %p, %d : tensor<3x3x64x1024xf32>
  return %n : tensor<3x3x64x1024xf32>
}

// -----

// Somebody else wants the gradient, too: it is stored, and the update waits for the loss in a kernel of its own.
// CHECK-LABEL: func.func @gradient_kept
// CHECK: plan.kernel contraction
// CHECK: nn.dot
// CHECK-NEXT: plan.yield
// CHECK: plan.kernel loop
// CHECK: arith.subf
func.func @gradient_kept(%x: tensor<64x1024xf32>, %g: tensor<64x1024xf32>, %p: tensor<1024x1024xf32>) -> (tensor<1024x1024xf32> {train.output = "g"}, tensor<1024x1024xf32> {train.update = @p}) {
  %d = nn.dot %x, %g batch = [] x [] contract = [0] x [0] : tensor<64x1024xf32>, tensor<64x1024xf32> -> tensor<1024x1024xf32>
  %n = arith.subf %p, %d : tensor<1024x1024xf32>
  return %d, %n : tensor<1024x1024xf32>, tensor<1024x1024xf32>
}

// -----

// A small gradient stays in a cache: loops are better at updates.
// CHECK-LABEL: func.func @small_gradient
// CHECK: plan.kernel contraction
// CHECK: plan.kernel loop
func.func @small_gradient(%x: tensor<64x32xf32>, %g: tensor<64x48xf32>, %p: tensor<32x48xf32>) -> (tensor<32x48xf32> {train.update = @p}) {
  %d = nn.dot %x, %g batch = [] x [] contract = [0] x [0] : tensor<64x32xf32>, tensor<64x48xf32> -> tensor<32x48xf32>
  %n = arith.subf %p, %d : tensor<32x48xf32>
  return %n : tensor<32x48xf32>
}

// -----

// CHECK-LABEL: func.func @kinds
// CHECK-DAG: plan.kernel scan
// CHECK-DAG: plan.kernel scatter
// CHECK-DAG: plan.kernel pool
func.func @kinds(%x: tensor<1x4x4x3xf32>, %i: tensor<6xi64>, %u: tensor<6x4xf32>) -> (tensor<1x4x4x3xf32>, tensor<10x4xf32>, tensor<1x2x2x3xf32>) {
  %a = nn.cumsum %x axis = 1 : tensor<1x4x4x3xf32>
  %b = nn.scatter_add %i, %u axis = 0 : tensor<6xi64>, tensor<6x4xf32> -> tensor<10x4xf32>
  %c = nn.avg_pool %x window = [2, 2] strides = [2, 2] padding = [0, 0] to [0, 0] overhang = [0, 0] dilations = [1, 1] : tensor<1x4x4x3xf32> -> tensor<1x2x2x3xf32>
  return %a, %b, %c : tensor<1x4x4x3xf32>, tensor<10x4xf32>, tensor<1x2x2x3xf32>
}

// -----

// A constant that a scatter reads must lie in memory.
// CHECK-LABEL: func.func @constant_operand
// CHECK: %[[C:.*]] = plan.kernel
// CHECK: arith.constant
// CHECK: plan.kernel
// CHECK-SAME: scatter
// CHECK-SAME: %[[C]]
func.func @constant_operand(%i: tensor<6xi64>) -> tensor<10x4xf32> {
  %u = arith.constant dense<1.0> : tensor<6x4xf32>
  %b = nn.scatter_add %i, %u axis = 0 : tensor<6xi64>, tensor<6x4xf32> -> tensor<10x4xf32>
  return %b : tensor<10x4xf32>
}

// -----

// Sums of a large table that only an update reads stay in a workspace; the update takes the weights' place.
// CHECK-LABEL: func.func @scatter_update
// CHECK: plan.kernel scatter
// CHECK-SAME: in_place = [2, 0] :
// CHECK: nn.scatter_add
// CHECK: arith.subf
// CHECK-NOT: plan.kernel
func.func @scatter_update(%w: tensor<4096x32xf32>, %i: tensor<6xi64>, %u: tensor<6x32xf32>) -> tensor<4096x32xf32> {
  %s = nn.scatter_add %i, %u axis = 0 : tensor<6xi64>, tensor<6x32xf32> -> tensor<4096x32xf32>
  %y = arith.subf %w, %s : tensor<4096x32xf32>
  return %y : tensor<4096x32xf32>
}

// -----

// What is scattered is as large as the table, but read all over: nothing is written to its place.
// CHECK-LABEL: func.func @scatter_as_large
// CHECK: plan.kernel scatter
// CHECK-SAME: in_place = [2, 0] :
// CHECK-NOT: plan.kernel
func.func @scatter_as_large(%w: tensor<4096x32xf32>, %i: tensor<4096xi64>, %u: tensor<4096x32xf32>) -> tensor<4096x32xf32> {
  %s = nn.scatter_add %i, %u axis = 0 : tensor<4096xi64>, tensor<4096x32xf32> -> tensor<4096x32xf32>
  %y = arith.subf %w, %s : tensor<4096x32xf32>
  return %y : tensor<4096x32xf32>
}

// -----

// Sums that somebody else wants, a norm for instance, are stored.
// CHECK-LABEL: func.func @scatter_and_norm
// CHECK: plan.kernel scatter
// CHECK-NEXT: ^bb0
// CHECK-NEXT: nn.scatter_add
// CHECK-NEXT: plan.yield
// CHECK: plan.kernel loop
func.func @scatter_and_norm(%w: tensor<4096x32xf32>, %i: tensor<6xi64>, %u: tensor<6x32xf32>) -> (tensor<4096x32xf32>, tensor<f32>) {
  %s = nn.scatter_add %i, %u axis = 0 : tensor<6xi64>, tensor<6x32xf32> -> tensor<4096x32xf32>
  %q = arith.mulf %s, %s : tensor<4096x32xf32>
  %n = nn.reduce sum %q axes = [0, 1] : tensor<4096x32xf32> -> tensor<f32>
  %b = nn.broadcast %n dims = [] : tensor<f32> -> tensor<4096x32xf32>
  %d = arith.divf %s, %b : tensor<4096x32xf32>
  %y = arith.subf %w, %d : tensor<4096x32xf32>
  return %y, %n : tensor<4096x32xf32>, tensor<f32>
}

// -----

// A small table waits in a cache.
// CHECK-LABEL: func.func @scatter_small
// CHECK: plan.kernel scatter
// CHECK: plan.kernel loop
func.func @scatter_small(%w: tensor<10x4xf32>, %i: tensor<6xi64>, %u: tensor<6x4xf32>) -> tensor<10x4xf32> {
  %s = nn.scatter_add %i, %u axis = 0 : tensor<6xi64>, tensor<6x4xf32> -> tensor<10x4xf32>
  %y = arith.subf %w, %s : tensor<10x4xf32>
  return %y : tensor<10x4xf32>
}

// -----

// The sum would be stored only to be read again: it is computed again from what the second kernel reads instead.
// CHECK-LABEL: func.func @recomputed
// CHECK: %[[M:.*]] = plan.kernel
// CHECK-SAME: -> tensor<100xf32>
// CHECK: plan.kernel
// CHECK: arith.addf
// CHECK: nn.broadcast
func.func @recomputed(%x: tensor<64x100xf32>, %b: tensor<64x100xf32>) -> (tensor<100xf32>, tensor<64xf32>) {
  %s = arith.addf %x, %x : tensor<64x100xf32>
  %m = nn.reduce max %s axes = [0] : tensor<64x100xf32> -> tensor<100xf32>
  %w = nn.broadcast %m dims = [1] : tensor<100xf32> -> tensor<64x100xf32>
  %d = arith.subf %s, %w : tensor<64x100xf32>
  %r = nn.reduce sum %d axes = [1] : tensor<64x100xf32> -> tensor<64xf32>
  return %m, %r : tensor<100xf32>, tensor<64xf32>
}

// -----

// The last kernel reads what the sigmoid is computed from anyway: the sigmoid is computed twice and not stored.
// CHECK-LABEL: func.func @recomputed_sigmoid
// CHECK: plan.kernel loop
// CHECK: math.exp
// CHECK: plan.yield %{{[0-9]+}} : tensor<1024x1024xf32>
// CHECK: nn.dot
// CHECK: nn.dot
// CHECK: math.exp
func.func @recomputed_sigmoid(%z: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %one = arith.constant dense<1.0> : tensor<1024x1024xf32>
  %n = arith.negf %z : tensor<1024x1024xf32>
  %e = math.exp %n : tensor<1024x1024xf32>
  %a = arith.addf %e, %one : tensor<1024x1024xf32>
  %s = arith.divf %one, %a : tensor<1024x1024xf32>
  %y = arith.mulf %z, %s : tensor<1024x1024xf32>
  %d = nn.dot %y, %w batch = [] x [] contract = [1] x [0] : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
  %i = nn.dot %d, %w batch = [] x [] contract = [1] x [1] : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
  %l = arith.mulf %z, %i : tensor<1024x1024xf32>
  %g = arith.mulf %l, %s : tensor<1024x1024xf32>
  return %g : tensor<1024x1024xf32>
}

// -----

// As long as one large tensor is read in place of another: the centred rows are stored in any case, the normalised ones need not be.
// CHECK-LABEL: func.func @recomputed_from_kept
// CHECK: %[[C:.*]]:2 = plan.kernel {{ *}}loop
// CHECK-SAME: -> (tensor<64x100xf32>, tensor<64xf32>)
// CHECK: nn.dot
// CHECK: plan.kernel {{ *}}loop({{.*}}%[[C]]#0,
func.func @recomputed_from_kept(%x: tensor<64x100xf32>, %b: tensor<64x100xf32>, %w: tensor<100x100xf32>) -> (tensor<64x100xf32>, tensor<100xf32>) {
  %s = arith.addf %x, %b : tensor<64x100xf32>
  %m = nn.reduce max %s axes = [1] : tensor<64x100xf32> -> tensor<64xf32>
  %mb = nn.broadcast %m dims = [0] : tensor<64xf32> -> tensor<64x100xf32>
  %c = arith.subf %s, %mb : tensor<64x100xf32>
  %q = arith.mulf %c, %c : tensor<64x100xf32>
  %v = nn.reduce sum %q axes = [1] : tensor<64x100xf32> -> tensor<64xf32>
  %vb = nn.broadcast %v dims = [0] : tensor<64xf32> -> tensor<64x100xf32>
  %h = arith.mulf %c, %vb : tensor<64x100xf32>
  %g = nn.dot %c, %w batch = [] x [] contract = [1] x [0] : tensor<64x100xf32>, tensor<100x100xf32> -> tensor<64x100xf32>
  %gh = arith.mulf %g, %h : tensor<64x100xf32>
  %r = nn.reduce sum %gh axes = [0] : tensor<64x100xf32> -> tensor<100xf32>
  return %c, %r : tensor<64x100xf32>, tensor<100xf32>
}

// -----

// The second product is computed from what a kernel behind the first one has at hand anyway: the first kernel's result need not be
// kept for it, and the exponential is computed once in either kernel.
// CHECK-LABEL: func.func @emitted_again
// CHECK: %[[Y:.*]] = plan.kernel {{ *}}loop(%arg0)
// CHECK: plan.kernel {{ *}}contraction(%[[Y]], %arg1)
// CHECK: %[[G:.*]]:3 = plan.kernel {{ *}}loop(
// CHECK-SAME: -> (tensor<1024x512xf32>, tensor<1x512xf32>, tensor<1024x512xf32>)
// CHECK: math.exp
// CHECK-NOT: math.exp
// CHECK: plan.kernel {{ *}}contraction(%{{.*}}, %[[G]]#2)
func.func @emitted_again(%z: tensor<1024x512xf32>, %w: tensor<512x512xf32>) -> (tensor<1024x512xf32>, tensor<1x512xf32>, tensor<512x512xf32>) {
  %half = arith.constant dense<0.5> : tensor<1024x512xf32>
  %e = math.exp %z : tensor<1024x512xf32>
  %y = arith.mulf %e, %half : tensor<1024x512xf32>
  %d = nn.dot %y, %w batch = [] x [] contract = [1] x [0] : tensor<1024x512xf32>, tensor<512x512xf32> -> tensor<1024x512xf32>
  %dw = nn.dot %d, %y batch = [] x [] contract = [0] x [0] : tensor<1024x512xf32>, tensor<1024x512xf32> -> tensor<512x512xf32>
  %i = nn.dot %d, %w batch = [] x [] contract = [1] x [1] : tensor<1024x512xf32>, tensor<512x512xf32> -> tensor<1024x512xf32>
  %f = math.exp %z : tensor<1024x512xf32>
  %q = arith.addf %f, %z : tensor<1024x512xf32>
  %g = arith.mulf %i, %q : tensor<1024x512xf32>
  %r = nn.reshape %g : tensor<1024x512xf32> -> tensor<1x1024x512xf32>
  %b = nn.reduce sum %r axes = [1] : tensor<1x1024x512xf32> -> tensor<1x512xf32>
  return %g, %b, %dw : tensor<1024x512xf32>, tensor<1x512xf32>, tensor<512x512xf32>
}

// -----

// The kernel that has everything at hand waits for the second product: it cannot compute that product's operand.
// CHECK-LABEL: func.func @not_emitted_again
// CHECK: %[[Y:.*]] = plan.kernel {{ *}}loop(%arg0)
// CHECK: %[[D:.*]] = plan.kernel {{ *}}contraction(%[[Y]], %arg1)
// CHECK: plan.kernel {{ *}}contraction(%[[D]], %[[Y]])
func.func @not_emitted_again(%z: tensor<512x512xf32>, %w: tensor<512x512xf32>) -> (tensor<512x512xf32>, tensor<512xf32>) {
  %half = arith.constant dense<0.5> : tensor<512x512xf32>
  %e = math.exp %z : tensor<512x512xf32>
  %y = arith.mulf %e, %half : tensor<512x512xf32>
  %d = nn.dot %y, %w batch = [] x [] contract = [1] x [0] : tensor<512x512xf32>, tensor<512x512xf32> -> tensor<512x512xf32>
  %dw = nn.dot %d, %y batch = [] x [] contract = [0] x [0] : tensor<512x512xf32>, tensor<512x512xf32> -> tensor<512x512xf32>
  %f = math.exp %z : tensor<512x512xf32>
  %q = arith.addf %f, %z : tensor<512x512xf32>
  %g = arith.mulf %dw, %q : tensor<512x512xf32>
  %b = nn.reduce sum %g axes = [0] : tensor<512x512xf32> -> tensor<512xf32>
  return %g, %b : tensor<512x512xf32>, tensor<512xf32>
}

// -----

// One kernel would compute the first product 256 times for each element of the last.
// CHECK-LABEL: func.func @shifted_products
// CHECK-COUNT-2: plan.kernel
// CHECK-NOT: plan.kernel
// CHECK: return
func.func @shifted_products(%x0: tensor<512xf32>) -> tensor<512xf32> {
  %one0 = arith.constant dense<1.0> : tensor<1xf32>
  %cut0 = nn.slice %x0 starts = [0] strides = [1] : tensor<512xf32> -> tensor<511xf32>
  %late0 = nn.concat %one0, %cut0 axis = 0 : tensor<1xf32>, tensor<511xf32> -> tensor<512xf32>
  %x1 = arith.mulf %x0, %late0 : tensor<512xf32>
  %one1 = arith.constant dense<1.0> : tensor<2xf32>
  %cut1 = nn.slice %x1 starts = [0] strides = [1] : tensor<512xf32> -> tensor<510xf32>
  %late1 = nn.concat %one1, %cut1 axis = 0 : tensor<2xf32>, tensor<510xf32> -> tensor<512xf32>
  %x2 = arith.mulf %x1, %late1 : tensor<512xf32>
  %one2 = arith.constant dense<1.0> : tensor<4xf32>
  %cut2 = nn.slice %x2 starts = [0] strides = [1] : tensor<512xf32> -> tensor<508xf32>
  %late2 = nn.concat %one2, %cut2 axis = 0 : tensor<4xf32>, tensor<508xf32> -> tensor<512xf32>
  %x3 = arith.mulf %x2, %late2 : tensor<512xf32>
  %one3 = arith.constant dense<1.0> : tensor<8xf32>
  %cut3 = nn.slice %x3 starts = [0] strides = [1] : tensor<512xf32> -> tensor<504xf32>
  %late3 = nn.concat %one3, %cut3 axis = 0 : tensor<8xf32>, tensor<504xf32> -> tensor<512xf32>
  %x4 = arith.mulf %x3, %late3 : tensor<512xf32>
  %one4 = arith.constant dense<1.0> : tensor<16xf32>
  %cut4 = nn.slice %x4 starts = [0] strides = [1] : tensor<512xf32> -> tensor<496xf32>
  %late4 = nn.concat %one4, %cut4 axis = 0 : tensor<16xf32>, tensor<496xf32> -> tensor<512xf32>
  %x5 = arith.mulf %x4, %late4 : tensor<512xf32>
  %one5 = arith.constant dense<1.0> : tensor<32xf32>
  %cut5 = nn.slice %x5 starts = [0] strides = [1] : tensor<512xf32> -> tensor<480xf32>
  %late5 = nn.concat %one5, %cut5 axis = 0 : tensor<32xf32>, tensor<480xf32> -> tensor<512xf32>
  %x6 = arith.mulf %x5, %late5 : tensor<512xf32>
  %one6 = arith.constant dense<1.0> : tensor<64xf32>
  %cut6 = nn.slice %x6 starts = [0] strides = [1] : tensor<512xf32> -> tensor<448xf32>
  %late6 = nn.concat %one6, %cut6 axis = 0 : tensor<64xf32>, tensor<448xf32> -> tensor<512xf32>
  %x7 = arith.mulf %x6, %late6 : tensor<512xf32>
  %one7 = arith.constant dense<1.0> : tensor<128xf32>
  %cut7 = nn.slice %x7 starts = [0] strides = [1] : tensor<512xf32> -> tensor<384xf32>
  %late7 = nn.concat %one7, %cut7 axis = 0 : tensor<128xf32>, tensor<384xf32> -> tensor<512xf32>
  %x8 = arith.mulf %x7, %late7 : tensor<512xf32>
  return %x8 : tensor<512xf32>
}

// -----

// A mask that two kernels use is drawn by each of them, and never stored.
// CHECK-LABEL: func.func @dropout
// CHECK: plan.kernel
// CHECK: nn.random
// CHECK: plan.yield %{{.*}} : tensor<64x100xf32>
// CHECK: nn.dot
// CHECK: plan.kernel
// CHECK: nn.random
// CHECK: plan.yield %{{.*}} : tensor<64x100xf32>
// CHECK-NOT: xi1>
func.func @dropout(%x: tensor<64x100xf32>, %w: tensor<100x100xf32>, %step: tensor<i64>) -> tensor<64x100xf32> {
  %bits, %more = nn.random %step key = 7 : tensor<i64> -> tensor<64x100xi32>
  %limit = arith.constant dense<1000000> : tensor<64x100xi32>
  %mask = arith.cmpi uge, %bits, %limit : tensor<64x100xi32>
  %zero = arith.constant dense<0.0> : tensor<64x100xf32>
  %a = arith.select %mask, %x, %zero : tensor<64x100xi1>, tensor<64x100xf32>
  %p = nn.dot %a, %w batch = [] x [] contract = [1] x [0] : tensor<64x100xf32>, tensor<100x100xf32> -> tensor<64x100xf32>
  %e = math.tanh %p : tensor<64x100xf32>
  %b = arith.select %mask, %e, %zero : tensor<64x100xi1>, tensor<64x100xf32>
  return %b : tensor<64x100xf32>
}

// -----

// The body of a loop is a block of its own; the loop stays between the kernels around it.
// CHECK-LABEL: func.func @loop
// CHECK: %[[H:.*]] = plan.kernel loop
// CHECK: %[[R:.*]]:2 = nn.scan 4 carry(%[[H]])
// CHECK: plan.kernel contraction
// CHECK-NOT: plan.kernel
// CHECK: nn.yield
// CHECK: plan.kernel loop(%[[R]]#0)
func.func @loop(%h: tensor<2x3xf32>, %x: tensor<4x2x3xf32>, %w: tensor<3x3xf32>) -> (tensor<2x3xf32>, tensor<4x2x3xf32>) {
  %h0 = math.tanh %h : tensor<2x3xf32>
  %last, %all = nn.scan 4 carry(%h0) over(%x) with(%w)
      : (tensor<2x3xf32>, tensor<4x2x3xf32>, tensor<3x3xf32>) -> (tensor<2x3xf32>, tensor<4x2x3xf32>) {
  ^bb0(%a: tensor<2x3xf32>, %xi: tensor<2x3xf32>, %v: tensor<3x3xf32>):
    %0 = nn.dot %a, %v batch = [] x [] contract = [1] x [0] : tensor<2x3xf32>, tensor<3x3xf32> -> tensor<2x3xf32>
    %1 = arith.addf %0, %xi : tensor<2x3xf32>
    %2 = math.tanh %1 : tensor<2x3xf32>
    %3 = arith.mulf %2, %xi : tensor<2x3xf32>
    nn.yield %2, %3 : tensor<2x3xf32>, tensor<2x3xf32>
  }
  %y = arith.negf %last : tensor<2x3xf32>
  return %y, %all : tensor<2x3xf32>, tensor<4x2x3xf32>
}

// -----

// A loop carries a value on, stacks it, and stacks what it was before: the kernel that has both at hand writes all three.
// CHECK-LABEL: func.func @stacked
// CHECK: nn.scan 5
// CHECK: ^bb0(%[[H:.*]]: tensor<64x64xf32>):
// CHECK-NEXT: %[[K:.*]]:3 = plan.kernel loop(%[[H]])
// CHECK: nn.yield %[[K]]#{{.}}, %[[K]]#{{.}}, %[[K]]#{{.}} :
func.func @stacked(%h: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<5x64x64xf32>, tensor<5x64x64xf32>) {
  %r:3 = nn.scan 5 carry(%h) over() with() : (tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<5x64x64xf32>, tensor<5x64x64xf32>) {
  ^bb0(%a: tensor<64x64xf32>):
    %t = math.tanh %a : tensor<64x64xf32>
    nn.yield %t, %t, %a : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<64x64xf32>, tensor<5x64x64xf32>, tensor<5x64x64xf32>
}
