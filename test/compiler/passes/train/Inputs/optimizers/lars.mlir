// Parameters after some steps in float64, written by make_torch_references.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func private @lars(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-16.979, 3.351], [6.753, 0.7160000000000002], [9.147, 11.219]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-0.73, 0.054999999999999716, 15.872]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[10.77, 6.420999999999999]], [[4.6579999999999995, -22.292]], [[-10.175, 2.6560000000000006]]], [[[-2.8390000000000004, 13.208]], [[-10.701, -2.634]], [[4.649, 5.448]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[12.857, -1.501, -1.3040000000000003, 1.944], [6.91, 3.214, -18.637999999999998, 4.164]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "lars", test.groups = "", test.steps = 50 : i64}
func.func private @lars_adapt(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-3.0561410598288634, -2.0725444864366747], [-0.25954757467332323, 0.717711978645759], [2.786651706400828, 1.1791773571929423]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-0.9501296453728167, -1.3799611863983299, 2.598380075479405]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[4.0049250661769396, 1.4050058672299326]], [[-1.5548792513765028, -3.948154579580283]], [[1.9502640787206065, 0.6047570854047529]]], [[[-3.4003215835472758, 1.1238784039035217]], [[-3.155226078724889, -1.3335518400856687]], [[-0.48083987124731037, -0.7480651885177282]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[2.1282531876806057, -0.2573606689876378, -1.0433055335257921, 0.7935910321648889], [1.8760629069499155, -2.961272954704431, -2.1133002805353223, -1.6861158188367082]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "lars:lr=0.5,always_adapt=1,trust_coeff=0.01,momentum=0.9", test.groups = "", test.steps = 50 : i64}
func.func private @lars_clip(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[2.3914067874845206, 0.09610784459974542], [5.734783285938993, -2.213413166965936], [1.01747924901206, 1.9672898932084018]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[2.9246177118366394, 0.06579419661955987, 3.816303053596632]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.85546282225445, -7.516646150284378]], [[-1.9599819963340164, -2.065457716559755]], [[-2.1054073519421297, 3.799676504282618]]], [[[-0.4307982950638998, 10.74400549205666]], [[-3.9334556937511014, 0.1286070713120009]], [[1.459736978941896, 1.523324367784619]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.2410523900159873, -2.380818070225512, -8.537124306184257, 4.653032968383793], [0.8798270494762993, 0.44387025530217145, -4.185990611457124, 4.302472958120084]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "lars:lr=0.5,weight_decay=0.1,trust_coeff=2,trust_clip=1,momentum=0.9,nesterov=1", test.groups = "", test.steps = 50 : i64}
func.func private @lars_all(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.6235037317825314, -2.5159499549379913], [-0.45958474082073136, 0.8056620727549838], [2.221711078827753, 0.26550446589716203]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.0022511501893252, -1.4472938864039504, 2.189705187150253]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[1.9876128055891678, 0.35960116632582045]], [[-1.4379458271484502, -1.2368298057735017]], [[1.8601491955498464, 0.25479553870371574]]], [[[-2.070741994216823, -0.04446363484794315]], [[-1.4273540044591901, -0.7563882771341246]], [[-0.5641749401098262, -0.8248765079037287]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.1220652203836747, -0.13365850523044745, -1.1281833226865297, 0.787594988906382], [1.6094964049925522, -3.1386618798053547, -0.5879424789208342, -1.8660643813466207]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "lars:lr=0.5,momentum=0.9,dampening=0.2,weight_decay=0.05", test.groups = ".*bias:lr=0.02,weight_decay=0", test.clip_norm = 1.5 : f64, test.steps = 50 : i64}
