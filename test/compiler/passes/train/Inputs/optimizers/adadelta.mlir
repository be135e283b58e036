// Parameters after some steps in float64, written by make_torch_references.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func private @adadelta(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.6513092089840677, -2.6247035012586455], [-0.4709144929666335, 0.8399792194602559], [2.299934687821362, 0.2592484810680602]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.1045868182731746, -1.5595150527231951, 1.550281470114578]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.297112862223665, 0.5675857787389772]], [[-2.434757667853281, -1.976258470715132]], [[3.1334516510730928, 0.4141936848694839]]], [[[-3.4637409650756252, -0.11841799894891841]], [[-2.3598249154533764, -1.2642417092031801]], [[-0.9582799094794191, -1.4040706012744408]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.1682446897935408, -0.1295142361890042, -1.1787631674510297, 0.821204656938992], [1.676197817802471, -3.2619941772640515, -0.578685084688288, -1.934440066687855]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "adadelta", test.groups = "", test.steps = 50 : i64}
func.func private @adadelta_maximize(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-0.9976271526643083, -2.940867913071597], [-0.8263633501533931, 0.8545476838964547], [1.9803323674425868, -0.28961203407977776]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.1006003434462504, -1.7161400840514993, 0.8357349567422724]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[2.950328483467875, 0.2853592259823453]], [[-2.8366234909513546, -1.1585076249782793]], [[3.891412062924206, 0.30069010976881366]]], [[[-3.453196318518837, -0.7362799679726296]], [[-1.8914963947457062, -1.196562865378842]], [[-1.1975477241458334, -1.699450946066174]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[0.4358042564809038, -0.0823930410720952, -1.2064680719119354, 0.7984678406281449], [1.478185528774661, -3.5400245231460388, 0.2790235726799725, -2.2453552302828506]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "adadelta:lr=0.5,rho=0.8,epsilon=1e-3,maximize=1", test.groups = "", test.steps = 50 : i64}
func.func private @adadelta_all(
  tensor<3x2xf64> {test.name = "fc.weight", test.value = dense<[[-1.604, -2.649], [-0.497, 0.841], [2.272, 0.219]]> : tensor<3x2xf64>,
    test.expected = dense<[[-1.6061329518990364, -2.5900404284383733], [-0.4687126670660403, 0.8290717576383704], [2.245927135021931, 0.24534805035400692]]> : tensor<3x2xf64>},
  tensor<3xf64> {test.name = "fc.bias", test.value = dense<[-1.105, -1.57, 1.497]> : tensor<3xf64>,
    test.expected = dense<[-1.0877186533722856, -1.5215351062753304, 1.6549325221369404]> : tensor<3xf64>},
  tensor<2x3x1x2xf64> {test.name = "conv.weight", test.value = dense<[[[[3.27, 0.546]], [[-2.467, -1.917]], [[3.2, 0.406]]], [[[-3.464, -0.167]], [[-2.326, -1.259]], [[-0.976, -1.427]]]]> : tensor<2x3x1x2xf64>,
    test.expected = dense<[[[[3.2215322470533376, 0.5500721446913269]], [[-2.4098400562215985, -1.9317514391465316]], [[3.1188019606686765, 0.4059839991834038]]], [[[-3.4036030876169665, -0.13038951966970214]], [[-2.3046528184356694, -1.2378552933590738]], [[-0.9477418300667524, -1.3808867685299646]]]]> : tensor<2x3x1x2xf64>},
  tensor<2x4xf64> {test.name = "in.weight", test.value = dense<[[1.107, -0.126, -1.179, 0.819], [1.66, -3.286, -0.513, -1.961]]> : tensor<2x4xf64>,
    test.expected = dense<[[1.1162654601312652, -0.13012123534765396, -1.1542827887888671, 0.8066235378269039], [1.6395437877354444, -3.2302167250978573, -0.5548419216303172, -1.9145913274762587]]> : tensor<2x4xf64>, test.permutation = array<i64: 1, 0>})
  attributes {test.optimizer = "adadelta:lr=0.7,weight_decay=0.05", test.groups = ".*bias:lr=2,rho=0.95,weight_decay=0", test.clip_norm = 1.5 : f64, test.steps = 50 : i64}
