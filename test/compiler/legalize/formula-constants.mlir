// RUN: ortc-opt %s --ortc-legalize="mode=train" --split-input-file 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=NOTE --input-file=%t
// Numbers of formulas are told from weights by what they do; their twins that only look like them stay weights.

// Epsilons: behind CastLike, Reshape and Expand, added to means of squares spelled in several ways, and to norms.
// CHECK: {{^}}module {
// CHECK: train.tensor @w parameter
// CHECK-NOT: train.tensor
// CHECK: func.func
// NOTE: {{.*}}'eps_a', 'eps_b', 'eps_c', 'eps_d' and 2 more are not trained, as a constant of a formula: added to a variance or a sum of squares
module {
onnx.graph "g" ["x"] [[]] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<2x3xf32>):
  %w = onnx.initializer "w" dense<0.5> : tensor<3xf32>
  %eps_a = onnx.initializer "eps_a" dense<1.0e-6> : tensor<f32>
  %eps_b = onnx.initializer "eps_b" dense<1.0e-6> : tensor<f32>
  %eps_c = onnx.initializer "eps_c" dense<1.0e-6> : tensor<1xf32>
  %eps_d = onnx.initializer "eps_d" dense<1.0e-6> : tensor<f32>
  %eps_e = onnx.initializer "eps_e" dense<1.0e-6> : tensor<f32>
  %eps_f = onnx.initializer "eps_f" dense<0.5> : tensor<f32>
  %shape = onnx.initializer "shape" dense<[1, 1]> : tensor<2xi64>
  %two = onnx.initializer "val_2" dense<2.0> : tensor<f32>
  %h = onnx.node "Mul" since 14 (%x, %w) {} -> ["h"] : (tensor<2x3xf32>, tensor<3xf32>) -> !onnx.any
  %ea = onnx.node "CastLike" since 15 (%eps_a, %h) {} -> ["ea"] : (tensor<f32>, !onnx.any) -> !onnx.any
  %sq = onnx.node "Mul" since 14 (%h, %h) {} -> ["sq"] : (!onnx.any, !onnx.any) -> !onnx.any
  %ma = onnx.node "ReduceMean" since 13 (%sq) {axes = array<i64: 1>} -> ["ma"] : (!onnx.any) -> !onnx.any
  %va = onnx.node "Add" since 14 (%ma, %ea) {} -> ["va"] : (!onnx.any, !onnx.any) -> !onnx.any
  %ra = onnx.node "Sqrt" since 13 (%va) {} -> ["ra"] : (!onnx.any) -> !onnx.any
  %ya = onnx.node "Div" since 14 (%h, %ra) {} -> ["ya"] : (!onnx.any, !onnx.any) -> !onnx.any
  %pb = onnx.node "Pow" since 15 (%ya, %two) {} -> ["pb"] : (!onnx.any, tensor<f32>) -> !onnx.any
  %mb = onnx.node "ReduceMean" since 13 (%pb) {axes = array<i64: 1>} -> ["mb"] : (!onnx.any) -> !onnx.any
  %nb = onnx.node "ReduceMean" since 13 (%ya) {axes = array<i64: 1>} -> ["nb"] : (!onnx.any) -> !onnx.any
  %ob = onnx.node "Mul" since 14 (%nb, %nb) {} -> ["ob"] : (!onnx.any, !onnx.any) -> !onnx.any
  %sb = onnx.node "Sub" since 14 (%mb, %ob) {} -> ["sb"] : (!onnx.any, !onnx.any) -> !onnx.any
  %eb = onnx.node "Reshape" since 14 (%eps_b, %shape) {} -> ["eb"] : (tensor<f32>, tensor<2xi64>) -> !onnx.any
  %vb = onnx.node "Add" since 14 (%eb, %sb) {} -> ["vb"] : (!onnx.any, !onnx.any) -> !onnx.any
  %rb = onnx.node "Reciprocal" since 13 (%vb) {} -> ["rb"] : (!onnx.any) -> !onnx.any
  %yb = onnx.node "Mul" since 14 (%ya, %rb) {} -> ["yb"] : (!onnx.any, !onnx.any) -> !onnx.any
  %mc = onnx.node "ReduceSumSquare" since 13 (%yb) {axes = array<i64: 1>} -> ["mc"] : (!onnx.any) -> !onnx.any
  %ec = onnx.node "Expand" since 13 (%eps_c, %shape) {} -> ["ec"] : (tensor<1xf32>, tensor<2xi64>) -> !onnx.any
  %vc = onnx.node "Add" since 14 (%mc, %ec) {} -> ["vc"] : (!onnx.any, !onnx.any) -> !onnx.any
  %lc = onnx.node "Log" since 13 (%vc) {} -> ["lc"] : (!onnx.any) -> !onnx.any
  %yc = onnx.node "Mul" since 14 (%yb, %lc) {} -> ["yc"] : (!onnx.any, !onnx.any) -> !onnx.any
  %md = onnx.node "ReduceL2" since 13 (%yc) {axes = array<i64: 1>} -> ["md"] : (!onnx.any) -> !onnx.any
  %vd = onnx.node "Add" since 14 (%md, %eps_d) {} -> ["vd"] : (!onnx.any, tensor<f32>) -> !onnx.any
  %yd = onnx.node "Div" since 14 (%yc, %vd) {} -> ["yd"] : (!onnx.any, !onnx.any) -> !onnx.any
  %me = onnx.node "ReduceL1" since 13 (%yd) {axes = array<i64: 1>} -> ["me"] : (!onnx.any) -> !onnx.any
  %ie = onnx.node "Identity" since 14 (%me) {} -> ["ie"] : (!onnx.any) -> !onnx.any
  %ve = onnx.node "Add" since 14 (%ie, %eps_e) {} -> ["ve"] : (!onnx.any, tensor<f32>) -> !onnx.any
  %ye = onnx.node "Div" since 14 (%yd, %ve) {} -> ["ye"] : (!onnx.any, !onnx.any) -> !onnx.any
  %af = onnx.node "Abs" since 13 (%ye) {} -> ["af"] : (!onnx.any) -> !onnx.any
  %mf = onnx.node "ReduceL2" since 13 (%af) {axes = array<i64: 1>} -> ["mf"] : (!onnx.any) -> !onnx.any
  %vf = onnx.node "Add" since 14 (%mf, %eps_f) {} -> ["vf"] : (!onnx.any, tensor<f32>) -> !onnx.any
  %rf = onnx.node "Sqrt" since 13 (%vf) {} -> ["rf"] : (!onnx.any) -> !onnx.any
  %y = onnx.node "Mul" since 14 (%ye, %rf) {} -> ["y"] : (!onnx.any, !onnx.any) -> !onnx.any
  onnx.return %y : !onnx.any
}
}

// -----

// Twins of epsilons: a bias that nothing is divided by, a learned term of a mean square, the logarithm of an uncertainty, an offset that is not tiny.
// CHECK: {{^}}module {
// CHECK: train.tensor @w parameter
// CHECK: train.tensor @bias parameter
// CHECK: train.tensor @offset parameter
// CHECK: train.tensor @uncertainty parameter
// CHECK-NOT: train.tensor
// CHECK: func.func
module {
onnx.graph "g" ["x"] [[]] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<2x3xf32>):
  %w = onnx.initializer "w" dense<0.5> : tensor<3xf32>
  %bias = onnx.initializer "bias" dense<1.0e-6> : tensor<1xf32>
  %offset = onnx.initializer "offset" dense<0.5> : tensor<f32>
  %uncertainty = onnx.initializer "uncertainty" dense<0.25> : tensor<f32>
  %h = onnx.node "Mul" since 14 (%x, %w) {} -> ["h"] : (tensor<2x3xf32>, tensor<3xf32>) -> !onnx.any
  %a = onnx.node "Add" since 14 (%h, %bias) {} -> ["a"] : (!onnx.any, tensor<1xf32>) -> !onnx.any
  %t = onnx.node "Tanh" since 13 (%a) {} -> ["t"] : (!onnx.any) -> !onnx.any
  %b = onnx.node "Add" since 14 (%t, %offset) {} -> ["b"] : (!onnx.any, tensor<f32>) -> !onnx.any
  %r = onnx.node "Sqrt" since 13 (%b) {} -> ["r"] : (!onnx.any) -> !onnx.any
  %q = onnx.node "Mul" since 14 (%r, %r) {} -> ["q"] : (!onnx.any, !onnx.any) -> !onnx.any
  %m = onnx.node "ReduceMean" since 13 (%q) {axes = array<i64: 1>} -> ["m"] : (!onnx.any) -> !onnx.any
  %n = onnx.node "Neg" since 13 (%uncertainty) {} -> ["n"] : (tensor<f32>) -> !onnx.any
  %e = onnx.node "Exp" since 13 (%n) {} -> ["e"] : (!onnx.any) -> !onnx.any
  %p = onnx.node "Mul" since 14 (%m, %e) {} -> ["p"] : (!onnx.any, !onnx.any) -> !onnx.any
  %y = onnx.node "Add" since 14 (%p, %uncertainty) {} -> ["y"] : (!onnx.any, tensor<f32>) -> !onnx.any
  onnx.return %y : !onnx.any
}
}

// -----

// Bounds, also of Max and Min, and what fills masks; a learned threshold that scales, too, stays.
// CHECK: {{^}}module {
// CHECK: train.tensor @w parameter
// CHECK: train.tensor @threshold parameter
// CHECK-NOT: train.tensor
// CHECK: func.func
// NOTE: {{.*}}'low', 'high', 'floor' are not trained, as a constant of a formula: a bound of Max, Min or Clip; --train decides otherwise
// NOTE: {{.*}}'fill' is not trained, as a constant of a formula: fills what a mask leaves out; --train decides otherwise
module {
onnx.graph "g" ["x", "k"] [[], []] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<2x3xf32>, %k: tensor<2x3xi1>):
  %w = onnx.initializer "w" dense<0.5> : tensor<3xf32>
  %low = onnx.initializer "low" dense<-1.0> : tensor<f32>
  %high = onnx.initializer "high" dense<6.0> : tensor<1xf32>
  %floor = onnx.initializer "floor" dense<0.0> : tensor<f32>
  %fill = onnx.initializer "fill" dense<-1.0e9> : tensor<f32>
  %threshold = onnx.initializer "threshold" dense<2.0> : tensor<1xf32>
  %h = onnx.node "Mul" since 14 (%x, %w) {} -> ["h"] : (tensor<2x3xf32>, tensor<3xf32>) -> !onnx.any
  %a = onnx.node "Max" since 13 (%h, %low) {} -> ["a"] : (!onnx.any, tensor<f32>) -> !onnx.any
  %b = onnx.node "Min" since 13 (%high, %a) {} -> ["b"] : (tensor<1xf32>, !onnx.any) -> !onnx.any
  %f = onnx.node "Identity" since 14 (%floor) {} -> ["f"] : (tensor<f32>) -> !onnx.any
  %c = onnx.node "Max" since 13 (%b, %f) {} -> ["c"] : (!onnx.any, !onnx.any) -> !onnx.any
  %d = onnx.node "Where" since 16 (%k, %c, %fill) {} -> ["d"] : (tensor<2x3xi1>, !onnx.any, tensor<f32>) -> !onnx.any
  %e = onnx.node "Min" since 13 (%d, %threshold) {} -> ["e"] : (!onnx.any, tensor<1xf32>) -> !onnx.any
  %y = onnx.node "Div" since 14 (%e, %threshold) {} -> ["y"] : (!onnx.any, tensor<1xf32>) -> !onnx.any
  onnx.return %y : !onnx.any
}
}

// -----

// A count of what was summed, and one less; a temperature after a sum stays.
// CHECK: {{^}}module {
// CHECK: train.tensor @w parameter
// CHECK: train.tensor @temperature parameter
// CHECK-NOT: train.tensor
// CHECK: func.func
// NOTE: {{.*}}'count', 'fewer', 'share' are not trained, as a constant of a formula: divides a sum by a count
module {
onnx.graph "g" ["x"] [[]] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<2x3xf32>):
  %w = onnx.initializer "w" dense<0.5> : tensor<3xf32>
  %count = onnx.initializer "count" dense<3.0> : tensor<f32>
  %fewer = onnx.initializer "fewer" dense<2.0> : tensor<1xf32>
  %share = onnx.initializer "share" dense<0.333333343> : tensor<f32>
  %temperature = onnx.initializer "temperature" dense<10.0> : tensor<f32>
  %h = onnx.node "Mul" since 14 (%x, %w) {} -> ["h"] : (tensor<2x3xf32>, tensor<3xf32>) -> !onnx.any
  %axes_1 = onnx.initializer "axes_1" dense<[1]> : tensor<1xi64>
  %s0 = onnx.node "ReduceSum" since 13 (%h, %axes_1) {} -> ["s0"] : (!onnx.any, tensor<1xi64>) -> !onnx.any
  %d0 = onnx.node "Div" since 14 (%s0, %count) {} -> ["d0"] : (!onnx.any, tensor<f32>) -> !onnx.any
  %h0 = onnx.node "Sub" since 14 (%h, %d0) {} -> ["h0"] : (!onnx.any, !onnx.any) -> !onnx.any
  %s1 = onnx.node "ReduceSum" since 13 (%h0, %axes_1) {} -> ["s1"] : (!onnx.any, tensor<1xi64>) -> !onnx.any
  %d1 = onnx.node "Div" since 14 (%s1, %fewer) {} -> ["d1"] : (!onnx.any, tensor<1xf32>) -> !onnx.any
  %h1 = onnx.node "Sub" since 14 (%h0, %d1) {} -> ["h1"] : (!onnx.any, !onnx.any) -> !onnx.any
  %s2 = onnx.node "ReduceSum" since 13 (%h1, %axes_1) {} -> ["s2"] : (!onnx.any, tensor<1xi64>) -> !onnx.any
  %d2 = onnx.node "Mul" since 14 (%s2, %share) {} -> ["d2"] : (!onnx.any, tensor<f32>) -> !onnx.any
  %h2 = onnx.node "Sub" since 14 (%h1, %d2) {} -> ["h2"] : (!onnx.any, !onnx.any) -> !onnx.any
  %s3 = onnx.node "ReduceSum" since 13 (%h2, %axes_1) {} -> ["s3"] : (!onnx.any, tensor<1xi64>) -> !onnx.any
  %d3 = onnx.node "Div" since 14 (%s3, %temperature) {} -> ["d3"] : (!onnx.any, tensor<f32>) -> !onnx.any
  %y = onnx.node "Sub" since 14 (%h2, %d3) {} -> ["y"] : (!onnx.any, !onnx.any) -> !onnx.any
  onnx.return %y : !onnx.any
}
}

// -----

// The size of the heads: on scores, on queries and keys, as a root that is computed; temperatures stay, by value, by name and by shape.
// CHECK: {{^}}module {
// CHECK: train.tensor @w parameter
// CHECK: train.tensor @learned parameter
// CHECK: train.tensor @temperature parameter
// CHECK: train.tensor @shaped parameter
// CHECK-NOT: train.tensor
// CHECK: func.func
// NOTE: {{.*}}'scale', 'inverse', 'size', 'quarter' are not trained, as a constant of a formula: scales attention scores by the size of the heads
module {
onnx.graph "g" ["q", "k"] [[], []] -> ["o2"] [!onnx.any] [[]] {
^bb0(%q: tensor<2x5x4xf32>, %k: tensor<2x5x4xf32>):
  %w = onnx.initializer "w" dense<0.5> : tensor<4xf32>
  %scale = onnx.initializer "scale" dense<0.5> : tensor<f32>
  %inverse = onnx.initializer "inverse" dense<2.0> : tensor<f32>
  %size = onnx.initializer "size" dense<4.0> : tensor<f32>
  %quarter = onnx.initializer "quarter" dense<0.707106769> : tensor<f32>
  %learned = onnx.initializer "learned" dense<0.6> : tensor<f32>
  %temperature = onnx.initializer "temperature" dense<0.5> : tensor<f32>
  %shaped = onnx.initializer "shaped" dense<0.5> : tensor<1xf32>
  %a = onnx.node "Mul" since 14 (%q, %w) {} -> ["a"] : (tensor<2x5x4xf32>, tensor<4xf32>) -> !onnx.any
  %kt = onnx.node "Transpose" since 13 (%k) {perm = array<i64: 0, 2, 1>} -> ["kt"] : (tensor<2x5x4xf32>) -> !onnx.any
  %m0 = onnx.node "MatMul" since 13 (%a, %kt) {} -> ["m0"] : (!onnx.any, !onnx.any) -> !onnx.any
  %s00 = onnx.node "Mul" since 14 (%m0, %scale) {} -> ["s00"] : (!onnx.any, tensor<f32>) -> !onnx.any
  %s01 = onnx.node "Mul" since 14 (%s00, %learned) {} -> ["s01"] : (!onnx.any, tensor<f32>) -> !onnx.any
  %f0 = onnx.node "Softmax" since 13 (%s01) {axis = -1 : i64} -> ["f0"] : (!onnx.any) -> !onnx.any
  %o0 = onnx.node "MatMul" since 13 (%f0, %k) {} -> ["o0"] : (!onnx.any, tensor<2x5x4xf32>) -> !onnx.any
  %p1 = onnx.node "Div" since 14 (%o0, %inverse) {} -> ["p1"] : (!onnx.any, tensor<f32>) -> !onnx.any
  %m1 = onnx.node "MatMul" since 13 (%p1, %kt) {} -> ["m1"] : (!onnx.any, !onnx.any) -> !onnx.any
  %s10 = onnx.node "Mul" since 14 (%m1, %temperature) {} -> ["s10"] : (!onnx.any, tensor<f32>) -> !onnx.any
  %f1 = onnx.node "Softmax" since 13 (%s10) {axis = -1 : i64} -> ["f1"] : (!onnx.any) -> !onnx.any
  %o1 = onnx.node "MatMul" since 13 (%f1, %k) {} -> ["o1"] : (!onnx.any, tensor<2x5x4xf32>) -> !onnx.any
  %root = onnx.node "Sqrt" since 13 (%size) {} -> ["root"] : (tensor<f32>) -> !onnx.any
  %p2 = onnx.node "Mul" since 14 (%o1, %quarter) {} -> ["p2"] : (!onnx.any, tensor<f32>) -> !onnx.any
  %m2 = onnx.node "MatMul" since 13 (%p2, %kt) {} -> ["m2"] : (!onnx.any, !onnx.any) -> !onnx.any
  %s20 = onnx.node "Div" since 14 (%m2, %root) {} -> ["s20"] : (!onnx.any, !onnx.any) -> !onnx.any
  %s21 = onnx.node "Mul" since 14 (%s20, %shaped) {} -> ["s21"] : (!onnx.any, tensor<1xf32>) -> !onnx.any
  %f2 = onnx.node "Softmax" since 13 (%s21) {axis = -1 : i64} -> ["f2"] : (!onnx.any) -> !onnx.any
  %o2 = onnx.node "MatMul" since 13 (%f2, %k) {} -> ["o2"] : (!onnx.any, tensor<2x5x4xf32>) -> !onnx.any
  onnx.return %o2 : !onnx.any
}
}

// -----

// Statistics of a batch normalisation that is written as its formula; its scale and shift are weights.
// CHECK: {{^}}module {
// CHECK: train.tensor @gamma parameter
// CHECK: train.tensor @beta parameter
// CHECK-NOT: train.tensor
// CHECK: func.func
// NOTE: {{.*}}'mean', 'variance' are not trained, as running statistic of a batch normalisation that is written as its formula
module {
onnx.graph "g" ["x"] [[]] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<2x3xf32>):
  %mean = onnx.initializer "mean" dense<[0.1, 0.2, 0.3]> : tensor<3xf32>
  %variance = onnx.initializer "variance" dense<[1.1, 1.2, 1.3]> : tensor<3xf32>
  %gamma = onnx.initializer "gamma" dense<[0.1, 0.2, 0.3]> : tensor<3xf32>
  %beta = onnx.initializer "beta" dense<[0.1, 0.2, 0.3]> : tensor<3xf32>
  %val_1 = onnx.initializer "val_1" dense<1.0e-3> : tensor<f32>
  %val_2 = onnx.initializer "val_2" dense<1.0> : tensor<f32>
  %v = onnx.node "Add" since 14 (%variance, %val_1) {} -> ["v"] : (tensor<3xf32>, tensor<f32>) -> !onnx.any
  %s = onnx.node "Sqrt" since 13 (%v) {} -> ["s"] : (!onnx.any) -> !onnx.any
  %r = onnx.node "Div" since 14 (%val_2, %s) {} -> ["r"] : (tensor<f32>, !onnx.any) -> !onnx.any
  %c = onnx.node "Mul" since 14 (%r, %gamma) {} -> ["c"] : (!onnx.any, tensor<3xf32>) -> !onnx.any
  %n = onnx.node "Neg" since 13 (%mean) {} -> ["n"] : (tensor<3xf32>) -> !onnx.any
  %d = onnx.node "Mul" since 14 (%n, %c) {} -> ["d"] : (!onnx.any, !onnx.any) -> !onnx.any
  %e = onnx.node "Add" since 14 (%d, %beta) {} -> ["e"] : (!onnx.any, tensor<3xf32>) -> !onnx.any
  %f = onnx.node "Mul" since 14 (%x, %c) {} -> ["f"] : (tensor<2x3xf32>, !onnx.any) -> !onnx.any
  %y = onnx.node "Add" since 14 (%f, %e) {} -> ["y"] : (!onnx.any, !onnx.any) -> !onnx.any
  onnx.return %y : !onnx.any
}
}

// -----

// One element and a made-up name: weights by what they do are a bias of a product and the logarithm of a temperature.
// CHECK: {{^}}module {
// CHECK: train.tensor @val_1 parameter
// CHECK: train.tensor @val_2 parameter
// CHECK: train.tensor @val_3 parameter
// CHECK-NOT: train.tensor
// CHECK: func.func
module {
onnx.graph "g" ["x"] [[]] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<2x3xf32>):
  %val_1 = onnx.initializer "val_1" dense<0.5> : tensor<3x1xf32>
  %val_2 = onnx.initializer "val_2" dense<0.5> : tensor<1xf32>
  %val_3 = onnx.initializer "val_3" dense<0.5> : tensor<f32>
  %val_4 = onnx.initializer "val_4" dense<0.5> : tensor<1xf32>
  %val_5 = onnx.initializer "val_5" dense<0.5> : tensor<f32>
  %m = onnx.node "MatMul" since 13 (%x, %val_1) {} -> ["m"] : (tensor<2x3xf32>, tensor<3x1xf32>) -> !onnx.any
  %b = onnx.node "Add" since 14 (%m, %val_2) {} -> ["b"] : (!onnx.any, tensor<1xf32>) -> !onnx.any
  %t = onnx.node "Exp" since 13 (%val_3) {} -> ["t"] : (tensor<f32>) -> !onnx.any
  %c = onnx.node "Mul" since 14 (%b, %t) {} -> ["c"] : (!onnx.any, !onnx.any) -> !onnx.any
  %d = onnx.node "Mul" since 14 (%c, %val_4) {} -> ["d"] : (!onnx.any, tensor<1xf32>) -> !onnx.any
  %y = onnx.node "Add" since 14 (%d, %val_5) {} -> ["y"] : (!onnx.any, tensor<f32>) -> !onnx.any
  onnx.return %y : !onnx.any
}
}

// -----

// The converter from JAX names everything by counting; numbers of its programs have no dimensions, arrays of one element have.
// CHECK: {{^}}module {
// CHECK: train.tensor @const_0 parameter
// CHECK: train.tensor @const_2 parameter
// CHECK-NOT: train.tensor
// CHECK: func.func
module attributes {onnx.producer = "jax2onnx"} {
onnx.graph "g" ["x"] [[]] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<2x3xf32>):
  %a = onnx.initializer "const_0" dense<0.5> : tensor<3xf32>
  %b = onnx.initializer "squareplus_half_0" dense<0.5> : tensor<f32>
  %c = onnx.initializer "const_2" dense<0.5> : tensor<1x1xf32>
  %d = onnx.initializer "const_3" dense<0x7FC00000> : tensor<2x3xf32>
  %h = onnx.node "Mul" since 14 (%x, %a) {} -> ["h"] : (tensor<2x3xf32>, tensor<3xf32>) -> !onnx.any
  %i = onnx.node "Mul" since 14 (%h, %b) {} -> ["i"] : (!onnx.any, tensor<f32>) -> !onnx.any
  %j = onnx.node "Mul" since 14 (%i, %c) {} -> ["j"] : (!onnx.any, tensor<1x1xf32>) -> !onnx.any
  %k = onnx.node "IsNaN" since 13 (%j) {} -> ["k"] : (!onnx.any) -> !onnx.any
  %y = onnx.node "Where" since 16 (%k, %d, %j) {} -> ["y"] : (!onnx.any, tensor<2x3xf32>, !onnx.any) -> !onnx.any
  onnx.return %y : !onnx.any
}
}
