#!/usr/bin/env python3
"""Writes Inputs/losses.mlir and Inputs/optimizers.mlir: PyTorch's documented formulas in float64 numpy.

usage: make_references.py     (from anywhere; the same bytes every time)
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
rng = np.random.default_rng(7)


def number(value):
    """As MLIR writes a float: always with a point."""
    text = repr(float(value))
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def dense(array):
    array = np.asarray(array)
    if array.dtype.kind == "f" and array.dtype != np.float64:
        raise TypeError(f"a tensor of {array.dtype}; references are float64: torch.tensor(..., dtype=torch.float64)")
    kind = "f64" if array.dtype == np.float64 else "i64"
    shape = "".join(f"{n}x" for n in array.shape)

    def text(a):
        if a.ndim == 0:
            return number(a) if kind == "f64" else str(int(a))
        return "[" + ", ".join(text(x) for x in a) + "]"

    return f"tensor<{shape}{kind}>", f"dense<{text(array)}> : tensor<{shape}{kind}>"


# ---- losses: each function returns the loss and its gradient ----

def log_softmax(x, axis):
    x = x - x.max(axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def class_weights(x, label, axis, ignore, smoothing):
    """What each log probability is multiplied by."""
    classes = x.shape[axis]
    kept = label != ignore
    target = np.moveaxis(np.eye(classes)[np.where(kept, label, 0)], -1, axis)
    target = target * (1 - smoothing) + smoothing / classes
    return target * np.expand_dims(kept, axis) / kept.sum()


def cross_entropy(x, label, axis=1, ignore=-100, smoothing=0.0):
    weights = class_weights(x, label, axis, ignore, smoothing)
    logp = log_softmax(x, axis)
    return -(weights * logp).sum(), np.exp(logp) * weights.sum(axis, keepdims=True) - weights


def cross_entropy_probabilities(x, target, axis=1, smoothing=0.0):
    weights = (target * (1 - smoothing) + smoothing / x.shape[axis]) / (x.size / x.shape[axis])
    logp = log_softmax(x, axis)
    return -(weights * logp).sum(), np.exp(logp) * weights.sum(axis, keepdims=True) - weights


def nll(x, label, axis=1, ignore=-100):
    weights = class_weights(x, label, axis, ignore, 0.0)
    return -(weights * x).sum(), -weights


def mse(x, y):
    return ((x - y) ** 2).mean(), 2 * (x - y) / x.size


def l1(x, y):
    return np.abs(x - y).mean(), np.sign(x - y) / x.size


def smooth_l1(x, y, beta=1.0):
    d = x - y
    small = np.abs(d) < beta
    return np.where(small, d * d / (2 * beta), np.abs(d) - beta / 2).mean(), np.where(small, d / beta, np.sign(d)) / x.size


def bce_with_logits(x, y):
    loss = np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))
    return loss.mean(), (1 / (1 + np.exp(-x)) - y) / x.size


def loss_cases():
    draw = lambda *shape: np.round(rng.normal(size=shape) * 2, 3)
    classes = lambda n, *shape: rng.integers(0, n, shape)
    x = draw(4, 5)
    label = classes(5, 4)
    yield "cross_entropy", "cross_entropy", x, label, cross_entropy(x, label)
    yield "cross_entropy_smoothed", "cross_entropy:label_smoothing=0.1", x, label, cross_entropy(x, label, smoothing=0.1)
    some = label.copy()
    some[[0, 2]] = -100
    yield "cross_entropy_ignored", "cross_entropy", x, some, cross_entropy(x, some)
    yield "cross_entropy_ignored_smoothed", "cross_entropy:label_smoothing=0.3", x, some, cross_entropy(x, some, smoothing=0.3)
    own = label.copy()
    own[1] = 3
    yield "cross_entropy_ignored_class", "cross_entropy:ignore_index=3", x, own, cross_entropy(x, own, ignore=3)
    x, label = draw(2, 3, 7), classes(7, 2, 3)
    yield "cross_entropy_last_axis", "cross_entropy:axis=-1", x, label, cross_entropy(x, label, axis=2)
    x, label = draw(2, 3, 2, 5), classes(3, 2, 2, 5)
    yield "cross_entropy_images", "cross_entropy", x, label, cross_entropy(x, label)
    x, label = draw(6), np.array(4)
    yield "cross_entropy_one_sample", "cross_entropy", x, label, cross_entropy(x, label, axis=0)
    x = draw(3, 4) * 300
    label = classes(4, 3)
    yield "cross_entropy_large_logits", "cross_entropy", x, label, cross_entropy(x, label)
    x = draw(4, 5)
    p = np.exp(draw(4, 5))
    p /= p.sum(1, keepdims=True)
    yield "cross_entropy_probabilities", "cross_entropy:probabilities=1", x, p, cross_entropy_probabilities(x, p)
    yield ("cross_entropy_probabilities_smoothed", "cross_entropy:probabilities=1,label_smoothing=0.2", x, p,
           cross_entropy_probabilities(x, p, smoothing=0.2))
    later = np.random.default_rng(11)  # of its own: the cases after these keep their numbers
    x, p = np.round(later.normal(size=(2, 3, 7)) * 2, 3), later.dirichlet(np.ones(7), (2, 3))
    yield ("cross_entropy_probabilities_last_axis", "cross_entropy:axis=-1,probabilities=1,label_smoothing=0.1", x, p,
           cross_entropy_probabilities(x, p, axis=2, smoothing=0.1))
    x, p = np.round(later.normal(size=(2, 3, 2, 5)) * 2, 3), np.moveaxis(later.dirichlet(np.ones(3), (2, 2, 5)), -1, 1)
    yield "cross_entropy_probabilities_images", "cross_entropy:probabilities=1", x, p, cross_entropy_probabilities(x, p)
    x, label = log_softmax(draw(4, 3, 2), 1), classes(3, 4, 2)
    label[1, 1] = -100
    yield "nll", "nll", x, label, nll(x, label)
    x, y = draw(3, 5), draw(3, 5)
    y[0, :2] = x[0, :2]  # no error at all
    yield "mse", "mse", x, y, mse(x, y)
    yield "l1", "l1", x, y, l1(x, y)
    y[1] = x[1] + np.array([0.5, -0.5, 0.25, 0.75, 1.0])  # at beta, too
    x, y = np.round(x * 8) / 8, np.round(y * 8) / 8
    yield "smooth_l1", "smooth_l1", x, y, smooth_l1(x, y)
    yield "smooth_l1_beta", "smooth_l1:beta=0.5", x, y, smooth_l1(x, y, 0.5)
    x = np.array([[0.0, 1.5, -1.5, 80.0], [-80.0, 700.0, -700.0, 0.0]])
    y = np.array([[0.0, 1.0, 0.0, 0.25], [1.0, 1.0, 0.0, 1.0]])
    yield "bce_with_logits", "bce_with_logits", x, y, bce_with_logits(x, y)


def write_losses():
    out = ["// Losses and gradients in float64, written by make_references.py.",
           "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"]
    for name, spec, x, label, (loss, gradient) in loss_cases():
        (xt, xv), (lt, lv), (_, gv) = dense(x), dense(label), dense(gradient)
        out.append(f"func.func private @{name}(\n  {xt} {{test.value = {xv}, test.gradient = {gv}}},\n  {lt} {{test.value = {lv}}})\n"
                   f'  attributes {{test.loss = "{spec}", test.result = {number(loss)} : f64}}')
    (HERE / "Inputs" / "losses.mlir").write_text("\n".join(out) + "\n")


# ---- optimizers: torch.optim's documented algorithms, tensor by tensor ----

class Sgd:
    def __init__(self, lr, momentum=0, weight_decay=0, nesterov=False):
        self.lr, self.momentum, self.weight_decay, self.nesterov = lr, momentum, weight_decay, nesterov
        self.buffer = None

    def step(self, p, g, t):
        if self.weight_decay:
            g = g + self.weight_decay * p
        if self.momentum:
            self.buffer = g if t == 1 else self.momentum * self.buffer + g
            g = g + self.momentum * self.buffer if self.nesterov else self.buffer
        return p - self.lr * g


class Adam:
    def __init__(self, lr, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0, decoupled=False):
        self.lr, self.beta1, self.beta2, self.epsilon = lr, beta1, beta2, epsilon
        self.weight_decay, self.decoupled = weight_decay, decoupled
        self.m = self.v = 0

    def step(self, p, g, t):
        if self.decoupled:
            p = p - self.lr * self.weight_decay * p
        else:
            g = g + self.weight_decay * p
        self.m = self.beta1 * self.m + (1 - self.beta1) * g
        self.v = self.beta2 * self.v + (1 - self.beta2) * g * g
        m = self.m / (1 - self.beta1 ** t)
        v = self.v / (1 - self.beta2 ** t)
        return p - self.lr * m / (np.sqrt(v) + self.epsilon)


def clip_norm(gradients, limit):
    """torch.nn.utils.clip_grad_norm_"""
    norm = np.sqrt(sum((g * g).sum() for g in gradients))
    return [g * min(1.0, limit / (norm + 1e-6)) for g in gradients]


def clip_value(gradients, limit):
    return [np.clip(g, -limit, limit) for g in gradients]


def optimizer_cases():
    sgd = lambda **kw: lambda name: Sgd(**kw)
    adam = lambda **kw: lambda name: Adam(**kw)
    same = lambda gradients: gradients
    yield "sgd", "sgd:lr=0.1", "", sgd(lr=0.1), same, ""
    yield "sgd_decay", "sgd:lr=0.1,weight_decay=0.01", "", sgd(lr=0.1, weight_decay=0.01), same, ""
    yield "sgd_momentum", "sgd:lr=0.05,momentum=0.9,weight_decay=0.0001", "", sgd(lr=0.05, momentum=0.9, weight_decay=1e-4), same, ""
    yield "sgd_nesterov", "sgd:lr=0.05,momentum=0.8,nesterov=1", "", sgd(lr=0.05, momentum=0.8, nesterov=True), same, ""
    yield "adam", "adam", "", adam(lr=1e-3), same, ""
    yield "adam_decay", "adam:lr=0.01,weight_decay=0.1", "", adam(lr=0.01, weight_decay=0.1), same, ""
    yield "adamw", "adamw", "", adam(lr=1e-3, weight_decay=0.01, decoupled=True), same, ""
    yield ("adamw_all", "adamw:lr=0.003,weight_decay=0.05,beta1=0.8,beta2=0.95,epsilon=1e-6", "",
           adam(lr=0.003, weight_decay=0.05, beta1=0.8, beta2=0.95, epsilon=1e-6, decoupled=True), same, "")
    yield "clip_norm", "sgd:lr=0.1", "", sgd(lr=0.1), lambda g: clip_norm(g, 0.7), "clip-norm=0.7"
    yield "clip_norm_unused", "sgd:lr=0.1", "", sgd(lr=0.1), lambda g: clip_norm(g, 1e6), "clip-norm=1e6"
    yield "clip_value", "sgd:lr=0.1", "", sgd(lr=0.1), lambda g: clip_value(g, 0.3), "clip-value=0.3"
    yield "clip_both", "adamw:lr=0.01", "", adam(lr=0.01, weight_decay=0.01, decoupled=True), lambda g: clip_norm(clip_value(g, 0.3), 0.5), "clip-norm=0.5 clip-value=0.3"
    grouped = lambda name: Adam(lr=0.02, weight_decay=0.0, decoupled=True) if name == "fc.bias" else Adam(lr=0.01, weight_decay=0.1, decoupled=True)
    yield "groups", "adamw:lr=0.01,weight_decay=0.1", r".*bias:lr_scale=2,weight_decay=0;fc[.].*:lr_scale=1", grouped, same, ""


def write_optimizers():
    out = ["// Parameters after some steps in float64, written by make_references.py.",
           "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"]
    names, shapes, steps = ["fc.weight", "fc.bias"], [(3, 2), (3,)], 5
    initial = [np.round(rng.normal(size=s), 3) for s in shapes]
    gradients = [np.round(rng.normal(size=(steps, *s)), 3) for s in shapes]
    for name, spec, groups, make, clip, flags in optimizer_cases():
        values, optimizers = list(initial), [make(n) for n in names]
        for t in range(steps):
            clipped = clip([g[t] for g in gradients])
            values = [o.step(v, g, t + 1) for o, v, g in zip(optimizers, values, clipped)]
        arguments = []
        for n, v, g, e in zip(names, initial, gradients, values):
            arguments.append(f'  {dense(v)[0]} {{test.name = "{n}", test.value = {dense(v)[1]},\n    test.gradients = {dense(g)[1]},\n'
                             f"    test.expected = {dense(e)[1]}}}")
        clipping = "".join(f', test.{f.split("=")[0].replace("-", "_")} = {number(f.split("=")[1])} : f64' for f in flags.split())
        out.append(f"func.func private @{name}(\n" + ",\n".join(arguments) + ")\n"
                   f'  attributes {{test.optimizer = "{spec}", test.groups = "{groups}", test.steps = {steps} : i64{clipping}}}')
    (HERE / "Inputs" / "optimizers.mlir").write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    (HERE / "Inputs").mkdir(exist_ok=True)
    write_losses()
    write_optimizers()
