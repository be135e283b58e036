// Parameters after some steps in float64, written by make_torch_references.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func private @muon(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.6295671828353544, -2.6160408560302604], [-0.48275028735600944, 0.8357204982455787], [2.279219619760408, 0.25906736520801155]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.1013383841990858, -1.5675062245616092, 1.5132733630003987]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.277487197714518, 0.5551249122164121]], [[-2.453393490237739, -1.9414767600578449]], [[3.1798930579011713, 0.41069473492146374]]], [[[-3.4632320252590336, -0.15062061605600077]], [[-2.3367736244866, -1.258422974799995]], [[-0.9720590309234078, -1.4178911744664664]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.131637544598022, -0.13200039668381564, -1.1620750467764052, 0.8155970291550896], [1.6573013879132326, -3.254732539999797, -0.5438846482170098, -1.9446783515172477]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "muon", test.groups = ".*bias:optimizer=adamw;conv.*:optimizer=adamw", test.steps = 50 : i64}
func.func private @muon_match(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.7564158142201858, -2.589925146542819], [-0.4287934945199494, 0.8112415571157393], [2.3531634097475367, 0.4153930378608997]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.1013383841990858, -1.5675062245616092, 1.5132733630003987]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.277487197714518, 0.5551249122164121]], [[-2.453393490237739, -1.9414767600578449]], [[3.1798930579011713, 0.41069473492146374]]], [[[-3.4632320252590336, -0.15062061605600077]], [[-2.3367736244866, -1.258422974799995]], [[-0.9720590309234078, -1.4178911744664664]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.2656534253364287, -0.17868795549296415, -1.1070428697705117, 0.8321298990327163], [1.6968054861070334, -3.16476726010345, -0.7047947465048453, -1.9090983132168196]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "muon:lr=0.02,weight_decay=0,momentum=0.8,nesterov=0,adjust_lr_fn=match_rms_adamw", test.groups = ".*bias:optimizer=adamw;conv.*:optimizer=adamw", test.steps = 50 : i64}
func.func private @muon_steps(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.7858192437010618, -2.3561004068927285], [-0.3720714087779564, 0.7872093723301392], [2.3135927725699768, 0.5917473639666816]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.1013383841990858, -1.5675062245616092, 1.5132733630003987]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.277487197714518, 0.5551249122164121]], [[-2.453393490237739, -1.9414767600578449]], [[3.1798930579011713, 0.41069473492146374]]], [[[-3.4632320252590336, -0.15062061605600077]], [[-2.3367736244866, -1.258422974799995]], [[-0.9720590309234078, -1.4178911744664664]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.2615821652913422, -0.16018271931341876, -1.0541147863490485, 0.7777125241818114], [1.6096929357744771, -3.0350619355544417, -0.6665892890852452, -1.8365430814074146]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "muon:lr=0.01,ns_steps=3,ns_a=3,ns_b=-4,ns_c=1.5,epsilon=0.1,adjust_lr_fn=spectral_unclamped", test.groups = ".*bias:optimizer=adamw;conv.*:optimizer=adamw", test.steps = 50 : i64}
func.func private @muon_all(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-2.2576308308409243, -2.0817680968603334], [-0.1466000760043823, 0.9368675161034135], [2.722840190949898, 0.9664290931657189]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.068760697065587, -1.506948222614222, 1.7733293865528863]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.3864966308819207, 0.6329827291950565]], [[-2.3535316831949817, -2.254693623916064]], [[2.9978670393595186, 0.453876867387266]]], [[[-3.440280022232605, 0.0652046092277004]], [[-2.4673935339781528, -1.2819894781417112]], [[-0.8791138026469169, -1.3140516941079878]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.8542869303120701, -0.44933068608554244, -0.9040455361849405, 0.7558600504601946], [1.7737666818901097, -2.6977741394954715, -1.655494763321914, -1.7643077869224784]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "muon:lr=0.02,weight_decay=0.01", test.groups = ".*bias|conv.*:optimizer=sgd,lr=0.05;in.*:lr_scale=2,momentum=0.9", test.clip_norm = 1.5 : f64, test.steps = 50 : i64}
