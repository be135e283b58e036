#!/usr/bin/env python3
"""Writes the ONNX functions of this folder, and functions.json: what PyTorch trains with the same formulas, in float64.

usage: make-functions.py     (with onnxscript, onnx and torch)
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import pathlib

import numpy as np
import onnx
import onnx.parser
import torch
from onnx import helper
from onnxscript import DOUBLE, FLOAT, INT64, script
from onnxscript import opset18 as op

HERE = pathlib.Path(__file__).parent


@script(default_opset=op)
def adamw(
    parameter: FLOAT[...],
    gradient: FLOAT[...],
    step: FLOAT,
    lr: FLOAT,
    exp_avg: FLOAT[...],
    exp_avg_sq: FLOAT[...],
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.01,
):
    """torch.optim.AdamW; all hyper-parameters but lr are attributes."""
    exp_avg_new = exp_avg + (1.0 - beta1) * (gradient - exp_avg)
    exp_avg_sq_new = beta2 * exp_avg_sq + (1.0 - beta2) * gradient * gradient
    correction1 = 1.0 - op.Pow(beta1, step)
    correction2 = op.Sqrt(1.0 - op.Pow(beta2, step))
    direction = exp_avg_new / (op.Sqrt(exp_avg_sq_new) / correction2 + epsilon)
    parameter_new = parameter * (1.0 - lr * weight_decay) - lr / correction1 * direction
    return parameter_new, exp_avg_new, exp_avg_sq_new


@script(default_opset=op)
def lion(parameter: FLOAT[...], gradient: FLOAT[...], exp_avg: FLOAT[...], lr: DOUBLE, beta1: DOUBLE, beta2: DOUBLE, weight_decay: DOUBLE):
    """lion_pytorch, with scalars in float64 as the compiler's own have them: the same bits in float32, too."""
    one = op.Constant(value_float=1.0)
    wide = op.CastLike(one, lr)
    decayed = parameter * op.CastLike(wide - lr * weight_decay, parameter)
    mixed = exp_avg * op.CastLike(beta1, parameter) + gradient * op.CastLike(wide - beta1, parameter)
    parameter_new = decayed + op.Sign(mixed) * op.CastLike(op.Neg(lr), parameter)
    exp_avg_new = exp_avg * op.CastLike(beta2, parameter) + gradient * op.CastLike(wide - beta2, parameter)
    return parameter_new, exp_avg_new


@script(default_opset=op)
def adagrad_norm(parameter: FLOAT[...], gradient: FLOAT[...], lr: FLOAT, total: FLOAT):
    """AdaGrad-Norm (arXiv:1806.01811): one sum of squares for each tensor, a state without dimensions that begins as 0.25."""
    total_new = total + op.ReduceSum(gradient * gradient, keepdims=0)
    parameter_new = parameter - lr / op.Sqrt(total_new) * gradient
    return parameter_new, total_new


@script(default_opset=op)
def log_cosh(output: FLOAT["N", "C"], label: FLOAT["N", "C"], scale: float = 1.0):
    """log(cosh(scale (output - label))) / scale, a term for every element."""
    x = op.Abs(scale * (output - label))
    terms = (x + op.Softplus(-2.0 * x) - op.Log(2.0)) / scale
    return terms


@script(default_opset=op)
def masked_cross_entropy(logits: FLOAT["N", "C"], label: INT64["N"], mask: FLOAT["N"]):
    """The mean of cross entropies of samples, weighted by a mask that the program reads."""
    chosen = op.GatherElements(op.LogSoftmax(logits, axis=1), op.Unsqueeze(label, op.Constant(value_ints=[1])), axis=1)
    terms = op.Squeeze(chosen, op.Constant(value_ints=[1])) * mask
    loss = op.Neg(op.ReduceSum(terms, keepdims=0)) / op.ReduceSum(mask, keepdims=0)
    return loss


def save(name, proto):
    (HERE / f"{name}.onnx").write_bytes(proto.SerializeToString(deterministic=True))


def with_defaults(function, defaults):
    """The function as the graph of a model in which inputs have these values when no key says otherwise."""
    model = function.to_model_proto()
    for name, value in defaults.items():
        kind = next(i.type.tensor_type.elem_type for i in model.graph.input if i.name == name)
        model.graph.initializer.append(helper.make_tensor(name, kind, [], [value]))
    return model


def write_functions():
    for function in (adamw, log_cosh, masked_cross_entropy):
        save(function.name, function.to_function_proto())
    save("lion", with_defaults(lion, {"lr": 1e-4, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0}))
    save("adagrad_norm", with_defaults(adagrad_norm, {"lr": 0.5, "total": 0.25}))


GOOD = """<ir_version: 10, opset_import: ["": 18]>
momentum (float[] parameter, float[] gradient, float lr, float[] m) => (float[] parameter_new, float[] m_new) {
  m_new = Add (m, gradient)
  move = Mul (lr, m_new)
  parameter_new = Sub (parameter, move)
}"""
# Each is refused for one thing that it has in place of another.
BAD = {
    "no-result": [("parameter_new", "parameter_out")],
    "no-state": [("float[] m_new)", "float[] m_new, float[] v_new)"), ("move = ", "v_new = Mul (m, m)\n  move = ")],
    "no-key": [("float lr", "float lr, float beta"), ("Mul (lr,", "Mul (beta,")],
    "flag-key": [("float lr", "float lr, float clip_norm"), ("Mul (lr,", "Mul (clip_norm,")],
    "flag-state": [("float[] m)", "float[] ema)"), ("float[] m_new)", "float[] ema_new)"), ("m_new = Add (m,", "ema_new = Add (ema,"), ("(lr, m_new)", "(lr, ema_new)")],
    "vector-key": [("float lr", "float[2] lr")],
    "negative-lr": [],
    "infinite-lr": [],
    "matrix": [("float[] parameter,", "float[64,N] parameter,")],
    "shape": [("m_new = Add (m, gradient)", "sum = Add (m, gradient)\n  m_new = ReduceSum <keepdims = 0> (sum)")],
    "unknown-operator": [("Sub (parameter", "Nonsense (parameter")],
    "branch": [
        ("move = Mul (lr, m_new)", "first = ReduceMax <keepdims = 0> (m)\n  isNew = Cast <to = 9> (first)\n  move = If (isNew) <\n    then_branch = a () => (float[] t) { t = Mul (lr, m_new) },\n    else_branch = b () => (float[] e) { e = Add (lr, m_new) }>"),
    ],
    "random": [("Mul (lr, m_new)", "RandomUniformLike (m_new)")],
    "integers": [("float[] m)", "int64[] m)"), ("m_new = Add (m, gradient)", "wide = CastLike (m, gradient)\n  m_new = Add (wide, gradient)")],
}

LRS = {"negative-lr": -1, "infinite-lr": float("inf")}


def write_bad():
    (HERE / "bad").mkdir(exist_ok=True)
    loss = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 18]>
        loss (float[N,C] output, float[N,C] label, float reduction) => (float[N,C] terms) {
          difference = Sub (output, label)
          terms = Mul (difference, reduction)
        }"""
    )
    loss.graph.initializer.append(helper.make_tensor("reduction", onnx.TensorProto.FLOAT, [], [1]))
    save("bad/key-of-all", loss)
    for name, changes in BAD.items():
        text = GOOD
        for old, new in changes:
            assert old in text, name
            text = text.replace(old, new)
        model = onnx.parser.parse_model(text)
        if name != "vector-key":
            model.graph.initializer.append(helper.make_tensor("lr", onnx.TensorProto.FLOAT, [], [LRS.get(name, 1)]))
        save(f"bad/{name}", model)


def load_digits(steps, batch):
    arrays = np.load(HERE.parent / "zoo/mlp-digits/data.npz")
    model = onnx.load(HERE.parent / "zoo/mlp-digits/model.onnx")
    weights = {t.name: torch.tensor(onnx.numpy_helper.to_array(t), dtype=torch.float64, requires_grad=True) for t in model.graph.initializer}
    layers = sorted({name.split(".")[0] for name in weights}, key=int)

    def forward(x):
        for layer in layers:
            x = torch.nn.functional.linear(x, weights[f"{layer}.weight"], weights[f"{layer}.bias"])
            x = x if layer == layers[-1] else torch.relu(x)
        return x

    x = torch.tensor(arrays["pixels"][: steps * batch], dtype=torch.float64).reshape(steps, batch, -1)
    label = torch.tensor(arrays["label"][: steps * batch], dtype=torch.int64).reshape(steps, batch)
    return weights, forward, x, label


def train(loss_of, make_optimizer, steps=10, batch=16):
    """Losses, and of every weight the sum and the norm in the end."""
    weights, forward, x, label = load_digits(steps, batch)
    optimizer = make_optimizer(weights)
    losses = []
    for i in range(steps):
        for weight in weights.values():
            weight.grad = None
        loss = loss_of(forward(x[i]), label[i], torch.arange(i * batch, (i + 1) * batch))
        loss.backward()
        optimizer()
        losses.append(loss.item())
    with torch.no_grad():
        return {"loss": losses} | {name: [w.sum().item(), w.norm().item()] for name, w in weights.items()}


def sgd(weights):
    return torch.optim.SGD(weights.values(), lr=0.1).step


def adagrad_norm_step(weights):
    totals = {name: 0.25 for name in weights}

    def step():
        with torch.no_grad():
            for name, weight in weights.items():
                totals[name] += weight.grad.square().sum().item()
                weight -= 0.5 / totals[name] ** 0.5 * weight.grad

    return step


# FunctionsTest.cpp makes the same labels and the same mask, in float32.
def values_of(rows):
    return torch.tensor(((rows[:, None] + torch.arange(10)) % 6).numpy().astype(np.float32) * np.float32(0.2)).double()


def mask_of(rows):
    return (rows % 4).double() * 0.5


def log_cosh_loss(scale):
    def loss(output, label, rows):
        return (torch.log(torch.cosh(scale * (output - values_of(rows)))) / scale).mean()

    return loss


def masked_loss(output, label, rows):
    terms = torch.nn.functional.cross_entropy(output, label, reduction="none")
    return (terms * mask_of(rows)).sum() / mask_of(rows).sum()


def cross_entropy(output, label, rows):
    return torch.nn.functional.cross_entropy(output, label)


def main():
    torch.set_num_threads(1)
    write_functions()
    write_bad()
    expected = {
        "log_cosh": train(log_cosh_loss(1), sgd),
        "log_cosh:scale=2.5": train(log_cosh_loss(2.5), sgd),
        "masked_cross_entropy": train(masked_loss, sgd),
        "adamw": train(cross_entropy, lambda weights: torch.optim.AdamW(weights.values(), lr=0.01, betas=(0.8, 0.999), weight_decay=0.1).step),
        "adagrad_norm": train(cross_entropy, adagrad_norm_step),
    }
    (HERE / "functions.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
