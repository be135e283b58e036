// Parameters after some steps in float64, written by make_torch_references.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func private @nadam(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.6374509135248378, -2.637243221794648], [-0.4831819548726162, 0.8401507373417454], [2.291807544880227, 0.24215481478307224]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.1032952350119585, -1.5668420042300388, 1.527247719145272]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.285821675950984, 0.5625507178239941]], [[-2.4478631433463502, -1.9600435651667143]], [[3.167253160624677, 0.4107878633198332]]], [[[-3.464184448174033, -0.13623578676486922]], [[-2.3464178262595765, -1.2606972248937498]], [[-0.9654688601100376, -1.412344231872217]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.1337484449442328, -0.12891899483711325, -1.1770277230847315, 0.821267850688153], [1.667685766205448, -3.269099837891836, -0.5561085850006133, -1.9447239533923715]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "nadam", test.groups = "", test.steps = 50 : i64}
func.func private @nadam_decay(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.6955192496610978, -2.4595013006163677], [-0.40776091830124456, 0.7837381092804555], [2.217933005343245, 0.3224248916424098]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.0460035488700248, -1.4762769883302593, 1.5745051363787792]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.1841972176904565, 0.596328910758537]], [[-2.2663243649999107, -2.0431604922975524]], [[2.926840752911864, 0.40453861412097136]]], [[[-3.268765645560518, -0.009821539279474052]], [[-2.292352833648783, -1.1924360533580987]], [[-0.8776339666947488, -1.2806473301368158]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.183239164475739, -0.13180663129898396, -1.1010620328581662, 0.7925806077045443], [1.6208834215728474, -3.035333574338461, -0.7000997945857039, -1.7767550004090358]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "nadam:lr=0.01,weight_decay=0.1,momentum_decay=0.1", test.groups = "", test.steps = 50 : i64}
func.func private @nadam_decoupled(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.3624834659255693, -2.5770670776124147], [-0.5406228876072883, 0.8042740863345795], [2.064884419965879, 0.09513913305585014]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.05910325399123, -1.5087087430382349, 1.2764927951915177]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.0333552355891675, 0.4393715005122306]], [[-2.439087689113456, -1.6138563076316899]], [[3.202743000218041, 0.3631103725684464]]], [[[-3.294358049282239, -0.30946144272117443]], [[-2.112869275363154, -1.1892062125558935]], [[-0.9801045717028438, -1.428768330778102]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[0.9227240288047303, -0.10575534045083743, -1.1299917582519792, 0.7676942300176618], [1.5409593164379884, -3.2080590209999853, -0.27787259561903105, -1.9447816519526302]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "nadam:lr=0.01,weight_decay=0.1,decoupled_weight_decay=1,maximize=1,epsilon=1e-3", test.groups = "", test.steps = 50 : i64}
func.func private @nadam_all(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.6184680059868148, -2.410971603833945], [-0.37977701775253875, 0.7849862223654467], [2.1867832147166975, 0.32910445724150683]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.051922097830661, -1.4898239763873378, 1.8573272219441148]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.1081952125273653, 0.5711320972715846]], [[-2.2266277919970596, -1.9880368976797205]], [[2.8960422599478752, 0.3996202009460256]]], [[[-3.1749408943214816, 0.0008633322823968913]], [[-2.2294843495897685, -1.157765070956322]], [[-0.852983068511838, -1.2538065141807444]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.1324238193202725, -0.1476440166252979, -1.0779476453587413, 0.773870259918237], [1.5697032812199463, -2.993821761729909, -0.6887022793790071, -1.7424359532901386]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "nadam:lr=0.01,weight_decay=0.05", test.groups = ".*bias:lr_scale=2,beta1=0.7,momentum_decay=0.02,weight_decay=0", test.clip_norm = 1.5 : f64, test.steps = 50 : i64}
