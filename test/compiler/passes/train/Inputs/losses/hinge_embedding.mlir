// Losses and gradients in float64, written by make_torch_references.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func private @hinge_embedding(
  tensor<3x5xf64> {test.value = dense<[[0.0, 1.0, 0.0, 1.0, 0.5], [0.219, 1.105, 1.57, 1.497, 3.27], [0.546, 2.467, 1.917, 3.2, 0.406]]> : tensor<3x5xf64>, test.gradient = dense<[[0.06666666666666667, 0.06666666666666667, -0.06666666666666667, 0.0, -0.06666666666666667], [-0.06666666666666667, 0.06666666666666667, 0.0, 0.0, 0.06666666666666667], [0.06666666666666667, 0.0, 0.0, 0.0, -0.06666666666666667]]> : tensor<3x5xf64>},
  tensor<3x5xf64> {test.value = dense<[[1.0, 1.0, -1.0, -1.0, -1.0], [-1.0, 1.0, -1.0, -1.0, 1.0], [1.0, -1.0, -1.0, -1.0, -1.0]]> : tensor<3x5xf64>})
  attributes {test.loss = "hinge_embedding", test.result = 0.5863999999999999 : f64}
func.func private @hinge_embedding_margin(
  tensor<3x5xf64> {test.value = dense<[[0.0, 1.0, 0.0, 1.0, 0.5], [0.219, 1.105, 1.57, 1.497, 3.27], [0.546, 2.467, 1.917, 3.2, 0.406]]> : tensor<3x5xf64>, test.gradient = dense<[[0.06666666666666667, 0.06666666666666667, -0.06666666666666667, 0.0, 0.0], [-0.06666666666666667, 0.06666666666666667, 0.0, 0.0, 0.06666666666666667], [0.06666666666666667, 0.0, 0.0, 0.0, -0.06666666666666667]]> : tensor<3x5xf64>},
  tensor<3x5xf64> {test.value = dense<[[1.0, 1.0, -1.0, -1.0, -1.0], [-1.0, 1.0, -1.0, -1.0, 1.0], [1.0, -1.0, -1.0, -1.0, -1.0]]> : tensor<3x5xf64>})
  attributes {test.loss = "hinge_embedding:margin=0.5", test.result = 0.4530666666666667 : f64}
func.func private @hinge_embedding_sum(
  tensor<3x5xf64> {test.value = dense<[[0.0, 1.0, 0.0, 1.0, 0.5], [0.219, 1.105, 1.57, 1.497, 3.27], [0.546, 2.467, 1.917, 3.2, 0.406]]> : tensor<3x5xf64>, test.gradient = dense<[[1.0, 1.0, -1.0, 0.0, -1.0], [0.0, 1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0, -1.0]]> : tensor<3x5xf64>},
  tensor<3x5xf64> {test.value = dense<[[1.0, 1.0, -1.0, -1.0, -1.0], [0.0, 2.0, -1.0, -1.0, 1.0], [1.0, -1.0, -1.0, -1.0, -1.0]]> : tensor<3x5xf64>})
  attributes {test.loss = "hinge_embedding:reduction=sum", test.result = 9.014999999999999 : f64}
