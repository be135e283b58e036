// Parameters after some steps in float64, written by make_torch_references.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func private @adagrad(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.gradients = dense<[[[3.27, 0.546], [-2.467, -1.917], [3.2, 0.406]], [[-3.464, -0.167], [-2.326, -1.259], [-0.976, -1.427]], [[1.107, -0.126], [-1.179, 0.819], [1.66, -3.286]], [[-0.513, -1.961], [-0.346, -2.579], [0.041, -0.076]], [[-0.609, -2.096], [-0.792, -2.183], [-2.71, 0.45]]]> : tensor<5x3x2xf64>,
    test.expected = dense<[[-1.6067194756183556, -2.637181763841295], [-0.47375119170470886, 0.8656384674819654], [2.2662355245710235, 0.22670487699824313]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.gradients = dense<[[-2.219, 2.341, 1.433], [-3.996, 0.544, -2.203], [0.066, 0.087, -3.977], [-0.467, -0.512, 1.924], [-2.363, 1.476, -2.198]]> : tensor<5x3xf64>,
    test.expected = dense<[-1.0808123392208946, -1.585689690574397, 1.503914281777787]> : tensor<3xf64>})
  attributes {test.optimizer = "adagrad", test.groups = "", test.steps = 5 : i64}
func.func private @adagrad_decay(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.gradients = dense<[[[3.27, 0.546], [-2.467, -1.917], [3.2, 0.406]], [[-3.464, -0.167], [-2.326, -1.259], [-0.976, -1.427]], [[1.107, -0.126], [-1.179, 0.819], [1.66, -3.286]], [[-0.513, -1.961], [-0.346, -2.579], [0.041, -0.076]], [[-0.609, -2.096], [-0.792, -2.183], [-2.71, 0.45]]]> : tensor<5x3x2xf64>,
    test.expected = dense<[[-1.6180987504731348, -2.4375158482080455], [-0.2635089269069116, 1.0800257327203662], [2.1930697470362377, 0.29393309130423256]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.gradients = dense<[[-2.219, 2.341, 1.433], [-3.996, 0.544, -2.203], [0.066, 0.087, -3.977], [-0.467, -0.512, 1.924], [-2.363, 1.476, -2.198]]> : tensor<5x3xf64>,
    test.expected = dense<[-0.8598957223620308, -1.7031313106066184, 1.555499359617206]> : tensor<3xf64>})
  attributes {test.optimizer = "adagrad:lr=0.1,weight_decay=0.1,epsilon=1e-3", test.groups = "", test.steps = 5 : i64}
