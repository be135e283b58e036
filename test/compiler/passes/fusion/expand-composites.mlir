// RUN: ortc-opt %s -ortc-expand-composites -split-input-file | FileCheck %s
// Breaks when a normalisation reaches the kernels whole, or a long reduction keeps one worker busy.

// CHECK-LABEL: func.func @softmax
// CHECK: %[[MAX:.*]] = nn.reduce max %{{.*}} axes = [1]
// CHECK: %[[WIDE:.*]] = nn.broadcast %[[MAX]] dims = [0]
// CHECK: %[[SHIFTED:.*]] = arith.subf %{{.*}}, %[[WIDE]]
// CHECK: %[[EXP:.*]] = math.exp %[[SHIFTED]]
// CHECK: nn.reduce sum %[[EXP]] axes = [1]
// CHECK-NOT: nn.softmax
func.func @softmax(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = nn.softmax %x axis = 1 : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: func.func @log_softmax
// CHECK: math.log
// CHECK-NOT: nn.log_softmax
func.func @log_softmax(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %y = nn.log_softmax %x axis = 1 : tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// The sums of f16 are taken in f32.
// CHECK-LABEL: func.func @narrow
// CHECK: arith.extf %{{.*}} : tensor<2x3xf16> to tensor<2x3xf32>
// CHECK: nn.reduce sum %{{.*}} : tensor<2x3xf32>
// CHECK: arith.truncf %{{.*}} : tensor<2xf32> to tensor<2xf16>
func.func @narrow(%x: tensor<2x3xf16>) -> (tensor<2xf16>, tensor<2xf16>) {
  %mean, %variance = nn.moments %x axes = [1] : tensor<2x3xf16> -> tensor<2xf16>
  return %mean, %variance : tensor<2xf16>, tensor<2xf16>
}

// -----

// Large ones in blocks of whole rows of pixels, which are read from memory once: 112 means and sums of squares around them.
// CHECK-LABEL: func.func @blocks
// CHECK: %[[CUT:.*]] = nn.reshape %{{.*}} : tensor<8x56x56x32xf32> -> tensor<112x224x32xf32>
// CHECK: %[[SUMS:.*]] = nn.reduce sum %[[CUT]] axes = [1]
// CHECK: %[[MEANS:.*]] = arith.{{mul|div}}f %[[SUMS]], %{{.*}} : tensor<112x32xf32>
// CHECK: %[[WIDE:.*]] = nn.broadcast %[[MEANS]] dims = [0, 2]
// CHECK: %[[CENTERED:.*]] = arith.subf %[[CUT]], %[[WIDE]]
// CHECK: %[[SQUARES:.*]] = arith.mulf %[[CENTERED]], %[[CENTERED]]
// CHECK: nn.reduce sum %[[SQUARES]] axes = [1] : tensor<112x224x32xf32> -> tensor<112x32xf32>
// CHECK: %[[APART:.*]] = arith.subf %[[MEANS]], %{{.*}} : tensor<112x32xf32>
// CHECK: arith.mulf %[[APART]], %[[APART]]
func.func @blocks(%x: tensor<8x56x56x32xf32>) -> (tensor<32xf32>, tensor<32xf32>) {
  %mean, %variance = nn.moments %x axes = [0, 1, 2] : tensor<8x56x56x32xf32> -> tensor<32xf32>
  return %mean, %variance : tensor<32xf32>, tensor<32xf32>
}

// -----

// 25088 rows of 32 columns: one block of columns, so 16 pieces of 1568 rows each.
// CHECK-LABEL: func.func @bias_gradient
// CHECK: %[[CUT:.*]] = nn.reshape %{{.*}} : tensor<32x28x28x32xf32> -> tensor<16x1568x32xf32>
// CHECK: %[[PARTS:.*]] = nn.reduce sum %[[CUT]] axes = [1] : tensor<16x1568x32xf32> -> tensor<16x32xf32>
// CHECK: nn.reduce sum %[[PARTS]] axes = [0] : tensor<16x32xf32> -> tensor<32xf32>
func.func @bias_gradient(%x: tensor<32x28x28x32xf32>) -> tensor<32xf32> {
  %y = nn.reduce sum %x axes = [0, 1, 2] : tensor<32x28x28x32xf32> -> tensor<32xf32>
  return %y : tensor<32xf32>
}

// -----

// Six pieces are wanted; seven would divide the rows, but begin inside images.
// CHECK-LABEL: func.func @whole_images
// CHECK: nn.reshape %{{.*}} : tensor<8x56x56x144xf32> -> tensor<8x3136x144xf32>
func.func @whole_images(%x: tensor<8x56x56x144xf32>) -> tensor<144xf32> {
  %y = nn.reduce sum %x axes = [0, 1, 2] : tensor<8x56x56x144xf32> -> tensor<144xf32>
  return %y : tensor<144xf32>
}

// -----

// Enough rows to share out: left alone.
// CHECK-LABEL: func.func @many_rows
// CHECK-NOT: nn.reshape
// CHECK: nn.reduce sum %{{.*}} axes = [1] : tensor<4096x768xf32> -> tensor<4096xf32>
func.func @many_rows(%x: tensor<4096x768xf32>) -> tensor<4096xf32> {
  %y = nn.reduce sum %x axes = [1] : tensor<4096x768xf32> -> tensor<4096xf32>
  return %y : tensor<4096xf32>
}

// -----

// A filter gradient with few results for much work is made of parts of the batch, which are added up.
// CHECK-LABEL: func.func @filter_gradient
// CHECK: %[[PARTS:.*]] = nn.conv_filter_grad %{{.*}} -> tensor<4x3x3x16x16xf32>
// CHECK: nn.reduce sum %[[PARTS]] axes = [0] : tensor<4x3x3x16x16xf32> -> tensor<3x3x16x16xf32>
func.func @filter_gradient(%x: tensor<8x32x32x16xf32>, %dy: tensor<8x32x32x16xf32>) -> tensor<3x3x16x16xf32> {
  %dw = nn.conv_filter_grad %x, %dy strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<8x32x32x16xf32>, tensor<8x32x32x16xf32> -> tensor<3x3x16x16xf32>
  return %dw : tensor<3x3x16x16xf32>
}

// -----

// Too large a filter, and f16, stay whole; with 4096 positions there are four parts, below two.
// CHECK-LABEL: func.func @limits
// CHECK: nn.conv_filter_grad %{{.*}} -> tensor<1x1x128x128xf32>
// CHECK: nn.conv_filter_grad %{{.*}} -> tensor<1x1x16x16xf16>
// CHECK: nn.conv_filter_grad %{{.*}} -> tensor<4x1x1x16x16xf32>
// CHECK: nn.conv_filter_grad %{{.*}} -> tensor<2x1x1x16x16xf32>
func.func @limits(%x: tensor<8x32x32x128xf32>, %h: tensor<8x32x32x16xf16>, %a: tensor<4x32x32x16xf32>, %b: tensor<4x32x31x16xf32>) -> (tensor<1x1x128x128xf32>, tensor<1x1x16x16xf16>, tensor<1x1x16x16xf32>, tensor<1x1x16x16xf32>) {
  %0 = nn.conv_filter_grad %x, %x strides = [1, 1] padding = [0, 0] to [0, 0] dilations = [1, 1] groups = 1 : tensor<8x32x32x128xf32>, tensor<8x32x32x128xf32> -> tensor<1x1x128x128xf32>
  %1 = nn.conv_filter_grad %h, %h strides = [1, 1] padding = [0, 0] to [0, 0] dilations = [1, 1] groups = 1 : tensor<8x32x32x16xf16>, tensor<8x32x32x16xf16> -> tensor<1x1x16x16xf16>
  %2 = nn.conv_filter_grad %a, %a strides = [1, 1] padding = [0, 0] to [0, 0] dilations = [1, 1] groups = 1 : tensor<4x32x32x16xf32>, tensor<4x32x32x16xf32> -> tensor<1x1x16x16xf32>
  %3 = nn.conv_filter_grad %b, %b strides = [1, 1] padding = [0, 0] to [0, 0] dilations = [1, 1] groups = 1 : tensor<4x32x31x16xf32>, tensor<4x32x31x16xf32> -> tensor<1x1x16x16xf32>
  return %0, %1, %2, %3 : tensor<1x1x128x128xf32>, tensor<1x1x16x16xf16>, tensor<1x1x16x16xf32>, tensor<1x1x16x16xf32>
}

// -----

// Six images: two parts. 1024 positions of a part at least.
// CHECK-LABEL: func.func @two_parts
// CHECK: nn.conv_filter_grad %{{.*}} -> tensor<2x1x1x16x32xf32>
// CHECK: nn.conv_filter_grad %{{.*}} -> tensor<1x1x16x32xf32>
func.func @two_parts(%x: tensor<6x24x24x16xf32>, %dy: tensor<6x24x24x32xf32>, %few: tensor<2x8x8x16xf32>, %dfew: tensor<2x8x8x32xf32>) -> (tensor<1x1x16x32xf32>, tensor<1x1x16x32xf32>) {
  %dw = nn.conv_filter_grad %x, %dy strides = [1, 1] padding = [0, 0] to [0, 0] dilations = [1, 1] groups = 1 : tensor<6x24x24x16xf32>, tensor<6x24x24x32xf32> -> tensor<1x1x16x32xf32>
  %dv = nn.conv_filter_grad %few, %dfew strides = [1, 1] padding = [0, 0] to [0, 0] dilations = [1, 1] groups = 1 : tensor<2x8x8x16xf32>, tensor<2x8x8x32xf32> -> tensor<1x1x16x32xf32>
  return %dw, %dv : tensor<1x1x16x32xf32>, tensor<1x1x16x32xf32>
}

// -----

// A kernel joins 32 parts at most: 70 are joined in three pieces.
// CHECK-LABEL: func.func @many_parts
// CHECK-COUNT-2: nn.concat {{(%[a-z0-9]+, ){31}%[a-z0-9]+}} axis = 0 :
// CHECK: nn.concat {{(%[a-z0-9]+, ){5}%[a-z0-9]+}} axis = 0 :
// CHECK: nn.concat %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} axis = 0 : tensor<64x3xf32>, tensor<64x3xf32>, tensor<12x3xf32> -> tensor<140x3xf32>
func.func @many_parts(%x: tensor<2x3xf32>) -> tensor<140x3xf32> {
  %y = nn.concat %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x axis = 0 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32> -> tensor<140x3xf32>
  return %y : tensor<140x3xf32>
}

// -----

// CHECK-LABEL: func.func @few_parts
// CHECK-COUNT-1: nn.concat
// CHECK-NOT: nn.concat
func.func @few_parts(%x: tensor<2x3xf32>) -> tensor<64x3xf32> {
  %y = nn.concat %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x axis = 0 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32> -> tensor<64x3xf32>
  return %y : tensor<64x3xf32>
}
