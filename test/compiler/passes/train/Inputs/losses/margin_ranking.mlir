// Losses and gradients in float64, written by make_torch_references.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func private @margin_ranking(
  tensor<7xf64> {test.value = dense<[-1.604, -2.649, -0.497, 0.841, 2.272, 0.219, -1.105]> : tensor<7xf64>, test.gradient = dense<[-0.14285714285714285, 0.0, -0.14285714285714285, 0.14285714285714285, -0.0, 0.14285714285714285, -0.07142857142857142]> : tensor<7xf64>},
  tensor<7xf64> {test.value = dense<[-1.57, 1.497, 3.27, 0.546, -2.467, -1.917, 3.2]> : tensor<7xf64>, test.gradient = dense<[0.14285714285714285, -0.0, 0.14285714285714285, -0.14285714285714285, 0.0, -0.14285714285714285, 0.07142857142857142]> : tensor<7xf64>},
  tensor<7xf64> {test.value = dense<[1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 0.5]> : tensor<7xf64>})
  attributes {test.loss = "margin_ranking", test.result = 1.1977857142857142 : f64}
func.func private @margin_ranking_ties(
  tensor<7xf64> {test.value = dense<[2.0, 1.5, -0.497, 0.841, 2.272, 0.219, -1.105]> : tensor<7xf64>, test.gradient = dense<[-0.0, 0.14285714285714285, -0.14285714285714285, 0.14285714285714285, -0.0, 0.14285714285714285, -0.07142857142857142]> : tensor<7xf64>},
  tensor<7xf64> {test.value = dense<[2.0, 1.0, 3.27, 0.546, -2.467, -1.917, 3.2]> : tensor<7xf64>, test.gradient = dense<[0.0, -0.14285714285714285, 0.14285714285714285, -0.14285714285714285, 0.0, -0.14285714285714285, 0.07142857142857142]> : tensor<7xf64>},
  tensor<7xf64> {test.value = dense<[1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 0.5]> : tensor<7xf64>})
  attributes {test.loss = "margin_ranking", test.result = 1.264357142857143 : f64}
func.func private @margin_ranking_margin(
  tensor<7xf64> {test.value = dense<[2.0, 1.5, -0.497, 0.841, 2.272, 0.219, -1.105]> : tensor<7xf64>, test.gradient = dense<[0.14285714285714285, -0.0, 0.0, -0.14285714285714285, 0.14285714285714285, -0.0, 0.0]> : tensor<7xf64>},
  tensor<7xf64> {test.value = dense<[2.0, 1.0, 3.27, 0.546, -2.467, -1.917, 3.2]> : tensor<7xf64>, test.gradient = dense<[-0.14285714285714285, 0.0, -0.0, 0.14285714285714285, -0.14285714285714285, 0.0, -0.0]> : tensor<7xf64>},
  tensor<7xf64> {test.value = dense<[-1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -0.5]> : tensor<7xf64>})
  attributes {test.loss = "margin_ranking:margin=0.5", test.result = 0.8491428571428571 : f64}
func.func private @margin_ranking_below(
  tensor<7xf64> {test.value = dense<[2.0, 1.5, -0.497, 0.841, 2.272, 0.219, -1.105]> : tensor<7xf64>, test.gradient = dense<[-0.0, 0.0, -0.14285714285714285, 0.0, -0.0, 0.14285714285714285, -0.07142857142857142]> : tensor<7xf64>},
  tensor<7xf64> {test.value = dense<[2.0, 1.0, 3.27, 0.546, -2.467, -1.917, 3.2]> : tensor<7xf64>, test.gradient = dense<[0.0, -0.0, 0.14285714285714285, -0.0, 0.0, -0.14285714285714285, 0.07142857142857142]> : tensor<7xf64>},
  tensor<7xf64> {test.value = dense<[1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 0.5]> : tensor<7xf64>})
  attributes {test.loss = "margin_ranking:margin=-0.5", test.result = 0.9365 : f64}
func.func private @margin_ranking_table(
  tensor<2x3xf64> {test.value = dense<[[0.406, -3.464, -0.167], [-2.326, -1.259, -0.976]]> : tensor<2x3xf64>, test.gradient = dense<[[0.16666666666666666, 0.0, 0.0], [0.0, 0.0, -0.16666666666666666]]> : tensor<2x3xf64>},
  tensor<2x3xf64> {test.value = dense<[[-1.427, 1.107, -0.126], [-1.179, 0.819, 1.66]]> : tensor<2x3xf64>, test.gradient = dense<[[-0.16666666666666666, -0.0, -0.0], [-0.0, -0.0, 0.16666666666666666]]> : tensor<2x3xf64>},
  tensor<2x3xf64> {test.value = dense<[[-1.0, -1.0, -1.0], [-1.0, -1.0, 1.0]]> : tensor<2x3xf64>})
  attributes {test.loss = "margin_ranking", test.result = 0.7448333333333333 : f64}
