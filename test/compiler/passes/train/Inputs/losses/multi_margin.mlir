// Losses and gradients in float64, written by make_torch_references.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func private @multi_margin(
  tensor<4x5xf64> {test.value = dense<[[2.0, 1.0, 1.0, 2.0, 0.0], [0.5, 0.5, 0.5, 0.5, 0.5], [0.5, -2.5, -2.0, 3.25, 0.5], [-3.5, -0.25, -2.25, -1.25, -1.0]]> : tensor<4x5xf64>, test.gradient = dense<[[-0.05, 0.0, 0.0, 0.05, 0.0], [0.05, 0.05, 0.05, -0.2, 0.05], [0.05, 0.0, 0.0, 0.05, -0.1], [0.0, -0.05, 0.0, 0.0, 0.05]]> : tensor<4x5xf64>},
  tensor<4xi64> {test.value = dense<[0, 3, 4, 1]> : tensor<4xi64>})
  attributes {test.loss = "multi_margin", test.result = 0.5 : f64}
func.func private @multi_margin_squares(
  tensor<4x5xf64> {test.value = dense<[[2.0, 1.0, 1.0, 2.0, 0.0], [0.5, 0.5, 0.5, 0.5, 0.5], [0.5, -2.5, -2.0, 3.25, 0.5], [-3.5, -0.25, -2.25, -1.25, -1.0]]> : tensor<4x5xf64>, test.gradient = dense<[[-0.1, 0.0, 0.0, 0.1, 0.0], [0.1, 0.1, 0.1, -0.4, 0.1], [0.1, 0.0, 0.0, 0.375, -0.475], [0.0, -0.025, 0.0, 0.0, 0.025]]> : tensor<4x5xf64>},
  tensor<4xi64> {test.value = dense<[0, 3, 4, 1]> : tensor<4xi64>})
  attributes {test.loss = "multi_margin:p=2", test.result = 1.00625 : f64}
func.func private @multi_margin_margin(
  tensor<4x5xf64> {test.value = dense<[[2.0, 1.0, 1.0, 2.0, 0.0], [0.5, 0.5, 0.5, 0.5, 0.5], [0.5, -2.5, -2.0, 3.25, 0.5], [-3.5, -0.25, -2.25, -1.25, -1.0]]> : tensor<4x5xf64>, test.gradient = dense<[[-0.1, 0.0, 0.0, 0.1, 0.0], [0.1, 0.1, 0.1, -0.4, 0.1], [0.1, 0.0, 0.0, 1.2000000000000002, -1.3000000000000003], [0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<4x5xf64>},
  tensor<4xi64> {test.value = dense<[0, 3, 4, 1]> : tensor<4xi64>})
  attributes {test.loss = "multi_margin:margin=0.25,p=2,reduction=sum", test.result = 1.875 : f64}
func.func private @multi_margin_one_sample(
  tensor<6xf64> {test.value = dense<[-1.427, 1.107, -0.126, -1.179, 0.819, 1.66]> : tensor<6xf64>, test.gradient = dense<[0.0, 0.16666666666666666, 0.16666666666666666, 0.0, -0.5, 0.16666666666666666]> : tensor<6xf64>},
  tensor<i64> {test.value = dense<4> : tensor<i64>})
  attributes {test.loss = "multi_margin", test.result = 0.5306666666666667 : f64}
func.func private @multi_margin_ignored(
  tensor<4x5xf64> {test.value = dense<[[2.0, 1.0, 1.0, 2.0, 0.0], [0.5, 0.5, 0.5, 0.5, 0.5], [0.5, -2.5, -2.0, 3.25, 0.5], [-3.5, -0.25, -2.25, -1.25, -1.0]]> : tensor<4x5xf64>, test.gradient = dense<[[-0.06666666666666667, 0.0, 0.0, 0.06666666666666667, 0.0], [0.06666666666666667, 0.06666666666666667, 0.06666666666666667, -0.26666666666666666, 0.06666666666666667], [0.0, 0.0, 0.0, 0.0, 0.0], [0.0, -0.06666666666666667, 0.0, 0.0, 0.06666666666666667]]> : tensor<4x5xf64>},
  tensor<4xi64> {test.value = dense<[0, 3, -100, 1]> : tensor<4xi64>})
  attributes {test.loss = "multi_margin", test.result = 0.35000000000000003 : f64}
func.func private @multi_margin_last_axis(
  tensor<2x3x4xf64> {test.value = dense<[[[-3.286, -0.513, -1.961, -0.346], [-2.579, 0.041, -0.076, -0.609], [-2.096, -0.792, -2.183, -2.71]], [[0.45, -2.219, 2.341, 1.433], [-3.996, 0.544, -2.203, 0.066], [0.087, -3.977, -0.467, -0.512]]]> : tensor<2x3x4xf64>, test.gradient = dense<[[[0.0, -0.041666666666666664, 0.0, 0.041666666666666664], [-0.125, 0.041666666666666664, 0.041666666666666664, 0.041666666666666664], [0.041666666666666664, 0.041666666666666664, -0.125, 0.041666666666666664]], [[0.0, 0.0, -0.041666666666666664, 0.041666666666666664], [0.0, 0.041666666666666664, -0.08333333333333333, 0.041666666666666664], [0.041666666666666664, -0.125, 0.041666666666666664, 0.041666666666666664]]]> : tensor<2x3x4xf64>},
  tensor<2x3xi64> {test.value = dense<[[1, 0, 2], [2, 2, 1]]> : tensor<2x3xi64>})
  attributes {test.loss = "multi_margin:axis=-1", test.result = 1.514916666666667 : f64}
