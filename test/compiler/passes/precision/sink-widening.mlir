// RUN: ortc-opt %s --ortc-sink-widening | FileCheck %s
// Breaks when f32 copies of narrow tensors are moved.

// CHECK-LABEL: func.func @moved
// CHECK-SAME: (%[[X:.*]]: tensor<8x4xbf16>)
// CHECK: %[[T:.*]] = nn.transpose %[[X]] perm = [1, 0] : tensor<8x4xbf16> -> tensor<4x8xbf16>
// CHECK: %[[R:.*]] = nn.reshape %[[T]] : tensor<4x8xbf16> -> tensor<4x2x4xbf16>
// CHECK: %[[S:.*]] = nn.slice %[[R]] {{.*}} : tensor<4x2x4xbf16> -> tensor<4x1x4xbf16>
// CHECK: %[[E:.*]] = arith.extf %[[S]] : tensor<4x1x4xbf16> to tensor<4x1x4xf32>
// CHECK: return %[[E]]
func.func @moved(%x: tensor<8x4xbf16>) -> tensor<4x1x4xf32> {
  %a = arith.extf %x : tensor<8x4xbf16> to tensor<8x4xf32>
  %t = nn.transpose %a perm = [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
  %r = nn.reshape %t : tensor<4x8xf32> -> tensor<4x2x4xf32>
  %s = nn.slice %r starts = [0, 1, 0] strides = [1, 1, 1] : tensor<4x2x4xf32> -> tensor<4x1x4xf32>
  return %s : tensor<4x1x4xf32>
}

// CHECK-LABEL: func.func @wide
// CHECK: arith.extf
// CHECK: nn.transpose {{.*}} : tensor<8x4xf64> -> tensor<4x8xf64>
func.func @wide(%x: tensor<8x4xf32>) -> tensor<4x8xf64> {
  %a = arith.extf %x : tensor<8x4xf32> to tensor<8x4xf64>
  %t = nn.transpose %a perm = [1, 0] : tensor<8x4xf64> -> tensor<4x8xf64>
  return %t : tensor<4x8xf64>
}

// CHECK-LABEL: func.func @integers
// CHECK: %[[T:.*]] = nn.transpose %{{.*}} perm = [1, 0] : tensor<8x4xi8> -> tensor<4x8xi8>
// CHECK: arith.uitofp %[[T]] : tensor<4x8xi8> to tensor<4x8xf32>
func.func @integers(%x: tensor<8x4xi8>) -> tensor<4x8xf32> {
  %a = arith.uitofp %x : tensor<8x4xi8> to tensor<8x4xf32>
  %t = nn.transpose %a perm = [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
  return %t : tensor<4x8xf32>
}
