// Parameters after some steps in float64, written by make_torch_references.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func private @adamax(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.6236878670852715, -2.639976568586516], [-0.4879041411450899, 0.8395699543059], [2.287615643128578, 0.23283271556797527]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.1001823365142673, -1.5684599211839347, 1.5201739516074773]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.28246190758325, 0.5560562529299432]], [[-2.4510679908024517, -1.9507671135546722]], [[3.175978257456511, 0.41334936039448594]]], [[[-3.4658093355305635, -0.14690976717943183]], [[-2.343574827075306, -1.2584376962226553]], [[-0.9720264011850694, -1.415923366833922]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.1251152879801256, -0.13137821012072162, -1.1740895272237786, 0.8224807874717112], [1.6624667094633825, -3.274201088572595, -0.5429101574712344, -1.9494705365125682]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "adamax", test.groups = "", test.steps = 50 : i64}
func.func private @adamax_maximize(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.4650949036985765, -2.703128394560495], [-0.5592126404846532, 0.8468412640617023], [2.188520575932638, 0.12706733459105946]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.1298370791824695, -1.5764271366177423, 1.363593732959144]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.197291398673832, 0.4872246569625402]], [[-2.548954927901234, -1.7136926042482297]], [[3.331415902823925, 0.36473165588255635]]], [[[-3.4482533213225524, -0.2890514523331876]], [[-2.2150222973436264, -1.2708294597967402]], [[-1.009704078347753, -1.4925358100387722]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[0.9993794038463364, -0.10789394321923436, -1.201486429393944, 0.7954144848925732], [1.6347041383232772, -3.352571304957326, -0.31639973756966727, -2.0421357762560985]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "adamax:lr=0.01,beta1=0.8,beta2=0.9,epsilon=1e-2,maximize=1", test.groups = "", test.steps = 50 : i64}
func.func private @adamax_all(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.593391033148561, -2.484027705707061], [-0.4183626432179183, 0.8046491526449208], [2.230135316768263, 0.28652797917040723]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.043534467307397, -1.5272689145215586, 1.7362755262055338]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.1732840935176414, 0.5624768978728502]], [[-2.2961230507372616, -1.987838950900317]], [[2.984485695195096, 0.4247055959210047]]], [[[-3.2966502667723017, -0.05806576494298561]], [[-2.2875933693793145, -1.1867063641163889]], [[-0.9109688339634986, -1.3034495307984493]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.1240465842249234, -0.15745294620623437, -1.0899054659353262, 0.7928423796832871], [1.5776451278952848, -3.111382176738103, -0.6512293206513986, -1.8307233526381435]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "adamax:lr=0.01,weight_decay=0.05", test.groups = ".*bias:lr_scale=2,beta1=0.7,weight_decay=0", test.clip_norm = 1.5 : f64, test.steps = 50 : i64}
