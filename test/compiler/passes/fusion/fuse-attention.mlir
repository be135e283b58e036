// RUN: ortc-opt %s --ortc-fuse-kernels="attention-parts=192 few-kernels=true" | FileCheck %s
// RUN: ortc-opt %s --ortc-fuse-kernels="attention-parts=192 few-kernels=true" | FileCheck %s --check-prefix=RESULTS
// RUN: ortc-opt %s --ortc-fuse-kernels | FileCheck %s --check-prefix=PLAIN
// Breaks when attention or a gradient of it is no kernel, or when one stores scores.

// Forward attention and its gradients: the maximum and the sum along the keys come from the forward kernel, the sum of
// a row of the gradient from what was mixed, and no kernel has scores as a result.
// CHECK-LABEL: @attention
// CHECK: %[[F:.*]]:3 = plan.kernel  attention(%arg0, %arg1, %arg2) {{.*}} -> (tensor<2x128xf32>, tensor<2x128x64xf32>, tensor<2x128xf32>)
// CHECK: nn.reduce  max
// CHECK: math.exp
// CHECK: nn.dot
// CHECK: %[[T:.*]] = plan.kernel  loop(
// CHECK-NEXT: ^bb0
// CHECK: nn.reduce  sum {{.*}} axes = [2] : tensor<2x128x64xf32> -> tensor<2x128xf32>
// CHECK-DAG: plan.kernel  attention({{.*}}) {{.*}} -> (tensor<2x128x64xf32>, tensor<2x128x64xf32>)
// CHECK-DAG: plan.kernel  attention({{.*}}) {{.*}} -> tensor<2x128x64xf32>
// RESULTS-LABEL: @attention
// RESULTS-NOT: plan.kernel{{.*}}-> {{.*}}2x128x128
// RESULTS-LABEL: @hard
// PLAIN-LABEL: @attention
// PLAIN-NOT: attention(
func.func @attention(%q: tensor<2x128x64xf32>, %k: tensor<2x128x64xf32>, %v: tensor<2x128x64xf32>, %g: tensor<2x128x64xf32>)
    -> (tensor<2x128x64xf32>, tensor<2x128x64xf32>, tensor<2x128x64xf32>, tensor<2x128x64xf32>) {
  %one = arith.constant dense<1.0> : tensor<2x128xf32>
  %s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : tensor<2x128x64xf32>, tensor<2x128x64xf32> -> tensor<2x128x128xf32>
  %m = nn.reduce max %s axes = [2] : tensor<2x128x128xf32> -> tensor<2x128xf32>
  %mb = nn.broadcast %m dims = [0, 1] : tensor<2x128xf32> -> tensor<2x128x128xf32>
  %x = arith.subf %s, %mb : tensor<2x128x128xf32>
  %e = math.exp %x : tensor<2x128x128xf32>
  %l = nn.reduce sum %e axes = [2] : tensor<2x128x128xf32> -> tensor<2x128xf32>
  %i = arith.divf %one, %l : tensor<2x128xf32>
  %ib = nn.broadcast %i dims = [0, 1] : tensor<2x128xf32> -> tensor<2x128x128xf32>
  %p = arith.mulf %e, %ib : tensor<2x128x128xf32>
  %y = nn.dot %p, %v batch = [0] x [0] contract = [2] x [1] : tensor<2x128x128xf32>, tensor<2x128x64xf32> -> tensor<2x128x64xf32>
  // Again, for the gradient.
  %s2 = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : tensor<2x128x64xf32>, tensor<2x128x64xf32> -> tensor<2x128x128xf32>
  %m2 = nn.reduce max %s2 axes = [2] : tensor<2x128x128xf32> -> tensor<2x128xf32>
  %mb2 = nn.broadcast %m2 dims = [0, 1] : tensor<2x128xf32> -> tensor<2x128x128xf32>
  %x2 = arith.subf %s2, %mb2 : tensor<2x128x128xf32>
  %e2 = math.exp %x2 : tensor<2x128x128xf32>
  %l2 = nn.reduce sum %e2 axes = [2] : tensor<2x128x128xf32> -> tensor<2x128xf32>
  %i2 = arith.divf %one, %l2 : tensor<2x128xf32>
  %ib2 = nn.broadcast %i2 dims = [0, 1] : tensor<2x128xf32> -> tensor<2x128x128xf32>
  %p2 = arith.mulf %e2, %ib2 : tensor<2x128x128xf32>
  %dp = nn.dot %g, %v batch = [0] x [0] contract = [2] x [2] : tensor<2x128x64xf32>, tensor<2x128x64xf32> -> tensor<2x128x128xf32>
  %w = arith.mulf %dp, %p2 : tensor<2x128x128xf32>
  %t = nn.reduce sum %w axes = [2] : tensor<2x128x128xf32> -> tensor<2x128xf32>
  %tb = nn.broadcast %t dims = [0, 1] : tensor<2x128xf32> -> tensor<2x128x128xf32>
  %c = arith.subf %dp, %tb : tensor<2x128x128xf32>
  %ds = arith.mulf %p2, %c : tensor<2x128x128xf32>
  %dq = nn.dot %ds, %k batch = [0] x [0] contract = [2] x [1] : tensor<2x128x128xf32>, tensor<2x128x64xf32> -> tensor<2x128x64xf32>
  %dk = nn.dot %ds, %q batch = [0] x [0] contract = [1] x [1] : tensor<2x128x128xf32>, tensor<2x128x64xf32> -> tensor<2x128x64xf32>
  %dv = nn.dot %p2, %g batch = [0] x [0] contract = [1] x [1] : tensor<2x128x128xf32>, tensor<2x128x64xf32> -> tensor<2x128x64xf32>
  return %y, %dq, %dk, %dv : tensor<2x128x64xf32>, tensor<2x128x64xf32>, tensor<2x128x64xf32>, tensor<2x128x64xf32>
}

// A score that is compared with the largest one may be another number where it is computed again.
// CHECK-LABEL: @hard
// CHECK-NOT: plan.kernel  attention
func.func @hard(%q: tensor<2x128x64xf32>, %k: tensor<2x128x64xf32>, %v: tensor<2x128x64xf32>) -> tensor<2x128x64xf32> {
  %zero = arith.constant dense<0.0> : tensor<2x128x128xf32>
  %s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : tensor<2x128x64xf32>, tensor<2x128x64xf32> -> tensor<2x128x128xf32>
  %m = nn.reduce max %s axes = [2] : tensor<2x128x128xf32> -> tensor<2x128xf32>
  %mb = nn.broadcast %m dims = [0, 1] : tensor<2x128xf32> -> tensor<2x128x128xf32>
  %e = math.exp %s : tensor<2x128x128xf32>
  %c = arith.cmpf oeq, %s, %mb : tensor<2x128x128xf32>
  %p = arith.select %c, %e, %zero : tensor<2x128x128xi1>, tensor<2x128x128xf32>
  %y = nn.dot %p, %v batch = [0] x [0] contract = [2] x [1] : tensor<2x128x128xf32>, tensor<2x128x64xf32> -> tensor<2x128x64xf32>
  return %y : tensor<2x128x64xf32>
}

// The gradient of a maximum compares scores with it: both are of one product, which is not that of the kernel.
// CHECK-LABEL: @largest
// CHECK: nn.reduce  max
// CHECK: plan.kernel  attention({{.*}}) {{.*}} -> tensor<2x128x64xf32>
// CHECK-NOT: plan.kernel  attention
func.func @largest(%q: tensor<2x128x64xf32>, %k: tensor<2x128x64xf32>, %v: tensor<2x128x64xf32>, %g: tensor<2x128x128xf32>)
    -> (tensor<2x128x64xf32>, tensor<2x128x64xf32>) {
  %zero = arith.constant dense<0.0> : tensor<2x128x128xf32>
  %s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : tensor<2x128x64xf32>, tensor<2x128x64xf32> -> tensor<2x128x128xf32>
  %m = nn.reduce max %s axes = [2] : tensor<2x128x128xf32> -> tensor<2x128xf32>
  %mb = nn.broadcast %m dims = [0, 1] : tensor<2x128xf32> -> tensor<2x128x128xf32>
  %x = arith.subf %s, %mb : tensor<2x128x128xf32>
  %e = math.exp %x : tensor<2x128x128xf32>
  %y = nn.dot %e, %v batch = [0] x [0] contract = [2] x [1] : tensor<2x128x128xf32>, tensor<2x128x64xf32> -> tensor<2x128x64xf32>
  %c = arith.cmpf oeq, %s, %mb : tensor<2x128x128xf32>
  %r = arith.select %c, %g, %zero : tensor<2x128x128xi1>, tensor<2x128x128xf32>
  %dq = nn.dot %r, %k batch = [0] x [0] contract = [2] x [1] : tensor<2x128x128xf32>, tensor<2x128x64xf32> -> tensor<2x128x64xf32>
  return %y, %dq : tensor<2x128x64xf32>, tensor<2x128x64xf32>
}
