// Convolution, its gradients, pooling; 1 to 3 spatial dimensions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

func.func @conv_plain(%x: tensor<2x5x4x3xf64>, %w: tensor<3x2x3x2xf64>) -> tensor<2x4x4x2xf64> {
  %y = nn.conv %x, %w strides = [1, 1] padding = [1, 0] to [0, 1] dilations = [1, 1] groups = 1 : tensor<2x5x4x3xf64>, tensor<3x2x3x2xf64> -> tensor<2x4x4x2xf64>
  return %y : tensor<2x4x4x2xf64>
}

func.func @conv_input_grad_plain(%g: tensor<2x4x4x2xf64>, %w: tensor<3x2x3x2xf64>) -> tensor<2x5x4x3xf64> {
  %y = nn.conv_input_grad %g, %w strides = [1, 1] padding = [1, 0] to [0, 1] dilations = [1, 1] groups = 1 : tensor<2x4x4x2xf64>, tensor<3x2x3x2xf64> -> tensor<2x5x4x3xf64>
  return %y : tensor<2x5x4x3xf64>
}

func.func @conv_filter_grad_plain(%x: tensor<2x5x4x3xf64>, %g: tensor<2x4x4x2xf64>) -> tensor<3x2x3x2xf64> {
  %y = nn.conv_filter_grad %x, %g strides = [1, 1] padding = [1, 0] to [0, 1] dilations = [1, 1] groups = 1 : tensor<2x5x4x3xf64>, tensor<2x4x4x2xf64> -> tensor<3x2x3x2xf64>
  return %y : tensor<3x2x3x2xf64>
}

func.func @conv_strided(%x: tensor<1x7x6x2xf64>, %w: tensor<3x3x2x3xf64>) -> tensor<1x4x2x3xf64> {
  %y = nn.conv %x, %w strides = [2, 3] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<1x7x6x2xf64>, tensor<3x3x2x3xf64> -> tensor<1x4x2x3xf64>
  return %y : tensor<1x4x2x3xf64>
}

func.func @conv_input_grad_strided(%g: tensor<1x4x2x3xf64>, %w: tensor<3x3x2x3xf64>) -> tensor<1x7x6x2xf64> {
  %y = nn.conv_input_grad %g, %w strides = [2, 3] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<1x4x2x3xf64>, tensor<3x3x2x3xf64> -> tensor<1x7x6x2xf64>
  return %y : tensor<1x7x6x2xf64>
}

func.func @conv_filter_grad_strided(%x: tensor<1x7x6x2xf64>, %g: tensor<1x4x2x3xf64>) -> tensor<3x3x2x3xf64> {
  %y = nn.conv_filter_grad %x, %g strides = [2, 3] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<1x7x6x2xf64>, tensor<1x4x2x3xf64> -> tensor<3x3x2x3xf64>
  return %y : tensor<3x3x2x3xf64>
}

func.func @conv_dilated_grouped(%x: tensor<1x7x5x4xf64>, %w: tensor<2x2x2x6xf64>) -> tensor<1x5x3x6xf64> {
  %y = nn.conv %x, %w strides = [1, 2] padding = [0, 1] to [1, 1] dilations = [3, 2] groups = 2 : tensor<1x7x5x4xf64>, tensor<2x2x2x6xf64> -> tensor<1x5x3x6xf64>
  return %y : tensor<1x5x3x6xf64>
}

func.func @conv_input_grad_dilated_grouped(%g: tensor<1x5x3x6xf64>, %w: tensor<2x2x2x6xf64>) -> tensor<1x7x5x4xf64> {
  %y = nn.conv_input_grad %g, %w strides = [1, 2] padding = [0, 1] to [1, 1] dilations = [3, 2] groups = 2 : tensor<1x5x3x6xf64>, tensor<2x2x2x6xf64> -> tensor<1x7x5x4xf64>
  return %y : tensor<1x7x5x4xf64>
}

func.func @conv_filter_grad_dilated_grouped(%x: tensor<1x7x5x4xf64>, %g: tensor<1x5x3x6xf64>) -> tensor<2x2x2x6xf64> {
  %y = nn.conv_filter_grad %x, %g strides = [1, 2] padding = [0, 1] to [1, 1] dilations = [3, 2] groups = 2 : tensor<1x7x5x4xf64>, tensor<1x5x3x6xf64> -> tensor<2x2x2x6xf64>
  return %y : tensor<2x2x2x6xf64>
}

func.func @conv_depthwise(%x: tensor<1x5x5x3xf64>, %w: tensor<3x3x1x3xf64>) -> tensor<1x5x5x3xf64> {
  %y = nn.conv %x, %w strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 3 : tensor<1x5x5x3xf64>, tensor<3x3x1x3xf64> -> tensor<1x5x5x3xf64>
  return %y : tensor<1x5x5x3xf64>
}

func.func @conv_input_grad_depthwise(%g: tensor<1x5x5x3xf64>, %w: tensor<3x3x1x3xf64>) -> tensor<1x5x5x3xf64> {
  %y = nn.conv_input_grad %g, %w strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 3 : tensor<1x5x5x3xf64>, tensor<3x3x1x3xf64> -> tensor<1x5x5x3xf64>
  return %y : tensor<1x5x5x3xf64>
}

func.func @conv_filter_grad_depthwise(%x: tensor<1x5x5x3xf64>, %g: tensor<1x5x5x3xf64>) -> tensor<3x3x1x3xf64> {
  %y = nn.conv_filter_grad %x, %g strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 3 : tensor<1x5x5x3xf64>, tensor<1x5x5x3xf64> -> tensor<3x3x1x3xf64>
  return %y : tensor<3x3x1x3xf64>
}

func.func @conv_one_dimension(%x: tensor<2x7x2xf64>, %w: tensor<3x2x3xf64>) -> tensor<2x3x3xf64> {
  %y = nn.conv %x, %w strides = [2] padding = [1] to [0] dilations = [1] groups = 1 : tensor<2x7x2xf64>, tensor<3x2x3xf64> -> tensor<2x3x3xf64>
  return %y : tensor<2x3x3xf64>
}

func.func @conv_input_grad_one_dimension(%g: tensor<2x3x3xf64>, %w: tensor<3x2x3xf64>) -> tensor<2x7x2xf64> {
  %y = nn.conv_input_grad %g, %w strides = [2] padding = [1] to [0] dilations = [1] groups = 1 : tensor<2x3x3xf64>, tensor<3x2x3xf64> -> tensor<2x7x2xf64>
  return %y : tensor<2x7x2xf64>
}

func.func @conv_filter_grad_one_dimension(%x: tensor<2x7x2xf64>, %g: tensor<2x3x3xf64>) -> tensor<3x2x3xf64> {
  %y = nn.conv_filter_grad %x, %g strides = [2] padding = [1] to [0] dilations = [1] groups = 1 : tensor<2x7x2xf64>, tensor<2x3x3xf64> -> tensor<3x2x3xf64>
  return %y : tensor<3x2x3xf64>
}

func.func @conv_three_dimensions(%x: tensor<1x3x4x3x2xf64>, %w: tensor<2x2x2x2x2xf64>) -> tensor<1x3x2x3x2xf64> {
  %y = nn.conv %x, %w strides = [1, 2, 1] padding = [0, 1, 1] to [1, 0, 0] dilations = [1, 1, 1] groups = 1 : tensor<1x3x4x3x2xf64>, tensor<2x2x2x2x2xf64> -> tensor<1x3x2x3x2xf64>
  return %y : tensor<1x3x2x3x2xf64>
}

func.func @conv_input_grad_three_dimensions(%g: tensor<1x3x2x3x2xf64>, %w: tensor<2x2x2x2x2xf64>) -> tensor<1x3x4x3x2xf64> {
  %y = nn.conv_input_grad %g, %w strides = [1, 2, 1] padding = [0, 1, 1] to [1, 0, 0] dilations = [1, 1, 1] groups = 1 : tensor<1x3x2x3x2xf64>, tensor<2x2x2x2x2xf64> -> tensor<1x3x4x3x2xf64>
  return %y : tensor<1x3x4x3x2xf64>
}

func.func @conv_filter_grad_three_dimensions(%x: tensor<1x3x4x3x2xf64>, %g: tensor<1x3x2x3x2xf64>) -> tensor<2x2x2x2x2xf64> {
  %y = nn.conv_filter_grad %x, %g strides = [1, 2, 1] padding = [0, 1, 1] to [1, 0, 0] dilations = [1, 1, 1] groups = 1 : tensor<1x3x4x3x2xf64>, tensor<1x3x2x3x2xf64> -> tensor<2x2x2x2x2xf64>
  return %y : tensor<2x2x2x2x2xf64>
}

func.func @max_pool_plain(%x: tensor<2x4x6x3xf64>) -> tensor<2x2x3x3xf64> {
  %y, %i = nn.max_pool %x window = [2, 2] strides = [2, 2] padding = [0, 0] to [0, 0] overhang = [0, 0] dilations = [1, 1] : tensor<2x4x6x3xf64> -> tensor<2x2x3x3xf64>, tensor<2x2x3x3xi8>
  return %y : tensor<2x2x3x3xf64>
}

func.func @max_pool_grad_plain(%x: tensor<2x4x6x3xf64>, %g: tensor<2x2x3x3xf64>) -> tensor<2x4x6x3xf64> {
  %m, %i = nn.max_pool %x window = [2, 2] strides = [2, 2] padding = [0, 0] to [0, 0] overhang = [0, 0] dilations = [1, 1] : tensor<2x4x6x3xf64> -> tensor<2x2x3x3xf64>, tensor<2x2x3x3xi8>
  %y = nn.max_pool_grad %g, %i window = [2, 2] strides = [2, 2] padding = [0, 0] to [0, 0] overhang = [0, 0] dilations = [1, 1] : tensor<2x2x3x3xf64>, tensor<2x2x3x3xi8> -> tensor<2x4x6x3xf64>
  return %y : tensor<2x4x6x3xf64>
}

func.func @avg_pool_plain(%x: tensor<2x4x6x3xf64>) -> tensor<2x2x3x3xf64> {
  %y = nn.avg_pool %x window = [2, 2] strides = [2, 2] padding = [0, 0] to [0, 0] overhang = [0, 0] dilations = [1, 1] : tensor<2x4x6x3xf64> -> tensor<2x2x3x3xf64>
  return %y : tensor<2x2x3x3xf64>
}

func.func @avg_pool_grad_plain(%g: tensor<2x2x3x3xf64>) -> tensor<2x4x6x3xf64> {
  %y = nn.avg_pool_grad %g window = [2, 2] strides = [2, 2] padding = [0, 0] to [0, 0] overhang = [0, 0] dilations = [1, 1] : tensor<2x2x3x3xf64> -> tensor<2x4x6x3xf64>
  return %y : tensor<2x4x6x3xf64>
}

func.func @max_pool_overlapping(%x: tensor<1x5x7x2xf64>) -> tensor<1x3x4x2xf64> {
  %y, %i = nn.max_pool %x window = [3, 3] strides = [2, 2] padding = [1, 1] to [1, 1] overhang = [0, 0] dilations = [1, 1] : tensor<1x5x7x2xf64> -> tensor<1x3x4x2xf64>, tensor<1x3x4x2xi8>
  return %y : tensor<1x3x4x2xf64>
}

func.func @max_pool_grad_overlapping(%x: tensor<1x5x7x2xf64>, %g: tensor<1x3x4x2xf64>) -> tensor<1x5x7x2xf64> {
  %m, %i = nn.max_pool %x window = [3, 3] strides = [2, 2] padding = [1, 1] to [1, 1] overhang = [0, 0] dilations = [1, 1] : tensor<1x5x7x2xf64> -> tensor<1x3x4x2xf64>, tensor<1x3x4x2xi8>
  %y = nn.max_pool_grad %g, %i window = [3, 3] strides = [2, 2] padding = [1, 1] to [1, 1] overhang = [0, 0] dilations = [1, 1] : tensor<1x3x4x2xf64>, tensor<1x3x4x2xi8> -> tensor<1x5x7x2xf64>
  return %y : tensor<1x5x7x2xf64>
}

func.func @avg_pool_overlapping(%x: tensor<1x5x7x2xf64>) -> tensor<1x3x4x2xf64> {
  %y = nn.avg_pool %x window = [3, 3] strides = [2, 2] padding = [1, 1] to [1, 1] overhang = [0, 0] dilations = [1, 1] : tensor<1x5x7x2xf64> -> tensor<1x3x4x2xf64>
  return %y : tensor<1x3x4x2xf64>
}

func.func @avg_pool_grad_overlapping(%g: tensor<1x3x4x2xf64>) -> tensor<1x5x7x2xf64> {
  %y = nn.avg_pool_grad %g window = [3, 3] strides = [2, 2] padding = [1, 1] to [1, 1] overhang = [0, 0] dilations = [1, 1] : tensor<1x3x4x2xf64> -> tensor<1x5x7x2xf64>
  return %y : tensor<1x5x7x2xf64>
}

func.func @max_pool_overhang(%x: tensor<1x5x6x2xf64>) -> tensor<1x3x3x2xf64> {
  %y, %i = nn.max_pool %x window = [2, 3] strides = [2, 2] padding = [0, 1] to [0, 0] overhang = [1, 0] dilations = [1, 1] : tensor<1x5x6x2xf64> -> tensor<1x3x3x2xf64>, tensor<1x3x3x2xi8>
  return %y : tensor<1x3x3x2xf64>
}

func.func @max_pool_grad_overhang(%x: tensor<1x5x6x2xf64>, %g: tensor<1x3x3x2xf64>) -> tensor<1x5x6x2xf64> {
  %m, %i = nn.max_pool %x window = [2, 3] strides = [2, 2] padding = [0, 1] to [0, 0] overhang = [1, 0] dilations = [1, 1] : tensor<1x5x6x2xf64> -> tensor<1x3x3x2xf64>, tensor<1x3x3x2xi8>
  %y = nn.max_pool_grad %g, %i window = [2, 3] strides = [2, 2] padding = [0, 1] to [0, 0] overhang = [1, 0] dilations = [1, 1] : tensor<1x3x3x2xf64>, tensor<1x3x3x2xi8> -> tensor<1x5x6x2xf64>
  return %y : tensor<1x5x6x2xf64>
}

func.func @avg_pool_overhang(%x: tensor<1x5x6x2xf64>) -> tensor<1x3x3x2xf64> {
  %y = nn.avg_pool %x window = [2, 3] strides = [2, 2] padding = [0, 1] to [0, 0] overhang = [1, 0] dilations = [1, 1] : tensor<1x5x6x2xf64> -> tensor<1x3x3x2xf64>
  return %y : tensor<1x3x3x2xf64>
}

func.func @avg_pool_grad_overhang(%g: tensor<1x3x3x2xf64>) -> tensor<1x5x6x2xf64> {
  %y = nn.avg_pool_grad %g window = [2, 3] strides = [2, 2] padding = [0, 1] to [0, 0] overhang = [1, 0] dilations = [1, 1] : tensor<1x3x3x2xf64> -> tensor<1x5x6x2xf64>
  return %y : tensor<1x5x6x2xf64>
}

func.func @max_pool_dilated(%x: tensor<1x7x6x1xf64>) -> tensor<1x5x2x1xf64> {
  %y, %i = nn.max_pool %x window = [2, 2] strides = [1, 2] padding = [0, 0] to [0, 0] overhang = [0, 0] dilations = [2, 3] : tensor<1x7x6x1xf64> -> tensor<1x5x2x1xf64>, tensor<1x5x2x1xi8>
  return %y : tensor<1x5x2x1xf64>
}

func.func @max_pool_grad_dilated(%x: tensor<1x7x6x1xf64>, %g: tensor<1x5x2x1xf64>) -> tensor<1x7x6x1xf64> {
  %m, %i = nn.max_pool %x window = [2, 2] strides = [1, 2] padding = [0, 0] to [0, 0] overhang = [0, 0] dilations = [2, 3] : tensor<1x7x6x1xf64> -> tensor<1x5x2x1xf64>, tensor<1x5x2x1xi8>
  %y = nn.max_pool_grad %g, %i window = [2, 2] strides = [1, 2] padding = [0, 0] to [0, 0] overhang = [0, 0] dilations = [2, 3] : tensor<1x5x2x1xf64>, tensor<1x5x2x1xi8> -> tensor<1x7x6x1xf64>
  return %y : tensor<1x7x6x1xf64>
}

func.func @avg_pool_dilated(%x: tensor<1x7x6x1xf64>) -> tensor<1x5x2x1xf64> {
  %y = nn.avg_pool %x window = [2, 2] strides = [1, 2] padding = [0, 0] to [0, 0] overhang = [0, 0] dilations = [2, 3] : tensor<1x7x6x1xf64> -> tensor<1x5x2x1xf64>
  return %y : tensor<1x5x2x1xf64>
}

func.func @avg_pool_grad_dilated(%g: tensor<1x5x2x1xf64>) -> tensor<1x7x6x1xf64> {
  %y = nn.avg_pool_grad %g window = [2, 2] strides = [1, 2] padding = [0, 0] to [0, 0] overhang = [0, 0] dilations = [2, 3] : tensor<1x5x2x1xf64> -> tensor<1x7x6x1xf64>
  return %y : tensor<1x7x6x1xf64>
}

func.func @avg_pool_padding_counted(%x: tensor<1x5x5x2xf64>) -> tensor<1x3x3x2xf64> {
  %y = nn.avg_pool %x window = [3, 3] strides = [2, 2] padding = [1, 1] to [1, 1] overhang = [0, 0] dilations = [1, 1] count_include_pad : tensor<1x5x5x2xf64> -> tensor<1x3x3x2xf64>
  return %y : tensor<1x3x3x2xf64>
}

func.func @avg_pool_grad_padding_counted(%g: tensor<1x3x3x2xf64>) -> tensor<1x5x5x2xf64> {
  %y = nn.avg_pool_grad %g window = [3, 3] strides = [2, 2] padding = [1, 1] to [1, 1] overhang = [0, 0] dilations = [1, 1] count_include_pad : tensor<1x3x3x2xf64> -> tensor<1x5x5x2xf64>
  return %y : tensor<1x5x5x2xf64>
}

func.func @max_pool_one_dimension(%x: tensor<2x7x3xf64>) -> tensor<2x3x3xf64> {
  %y, %i = nn.max_pool %x window = [3] strides = [2] padding = [1] to [0] overhang = [0] dilations = [1] : tensor<2x7x3xf64> -> tensor<2x3x3xf64>, tensor<2x3x3xi8>
  return %y : tensor<2x3x3xf64>
}

func.func @max_pool_grad_one_dimension(%x: tensor<2x7x3xf64>, %g: tensor<2x3x3xf64>) -> tensor<2x7x3xf64> {
  %m, %i = nn.max_pool %x window = [3] strides = [2] padding = [1] to [0] overhang = [0] dilations = [1] : tensor<2x7x3xf64> -> tensor<2x3x3xf64>, tensor<2x3x3xi8>
  %y = nn.max_pool_grad %g, %i window = [3] strides = [2] padding = [1] to [0] overhang = [0] dilations = [1] : tensor<2x3x3xf64>, tensor<2x3x3xi8> -> tensor<2x7x3xf64>
  return %y : tensor<2x7x3xf64>
}

func.func @avg_pool_one_dimension(%x: tensor<2x7x3xf64>) -> tensor<2x3x3xf64> {
  %y = nn.avg_pool %x window = [3] strides = [2] padding = [1] to [0] overhang = [0] dilations = [1] : tensor<2x7x3xf64> -> tensor<2x3x3xf64>
  return %y : tensor<2x3x3xf64>
}

func.func @avg_pool_grad_one_dimension(%g: tensor<2x3x3xf64>) -> tensor<2x7x3xf64> {
  %y = nn.avg_pool_grad %g window = [3] strides = [2] padding = [1] to [0] overhang = [0] dilations = [1] : tensor<2x3x3xf64> -> tensor<2x7x3xf64>
  return %y : tensor<2x7x3xf64>
}

func.func @max_pool_three_dimensions(%x: tensor<1x3x4x3x2xf64>) -> tensor<1x2x2x3x2xf64> {
  %y, %i = nn.max_pool %x window = [2, 2, 2] strides = [1, 2, 1] padding = [0, 0, 1] to [0, 0, 0] overhang = [0, 0, 0] dilations = [1, 1, 1] : tensor<1x3x4x3x2xf64> -> tensor<1x2x2x3x2xf64>, tensor<1x2x2x3x2xi8>
  return %y : tensor<1x2x2x3x2xf64>
}

func.func @max_pool_grad_three_dimensions(%x: tensor<1x3x4x3x2xf64>, %g: tensor<1x2x2x3x2xf64>) -> tensor<1x3x4x3x2xf64> {
  %m, %i = nn.max_pool %x window = [2, 2, 2] strides = [1, 2, 1] padding = [0, 0, 1] to [0, 0, 0] overhang = [0, 0, 0] dilations = [1, 1, 1] : tensor<1x3x4x3x2xf64> -> tensor<1x2x2x3x2xf64>, tensor<1x2x2x3x2xi8>
  %y = nn.max_pool_grad %g, %i window = [2, 2, 2] strides = [1, 2, 1] padding = [0, 0, 1] to [0, 0, 0] overhang = [0, 0, 0] dilations = [1, 1, 1] : tensor<1x2x2x3x2xf64>, tensor<1x2x2x3x2xi8> -> tensor<1x3x4x3x2xf64>
  return %y : tensor<1x3x4x3x2xf64>
}

func.func @avg_pool_three_dimensions(%x: tensor<1x3x4x3x2xf64>) -> tensor<1x2x2x3x2xf64> {
  %y = nn.avg_pool %x window = [2, 2, 2] strides = [1, 2, 1] padding = [0, 0, 1] to [0, 0, 0] overhang = [0, 0, 0] dilations = [1, 1, 1] : tensor<1x3x4x3x2xf64> -> tensor<1x2x2x3x2xf64>
  return %y : tensor<1x2x2x3x2xf64>
}

func.func @avg_pool_grad_three_dimensions(%g: tensor<1x2x2x3x2xf64>) -> tensor<1x3x4x3x2xf64> {
  %y = nn.avg_pool_grad %g window = [2, 2, 2] strides = [1, 2, 1] padding = [0, 0, 1] to [0, 0, 0] overhang = [0, 0, 0] dilations = [1, 1, 1] : tensor<1x2x2x3x2xf64> -> tensor<1x3x4x3x2xf64>
  return %y : tensor<1x3x4x3x2xf64>
}

