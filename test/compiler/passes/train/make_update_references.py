#!/usr/bin/env python3
"""Writes Inputs/updates.mlir: what PyTorch gives for averages, penalties, limits, masks and norms, in float64.

usage: make_update_references.py     (from anywhere, with torch, timm and keras; the same bytes every time with one version of them)

Averages are those of torch.optim.swa_utils.AveragedModel, with a warm-up of the decay those of timm.utils.ModelEmaV3. Penalties and
limits of norms are Keras'.
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
import torch
from timm.utils import ModelEmaV3
from torch.optim import swa_utils

from make_references import HERE, dense, number

keras.config.set_floatx("float64")
STEPS = 7
SHAPES = {"fc.weight": (3, 2), "fc.bias": (3,)}
rng = np.random.default_rng(17)
INITIAL = {name: np.round(rng.normal(size=shape), 3) for name, shape in SHAPES.items()}
INITIAL["fc.weight"][1, 1] = 0  # a sign of 0
GRADIENTS = {name: np.round(rng.normal(size=(STEPS, *shape)), 3) for name, shape in SHAPES.items()}
MASK = np.array([[1, 0], [0, 1], [1, 1]])


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.values = torch.nn.ParameterDict({name.replace(".", "_"): torch.tensor(value) for name, value in INITIAL.items()})

    def items(self):
        return [(name, self.values[name.replace(".", "_")]) for name in SHAPES]


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=0.05, weight_decay=0.1)


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def max_norm(w, limit, axis):
    """The axis numbers units; Keras' axes are the others."""
    return keras.constraints.MaxNorm(limit, axis=[i for i in range(w.ndim) if i != axis])(w)


def train(make, penalty=None, limit=None, mask=None, average=None, warm=None, takes_part=lambda t: True):
    """Parameters after the steps, averages of them if asked for, and the norms of the last step."""
    model = Model()
    optimizer = make(model)
    averaged = swa_utils.AveragedModel(model, **average) if average is not None else None
    if warm is not None:
        averaged = ModelEmaV3(model, use_warmup=True, **warm)
    for t in range(STEPS):
        if mask:
            with torch.no_grad():
                for name, keeps in mask.items():
                    dict(model.items())[name].mul_(torch.tensor(keeps))
        optimizer.zero_grad()
        loss = sum((p * torch.tensor(GRADIENTS[name][t]) * (torch.tensor(mask[name]) if mask and name in mask else 1)).sum() for name, p in model.items())
        if penalty:
            loss = loss + penalty(dict(model.items()))
        loss.backward()
        norms = {"grad_norm": torch.sqrt(sum((p.grad ** 2).sum() for p in model.parameters())).item(),
                 "param_norm": torch.sqrt(sum((p ** 2).sum() for p in model.parameters())).item()}
        optimizer.step()
        with torch.no_grad():
            for name, p in model.items():
                if limit and name in limit:
                    p.copy_(max_norm(p, *limit[name]))
                if mask and name in mask:
                    p.mul_(torch.tensor(mask[name]))
        if warm is not None:
            averaged.update(model, step=t + 1)  # counted from 1, as in timm's training
        elif averaged is not None and takes_part(t):
            averaged.update_parameters(model)
    found = {name: p.detach().numpy() for name, p in model.items()}
    averages = None if averaged is None else {name: p.detach().numpy() for name, p in averaged.module.items()}
    return found, averages, norms


def cases():
    """(name, --optimizer, flags, kind of average, result)"""
    yield "ema", "adamw:lr=0.05,weight_decay=0.1", {"ema": "decay=0.9"}, "ema", train(
        adamw, average={"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.9)})
    yield "ema_warm", "sgd:lr=0.1", {"ema": "decay=0.6,warmup=1"}, "ema", train(sgd, warm={"decay": 0.6})
    yield "ema_warm_slowly", "sgd:lr=0.1", {"ema": "decay=0.99,warmup=1,gamma=3,power=0.75"}, "ema", train(
        sgd, warm={"decay": 0.99, "warmup_gamma": 3.0, "warmup_power": 0.75})
    yield "swa", "adamw:lr=0.05,weight_decay=0.1", {"swa": "start=2"}, "swa", train(adamw, average={}, takes_part=lambda t: t >= 2)
    yield "swa_sparsely", "sgd:lr=0.1", {"swa": "start=1,every=3"}, "swa", train(
        sgd, average={}, takes_part=lambda t: t >= 1 and (t - 1) % 3 == 0)
    yield "penalties", "sgd:lr=0.1", {"regularize": "fc.weight:l1=0.03,l2=0.2;fc.*:l1=0.5"}, None, train(
        sgd, penalty=lambda p: keras.regularizers.L1L2(0.03, 0.2)(p["fc.weight"]) + keras.regularizers.L1(0.5)(p["fc.bias"]))
    yield "max_norm", "sgd:lr=0.1", {"regularize": "fc.weight:max_norm=0.8"}, None, train(sgd, limit={"fc.weight": (0.8, 0)})
    yield "max_norm_axis", "sgd:lr=0.1", {"regularize": ".*weight:max_norm=0.9,axis=1"}, None, train(sgd, limit={"fc.weight": (0.9, 1)})
    yield "mask", "adamw:lr=0.05,weight_decay=0.1", {"mask": "fc.weight"}, None, train(adamw, mask={"fc.weight": MASK})


def main():
    out = ["// Parameters, averages and norms after some steps in float64, written by make_update_references.py.",
           "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"]
    for name, optimizer, flags, kind, (found, averages, norms) in cases():
        arguments = []
        for parameter in SHAPES:
            text = (f'  {dense(INITIAL[parameter])[0]} {{test.name = "{parameter}", test.value = {dense(INITIAL[parameter])[1]},\n'
                    f"    test.gradients = {dense(GRADIENTS[parameter])[1]},\n    test.expected = {dense(found[parameter])[1]}")
            if kind:
                text += f",\n    test.average = {dense(averages[parameter])[1]}"
            if flags.get("mask") == parameter:
                text += f",\n    test.mask = {dense(MASK)[1]}"
            arguments.append(text + "}")
        attributes = [f'test.optimizer = "{optimizer}"', f"test.steps = {STEPS} : i64"]
        attributes += [f'test.{flag} = "{value}"' for flag, value in flags.items() if flag != "mask"]
        attributes += [f"test.{norm} = {number(value)} : f64" for norm, value in norms.items()]
        out.append(f"func.func private @{name}(\n" + ",\n".join(arguments) + ")\n  attributes {" + ", ".join(attributes) + "}")
    (HERE / "Inputs" / "updates.mlir").write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
