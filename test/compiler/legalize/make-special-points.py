"""Writes special-points/: formulas of ONNX operators at zeros, ones, ties, bounds, negative axes and infinities, with PyTorch's gradients in float64.

    python make-special-points.py

Needs numpy, onnx and torch 2.15. Making them again gives the same bytes. A model has many formulas, each of an initializer of
its own that has the formula's name; what is differentiated is the sum of all of them.
SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import math
import pathlib

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper

FOLDER = pathlib.Path(__file__).parent / "special-points"
inf, nan = math.inf, math.nan
POINTS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 6.0, -6.0, 0.25, 1e-20, -1e-20, 100.0, -100.0, inf, -inf]
SINGLE = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -3.0, inf, -inf]
PAIRS = [[a for a in SINGLE for _ in SINGLE], [b for _ in SINGLE for b in SINGLE]]
ROWS = [[1.0, 2.0, 3.0, 4.0], [2.0, 2.0, 1.0, 2.0], [0.0, 0.0, 0.0, 0.0], [-1.0, -1.0, -1.0, -1.0], [0.0, 1.0, 0.0, 2.0], [0.0, 5.0, 0.0, 0.0],
        [7.0, 7.0, 7.0, 8.0], [-3.0, -0.0, 0.0, 3.0]]
MASKED = ROWS + [[-inf, 1.0, 2.0, 0.0], [-inf, -inf, -inf, -inf]]
WEIGHTS = torch.tensor([1.0, 2.0, 3.0, 5.0], dtype=torch.float64)


class Model:
    """One file. A formula is `build(model, x)` in ONNX, giving the name of a value, and `function(x)` in PyTorch."""

    def __init__(self, name, opset=18):
        self.name, self.opset = name, opset
        self.nodes, self.initializers, self.terms, self.arrays = [], [], [], {}

    def op(self, op, *inputs, **attributes):
        names = [i if isinstance(i, str) else self.constant(i) for i in inputs]
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, names, [output], **attributes))
        return output

    def constant(self, value, kind=np.float32):
        output = f"v{len(self.nodes)}"
        array = np.asarray(value, np.int64 if isinstance(value, list) and all(isinstance(v, int) for v in value) else kind)
        self.nodes.append(helper.make_node("Constant", [], [output], value=numpy_helper.from_array(array)))
        return output

    def traced(self, target, arguments, op, *inputs, **attributes):
        """An operator with the note of PyTorch's exporter on the operation that it was."""
        output = self.op(op, *inputs, **attributes)
        note = self.nodes[-1].metadata_props.add()
        note.key = "pkg.torch.onnx.fx_node"
        note.value = f"%{output} : [num_users=1] = call_function[target=torch.ops.aten.{target}](args = ({arguments}), kwargs = {{}})"
        return output

    def add(self, name, build, function, points):
        values = np.asarray(points, np.float32)
        x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
        function(x).sum().backward()
        self.initializers.append(numpy_helper.from_array(values, name))
        self.terms.append(self.op("ReduceSum", build(self, name), keepdims=0))
        self.arrays[f"grad/{name}"] = x.grad.numpy()

    def write(self):
        total = self.terms[0]
        for term in self.terms[1:]:
            total = self.op("Add", total, term)
        self.nodes.append(helper.make_node("Identity", [total], ["loss"]))
        graph = helper.make_graph(self.nodes, self.name, [], [helper.make_tensor_value_info("loss", onnx.TensorProto.FLOAT, [])], self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8, producer_name="")
        onnx.save(model, FOLDER / f"{self.name}.onnx")
        np.savez(FOLDER / f"{self.name}.npz", **self.arrays)


def powers():
    model = Model("powers")
    for exponent in (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.2, 2.5, 3.0, 3.5, 4.0, 5.0, 7.0, 7.5, 8.0, -0.25, -0.5, -1.0, -1.5, -2.0, -2.5, -3.0, -3.5, -4.0, -8.0):
        # Roots of -0 and of minus infinity are those of Sqrt; PyTorch has them or powf's, by how the exponent is written.
        points = [p for p in POINTS if p != -inf and str(p) != "-0.0"] if exponent in (0.5, -0.5) else POINTS
        e = float(np.float32(exponent))
        model.add(f"power {exponent}", lambda m, x, e=e: m.op("Pow", x, e), lambda x, e=e: torch.pow(x, torch.tensor(e, dtype=torch.float64)), points)
        model.add(f"powers {exponent}", lambda m, x, e=e, n=len(points): m.op("Pow", x, [e] * n), lambda x, e=e: torch.pow(x, torch.full_like(x, e)), points)
    model.write()


def choices():
    """An operand that a Where leaves out does not count: the references choose the operand first. PyTorch's own gradient of most of these is NaN."""
    model = Model("choices")

    def choose(name, build, function, condition, safe=1.0, other=None, points=POINTS):
        """build: what is chosen where condition holds; function: the same in PyTorch; other: what stands elsewhere, or 0."""
        other = other or (lambda m, x: m.constant(0.0), torch.zeros_like)
        model.add(name, lambda m, x: m.op("Where", condition[0](m, x), build(m, x), other[0](m, x)),
                  lambda x: torch.where(condition[1](x), function(torch.where(condition[1](x), x, torch.tensor(safe, dtype=torch.float64))), other[1](x)), points)
        # The same the other way round, and turned round twice.
        model.add(name + ", else", lambda m, x: m.op("Where", m.op("Not", condition[0](m, x)), other[0](m, x), build(m, x)),
                  lambda x: torch.where(condition[1](x), function(torch.where(condition[1](x), x, torch.tensor(safe, dtype=torch.float64))), other[1](x)), points)

    positive = lambda m, x: m.op("Greater", x, 0.0), lambda x: x > 0
    finite = [p for p in POINTS if abs(p) < inf]
    nonzero = lambda m, x: m.op("Not", m.op("Equal", x, 0.0)), lambda x: x != 0
    choose("sqrt", lambda m, x: m.op("Sqrt", x), torch.sqrt, positive)
    choose("log", lambda m, x: m.op("Log", x), torch.log, positive)
    choose("x log x", lambda m, x: m.op("Mul", x, m.op("Log", x)), lambda x: x * x.log(), positive, points=finite)
    choose("reciprocal", lambda m, x: m.op("Reciprocal", x), lambda x: 1 / x, nonzero)
    choose("quotient", lambda m, x: m.op("Div", m.op("Sin", x), x), lambda x: x.sin() / x, nonzero, other=(lambda m, x: m.constant(1.0), torch.ones_like), points=finite)
    choose("pow", lambda m, x: m.op("Pow", x, 0.3), lambda x: x ** float(np.float32(0.3)), positive)
    choose("pow 1.5", lambda m, x: m.op("Pow", x, 1.5), lambda x: x ** 1.5, positive, other=(lambda m, x: x, lambda x: x))
    choose("exp", lambda m, x: m.op("Exp", m.op("Mul", x, x)), lambda x: (x * x).exp(), (lambda m, x: m.op("Less", x, 3.0), lambda x: x < 3), points=[0.0, 1.0, 2.0, 50.0, inf])
    choose("asin", lambda m, x: m.op("Asin", x), torch.asin, (lambda m, x: m.op("Less", m.op("Abs", x), 1.0), lambda x: x.abs() < 1), safe=0.0)
    choose("square", lambda m, x: m.op("Mul", m.op("Mul", x, x), 0.5), lambda x: 0.5 * x * x, (lambda m, x: m.op("Less", m.op("Abs", x), 1.0), lambda x: x.abs() < 1),
           other=(lambda m, x: m.op("Sub", m.op("Abs", x), 0.5), lambda x: x.abs() - 0.5))
    choose("two steps", lambda m, x: m.op("Log", m.op("Exp", m.op("Neg", m.op("Sqrt", x)))), lambda x: x.sqrt().neg().exp().log(), positive, points=[p for p in POINTS if p < inf])
    # A choice within a choice, and a value that a choice shares with others, whose gradients count.
    inner = lambda m, x: m.op("Where", m.op("Greater", x, 0.0), m.op("Sqrt", x), 0.0)
    model.add("nested", lambda m, x: m.op("Where", m.op("Less", x, 2.0), inner(m, x), 0.0),
              lambda x: torch.where((x > 0) & (x < 2), torch.where(x > 0, x, torch.ones_like(x)).sqrt(), torch.zeros_like(x)), POINTS)
    model.add("shared", lambda m, x: m.op("Add", m.op("Where", m.op("Greater", x, 0.0), m.op("Log", x), 0.0), m.op("Mul", x, x)),
              lambda x: torch.where(x > 0, torch.where(x > 0, x, torch.ones_like(x)).log(), torch.zeros_like(x)) + x * x, finite)
    # Rows that are left out as a whole: after sums, repetition and softmax.
    norm = lambda m, x: m.op("Sqrt", m.op("ReduceSum", m.op("Mul", x, x), [1], keepdims=1))
    safe = lambda x: torch.where((x != 0).any(1, keepdim=True), x, torch.ones_like(x))
    model.add("rows by norms", lambda m, x: m.op("Where", m.op("Equal", norm(m, x), 0.0), x, m.op("Mul", m.op("Div", x, norm(m, x)), WEIGHTS.tolist())),
              lambda x: torch.where((x != 0).any(1, keepdim=True), safe(x) / safe(x).square().sum(1, keepdim=True).sqrt() * WEIGHTS, x), ROWS)
    row = lambda x: torch.where((x == -inf).all(1, keepdim=True), torch.zeros_like(x), x)
    keep = lambda x: ~(x == -inf).all(1, keepdim=True)
    for name, op, function in ("softmax", "Softmax", torch.softmax), ("log_softmax", "LogSoftmax", torch.log_softmax):
        rows = MASKED if name == "softmax" else ROWS + MASKED[-1:]
        model.add(f"{name} of rows", lambda m, x, op=op: (lambda y: m.op("Mul", m.op("Where", m.op("IsNaN", y), 0.0, y), WEIGHTS.tolist()))(m.op(op, x, axis=-1)),
                  lambda x, f=function: torch.where(keep(x), f(row(x), 1), 0) * WEIGHTS, rows)
    model.add("softmax turned", lambda m, x: (lambda y: m.op("Mul", m.op("Where", m.op("IsNaN", y), 0.0, y), WEIGHTS.tolist()))(m.op("Transpose", m.op("Softmax", m.op("Transpose", x, perm=[1, 0]), axis=0), perm=[1, 0])),
              lambda x: torch.where(keep(x), torch.softmax(row(x), 1), 0) * WEIGHTS, MASKED)
    model.write()


def written_out():
    """Functions that exporters write as formulas have the function's derivatives."""
    model = Model("written-out")
    wide = POINTS + [-88.0, 88.0, -1e4, 1e4]
    log_sigmoid = lambda m, x: m.op("Log", m.op("Sigmoid", x))
    model.add("log sigmoid", log_sigmoid, F.logsigmoid, wide)
    model.add("log of the rest", lambda m, x: m.op("Log", m.op("Sub", 1.0, m.op("Sigmoid", x))), lambda x: F.logsigmoid(-x), wide)
    inner = [0.0, -0.0, 1.0, 0.5, 0.25, 1e-20, 0.75]
    model.add("logit", lambda m, x: m.op("Log", m.op("Div", x, m.op("Sub", 1.0, x))), torch.logit, inner)
    part = lambda m, x, i: m.op("Gather", x, m.constant(i, np.int64), axis=0)

    def two(name, build, function, pairs):
        model.add(name, lambda m, x: build(m, part(m, x, 0), part(m, x, 1)), lambda x: function(x[0], x[1]), pairs)

    def angle(m, y, x):
        flat = m.op("Atan", m.op("Div", y, x))
        turned = m.op("Where", m.op("Greater", y, 0.0), m.op("Add", flat, math.pi), m.op("Sub", flat, math.pi))
        return m.op("Where", m.op("Less", x, 0.0), turned, flat)

    finite = [[a for a in SINGLE[:-2] for _ in SINGLE[:-2]], [b for _ in SINGLE[:-2] for b in SINGLE[:-2]]]
    two("angle", angle, torch.atan2, finite)
    two("product with logarithm", lambda m, a, b: m.op("Where", m.op("Equal", a, 0.0), a, m.op("Where", m.op("IsNaN", b), b, m.op("Mul", a, m.op("Log", b)))), torch.xlogy, finite)
    unequal = [list(column) for column in zip(*[pair for pair in zip(*PAIRS) if not (pair[0] == pair[1] and abs(pair[0]) == inf)])]
    two("logarithm of a sum", lambda m, a, b: m.op("Log", m.op("Add", m.op("Exp", a), m.op("Exp", b))), torch.logaddexp, unequal)
    powered = lambda m, x: m.op("Pow", 2.0, x)
    two("binary logarithm of a sum", lambda m, a, b: m.op("Div", m.op("Log", m.op("Add", powered(m, a), powered(m, b))), m.op("Log", 2.0)), torch.logaddexp2, unequal)
    cut = lambda m, x: m.op("Max", m.op("Log", x), -100.0)
    rest = {"": lambda m, x: m.op("Add", m.op("Neg", x), 1.0), ", subtracted": lambda m, x: m.op("Sub", 1.0, x)}
    chances = [[0.0, 1.0, 0.0, 1.0, 0.5, 0.5, 0.0, 1.0, 0.25], [0.0, 1.0, 1.0, 0.0, 1.0, 0.5, 0.5, 0.5, 0.0]]
    for name, one in rest.items():
        two("binary cross-entropy" + name, lambda m, x, y, one=one: m.op("Sub", m.op("Mul", m.op("Sub", y, 1.0), cut(m, one(m, x))), m.op("Mul", y, cut(m, x))),
            lambda x, y: F.binary_cross_entropy(x, y, reduction="none"), chances)
    # A known operand: comparisons with it are known, too.
    known = [1.0, -1.0, 2.0, -0.5]
    model.add("angle of known abscissae", lambda m, y: angle(m, y, known), lambda y: torch.atan2(y, torch.tensor(known, dtype=torch.float64)), [0.0, 0.0, 3.0, -2.0])

    def deviation(m, x, unbiased):
        centred = m.op("Sub", x, m.op("ReduceMean", x, [1], keepdims=1))
        variance = m.op("ReduceMean", m.op("Mul", centred, centred), [1], keepdims=0)
        return m.op("Sqrt", m.op("Div", m.op("Mul", variance, 4.0), 3.0) if unbiased else variance)

    model.add("deviation", lambda m, x: deviation(m, x, True), lambda x: x.std(1), ROWS)
    model.add("deviation of a population", lambda m, x: deviation(m, x, False), lambda x: x.std(1, unbiased=False), ROWS)
    model.add("norm by its formula", lambda m, x: m.op("Sqrt", m.op("ReduceSum", m.op("Mul", x, x), [1], keepdims=0)), lambda x: x.norm(dim=1), ROWS)
    model.add("norm by another power", lambda m, x: m.op("Pow", m.op("ReduceSum", m.op("Pow", x, 2.0), [1], keepdims=0), 0.4375),
              lambda x: torch.where((x != 0).any(1), torch.where((x != 0).any(1, keepdim=True), x, torch.ones_like(x)).square().sum(1) ** 0.4375, 0), ROWS)
    model.add("norm by powers", lambda m, x: m.op("Pow", m.op("ReduceSum", m.op("Pow", x, 2.0), [1], keepdims=0), 0.5), lambda x: x.norm(dim=1), ROWS)
    model.write()


def ties():
    """Equal elements, with and without what the exporter notes about them."""
    model = Model("ties")
    points = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, inf, -inf]
    number = "%x, %scalar_tensor_default"
    low = lambda m, x: m.traced("clamp.Tensor", number, "Max", x, 0.0)
    model.add("clamp by numbers", lambda m, x: m.traced("clamp.Tensor", number + ", %scalar_tensor_default_1", "Min", m.traced("clamp.Tensor", number + ", %scalar_tensor_default_1", "Max", x, 0.0), 1.0),
              lambda x: x.clamp(0, 1), points)
    model.add("clamp from below", low, lambda x: x.clamp(min=0), points)
    model.add("clamp from above", lambda m, x: m.traced("clamp.Tensor", "%x, None, %scalar_tensor_default", "Min", x, 1.0), lambda x: x.clamp(max=1), points)
    model.add("clamp without tensors", lambda m, x: m.traced("clamp_min.default", "%x, 0", "Max", x, 0.0), lambda x: x.clamp(min=0), points)
    model.add("root of clamp", lambda m, x: m.op("Sqrt", low(m, x)), lambda x: x.clamp(min=0).sqrt(), points)
    model.add("reciprocal of clamp", lambda m, x: m.op("Reciprocal", low(m, x)), lambda x: x.clamp(min=0).reciprocal(), points)
    tensor = torch.tensor(0.0, dtype=torch.float64), torch.tensor(1.0, dtype=torch.float64)
    clip = lambda note: lambda m, x: m.traced("clamp.Tensor", note, "Clip", x, 0.0, 1.0)
    model.add("clamp by tensors", lambda m, x: m.traced("clamp.Tensor", "%x, %clone, %clone_1", "Min", m.traced("clamp.Tensor", "%x, %clone, %clone_1", "Max", x, 0.0), 1.0), lambda x: x.clamp(*tensor), points)
    model.add("clip by tensors", clip("%x, %clone, %clone_1"), lambda x: x.clamp(*tensor), points)
    model.add("clip by numbers", clip("%x, %scalar_tensor_default, %scalar_tensor_default_1"), lambda x: x.clamp(0, 1), points)
    model.add("clip", lambda m, x: m.op("Clip", x, 0.0, 1.0), lambda x: x.clamp(0, 1), points)
    model.add("maximum", lambda m, x: m.traced("maximum.default", "%x, %clone", "Max", x, 0.0), lambda x: torch.maximum(x, tensor[0]), points)
    model.add("max", lambda m, x: m.op("Max", x, 0.0), lambda x: torch.maximum(x, tensor[0]), points)
    part = lambda m, x, i: m.op("Gather", x, m.constant(i, np.int64), axis=0)
    finite = [[a for a in SINGLE[:-2] for _ in SINGLE[:-2]], [b for _ in SINGLE[:-2] for b in SINGLE[:-2]]]
    model.add("larger", lambda m, x: m.op("Max", part(m, x, 0), part(m, x, 1)), lambda x: torch.maximum(x[0], x[1]), finite)
    model.add("smaller", lambda m, x: m.op("Min", part(m, x, 0), part(m, x, 1)), lambda x: torch.minimum(x[0], x[1]), finite)
    one = lambda m, x: m.op("Squeeze", m.op("Slice", x, [0], [1]), [0])
    model.add("computed bound", lambda m, x: m.op("Clip", x, one(m, x)), lambda x: torch.clamp(x, min=x[0]), [1.0, 1.0, 0.0, 2.0])
    for name, op, target, function in (("largest", "ReduceMax", "max.dim", lambda x: x.max(dim=1).values), ("least", "ReduceMin", "min.dim", lambda x: x.min(dim=1).values)):
        model.add(f"{name} of a row", lambda m, x, op=op, target=target: m.traced(target, "%x, 1", op, x, [1], keepdims=0), function, ROWS)
    model.add("amax", lambda m, x: m.traced("amax.default", "%x, [1]", "ReduceMax", x, [1], keepdims=0), lambda x: x.amax(1), ROWS)
    model.add("amin", lambda m, x: m.op("ReduceMin", x, [1], keepdims=0), lambda x: x.amin(1), ROWS)
    # The larger one leaves the other out, however its derivative is: a loss that is cut off at a logarithm of 0.
    model.add("cut logarithm", lambda m, x: m.op("Max", m.op("Log", x), -100.0), lambda x: torch.where(x > 0, torch.where(x > 0, x, 1.0).log(), torch.zeros_like(x)), [0.0, 1.0, 0.5, 1e-20])
    model.write()


def traced_formulas():
    """Formulas that the exporter shortens, and notes."""
    model = Model("traced-formulas")
    labels, smoothing = [0, -100, 2, -100, 1, 0, 3, 2], 0.25
    for name, weights in ("", []), (" with weights", [[1.0, 0.0, 2.0, 0.5]]):
        for number, reduction in enumerate(("none", "mean", "sum")):
            model.add(f"smoothed labels{name}, {reduction}",
                      lambda m, x, w=weights, k=number, r=reduction: m.traced("cross_entropy_loss.default", f"%x, %label, {'%w' if w else None}, {k}, -100, {smoothing}",
                                                                              "SoftmaxCrossEntropyLoss", x, labels, *w, ignore_index=-100, reduction=r),
                      lambda x, w=weights, r=reduction: F.cross_entropy(x, torch.tensor(labels), *[torch.tensor(each).double() for each in w], reduction=r, label_smoothing=smoothing), ROWS)
    mask = [[True, False, True, True], [False, False, False, False], [True, True, True, True], [False, True, False, False]]
    hidden = np.where(mask, 0.0, -inf).astype(np.float32)
    noted = "scaled_dot_product_attention.default", "%q, %k, %v, %mask"
    weigh = lambda m, y: m.op("Mul", y, WEIGHTS.tolist())

    def attend(x, visible):
        """Weights of rows of scores, those of a row without a visible one zero."""
        score = torch.where(visible, x, torch.tensor(-inf, dtype=torch.float64))
        return torch.where(visible.any(1, keepdim=True), torch.softmax(torch.where(visible.any(1, keepdim=True), score, torch.zeros_like(x)), 1), 0) * WEIGHTS

    def by_truth(m, x):
        condition = m.op("Cast", np.asarray(mask, np.float32).tolist(), to=onnx.TensorProto.BOOL)
        least = float(np.finfo(np.float32).min)
        weights = m.traced(*noted, "Softmax", m.op("Add", x, m.traced(*noted, "Where", condition, 0.0, least)), axis=-1)
        return weigh(m, m.traced(*noted, "Where", m.op("IsNaN", weights), 0.0, weights))

    model.add("mask of truth values", by_truth, lambda x: attend(x, torch.tensor(mask)), ROWS[:4])
    model.add("mask of numbers", lambda m, x: weigh(m, m.traced(*noted, "Softmax", m.op("Add", x, hidden.tolist()), axis=-1)), lambda x: attend(x, torch.tensor(mask)), ROWS[:4])
    model.write()


powers()
choices()
written_out()
ties()
traced_formulas()
