// Parameters after some steps in float64, written by make_torch_references.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func private @schedule_free_adamw(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.6290806131481195, -2.640067443690296], [-0.4907796147691453, 0.8424083932538715], [2.286086010624564, 0.235085461182051]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.103884611135069, -1.5665268303869, 1.5169270594156203]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.2805084903637867, 0.5630386726856029]], [[-2.4499629026859053, -1.9466526174718999]], [[3.173222003581553, 0.408526448469249]]], [[[-3.464977537772519, -0.15040490482895222]], [[-2.337997707781953, -1.260635767750738]], [[-0.9689666945014271, -1.4166591471590952]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.1265844782106489, -0.12670567053666895, -1.1712925195711776, 0.8172919946068727], [1.6636098685948368, -3.275261115530127, -0.5429783026582953, -1.9516791127328728]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "schedule_free_adamw", test.groups = "", test.steps = 50 : i64}
func.func private @schedule_free_adamw_warmup(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.7110763275961633, -2.6160578183615915], [-0.463577202154577, 0.8377466218933847], [2.3133098230789906, 0.2885557984380041]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.1083663212224264, -1.5675609544980085, 1.5623873575812581]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.3011741802359036, 0.5883603454439851]], [[-2.433628715582819, -2.0132279502010038]], [[3.1335843006937347, 0.39875045639426976]]], [[[-3.465455505983873, -0.09178641574295038]], [[-2.3674699234841317, -1.2550936710383187]], [[-0.9438652123450605, -1.3947817907842708]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.1768847097150275, -0.12584455409100742, -1.1815352371352974, 0.8225862536872093], [1.6895730599583545, -3.247814176938572, -0.6216252284416798, -1.9220517934902914]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "schedule_free_adamw:lr=0.01,beta1=0.8,beta2=0.95,epsilon=1e-3,warmup_steps=20,r=0.5,weight_lr_power=1.5", test.groups = "", test.steps = 50 : i64}
func.func private @schedule_free_adamw_all(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.6794414044495785, -2.575021666188496], [-0.4590420707029652, 0.8405028754799523], [2.293109014594699, 0.28840054717800484]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.1162437595623962, -1.5441821736101398, 1.6400176033598068]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.252564067846165, 0.6061769575091641]], [[-2.3980409992570704, -1.9948137128895058]], [[3.0954856809410427, 0.3874947338826721]]], [[[-3.4121458309927313, -0.11162127347997182]], [[-2.330981136891372, -1.2449382120955481]], [[-0.928386934656183, -1.3771759400332113]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.155517043780224, -0.12372033492909801, -1.1524059152264334, 0.8041112331401364], [1.6630304953697683, -3.213287009119862, -0.6104365759557762, -1.9093193907806658]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "schedule_free_adamw:lr=0.01,weight_decay=0.05,warmup_steps=10", test.groups = ".*bias:lr_scale=2,weight_decay=0", test.clip_norm = 1.5 : f64, test.steps = 50 : i64}
