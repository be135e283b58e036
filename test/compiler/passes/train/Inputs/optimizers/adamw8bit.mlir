// Parameters after some steps in float64, written by make_torch_references.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func private @adamw8bit(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.6194213562882636, -2.6405380019866906], [-0.490504695606578, 0.8401692617298645], [2.2834533350417954, 0.23029276986860597]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.1013383841990858, -1.5675062245616092, 1.5132733630003987]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.277487197714518, 0.5551249122164121]], [[-2.453393490237739, -1.9414767600578449]], [[3.1798930579011713, 0.41069473492146374]]], [[[-3.4632320252590336, -0.15062061605600077]], [[-2.3367736244866, -1.258422974799995]], [[-0.9720590309234078, -1.4178911744664664]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.12063223310228, -0.12973412722504055, -1.1736253770093388, 0.8202507584430199], [1.6615798419926477, -3.2746330100942105, -0.5370207038674154, -1.9508393814463654]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "adamw8bit", test.groups = "", test.steps = 50 : i64}
func.func private @adamw8bit_keys(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.3606232002272993, -2.586671685234836], [-0.5414386132449209, 0.8082852192444764], [2.046504972416932, 0.09087281090589445]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.0752299879570504, -1.5056763821322148, 1.2622781244901233]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.02487389171325, 0.43868598885290544]], [[-2.4532181349342124, -1.589759569628713]], [[3.215123819791276, 0.3507436302340552]]], [[[-3.2869241992621983, -0.3252111006077707]], [[-2.0989864080440452, -1.2004674967688875]], [[-0.9706167332164257, -1.437646115060494]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[0.9157202944918557, -0.09233151545260392, -1.144990858244724, 0.7579098597949977], [1.5493277445872364, -3.216713402069216, -0.253788373728001, -1.9586926125510744]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "adamw8bit:lr=0.01,beta1=0.8,beta2=0.99,epsilon=1e-4,weight_decay=0.1,maximize=1", test.groups = "", test.steps = 50 : i64}
func.func private @adamw8bit_all(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.7176039683178435, -2.543256809974869], [-0.4100698528487092, 0.858121550120171], [2.4036103309030055, 0.34699036364095187]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.0086193794450435, -1.4872324676476059, 1.8772659838418055]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.339117046889183, 0.6321403527806807]], [[-2.3334696047274877, -2.1577056976899693]], [[3.011094592428709, 0.4593699158600431]]], [[[-3.4448131601291236, 0.0024245821416153403]], [[-2.4344944480818635, -1.253973323727956]], [[-0.9332940282114149, -1.3362316429824965]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.218866632784887, -0.18488380651738023, -1.153627273793771, 0.826237501455133], [1.6579921547939187, -3.1964488272494522, -0.7559336683389505, -1.8719212711492264]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "adamw8bit:lr=0.01", test.groups = ".*bias:lr_scale=2,weight_decay=0", test.clip_norm = 1.5 : f64, test.steps = 50 : i64}
