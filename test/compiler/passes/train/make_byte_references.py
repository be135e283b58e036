#!/usr/bin/env python3
"""Writes Inputs/byte_states.mlir: what fifty steps of adamw8bit and lion8bit come to in float64, with bitsandbytes' codes.

usage: make_byte_references.py     (from anywhere, with torch and bitsandbytes)

The formulas of adamw and lion are written here in float64. Averages are read and written by bitsandbytes: dequantize_blockwise with its
dynamic maps, which is f32, and quantize_blockwise of float64 tensors, whose code is the nearest one. (Of float32 tensors it rounds a share
of the largest to a grid of 2^-15 first on a CPU, which kernels for GPUs do not; so its own optimizers on a CPU are no reference.)
Codes and largest magnitudes are whole, of parameters the file has sums over their columns with the weights 1, 2, ...
SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import sys

import bitsandbytes.functional as bnb
import numpy as np
import torch

from make_references import HERE, dense, number
from make_torch_references import STEPS, gradient

# With whole rows of 256, and with a rest, which the program stores transposed.
PARAMETERS = {"even.weight": (68, 64), "odd.weight": (70, 61), "fc.bias": (9,)}
MAPS = {is_signed: bnb.create_dynamic_map(is_signed) for is_signed in (True, False)}


class Bytes:
    def __init__(self, shape, is_signed):
        self.shape, self.map, self.count = shape, MAPS[is_signed], int(np.prod(shape))
        self.codes = torch.zeros(-(-self.count // 256) * 256, dtype=torch.uint8)
        self.largest = torch.zeros(len(self.codes) // 256)

    def load(self):
        wide = torch.ops.bitsandbytes.dequantize_blockwise(self.codes, self.largest, self.map, 256, torch.float32)
        return wide[: self.count].reshape(self.shape).double()

    def store(self, values):
        rows = torch.zeros(len(self.codes), dtype=torch.float64)
        rows[: self.count] = values.flatten()
        self.codes, self.largest = torch.ops.bitsandbytes.quantize_blockwise(rows, self.map, 256)

    def attributes(self, name):
        rows = (len(self.largest), 256)
        codes = self.codes.numpy().tobytes().hex().upper()
        largest = self.largest.numpy().tobytes().hex().upper()
        return {name: f'dense<"0x{codes}"> : tensor<{rows[0]}x256xi8>', f"{name}_absmax": f'dense<"0x{largest}"> : tensor<{rows[0]}xf32>'}


class Whole:
    def __init__(self, shape, is_signed):
        self.values = torch.zeros(shape)

    def load(self):
        return self.values

    def store(self, values):
        self.values = values

    def attributes(self, name):
        return {}


def adamw(value, grad, states, t, lr, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.01):
    m = states["exp_avg"].load() * beta1 + grad * (1 - beta1)
    v = states["exp_avg_sq"].load() * beta2 + grad * grad * (1 - beta2)
    states["exp_avg"].store(m)
    states["exp_avg_sq"].store(v)
    return value * (1 - lr * weight_decay) - lr / (1 - beta1**t) * m / ((v / (1 - beta2**t)).sqrt() + epsilon)


def lion(value, grad, states, t, lr, beta1=0.9, beta2=0.99, weight_decay=0.0):
    m = states["exp_avg"].load()
    states["exp_avg"].store(m * beta2 + grad * (1 - beta2))
    return value * (1 - lr * weight_decay) - lr * (m * beta1 + grad * (1 - beta1)).sign()


CASES = {
    "adamw8bit": (adamw, {"exp_avg": True, "exp_avg_sq": False}, dict(lr=0.01, weight_decay=0.1), dict(beta1=0.8)),
    "lion8bit": (lion, {"exp_avg": True}, dict(lr=0.01, weight_decay=0.1), dict(beta2=0.9)),
}
CLIP = 20.0


def main():
    torch.set_default_dtype(torch.float64)
    head = ["// Parameters and states after some steps in float64, written by make_byte_references.py.",
            "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"]
    maps = ", ".join(f'{name} = dense<"0x{MAPS[sign].numpy().tobytes().hex().upper()}"> : tensor<256xf32>'
                     for name, sign in (("signed", True), ("positive", False)))
    functions = [f"func.func private @maps() attributes {{{maps}}}"]
    for name, (formula, kinds, base, own) in CASES.items():
        values = {key: torch.full(shape, 0.25) for key, shape in PARAMETERS.items()}
        states = {key: {state: (Bytes if value.numel() >= 4096 else Whole)(value.shape, sign) for state, sign in kinds.items()}
                  for key, value in values.items()}
        for t in range(STEPS):
            grads = {key: torch.nn.Parameter(value) for key, value in values.items()}
            for i, each in enumerate(grads.values()):
                each.grad = gradient(t, i, each.shape)
            torch.nn.utils.clip_grad_norm_(grads.values(), CLIP)
            for key in values:
                values[key] = formula(values[key], grads[key].grad, states[key], t + 1, **{**base, **(own if key == "odd.weight" else {})})
        arguments = []
        for key, value in values.items():
            weights = torch.arange(1, value.shape[-1] + 1).double()
            _, sums = dense((value * weights).sum(-1, keepdim=True).numpy())
            kept = {k: v for state, each in states[key].items() for k, v in each.attributes(state).items()}
            shape = "x".join(map(str, value.shape))
            stored = ", test.permutation = array<i64: 1, 0>" if key == "odd.weight" else ""
            arguments.append(f'  tensor<{shape}xf64> {{test.name = "{key}", test.value = dense<0.25> : tensor<{shape}xf64>,\n    test.sums = {sums},\n'
                             f"    test.states = {{{', '.join(f'{k} = {v}' for k, v in kept.items())}}}{stored}}}")
        keys = ",".join(f"{k}={v}" for k, v in base.items())
        group = ",".join(f"{k}={v}" for k, v in own.items())
        functions.append(f"func.func private @{name}(\n" + ",\n".join(arguments) + ")\n"
                         f'  attributes {{test.optimizer = "{name}:{keys}", test.groups = "odd.*:{group}", test.clip_norm = {number(CLIP)} : f64, '
                         f"test.steps = {STEPS} : i64}}")
    (HERE / "Inputs" / "byte_states.mlir").write_text("\n".join(head + functions) + "\n")


if __name__ == "__main__":
    sys.exit(main())
