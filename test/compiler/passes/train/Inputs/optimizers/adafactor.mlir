// Parameters after some steps in float64, written by make_torch_references.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func private @adafactor(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.8604366905825578, -2.5271715989943857], [-0.388221933283519, 0.8138480137909356], [2.3884668461818253, 0.42126668402287676]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.1028836414229934, -1.531029480715572, 1.7339538041102416]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.4242840153932996, 0.6949735635652309]], [[-2.277603065119059, -2.3705502878906164]], [[2.8689411684050112, 0.4692957066131384]]], [[[-3.4538426674048286, 0.1829638347782917]], [[-2.5577574771511857, -1.2891185861691654]], [[-0.8390624555059664, -1.2612237599514935]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.2950658928234415, -0.15140733065848158, -1.1796771115662794, 0.8241883278852205], [1.7102159591300405, -3.172694581393118, -0.8678088836629553, -1.8384838946714583]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "adafactor", test.groups = "", test.steps = 50 : i64}
func.func private @adafactor_decay(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[6.216559511438512, -5.252337284898485], [-5.19494565852064, 1.2323573385696558], [-1.7050479361715443, -5.957610988310802]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-0.9846606216269507, -2.4751479524840483, -4.295647620914109]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[-7.610522982764493, -11.014224401595165]], [[-12.0984859116942, 26.117074917227047]], [[19.90318769893449, -2.2501162658283347]]], [[[-2.14334802917605, -21.495732462249986]], [[14.971155207840697, 0.6825413050768342]], [[-9.876905083360006, -10.057448941978933]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[-10.041809684849161, -0.0638217911991297, -0.2927025052427539, 0.5917337812603745], [-2.215746563846673, -7.76741644170985, 19.88839945281204, -8.507359082783253]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "adafactor:lr=0.5,weight_decay=0.01,beta2_decay=-0.5,epsilon1=0.5,epsilon2=0.1,d=1.2,maximize=1", test.groups = "", test.steps = 50 : i64}
func.func private @adafactor_all(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-2.4314184447378753, -1.6587698245063323], [0.170053063478499, 0.6119845861559059], [2.562356711584448, 1.154271518152818]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-0.7699316780611452, -0.48525862798498104, 4.8945455025204625]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.588884784672004, 1.2040646346091055]], [[-1.2766824518268043, -3.776642650764346]], [[1.3399792875567276, 0.6565511253637818]]], [[[-2.9769988213373537, 1.5091290737747662]], [[-3.1508875888029038, -1.2728542938942742]], [[-0.22316723131909438, -0.5234322301893659]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.7074461793067144, -0.3259659654657274, -1.1361149210288766, 0.7184718660982851], [1.5876632090033447, -2.4789384112733965, -2.146264195703951, -1.2304063125615807]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "adafactor:lr=0.05,weight_decay=0.05", test.groups = ".*bias:lr_scale=2,d=1.1,weight_decay=0", test.clip_norm = 1.5 : f64, test.steps = 50 : i64}
