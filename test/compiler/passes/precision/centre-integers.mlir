// RUN: ortc-opt %s --ortc-centre-integers | FileCheck %s
// Breaks when zero points are subtracted from floating-point numbers, which kernels then store, or when differences are cut off.

// CHECK-LABEL: func.func @positive
// CHECK: %[[C:.*]] = arith.subi %{{.*}}, %{{.*}} : tensor<8xi8>
// CHECK: arith.uitofp %[[C]] : tensor<8xi8> to tensor<8xf32>
// CHECK-NOT: arith.subf
func.func @positive(%q: tensor<8xi8>) -> tensor<8xf32> {
  %zero = arith.constant dense<-128.0> : tensor<8xf32>
  %x = arith.sitofp %q : tensor<8xi8> to tensor<8xf32>
  %y = arith.subf %x, %zero : tensor<8xf32>
  return %y : tensor<8xf32>
}

// CHECK-LABEL: func.func @symmetric
// CHECK: %[[ZERO:.*]] = arith.constant dense<-128> : tensor<8xi8>
// CHECK: %[[C:.*]] = arith.subi %{{.*}}, %[[ZERO]] : tensor<8xi8>
// CHECK: arith.sitofp %[[C]] : tensor<8xi8> to tensor<8xf32>
func.func @symmetric(%q: tensor<8xi8>) -> tensor<8xf32> {
  %zero = arith.constant dense<128.0> : tensor<8xf32>
  %x = arith.uitofp %q : tensor<8xi8> to tensor<8xf32>
  %y = arith.subf %x, %zero : tensor<8xf32>
  return %y : tensor<8xf32>
}

// Differences from -138 to 117 need 16 bits.
// CHECK-LABEL: func.func @between
// CHECK: %[[ZERO:.*]] = arith.constant dense<10> : tensor<8xi16>
// CHECK: %[[W:.*]] = arith.extsi %{{.*}} : tensor<8xi8> to tensor<8xi16>
// CHECK: %[[C:.*]] = arith.subi %[[W]], %[[ZERO]] : tensor<8xi16>
// CHECK: arith.sitofp %[[C]] : tensor<8xi16> to tensor<8xf32>
func.func @between(%q: tensor<8xi8>) -> tensor<8xf32> {
  %zero = arith.constant dense<10.0> : tensor<8xf32>
  %x = arith.sitofp %q : tensor<8xi8> to tensor<8xf32>
  %y = arith.subf %x, %zero : tensor<8xf32>
  return %y : tensor<8xf32>
}

// CHECK-LABEL: func.func @no_zero_points
// CHECK-NOT: arith.subi
// CHECK-COUNT-3: arith.subf
func.func @no_zero_points(%q: tensor<8xi8>, %v: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %half = arith.constant dense<0.5> : tensor<8xf32>
  %far = arith.constant dense<300.0> : tensor<8xf32>
  %x = arith.sitofp %q : tensor<8xi8> to tensor<8xf32>
  %a = arith.subf %x, %half : tensor<8xf32>
  %b = arith.subf %x, %far : tensor<8xf32>
  %c = arith.subf %x, %v : tensor<8xf32>
  return %a, %b, %c : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
