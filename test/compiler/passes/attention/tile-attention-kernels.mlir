// RUN: ortc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(ortc-tile-attention{least=1 kernel-depth=16}))' | FileCheck %s
// RUN: ortc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(ortc-tile-attention{least=1 kernel-depth=8}))' | FileCheck %s --check-prefix=SHORT
// RUN: ortc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(ortc-tile-attention{least=1 rows=32 kernel-depth=16}))' | FileCheck %s --check-prefix=ROWS
// RUN: ortc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(ortc-tile-attention{kernel-depth=16}))' | FileCheck %s --check-prefix=LEAST
// Breaks when attention that a kernel computes is cut, or when other attention is not.

// Heads of 16 elements: one iteration of all heads, one tile of all rows. Of 8 at most, or with tiles of 32 rows as asked for, a head at
// a time.
// CHECK-LABEL: func.func @fits
// CHECK: nn.scan 1 recompute carry() over(
// CHECK: nn.dot {{.*}} : tensor<2x1x64x16xf32>, tensor<2x64x16xf32> -> tensor<2x1x64x64xf32>
// CHECK: nn.softmax {{.*}} axis = 3 : tensor<2x1x64x64xf32>
// CHECK-NOT: nn.softmax
// LEAST-LABEL: func.func @fits
// LEAST: nn.scan 1 recompute
// SHORT-LABEL: func.func @fits
// SHORT: nn.scan 2 recompute carry() over(
// ROWS-LABEL: func.func @fits
// ROWS: nn.scan 2 recompute carry() over(
// ROWS-COUNT-2: nn.softmax {{.*}} axis = 3 : tensor<1x1x32x64xf32>
func.func @fits(%q: tensor<2x64x16xf32>, %k: tensor<2x64x16xf32>, %v: tensor<2x64x16xf32>) -> tensor<2x64x16xf32> {
  %s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : tensor<2x64x16xf32>, tensor<2x64x16xf32> -> tensor<2x64x64xf32>
  %w = nn.softmax %s axis = 2 : tensor<2x64x64xf32>
  %y = nn.dot %w, %v batch = [0] x [0] contract = [2] x [1] : tensor<2x64x64xf32>, tensor<2x64x16xf32> -> tensor<2x64x16xf32>
  return %y : tensor<2x64x16xf32>
}

// -----

// Values of 24 elements are padded to 32.
// CHECK-LABEL: func.func @wide_values
// CHECK: nn.scan 2 recompute
// LEAST-LABEL: func.func @wide_values
// LEAST-NOT: nn.scan
func.func @wide_values(%q: tensor<2x64x16xf32>, %k: tensor<2x64x16xf32>, %v: tensor<2x64x24xf32>) -> tensor<2x64x24xf32> {
  %s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : tensor<2x64x16xf32>, tensor<2x64x16xf32> -> tensor<2x64x64xf32>
  %w = nn.softmax %s axis = 2 : tensor<2x64x64xf32>
  %y = nn.dot %w, %v batch = [0] x [0] contract = [2] x [1] : tensor<2x64x64xf32>, tensor<2x64x24xf32> -> tensor<2x64x24xf32>
  return %y : tensor<2x64x24xf32>
}

// -----

// Few keys.
// CHECK-LABEL: func.func @few_keys
// CHECK: nn.scan 2 recompute
func.func @few_keys(%q: tensor<2x64x16xf32>, %k: tensor<2x56x16xf32>, %v: tensor<2x56x16xf32>) -> tensor<2x64x16xf32> {
  %s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : tensor<2x64x16xf32>, tensor<2x56x16xf32> -> tensor<2x64x56xf32>
  %w = nn.softmax %s axis = 2 : tensor<2x64x56xf32>
  %y = nn.dot %w, %v batch = [0] x [0] contract = [2] x [1] : tensor<2x64x56xf32>, tensor<2x56x16xf32> -> tensor<2x64x16xf32>
  return %y : tensor<2x64x16xf32>
}

// -----

// Kernels have no sums of double precision.
// CHECK-LABEL: func.func @doubles
// CHECK: nn.scan 2 recompute
func.func @doubles(%q: tensor<2x64x16xf64>, %k: tensor<2x64x16xf64>, %v: tensor<2x64x16xf64>) -> tensor<2x64x16xf64> {
  %s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : tensor<2x64x16xf64>, tensor<2x64x16xf64> -> tensor<2x64x64xf64>
  %w = nn.softmax %s axis = 2 : tensor<2x64x64xf64>
  %y = nn.dot %w, %v batch = [0] x [0] contract = [2] x [1] : tensor<2x64x64xf64>, tensor<2x64x16xf64> -> tensor<2x64x16xf64>
  return %y : tensor<2x64x16xf64>
}
