// RUN: ortc-opt %s -split-input-file -verify-diagnostics
// Every message of a verifier of the nn dialect that invalid.mlir does not have; breaks when one is lost or changes.

func.func @broadcast_c3(%x: tensor<2xf32>) {
  // expected-error @below {{C3: element types differ}}
  %0 = nn.broadcast %x dims = [0] : tensor<2xf32> -> tensor<2xf64>
  return
}

// -----

func.func @transpose_c2(%x: tensor<2x3xf32>) {
  // expected-error @below {{C2: result is 'tensor<2x3xf32>' but must be 'tensor<3x2xf32>'}}
  %0 = nn.transpose %x perm = [1, 0] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @slice_c1_entries(%x: tensor<2x3xf32>) {
  // expected-error @below {{C1: starts and strides need 2 entries}}
  %0 = nn.slice %x starts = [0] strides = [1, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @slice_c1_start(%x: tensor<4xf32>) {
  // expected-error @below {{C1: start -1 or stride 1 of dimension 0 is too small}}
  %0 = nn.slice %x starts = [-1] strides = [1] : tensor<4xf32> -> tensor<2xf32>
  return
}

// -----

func.func @slice_c1_stride(%x: tensor<4xf32>) {
  // expected-error @below {{C1: start 0 or stride 0 of dimension 0 is too small}}
  %0 = nn.slice %x starts = [0] strides = [0] : tensor<4xf32> -> tensor<2xf32>
  return
}

// -----

func.func @slice_c3_rank(%x: tensor<4xf32>) {
  // expected-error @below {{C3: ranks and element types must be equal}}
  %0 = nn.slice %x starts = [0] strides = [1] : tensor<4xf32> -> tensor<2x1xf32>
  return
}

// -----

func.func @slice_c3_size(%x: tensor<4xf32>) {
  // expected-error @below {{C3: result dimension 0 is larger than the input's}}
  %0 = nn.slice %x starts = [0] strides = [1] : tensor<4xf32> -> tensor<5xf32>
  return
}

// -----

func.func @pad_c1_entries(%x: tensor<2x3xf32>, %v: tensor<f32>) {
  // expected-error @below {{C1: low, high and interior need 2 entries}}
  %0 = nn.pad %x, %v low = [1] high = [0, 0] interior = [0, 0] : tensor<2x3xf32>, tensor<f32> -> tensor<3x3xf32>
  return
}

// -----

func.func @pad_c2(%x: tensor<4xf32>, %v: tensor<f32>) {
  // expected-error @below {{C2: result is 'tensor<9xf32>' but must be 'tensor<10xf32>'}}
  %0 = nn.pad %x, %v low = [1] high = [2] interior = [1] : tensor<4xf32>, tensor<f32> -> tensor<9xf32>
  return
}

// -----

func.func @pad_c3(%x: tensor<4xf32>, %v: tensor<f64>) {
  // expected-error @below {{C3: the value must have rank 0 and element type 'f32'}}
  %0 = nn.pad %x, %v low = [1] high = [0] interior = [0] : tensor<4xf32>, tensor<f64> -> tensor<5xf32>
  return
}

// -----

func.func @concat_c1() {
  // expected-error @below {{C1: needs at least one input}}
  %0 = "nn.concat"() {axis = 0 : i64} : () -> tensor<2xf32>
  return
}

// -----

func.func @concat_c1_axis(%x: tensor<2x3xf32>) {
  // expected-error @below {{C1: axis 2 is not in [0, 2)}}
  %0 = nn.concat %x axis = 2 : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @concat_c2_rank(%x: tensor<2x3xf32>, %y: tensor<3xf32>) {
  // expected-error @below {{C2: inputs differ in rank or element type}}
  %0 = nn.concat %x, %y axis = 0 : tensor<2x3xf32>, tensor<3xf32> -> tensor<3x3xf32>
  return
}

// -----

func.func @concat_c3(%x: tensor<2x3xf32>) {
  // expected-error @below {{C3: result is 'tensor<3x3xf32>' but must be 'tensor<4x3xf32>'}}
  %0 = nn.concat %x, %x axis = 0 : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<3x3xf32>
  return
}

// -----

func.func @reverse_c1(%x: tensor<2x3xf32>) {
  // expected-error @below {{C1: axes must be strictly increasing and below the rank 2}}
  %0 = nn.reverse %x axes = [1, 0] : tensor<2x3xf32>
  return
}

// -----

func.func @iota_c1() {
  // expected-error @below {{C1: axis -1 is not in [0, 1)}}
  %0 = nn.iota axis = -1 : tensor<4xi64>
  return
}

// -----

func.func @reduce_c2(%x: tensor<2x3xf32>) {
  // expected-error @below {{C2: result is 'tensor<3xf32>' but must be 'tensor<2xf32>'}}
  %0 = nn.reduce sum %x axes = [1] : tensor<2x3xf32> -> tensor<3xf32>
  return
}

// -----

func.func @arg_reduce_c1_kind(%x: tensor<2x3xf32>) {
  // expected-error @below {{C1: kind must be max or min}}
  %0 = nn.arg_reduce sum %x axis = 1 : tensor<2x3xf32> -> tensor<2xi64>
  return
}

// -----

func.func @arg_reduce_c1_axis(%x: tensor<2x3xf32>) {
  // expected-error @below {{C1: axis 2 is not in [0, 2)}}
  %0 = nn.arg_reduce max %x axis = 2 : tensor<2x3xf32> -> tensor<2xi64>
  return
}

// -----

func.func @arg_reduce_c2(%x: tensor<2x3xf32>) {
  // expected-error @below {{C2: result is 'tensor<3xi64>' but must be 'tensor<2xi64>'}}
  %0 = nn.arg_reduce max %x axis = 1 : tensor<2x3xf32> -> tensor<3xi64>
  return
}

// -----

func.func @arg_sort_c1_size(%x: tensor<2147483648xf32>) {
  // expected-error @below {{C1: 2147483648 elements are more than can be sorted}}
  %0 = nn.arg_sort %x axis = 0 : tensor<2147483648xf32> -> tensor<4xi64>
  return
}

// -----

func.func @moments_c1_empty(%x: tensor<2x3xf32>) {
  // expected-error @below {{C1: axes must not be empty}}
  %0, %1 = nn.moments %x axes = [] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @moments_c1_axes(%x: tensor<2x3xf32>) {
  // expected-error @below {{C1: axes must be strictly increasing and below the rank 2}}
  %0, %1 = nn.moments %x axes = [2] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @moments_c2(%x: tensor<2x3xf32>) {
  // expected-error @below {{C2: result is 'tensor<3xf32>' but must be 'tensor<2xf32>'}}
  %0, %1 = nn.moments %x axes = [1] : tensor<2x3xf32> -> tensor<3xf32>
  return
}

// -----

func.func @cumsum_c1(%x: tensor<2x3xf32>) {
  // expected-error @below {{C1: axis 2 is not in [0, 2)}}
  %0 = nn.cumsum %x axis = 2 : tensor<2x3xf32>
  return
}

// -----

func.func @softmax_c1(%x: tensor<2x3xf32>) {
  // expected-error @below {{C1: axis 2 is not in [0, 2)}}
  %0 = nn.softmax %x axis = 2 : tensor<2x3xf32>
  return
}

// -----

func.func @log_softmax_c1(%x: tensor<2x3xf32>) {
  // expected-error @below {{C1: axis 2 is not in [0, 2)}}
  %0 = nn.log_softmax %x axis = 2 : tensor<2x3xf32>
  return
}

// -----

func.func @dot_c1(%a: tensor<2x3xf32>, %b: tensor<3x5xf32>) {
  // expected-error @below {{C1: batch and contracted dimensions must be distinct, in range and equally many on both sides}}
  %0 = nn.dot %a, %b batch = [] x [] contract = [1] x [] : tensor<2x3xf32>, tensor<3x5xf32> -> tensor<2x5xf32>
  return
}

// -----

func.func @dot_c1_distinct(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>) {
  // expected-error @below {{C1: batch and contracted dimensions must be distinct, in range and equally many on both sides}}
  %0 = nn.dot %a, %b batch = [1] x [0] contract = [1] x [0] : tensor<2x3xf32>, tensor<3x2xf32> -> tensor<3x2x2xf32>
  return
}

// -----

func.func @dot_c3(%a: tensor<2x3xf32>, %b: tensor<3x5xf32>) {
  // expected-error @below {{C3: result is 'tensor<5x2xf32>' but must be 'tensor<2x5xf32>'}}
  %0 = nn.dot %a, %b batch = [] x [] contract = [1] x [0] : tensor<2x3xf32>, tensor<3x5xf32> -> tensor<5x2xf32>
  return
}

// -----

func.func @check_index_c1(%i: tensor<2xi64>) {
  // expected-error @below {{C1: the range [3, 3) is empty}}
  %0 = nn.check_index %i "label" in [3, 3] : tensor<2xi64>
  return
}

// -----

func.func @gather_c1(%x: tensor<2x3xf32>, %i: tensor<4xi64>) {
  // expected-error @below {{C1: axis 2 is not in [0, 2)}}
  %0 = nn.gather %x, %i axis = 2 : tensor<2x3xf32>, tensor<4xi64> -> tensor<2x4xf32>
  return
}

// -----

func.func @gather_c2(%x: tensor<2x3xf32>, %i: tensor<4xi64>) {
  // expected-error @below {{C2: result is 'tensor<4x2xf32>' but must be 'tensor<2x4xf32>'}}
  %0 = nn.gather %x, %i axis = 1 : tensor<2x3xf32>, tensor<4xi64> -> tensor<4x2xf32>
  return
}

// -----

func.func @scatter_add_c1(%i: tensor<4xi64>, %u: tensor<4x3xf32>) {
  // expected-error @below {{C1: axis 2 is not in [0, 2)}}
  %0 = nn.scatter_add %i, %u axis = 2 : tensor<4xi64>, tensor<4x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @scatter_add_c2(%i: tensor<4xi64>, %u: tensor<5x3xf32>) {
  // expected-error @below {{C2: updates are 'tensor<5x3xf32>' but must be 'tensor<4x3xf32>'}}
  %0 = nn.scatter_add %i, %u axis = 0 : tensor<4xi64>, tensor<5x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @gather_elements_c1_rank(%x: tensor<2x3xf32>, %i: tensor<4xi64>) {
  // expected-error @below {{C1: ranks differ}}
  %0 = nn.gather_elements %x, %i axis = 0 : tensor<2x3xf32>, tensor<4xi64> -> tensor<4xf32>
  return
}

// -----

func.func @gather_elements_c1_axis(%x: tensor<2x3xf32>, %i: tensor<2x3xi64>) {
  // expected-error @below {{C1: axis -1 is not in [0, 2)}}
  %0 = nn.gather_elements %x, %i axis = -1 : tensor<2x3xf32>, tensor<2x3xi64> -> tensor<2x3xf32>
  return
}

// -----

func.func @gather_elements_c2(%x: tensor<2x3xf32>, %i: tensor<3x2xi64>) {
  // expected-error @below {{C2: indices exceed the input in dimension 0}}
  %0 = nn.gather_elements %x, %i axis = 1 : tensor<2x3xf32>, tensor<3x2xi64> -> tensor<3x2xf32>
  return
}

// -----

func.func @gather_elements_c2_result(%x: tensor<2x3xf32>, %i: tensor<2x2xi64>) {
  // expected-error @below {{C2: result is 'tensor<2x3xf32>' but must be 'tensor<2x2xf32>'}}
  %0 = nn.gather_elements %x, %i axis = 1 : tensor<2x3xf32>, tensor<2x2xi64> -> tensor<2x3xf32>
  return
}

// -----

func.func @scatter_elements_c1(%x: tensor<2x3xf32>, %i: tensor<2x3xi64>) {
  // expected-error @below {{C1: axis 2 is not in [0, 2)}}
  %0 = nn.scatter_elements add %x, %i, %x axis = 2 : tensor<2x3xf32>, tensor<2x3xi64>, tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @scatter_elements_c2(%x: tensor<2x3xf32>, %i: tensor<2x2xi64>) {
  // expected-error @below {{C2: updates need the indices' shape and the input's element type}}
  %0 = nn.scatter_elements add %x, %i, %x axis = 1 : tensor<2x3xf32>, tensor<2x2xi64>, tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @conv_c1_rank(%x: tensor<8x3xf32>, %w: tensor<3x4xf32>) {
  // expected-error @below {{C1: input, filter and output need rank 3 to 5, not 2}}
  %0 = nn.conv %x, %w strides = [] padding = [] to [] dilations = [] groups = 1 : tensor<8x3xf32>, tensor<3x4xf32> -> tensor<8x4xf32>
  return
}

// -----

func.func @conv_c1_entries(%x: tensor<1x8x3xf32>, %w: tensor<3x3x4xf32>) {
  // expected-error @below {{C1: window attributes need 1 entry}}
  %0 = nn.conv %x, %w strides = [1, 1] padding = [0] to [0] dilations = [1] groups = 1 : tensor<1x8x3xf32>, tensor<3x3x4xf32> -> tensor<1x6x4xf32>
  return
}

// -----

func.func @conv_c1_values(%x: tensor<1x8x3xf32>, %w: tensor<3x3x4xf32>) {
  // expected-error @below {{C1: strides and dilations must be positive, paddings not negative}}
  %0 = nn.conv %x, %w strides = [0] padding = [0] to [0] dilations = [1] groups = 1 : tensor<1x8x3xf32>, tensor<3x3x4xf32> -> tensor<1x6x4xf32>
  return
}

// -----

func.func @conv_c4(%x: tensor<1x8x3xf32>, %w: tensor<3x3x4xf32>) {
  // expected-error @below {{C4: batch sizes, features or element types differ}}
  %0 = nn.conv %x, %w strides = [1] padding = [0] to [0] dilations = [1] groups = 1 : tensor<1x8x3xf32>, tensor<3x3x4xf32> -> tensor<2x6x4xf32>
  return
}

// -----

func.func @conv_input_grad_c2(%dy: tensor<1x6x4xf32>, %w: tensor<3x3x4xf32>) {
  // expected-error @below {{C2: spatial dimension 0 of the output is 6 but must be 5}}
  %0 = nn.conv_input_grad %dy, %w strides = [1] padding = [0] to [0] dilations = [1] groups = 1 : tensor<1x6x4xf32>, tensor<3x3x4xf32> -> tensor<1x7x3xf32>
  return
}

// -----

func.func @conv_input_grad_c4(%dy: tensor<1x6x4xf32>, %w: tensor<3x3x4xf32>) {
  // expected-error @below {{C4: batch sizes, features or element types differ}}
  %0 = nn.conv_input_grad %dy, %w strides = [1] padding = [0] to [0] dilations = [1] groups = 1 : tensor<1x6x4xf32>, tensor<3x3x4xf32> -> tensor<2x8x3xf32>
  return
}

// -----

func.func @max_pool_c1_rank(%x: tensor<4x3xf32>) {
  // expected-error @below {{C1: input and output need rank 3 to 5, not 2}}
  %0, %1 = nn.max_pool %x window = [] strides = [] padding = [] to [] overhang = [] dilations = [] : tensor<4x3xf32> -> tensor<4x3xf32>, tensor<4x3xi8>
  return
}

// -----

func.func @max_pool_c1_entries(%x: tensor<1x4x3xf32>) {
  // expected-error @below {{C1: window attributes need 1 entry}}
  %0, %1 = nn.max_pool %x window = [2] strides = [2, 2] padding = [0] to [0] overhang = [0] dilations = [1] : tensor<1x4x3xf32> -> tensor<1x2x3xf32>, tensor<1x2x3xi8>
  return
}

// -----

func.func @max_pool_c1_values(%x: tensor<1x4x3xf32>) {
  // expected-error @below {{C1: window, strides and dilations must be positive, the others not negative}}
  %0, %1 = nn.max_pool %x window = [2] strides = [2] padding = [0] to [0] overhang = [-1] dilations = [1] : tensor<1x4x3xf32> -> tensor<1x2x3xf32>, tensor<1x2x3xi8>
  return
}

// -----

func.func @max_pool_c2(%x: tensor<1x4x3xf32>) {
  // expected-error @below {{C2: spatial dimension 0 of the output is 3 but must be 2}}
  %0, %1 = nn.max_pool %x window = [2] strides = [2] padding = [0] to [0] overhang = [0] dilations = [1] : tensor<1x4x3xf32> -> tensor<1x3x3xf32>, tensor<1x3x3xi8>
  return
}

// -----

func.func @max_pool_c3(%x: tensor<1x4x3xf32>) {
  // expected-error @below {{C3: batch, channels or element types differ}}
  %0, %1 = nn.max_pool %x window = [2] strides = [2] padding = [0] to [0] overhang = [0] dilations = [1] : tensor<1x4x3xf32> -> tensor<1x2x5xf32>, tensor<1x2x5xi8>
  return
}

// -----

func.func @max_pool_c3_taps(%x: tensor<1x4x3xf32>) {
  // expected-error @below {{C3: result and taps differ in shape}}
  %0, %1 = nn.max_pool %x window = [2] strides = [2] padding = [0] to [0] overhang = [0] dilations = [1] : tensor<1x4x3xf32> -> tensor<1x2x3xf32>, tensor<1x3x3xi8>
  return
}

// -----

func.func @max_pool_grad_c3_taps(%g: tensor<1x2x3xf32>, %t: tensor<1x3x3xi8>) {
  // expected-error @below {{C3: gradient and taps differ in shape}}
  %0 = nn.max_pool_grad %g, %t window = [2] strides = [2] padding = [0] to [0] overhang = [0] dilations = [1] : tensor<1x2x3xf32>, tensor<1x3x3xi8> -> tensor<1x4x3xf32>
  return
}

// -----

func.func @avg_pool_c2(%x: tensor<1x4x3xf32>) {
  // expected-error @below {{C2: spatial dimension 0 of the output is 3 but must be 2}}
  %0 = nn.avg_pool %x window = [2] strides = [2] padding = [0] to [0] overhang = [0] dilations = [1] : tensor<1x4x3xf32> -> tensor<1x3x3xf32>
  return
}

// -----

func.func @avg_pool_grad_c3(%g: tensor<1x2x3xf32>) {
  // expected-error @below {{C3: batch, channels or element types differ}}
  %0 = nn.avg_pool_grad %g window = [2] strides = [2] padding = [0] to [0] overhang = [0] dilations = [1] : tensor<1x2x3xf32> -> tensor<2x4x3xf32>
  return
}

// -----

func.func @scan_c3_end(%x: tensor<2xf32>) {
  // expected-error @below {{C3: the body does not end with nn.yield}}
  %0 = nn.scan 2 carry(%x) over() with() : (tensor<2xf32>) -> (tensor<2xf32>) {
  ^bb0(%a: tensor<2xf32>):
    %b = arith.negf %a : tensor<2xf32>
  }
  return
}

// -----

func.func @scan_c3_count(%x: tensor<2xf32>) {
  // expected-error @below {{C3: the body yields 2 values for 1 results}}
  %0 = nn.scan 2 carry(%x) over() with() : (tensor<2xf32>) -> (tensor<2xf32>) {
  ^bb0(%a: tensor<2xf32>):
    nn.yield %a, %a : tensor<2xf32>, tensor<2xf32>
  }
  return
}

// -----

func.func @unpack_c1(%q: tensor<6x4x8xi8>, %s: tensor<6x2xf32>) {
  // expected-error @below {{C1: a group has 8 bytes, not 32 or 16}}
  %0 = nn.unpack %q, %s : tensor<6x4x8xi8>, tensor<6x2xf32> -> tensor<6x128xf32>
  return
}

// -----

func.func @unpack_c2(%q: tensor<6x4x16xi8>, %s: tensor<6x3xf32>) {
  // expected-error @below {{C2: scales of 'tensor<6x3xf32>' do not fit data of 'tensor<6x4x16xi8>'}}
  %0 = nn.unpack %q, %s : tensor<6x4x16xi8>, tensor<6x3xf32> -> tensor<6x128xf32>
  return
}

// -----

func.func @unpack_c3(%q: tensor<6x4x16xi8>, %s: tensor<6x2xf32>) {
  // expected-error @below {{C3: the result is 'tensor<6x96xf32>', not 6 rows of 128}}
  %0 = nn.unpack %q, %s : tensor<6x4x16xi8>, tensor<6x2xf32> -> tensor<6x96xf32>
  return
}

// -----

func.func @scatter_c1(%x: tensor<5x4xf32>, %i: tensor<2x1xi32>, %u: tensor<2x1x4xf32>) {
  // expected-error @below {{C1: indices have rank 2, the input is 'tensor<5x4xf32>'}}
  %0 = nn.scatter %x, %i, %u : tensor<5x4xf32>, tensor<2x1xi32>, tensor<2x1x4xf32>
  return
}

// -----

func.func @scatter_c2(%x: tensor<5x4xf32>, %i: tensor<2xi32>, %u: tensor<2x3xf32>) {
  // expected-error @below {{C2: updates are 'tensor<2x3xf32>' but must be 'tensor<2x4xf32>'}}
  %0 = nn.scatter %x, %i, %u : tensor<5x4xf32>, tensor<2xi32>, tensor<2x3xf32>
  return
}

// -----

func.func @scan_c4(%x: tensor<2xf32>, %n: tensor<i32>) {
  // expected-error @below {{C4: a limit of a loop that runs downwards}}
  %0 = nn.scan 3 reverse carry(%x) over() with() limit(%n) : (tensor<2xf32>, tensor<i32>) -> (tensor<2xf32>) {
  ^bb0(%a: tensor<2xf32>):
    nn.yield %a : tensor<2xf32>
  }
  return
}
