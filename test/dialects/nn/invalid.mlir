// RUN: ortc-opt %s -split-input-file -verify-diagnostics
// Breaks when an operation whose shapes do not fit is accepted.

func.func @broadcast_c1(%x: tensor<2x3xf32>) {
  // expected-error @below {{C1: dimensions must list one strictly increasing result dimension per input dimension}}
  %0 = nn.broadcast %x dims = [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  return
}

// -----

func.func @broadcast_c2(%x: tensor<2xf32>) {
  // expected-error @below {{C2: input dimension 0 has size 2 but result dimension 0 has 3}}
  %0 = nn.broadcast %x dims = [0] : tensor<2xf32> -> tensor<3xf32>
  return
}

// -----

func.func @reshape_c1(%x: tensor<6xf32>) {
  // expected-error @below {{C1: 'tensor<6xf32>' and 'tensor<5xf32>' differ in element type or number of elements}}
  %0 = nn.reshape %x : tensor<6xf32> -> tensor<5xf32>
  return
}

// -----

func.func @transpose_c1(%x: tensor<2x3xf32>) {
  // expected-error @below {{C1: not a permutation of 2 dimensions}}
  %0 = nn.transpose %x perm = [0, 0] : tensor<2x3xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @slice_c2(%x: tensor<4xf32>) {
  // expected-error @below {{C2: dimension 0 reads element 5 of 4}}
  %0 = nn.slice %x starts = [1] strides = [2] : tensor<4xf32> -> tensor<3xf32>
  return
}

// -----

func.func @pad_c1(%x: tensor<4xf32>, %v: tensor<f32>) {
  // expected-error @below {{C1: padding must not be negative}}
  %0 = nn.pad %x, %v low = [-1] high = [0] interior = [0] : tensor<4xf32>, tensor<f32> -> tensor<3xf32>
  return
}

// -----

func.func @concat_c2(%x: tensor<2x3xf32>, %y: tensor<3x3xf32>) {
  // expected-error @below {{C2: inputs differ in dimension 0}}
  %0 = nn.concat %x, %y axis = 1 : tensor<2x3xf32>, tensor<3x3xf32> -> tensor<2x6xf32>
  return
}

// -----

func.func @reduce_c1(%x: tensor<2x3xf32>) {
  // expected-error @below {{C1: axes must be strictly increasing and below the rank 2}}
  %0 = nn.reduce sum %x axes = [2] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @dot_c2(%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) {
  // expected-error @below {{C2: matched dimensions or element types differ}}
  %0 = nn.dot %a, %b batch = [] x [] contract = [1] x [0] : tensor<2x3xf32>, tensor<4x5xf32> -> tensor<2x5xf32>
  return
}

// -----

func.func @conv_c2(%x: tensor<1x8x3xf32>, %w: tensor<3x3x4xf32>) {
  // expected-error @below {{C2: spatial dimension 0 of the output is 8 but must be 6}}
  %0 = nn.conv %x, %w strides = [1] padding = [0] to [0] dilations = [1] groups = 1 : tensor<1x8x3xf32>, tensor<3x3x4xf32> -> tensor<1x8x4xf32>
  return
}

// -----

func.func @conv_c3(%x: tensor<1x8x3xf32>, %w: tensor<3x3x4xf32>) {
  // expected-error @below {{C3: 3 channels and 4 features do not fit a filter of 3 channels and 2 groups}}
  %0 = nn.conv %x, %w strides = [1] padding = [0] to [0] dilations = [1] groups = 2 : tensor<1x8x3xf32>, tensor<3x3x4xf32> -> tensor<1x6x4xf32>
  return
}

// -----

func.func @conv_filter_grad_c1(%x: tensor<4x8x3xf32>, %dy: tensor<4x6x4xf32>) {
  // expected-error @below {{C1: the result needs the rank of the input or one more}}
  %0 = nn.conv_filter_grad %x, %dy strides = [1] padding = [0] to [0] dilations = [1] groups = 1 : tensor<4x8x3xf32>, tensor<4x6x4xf32> -> tensor<3x4xf32>
  return
}

// -----

func.func @conv_filter_grad_c5(%x: tensor<4x8x3xf32>, %dy: tensor<4x6x4xf32>) {
  // expected-error @below {{C5: 3 parts do not divide a batch of 4}}
  %0 = nn.conv_filter_grad %x, %dy strides = [1] padding = [0] to [0] dilations = [1] groups = 1 : tensor<4x8x3xf32>, tensor<4x6x4xf32> -> tensor<3x3x3x4xf32>
  return
}

// -----

func.func @max_pool_c4(%x: tensor<1x4x3xf32>) {
  // expected-error @below {{C4: window 0 of dimension 0 lies outside the input}}
  %0, %1 = nn.max_pool %x window = [2] strides = [1] padding = [3] to [0] overhang = [0] dilations = [1] : tensor<1x4x3xf32> -> tensor<1x6x3xf32>, tensor<1x6x3xi8>
  return
}

// -----

func.func @max_pool_c5(%x: tensor<1x300x3xf32>) {
  // expected-error @below {{C5: taps are 'i8' but must be 'i32' for windows of 129}}
  %0, %1 = nn.max_pool %x window = [129] strides = [1] padding = [0] to [0] overhang = [0] dilations = [1] : tensor<1x300x3xf32> -> tensor<1x172x3xf32>, tensor<1x172x3xi8>
  return
}

// -----

func.func @max_pool_c5_small(%x: tensor<1x4x3xf32>) {
  // expected-error @below {{C5: taps are 'i32' but must be 'i8' for windows of 2}}
  %0, %1 = nn.max_pool %x window = [2] strides = [2] padding = [0] to [0] overhang = [0] dilations = [1] : tensor<1x4x3xf32> -> tensor<1x2x3xf32>, tensor<1x2x3xi32>
  return
}

// -----

func.func @max_pool_grad_c5(%g: tensor<1x2x3xf32>, %t: tensor<1x2x3xi32>) {
  // expected-error @below {{C5: taps are 'i32' but must be 'i8' for windows of 2}}
  %0 = nn.max_pool_grad %g, %t window = [2] strides = [2] padding = [0] to [0] overhang = [0] dilations = [1] : tensor<1x2x3xf32>, tensor<1x2x3xi32> -> tensor<1x4x3xf32>
  return
}

// -----

func.func @arg_sort_c1(%x: tensor<2x3xf32>) {
  // expected-error @below {{C1: axis 2 is not in [0, 2)}}
  %0 = nn.arg_sort %x axis = 2 : tensor<2x3xf32> -> tensor<2x3xi64>
  return
}

// -----

func.func @arg_sort_c2(%x: tensor<2x3xf32>) {
  // expected-error @below {{C2: result is 'tensor<2x4xi64>' but must be 'tensor<2x3xi64>'}}
  %0 = nn.arg_sort %x axis = 1 : tensor<2x3xf32> -> tensor<2x4xi64>
  return
}

// -----

func.func @random_c1(%step: tensor<1xi64>) {
  // expected-error @below {{C1: step must have rank 0}}
  %0, %1 = nn.random %step key = 7 : tensor<1xi64> -> tensor<4xi32>
  return
}

// -----

func.func @random_c2(%step: tensor<i64>) {
  // expected-error @below {{C2: 4294967298 elements are more than 2^32}}
  %0, %1 = nn.random %step key = 7 : tensor<i64> -> tensor<2147483649x2xi32>
  return
}

// -----

func.func @random_c3(%step: tensor<i64>) {
  // expected-error @below {{C3: key 4294967296 does not fit 32 bits}}
  %0, %1 = nn.random %step key = 4294967296 : tensor<i64> -> tensor<4xi32>
  return
}

// -----

func.func @scan_c1(%x: tensor<2xf32>) {
  // expected-error @below {{C1: trip count 0 is below 1}}
  %0 = nn.scan 0 carry(%x) over() with() : (tensor<2xf32>) -> (tensor<2xf32>) {
  ^bb0(%a: tensor<2xf32>):
    nn.yield %a : tensor<2xf32>
  }
  return
}

// -----

func.func @scan_c2_slices(%x: tensor<2x3xf32>) {
  // expected-error @below {{C2: sequence 0 of type 'tensor<2x3xf32>' does not have 4 slices}}
  %0 = nn.scan 4 carry() over(%x) with() : (tensor<2x3xf32>) -> (tensor<4x3xf32>) {
  ^bb0(%a: tensor<3xf32>):
    nn.yield %a : tensor<3xf32>
  }
  return
}

// -----

func.func @scan_c2_arguments(%x: tensor<4x3xf32>) {
  // expected-error @below {{C2: the body's arguments do not have the types of carried values, slices and invariants}}
  %0 = nn.scan 4 carry() over(%x) with() : (tensor<4x3xf32>) -> (tensor<4x4x3xf32>) {
  ^bb0(%a: tensor<4x3xf32>):
    nn.yield %a : tensor<4x3xf32>
  }
  return
}

// -----

func.func @scan_c3(%x: tensor<4x3xf32>) {
  // expected-error @below {{C3: result 0 has type 'tensor<5x3xf32>', the body yields 'tensor<3xf32>'}}
  %0 = nn.scan 4 carry() over(%x) with() : (tensor<4x3xf32>) -> (tensor<5x3xf32>) {
  ^bb0(%a: tensor<3xf32>):
    nn.yield %a : tensor<3xf32>
  }
  return
}
