// Parameters after some steps in float64, written by make_torch_references.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func private @lion(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.6077999999999997, -2.6477999999999975], [-0.49580000000000013, 0.8408], [2.2734000000000028, 0.22119999999999976]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.105, -1.5684000000000002, 1.4999999999999998]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.2716000000000034, 0.5481999999999998]], [[-2.4643999999999946, -1.9213999999999996]], [[3.1967999999999934, 0.4073999999999999]]], [[[-3.464, -0.16400000000000034]], [[-2.3282000000000047, -1.2593999999999999]], [[-0.9754, -1.4259000000000002]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.1095999999999997, -0.1267999999999999, -1.1778000000000002, 0.8188], [1.6603999999999999, -3.284599999999997, -0.5167999999999996, -1.9592000000000003]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "lion", test.groups = "", test.steps = 50 : i64}
func.func private @lion_decay(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.917478944734271, -2.363045871452369], [-0.31532641190982813, 0.7802905287569576], [2.357069519296107, 0.48309615887926116]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-0.9730932428059643, -1.35725516816754, 1.756618747677833]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.2871606798296797, 0.6948741408169463]], [[-2.054206081608161, -2.2726264664229356]], [[2.7124428353369354, 0.5220436696133536]]], [[[-3.294494320502001, 0.11601372606314969]], [[-2.467160692664105, -1.2361472794734827]], [[-0.8296978699356515, -1.21036268885257]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.3468823604145086, -0.1778644539569447, -1.0449620565143625, 0.7995354889787833], [1.6581497186609233, -2.9683554960323697, -0.9183421247718504, -1.6488813688232071]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "lion:lr=0.01,weight_decay=0.1,beta1=0.8,beta2=0.95", test.groups = "", test.steps = 50 : i64}
func.func private @lion_all(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.8807978511650172, -2.405282749738239], [-0.36542709490276587, 0.840046748146896], [2.4139887937376154, 0.47099464821573367]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-0.7449999999999997, -1.2099999999999997, 2.4970000000000008]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.308286604553195, 0.7500779755580559]], [[-2.149489910428361, -2.30428631319149]], [[2.8246164486870837, 0.534057263000252]]], [[[-3.3387151916811613, 0.13404304675486248]], [[-2.4862605391284798, -1.2671899011743333]], [[-0.892111787793904, -1.2827501725772845]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.2973537537978903, -0.20191217051476124, -1.071465008900391, 0.7794117132116205], [1.6391648835675403, -3.125538380981106, -0.8766898353896819, -1.793758038896905]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "lion:lr=0.01,weight_decay=0.05", test.groups = ".*bias:lr_scale=2,beta2=0.9,weight_decay=0", test.clip_norm = 1.5 : f64, test.steps = 50 : i64}
