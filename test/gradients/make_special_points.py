#!/usr/bin/env python3
# Writes Inputs/special-points.mlir: gradients at kinks, ties, poles, zeros, infinities and empty tensors.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gradients are PyTorch's in float64 for a cotangent of ones. A case is the text of our operations and the same
computation in PyTorch. `{x}` in a text is the type of argument x, `{y}` the type of the result.

    python3 make_special_points.py > Inputs/special-points.mlir
"""
import math
import re
import struct

import torch
import torch.nn.functional as F

inf, nan = math.inf, math.nan
NAMES = {torch.float64: "f64", torch.float32: "f32", torch.int64: "i64", torch.int32: "i32", torch.int8: "i8", torch.bool: "i1"}


def number(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if math.isnan(value) or math.isinf(value):
        return "0x%016X" % struct.unpack("<Q", struct.pack("<d", nan if math.isnan(value) else value))[0]
    return repr(float(value)) if "." in repr(float(value)) else repr(float(value)).replace("e", ".0e")


def elements(tensor):
    def nested(values):
        return "[" + ", ".join(map(nested, values)) + "]" if isinstance(values, list) else number(values)
    return f"dense<{nested(tensor.tolist()) if tensor.numel() else ''}> : {type_of(tensor)}"


def type_of(tensor):
    return "tensor<" + "".join(f"{size}x" for size in tensor.shape) + NAMES[tensor.dtype] + ">"


def tensor_of(values):
    if isinstance(values, torch.Tensor):
        return values
    tensor = torch.tensor(values)
    return tensor.double() if tensor.is_floating_point() or tensor.numel() == 0 else tensor


def case(name, text, function, **arguments):
    """`text` defines %y from the arguments. Floating-point arguments get their gradients."""
    values = {key: tensor_of(value) for key, value in arguments.items()}
    for value in values.values():
        if value.is_floating_point():
            value.requires_grad_()
    y = function(**values)
    if y.requires_grad:
        y.backward(torch.ones_like(y))
    types = {key: type_of(value) for key, value in values.items()} | {"y": type_of(y)}
    header = []
    for key, value in values.items():
        attributes = f"test.value = {elements(value.detach())}"
        if value.is_floating_point():
            gradient = value.grad if value.grad is not None else torch.zeros_like(value)
            attributes += f", test.gradient = {elements(gradient)}"
        header.append(f"%{key}: {type_of(value)} {{{attributes}}}")
    body = re.sub(r"\{(\w+)\}", lambda match: types.get(match[1], match[0]), text)
    print(f"func.func @{name}({', '.join(header)}) -> {types['y']} {{")
    print("\n".join("  " + line.strip() for line in body.strip().splitlines()))
    print(f"  return %y : {types['y']}\n}}\n")


def unary(name, function, values):
    case(name.split(".")[1], f"%y = {name} %x : {{x}}", lambda x: function(x), x=values)


def binary(suffix, name, function, a, b):
    case(name.split(".")[1] + "_" + suffix, f"%y = {name} %a, %b : {{a}}", lambda a, b: function(a, b), a=a, b=b)


print("// Kinks, ties, poles, zeros, infinities, empty tensors: gradients of PyTorch for a cotangent of ones.")
print("// Written by make_special_points.py.")
print("// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n")

# Elementwise arithmetic.
case("addf_one_value_twice", "%y = arith.addf %x, %x : {x}", lambda x: x + x, x=[inf, nan, 0.0])
case("subf_one_value_twice", "%y = arith.subf %x, %x : {x}", lambda x: x - x, x=[inf, nan, 0.0])
binary("zero_times_infinity", "arith.mulf", torch.mul, [0.0, inf, 0.0, nan], [inf, 0.0, 0.0, 1.0])
case("mulf_one_value_twice", "%y = arith.mulf %x, %x : {x}", lambda x: x * x, x=[inf, 0.0, -3.0])
binary("at_zero_and_infinity", "arith.divf", torch.div, [1.0, -1.0, 0.0, 1.0, inf], [0.0, 0.0, 2.0, inf, 2.0])
case("divf_one_value_twice", "%y = arith.divf %x, %x : {x}", lambda x: x / x, x=[4.0, -0.5])
binary("at_jumps", "arith.remf", torch.fmod, [6.0, -6.0, 0.0, 1.0], [3.0, 3.0, 2.0, inf])
unary("arith.negf", torch.neg, [inf, nan, 0.0])
case("truncf_out_of_range", "%s = arith.truncf %x : {x} to tensor<3xf32>\n%y = arith.extf %s : tensor<3xf32> to {y}",
     lambda x: x.float().double(), x=[1e300, 1e-300, inf])
case("select_ignores_the_other_side", "%y = arith.select %c, %a, %b : {c}, {a}",
     lambda c, a, b: torch.where(c, a, b), c=[True, False, True], a=[1.0, nan, inf], b=[nan, 2.0, 3.0])
case("relu_at_zero", "%zero = arith.constant dense<0.0> : {x}\n%positive = arith.cmpf ugt, %x, %zero : {x}\n"
     "%y = arith.select %positive, %x, %zero : tensor<4xi1>, {x}", torch.relu, x=[-2.0, 0.0, 3.0, inf])

# Elementary functions.
unary("math.absf", torch.abs, [-2.0, 0.0, -0.0, 3.0, -inf])
unary("math.exp", torch.exp, [-inf, -800.0, 0.0, 800.0, inf, nan])
unary("math.exp2", torch.exp2, [-inf, -2000.0, 0.0, 2000.0, inf])
unary("math.expm1", torch.expm1, [-inf, -800.0, 0.0, 1e-300, 800.0, inf])
unary("math.log", torch.log, [0.0, -0.0, 1.0, inf, -2.0])
unary("math.log2", torch.log2, [0.0, 1.0, inf])
unary("math.log10", torch.log10, [0.0, 1.0, inf])
unary("math.log1p", torch.log1p, [-1.0, 0.0, 1e-300, inf])
unary("math.sqrt", torch.sqrt, [0.0, 4.0, inf, -1.0])
unary("math.rsqrt", torch.rsqrt, [0.0, 4.0, inf, -1.0])
unary("math.tanh", torch.tanh, [-inf, -400.0, 0.0, 400.0, inf])
unary("math.erf", torch.erf, [-inf, -40.0, 0.0, 40.0, inf])
unary("math.erfc", torch.erfc, [-inf, -40.0, 0.0, 40.0, inf])
unary("math.sin", torch.sin, [0.0, 1e9, inf])
unary("math.cos", torch.cos, [0.0, 1e9, inf])
unary("math.tan", torch.tan, [0.0, math.pi / 2, inf])
unary("math.asin", torch.asin, [-1.0, 0.0, 1.0, 2.0])
unary("math.acos", torch.acos, [-1.0, 0.0, 1.0, 2.0])
unary("math.atan", torch.atan, [-inf, 0.0, 1e200, inf])
unary("math.sinh", torch.sinh, [-800.0, 0.0, 800.0, inf])
unary("math.cosh", torch.cosh, [-800.0, 0.0, 800.0, inf])
unary("math.asinh", torch.asinh, [-inf, 0.0, inf])
unary("math.acosh", torch.acosh, [1.0, 0.5, inf])
unary("math.atanh", torch.atanh, [-1.0, 0.0, 1.0])
binary("on_the_axes", "math.atan2", torch.atan2, [0.0, 1.0, 0.0, 0.0], [1.0, 0.0, -2.0, 0.0])
binary("at_zero", "math.copysign", torch.copysign, [0.0, -0.0, 2.0, -2.0, 2.0], [1.0, -1.0, -0.0, 0.0, nan])
case("fma_zero_times_infinity", "%y = math.fma %a, %b, %c : {a}", lambda a, b, c: a * b + c, a=[0.0, inf], b=[inf, 2.0],
     c=[1.0, inf])
binary("of_zero", "math.powf", torch.pow, [0.0, 0.0, 0.0, 0.0, 2.0, 0.0], [1.0, 2.0, 0.0, 0.5, 2.0, -1.0])
binary("negative_base", "math.powf", torch.pow, [-2.0, -3.0, -2.0], [3.0, 2.0, 0.5])
binary("infinite", "math.powf", torch.pow, [inf, 2.0, 0.5], [2.0, inf, inf])
case("powf_constant_exponents", "%e = arith.constant dense<3.0> : {x}\n%y = math.powf %x, %e : {x}",
     lambda x: x ** 3.0, x=[-2.0, 0.0, inf])
case("powf_constant_zero", "%e = arith.constant dense<0.0> : {x}\n%y = math.powf %x, %e : {x}",
     lambda x: x ** 0.0, x=[-2.0, 0.0, 5.0])
for name, function in {"floor": torch.floor, "ceil": torch.ceil, "roundeven": torch.round, "trunc": torch.trunc}.items():
    case(name + "_has_none", f"%f = math.{name} %x : {{x}}\n%y = arith.mulf %f, %x : {{x}}",
         lambda x, function=function: function(x) * x, x=[1.5, 2.0, -2.5, -0.0])
case("round_has_none", "%f = math.round %x : {x}\n%y = arith.mulf %f, %x : {x}",  # halves go away from zero
     lambda x: torch.trunc(x + torch.copysign(torch.tensor(0.5), x)) * x, x=[1.5, 2.0, -2.5, 0.5])

# Movement: what is empty, of size one or without dimensions.
case("broadcast_of_nothing", "%y = nn.broadcast %x dims = [0, 2] : {x} -> {y}", lambda x: x[:, None, :].expand(2, 0, 3),
     x=[[1.0], [2.0]])
case("broadcast_ones", "%y = nn.broadcast %x dims = [0, 1] : {x} -> {y}", lambda x: x.expand(1, 3), x=[[5.0]])
case("reshape_to_scalar", "%y = nn.reshape %x : {x} -> {y}", lambda x: x.reshape(()), x=[[5.0]])
case("transpose_of_nothing", "%y = nn.transpose %x perm = [1, 0] : {x} -> {y}", lambda x: x.T, x=torch.zeros(0, 3).double())
case("slice_of_nothing", "%y = nn.slice %x starts = [1] strides = [1] : {x} -> {y}", lambda x: x[1:1], x=[1.0, 2.0])
case("slice_leaves_a_tail", "%y = nn.slice %x starts = [0] strides = [4] : {x} -> {y}", lambda x: x[::4],
     x=[1.0, nan, inf, 4.0, 5.0, 6.0, 7.0])
case("pad_nothing", "%y = nn.pad %x, %v low = [0] high = [2] interior = [3] : {x}, {v} -> {y}",
     lambda x, v: torch.cat([x, v.expand(2)]), x=[3.0], v=0.5)
case("pad_of_infinity", "%y = nn.pad %x, %v low = [1] high = [0] interior = [1] : {x}, {v} -> {y}",
     lambda x, v: torch.stack([v, x[0], v, x[1]]), x=[inf, nan], v=-inf)
case("concat_one_value_twice_and_nothing", "%y = nn.concat %x, %n, %x axis = 0 : {x}, {n}, {x} -> {y}",
     lambda x, n: torch.cat([x, n, x]), x=[inf, 2.0], n=[])
case("reverse_of_one", "%y = nn.reverse %x axes = [0, 1] : {x}", lambda x: x.flip([0, 1]), x=[[1.0, 2.0]])
case("detach_has_none", "%d = nn.detach %x : {x}\n%y = arith.mulf %d, %x : {x}", lambda x: x.detach() * x, x=[1.5, -2.0, inf])
case("straight_through_rounding", "%r = math.roundeven %x : {x}\n%y = nn.straight_through %r, %x : {x}",
     lambda x: x + (x.round() - x).detach(), x=[-2.5, 0.5, 3.25])
case("random_has_none", "%step = arith.constant dense<3> : tensor<i64>\n"
     "%bits, %more = nn.random %step key = 11 : tensor<i64> -> tensor<2xi32>\n%f = arith.sitofp %bits : tensor<2xi32> to {x}\n"
     "%zero = arith.constant dense<0.0> : {x}\n%n = arith.mulf %f, %zero : {x}\n%y = arith.addf %n, %x : {x}",
     lambda x: x * 1, x=[1.0, inf])

# Reductions.
case("sum_of_nothing", "%y = nn.reduce sum %x axes = [1] : {x} -> {y}", lambda x: x.sum(1), x=torch.zeros(2, 0).double())
case("sum_of_infinities", "%y = nn.reduce sum %x axes = [0] : {x} -> {y}", lambda x: x.sum(0), x=[inf, -inf, nan])
case("prod_zeros", "%y = nn.reduce prod %x axes = [1] : {x} -> {y}", lambda x: x.prod(1),
     x=[[2.0, 0.0, 3.0], [0.0, 0.0, 5.0], [2.0, 3.0, 4.0]])
case("max_ties", "%y = nn.reduce max %x axes = [1] : {x} -> {y}", lambda x: x.amax(1),
     x=[[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0], [inf, 1.0, inf, -inf]])
case("min_ties", "%y = nn.reduce min %x axes = [0] : {x} -> {y}", lambda x: x.amin(0), x=[1.0, 3.0, 1.0, 2.0])
case("moments_of_equal_values", "%m, %v = nn.moments %x axes = [1] : {x} -> {y}\n%y = arith.addf %m, %v : {y}",
     lambda x: x.mean(1) + x.var(1, unbiased=False), x=[[2.0, 2.0, 2.0], [1.0, 2.0, 6.0]])
case("moments_of_one", "%m, %v = nn.moments %x axes = [1] : {x} -> {y}\n%y = arith.addf %m, %v : {y}",
     lambda x: x.mean(1) + x.var(1, unbiased=False), x=[[2.0], [-3.0]])
case("cumsum_of_infinity", "%y = nn.cumsum %x axis = 0 exclusive : {x}", lambda x: F.pad(x.cumsum(0)[:-1], (1, 0)),
     x=[1.0, inf, -inf, 2.0])
case("softmax_extremes", "%y = nn.softmax %x axis = 1 : {x}", lambda x: x.softmax(1) * 1,
     x=[[0.0, -inf, 1.0], [1000.0, -1000.0, 0.0], [1e300, 1e300, 1e300]])
case("softmax_picks_one", "%p = nn.softmax %x axis = 0 : {x}\n%y = nn.slice %p starts = [1] strides = [1] : {x} -> {y}",
     lambda x: x.softmax(0)[1:2], x=[2.0, 2.0, -inf])
case("log_softmax_extremes", "%p = nn.log_softmax %x axis = 0 : {x}\n%y = nn.slice %p starts = [0] strides = [1] : {x} -> {y}",
     lambda x: x.log_softmax(0)[0:1], x=[-1000.0, 1000.0, -inf])
case("arg_reduce_has_none", "%i = nn.arg_reduce max %x axis = 0 : {x} -> tensor<i64>\n%f = arith.sitofp %i : tensor<i64> to {y}\n"
     "%m = nn.reduce sum %x axes = [0] : {x} -> {y}\n%y = arith.mulf %f, %m : {y}",
     lambda x: (x == 3.0).double().argmax() * x.sum(), x=[1.0, 3.0, 3.0])
case("arg_sort_keeps_ties_in_order", "%i = nn.arg_sort %x axis = 0 descending : {x} -> tensor<2xi64>\n"
     "%y = nn.gather_elements %x, %i axis = 0 : {x}, tensor<2xi64> -> {y}",
     lambda x: x.gather(0, x.argsort(dim=0, descending=True, stable=True)[:2]), x=[1.0, 3.0, 3.0, 3.0])

# Contractions.
DOT = "%y = nn.dot %a, %b batch = [] x [] contract = [1] x [0] : {a}, {b} -> {y}"
case("dot_over_nothing", DOT, lambda a, b: a @ b, a=torch.zeros(2, 0).double(), b=torch.zeros(0, 3).double())
case("dot_zero_times_infinity", DOT, lambda a, b: a @ b, a=[[0.0, 1.0]], b=[[inf], [2.0]])
case("dot_one_value_twice", "%y = nn.dot %a, %a batch = [] x [] contract = [0] x [0] : {a}, {a} -> {y}",
     lambda a: a @ a, a=[3.0, -4.0])

# Convolution and pooling, channels last. Windows that leave elements unread, lie in padding, overlap, or tie.
WINDOW = "strides = [3] padding = [2] to [0] dilations = [2] groups = 1"


def channels_first(x):
    return x.movedim(-1, 1)


def channels_last(x):
    return x.movedim(1, -1)


def conv(x, w, pads=(2, 0), stride=3, dilation=2):
    return channels_last(F.conv1d(F.pad(channels_first(x), pads), w.permute(2, 1, 0), stride=stride, dilation=dilation))


def conv_input_grad(g, w, size):
    x = torch.zeros(1, size, w.shape[1], dtype=torch.float64, requires_grad=True)
    return torch.autograd.grad(conv(x, w), x, g, create_graph=True)[0]


def conv_filter_grad(x, g, size):
    w = torch.zeros(size, x.shape[2], g.shape[2], dtype=torch.float64, requires_grad=True)
    return torch.autograd.grad(conv(x, w), w, g, create_graph=True)[0]


X = [[[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]]
case("conv_unread_elements", f"%y = nn.conv %x, %w {WINDOW} : {{x}}, {{w}} -> {{y}}", conv, x=X, w=[[[2.0]], [[-1.0]]])
case("conv_input_grad_unread_elements", f"%y = nn.conv_input_grad %g, %w {WINDOW} : {{g}}, {{w}} -> {{y}}",
     lambda g, w: conv_input_grad(g, w, 6), g=[[[1.0], [-2.0]]], w=[[[2.0]], [[-1.0]]])
case("conv_filter_grad_unread_elements", f"%y = nn.conv_filter_grad %x, %g {WINDOW} : {{x}}, {{g}} -> {{y}}",
     lambda x, g: conv_filter_grad(x, g, 2), x=X, g=[[[1.0], [-2.0]]])

POOL = "window = [2] strides = [2] padding = [0] to [0] overhang = [0] dilations = [1]"
OVERLAP = "window = [3] strides = [1] padding = [1] to [1] overhang = [0] dilations = [1]"


def max_pool(x, window, stride, padding, dilation=1):
    return channels_last(F.max_pool1d(channels_first(x), window, stride, padding, dilation))


case("max_pool_ties", f"%y, %i = nn.max_pool %x {POOL} : {{x}} -> {{y}}, tensor<1x2x1xi8>", lambda x: max_pool(x, 2, 2, 0),
     x=[[[2.0], [2.0], [1.0], [1.0]]])
case("max_pool_infinities", f"%y, %i = nn.max_pool %x {OVERLAP} : {{x}} -> {{y}}, tensor<1x5x1xi8>",
     lambda x: max_pool(x, 3, 1, 1), x=[[[inf], [1.0], [inf], [-inf], [-inf]]])
case("max_pool_grad_repeated", f"%y = nn.max_pool_grad %g, %i {OVERLAP} : {{g}}, {{i}} -> {{y}}",
     lambda g, i: torch.zeros(1, 3, 1, dtype=torch.float64).scatter_add(1, i + torch.arange(3).view(1, 3, 1) - 1, g),
     g=[[[1.0], [inf], [2.0]]], i=torch.tensor([[[2], [1], [1]]], dtype=torch.int8))  # elements 1, 1 and 2


def avg_pool(x, window, stride, padding, counted=False):
    return channels_last(F.avg_pool1d(channels_first(x), window, stride, padding, count_include_pad=counted))


def avg_pool_grad(g, size, *options):
    x = torch.zeros(1, size, 1, dtype=torch.float64, requires_grad=True)
    return torch.autograd.grad(avg_pool(x, *options), x, g, create_graph=True)[0]


case("avg_pool_borders", f"%y = nn.avg_pool %x {OVERLAP} : {{x}} -> {{y}}", lambda x: avg_pool(x, 3, 1, 1),
     x=[[[inf], [1.0], [2.0], [nan]]])
case("avg_pool_borders_counted", f"%y = nn.avg_pool %x {OVERLAP} count_include_pad : {{x}} -> {{y}}",
     lambda x: avg_pool(x, 3, 1, 1, True), x=[[[1.0], [1.0], [2.0], [3.0]]])
case("avg_pool_grad_borders", f"%y = nn.avg_pool_grad %g {OVERLAP} : {{g}} -> {{y}}",
     lambda g: avg_pool_grad(g, 4, 3, 1, 1), g=[[[inf], [1.0], [2.0], [3.0]]])

# Indexing.
case("gather_repeated", "%y = nn.gather %x, %i axis = 0 : {x}, {i} -> {y}", lambda x, i: x[i],
     x=[[inf], [1.0], [2.0]], i=[1, 1, 2, 1])
case("scatter_add_repeated", "%y = nn.scatter_add %i, %u axis = 0 : {i}, {u} -> {y}",
     lambda i, u: torch.zeros(3, 1, dtype=torch.float64).index_add(0, i, u), i=[1, 1, 0], u=[[1.0], [inf], [2.0]])
case("gather_elements_repeated", "%y = nn.gather_elements %x, %i axis = 0 : {x}, {i} -> {y}", lambda x, i: x.gather(0, i),
     x=[inf, 1.0, 2.0], i=[1, 1, 2])


def scatter(name, mode, function, **arguments):
    case(name, f"%y = nn.scatter_elements {mode} %x, %i, %u axis = 0 : {{x}}, {{i}}, {{u}} -> {{y}}", function, **arguments)


scatter("scatter_set_overwrites", "set", lambda x, i, u: x.scatter(0, i, u), x=[1.0, inf, 1.0], i=[1], u=[5.0])
scatter("scatter_add_to_itself", "add", lambda x, i, u: x.scatter_add(0, i, u), x=[1.0, 2.0], i=[1, 1], u=[5.0, inf])
scatter("scatter_mul_zeros", "mul", lambda x, i, u: torch.stack([x[0] * u[0] * u[1], x[1] * u[2] * u[3]]),
        x=[2.0, 3.0], i=[0, 0, 1, 1], u=[0.0, 7.0, 4.0, 5.0])
for mode in "max", "min":
    scatter(f"scatter_{mode}_ties", mode, lambda x, i, u, mode=mode: x.scatter_reduce(0, i, u, "a" + mode),
            x=[1.0, 3.0, inf], i=[0, 0, 1, 1, 2], u=[1.0, 1.0, 3.0, 2.0, inf])

# Loops: a carried value meets a kink in the body; one iteration.
case("scan_kink", "%y = nn.scan 3 carry(%h) over() with(%w) : ({h}, {w}) -> {y} {\n"
     "^bb0(%a: {h}, %v: {w}):\n%0 = arith.mulf %a, %v : {h}\n%1 = math.absf %0 : {h}\nnn.yield %1 : {h}\n}",
     lambda h, w: ((h * w).abs() * w).abs().mul(w).abs(), h=[1.0, 0.0, -2.0], w=[-3.0, 4.0, 0.0])
case("scan_once", "%y = nn.scan 1 carry(%h) over() with(%w) : ({h}, {w}) -> {y} {\n"
     "^bb0(%a: {h}, %v: {w}):\n%0 = arith.divf %a, %v : {h}\nnn.yield %0 : {h}\n}", lambda h, w: h / w,
     h=[1.0, -2.0], w=[0.0, inf])
