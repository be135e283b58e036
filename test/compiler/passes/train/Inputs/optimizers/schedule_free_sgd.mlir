// Parameters after some steps in float64, written by make_torch_references.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func private @schedule_free_sgd(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-2.456749999999999, -2.281750000000002], [-0.26675000000000015, 0.8824999999999998], [2.6537500000000005, 0.7799999999999998]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.0509999999999993, -1.4862500000000005, 2.2142499999999994]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.6155, 1.0075000000000005]], [[-1.9930000000000008, -3.046249999999998]], [[2.480000000000001, 0.52075]]], [[[-3.463249999999999, 0.37524999999999986]], [[-2.714250000000003, -1.3069999999999995]], [[-0.7585, -1.0819999999999999]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.7382499999999994, -0.21825000000000008, -0.94825, 0.7862499999999996], [1.8754999999999995, -2.9544999999999995, -1.4685, -1.6965000000000006]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "schedule_free_sgd:lr=0.1", test.groups = "", test.steps = 50 : i64}
func.func private @schedule_free_sgd_warmup(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-2.546244353209685, -2.346039850200896], [-0.1865519503475415, 0.8173686130250095], [2.5910288065556943, 0.8284623613152933]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.129833212567878, -1.5684863537508558, 2.08738744126787]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.5529810120099667, 0.8556064264221585]], [[-2.1958759165772523, -2.7614761630609523]], [[2.6414244933544806, 0.3355153168404891]]], [[[-3.454735490110211, 0.432619393741978]], [[-2.6328195165943065, -1.2306401705256074]], [[-0.6715352499365304, -1.1209928762179395]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.715629250490356, -0.12706124793427911, -1.2238069471764, 0.8576326535139938], [1.9501853675190284, -2.9819379410167755, -1.401986863820274, -1.6592145906867275]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "schedule_free_sgd:lr=0.1,momentum=0.8,warmup_steps=20,r=0.5,weight_lr_power=1.5", test.groups = "", test.steps = 50 : i64}
func.func private @schedule_free_sgd_all(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.7069328278255453, -2.2101583176474975], [-0.3350579541302089, 0.7778968520847027], [2.136394158422737, 0.41506228572913156]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.1312908047364711, -1.5059769227406559, 1.9421589947038955]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[2.9546573286699136, 0.6269375344671045]], [[-2.0868370740190207, -1.982264899317555]], [[2.6727367424646022, 0.3299477362945773]]], [[[-3.035955769425462, -0.010529183518587676]], [[-2.1394880566163788, -1.1165715343457192]], [[-0.7600484684166359, -1.167667431572985]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.150784768096428, -0.11453555495630381, -1.0235644149308962, 0.7092239755886813], [1.5433554086408319, -2.8272900970995076, -0.7210187851430869, -1.6627870259215372]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "schedule_free_sgd:lr=0.1,weight_decay=0.05,warmup_steps=10", test.groups = ".*bias:lr_scale=2,weight_decay=0", test.clip_norm = 1.5 : f64, test.steps = 50 : i64}
