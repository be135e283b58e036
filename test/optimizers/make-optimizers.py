#!/usr/bin/env python3
"""Writes optimizers.json: what every optimizer makes of three models of test/zoo in fifty steps.

    python make-optimizers.py

The models run op by op in PyTorch, as test/zoo/references.py does it, with clipping and with a group for what is named a bias (of muon,
for all that are no matrices). For each model and optimizer the file has the flags, the losses, the loss of all data with the weights that are
kept, and the sum and the norm of every trained tensor, in float64; and the tolerances of float32: eight times the largest distance of four
float32 runs of PyTorch whose first weights are off by up to four units in the last place, at least 2e-6 of losses and 1e-5 of the others. Needs torch, numpy, onnx,
lion-pytorch, timm, schedulefree and bitsandbytes.
SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import pathlib
import re
import sys

import numpy as np
import onnx
import torch

FOLDER = pathlib.Path(__file__).parent
TEST = FOLDER.parent
sys.path += [str(TEST / "zoo"), str(TEST / "compiler/passes/train/optimizers")]
import references  # noqa: E402

import byte_optimizers  # noqa: E402
import lamb  # noqa: E402
import lars  # noqa: E402
import lion_pytorch  # noqa: E402
import muon  # noqa: E402, F401 (it makes torch.optim.Muon compute in float64)
import schedulefree  # noqa: E402

MODELS, STEPS, CLIP = ("mlp-digits", "lenet", "vit-tiny-slim"), 50, 1.0
LION, FREE = lion_pytorch.Lion, schedulefree

# --optimizer and its keys, the keys of the group; the class, its arguments, those of the group.
OPTIMIZERS = {
    "sgd": ("lr=0.05,momentum=0.9,dampening=0.1,weight_decay=0.01", "lr_scale=2,weight_decay=0",
            torch.optim.SGD, dict(lr=0.05, momentum=0.9, dampening=0.1, weight_decay=0.01), dict(lr=0.1, weight_decay=0)),
    "adam": ("lr=0.01,amsgrad=1,epsilon=1e-4", "beta1=0.8", torch.optim.Adam, dict(lr=0.01, amsgrad=True, eps=1e-4), dict(betas=(0.8, 0.999))),
    "adamw": ("lr=0.01,epsilon=1e-4", "weight_decay=0,lr=0.02", torch.optim.AdamW, dict(lr=0.01, eps=1e-4), dict(weight_decay=0, lr=0.02)),
    "adamw8bit": ("lr=0.01,epsilon=1e-4", "weight_decay=0,lr=0.02",
                  byte_optimizers.AdamW8bit, dict(lr=0.01, eps=1e-4), dict(weight_decay=0, lr=0.02)),
    "rmsprop": ("lr=0.002,epsilon=1e-3,centered=1", "momentum=0.5",
                torch.optim.RMSprop, dict(lr=0.002, eps=1e-3, centered=True), dict(momentum=0.5)),
    "adagrad": ("lr=0.02,lr_decay=0.01,epsilon=1e-3", "lr_scale=2", torch.optim.Adagrad, dict(lr=0.02, lr_decay=0.01, eps=1e-3), dict(lr=0.04)),
    "adadelta": ("lr=1,epsilon=1e-4", "rho=0.8", torch.optim.Adadelta, dict(lr=1, eps=1e-4), dict(rho=0.8)),
    "adamax": ("lr=0.01,epsilon=1e-3", "beta2=0.9", torch.optim.Adamax, dict(lr=0.01, eps=1e-3), dict(betas=(0.9, 0.9))),
    "nadam": ("lr=0.01,epsilon=1e-3", "momentum_decay=0.01", torch.optim.NAdam, dict(lr=0.01, eps=1e-3), dict(momentum_decay=0.01)),
    "radam": ("lr=0.01,epsilon=1e-3", "lr_scale=0.5", torch.optim.RAdam, dict(lr=0.01, eps=1e-3), dict(lr=0.005)),
    "lion": ("lr=0.001,weight_decay=0.1", "weight_decay=0", LION, dict(lr=0.001, weight_decay=0.1), dict(weight_decay=0)),
    "lion8bit": ("lr=0.001,weight_decay=0.1", "weight_decay=0",
                 byte_optimizers.Lion8bit, dict(lr=0.001, weight_decay=0.1), dict(weight_decay=0)),
    "lamb": ("lr=0.01,epsilon=1e-3", "weight_decay=0,lr=0.005",
             lamb.Lamb, dict(lr=0.01, eps=1e-3, max_grad_norm=None), dict(weight_decay=0, lr=0.005)),
    "lars": ("lr=1,momentum=0.9,weight_decay=0.01,trust_coeff=0.01", "weight_decay=0,lr=0.01",
             lars.Lars, dict(lr=1, momentum=0.9, weight_decay=0.01, trust_coeff=0.01), dict(weight_decay=0, lr=0.01)),
    "adafactor": ("lr=0.05,epsilon1=1e-3", "lr_scale=0.5", torch.optim.Adafactor, dict(lr=0.05, eps=(1e-3, 1e-3)), dict(lr=0.025)),
    "schedule_free_sgd": ("lr=0.2,warmup_steps=10,weight_decay=0.01", "lr_scale=0.5",
                          FREE.SGDScheduleFree, dict(lr=0.2, warmup_steps=10, weight_decay=0.01), dict(lr=0.1)),
    "schedule_free_adamw": ("lr=0.01,epsilon=1e-3", "weight_decay=0.01",
                            FREE.AdamWScheduleFree, dict(lr=0.01, eps=1e-3), dict(weight_decay=0.01)),
    "muon": ("lr=0.02", "optimizer=adamw,lr=0.01,epsilon=1e-3", torch.optim.Muon, dict(lr=0.02), dict(lr=0.01, eps=1e-3)),
}


def is_grouped(name, tensor, optimizer):
    return tensor.dim() != 2 if optimizer == "muon" else name.endswith("bias")


def optimizers_of(optimizer, tensors):
    _, _, make, base, own = OPTIMIZERS[optimizer]
    grouped = [value for name, value in tensors.items() if is_grouped(name, value, optimizer)]
    others = [value for name, value in tensors.items() if not is_grouped(name, value, optimizer)]
    if optimizer == "muon":
        return [make(others, **base), torch.optim.AdamW(grouped, **own)]
    return [make([{"params": others}, {"params": grouped, **own}], **base)]


def train(model, data, recipe, optimizer, names, dtype, nudge=0.0):
    graph = references.Graph(model, dtype, False)
    random = torch.Generator().manual_seed(int(nudge * 2 ** 24))
    tensors = {name: graph.constants[name].clone() for name in names}
    for value in tensors.values():
        if nudge:
            value *= 1 + nudge * torch.randn(value.shape, generator=random).to(dtype)
        value.requires_grad_()
    inputs = {i.name for i in model.graph.input} - set(graph.constants)
    parts = [{name: torch.from_numpy(np.split(value, recipe["steps"])[step]) for name, value in data.items()} for step in range(recipe["steps"])]
    spec, output = references.flag(recipe, "--loss"), model.graph.output[0].name

    def loss_of(part):
        return references.loss_of(spec, graph({name: part[name] for name in inputs}, tensors)[output], part["label"])

    optimizers = optimizers_of(optimizer, tensors)
    for each in optimizers:
        getattr(each, "train", lambda: None)()
    losses = []
    for step in range(STEPS):
        loss = loss_of(parts[step % len(parts)])
        for value in tensors.values():
            value.grad = None
        loss.backward()
        torch.nn.utils.clip_grad_norm_(tensors.values(), CLIP)
        for each in optimizers:
            each.step()
        losses.append(loss.item())
    for each in optimizers:
        getattr(each, "eval", lambda: None)()
    with torch.no_grad():
        kept = float(np.mean([loss_of(part).item() for part in parts]))
    wide = {name: value.detach().double() for name, value in tensors.items()}
    return {"loss": losses, "eval": [kept], **{name: [value.sum().item(), value.norm().item()] for name, value in wide.items()}}


def distance(wanted, got):
    """As the test measures it."""
    return float(np.abs(np.subtract(wanted, got)).max() / np.abs(wanted).max())


def main():
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)  # scalars of state are of the default type
    cases = []
    for entry in MODELS:
        recipe = json.loads((TEST / "zoo" / entry / "recipe.json").read_text())
        model = onnx.load(TEST / "zoo" / entry / "model.onnx")
        data = dict(np.load(TEST / "zoo" / entry / "data.npz"))
        names = sorted({key[5:] for key in np.load(TEST / "zoo" / entry / "golden.npz") if key.startswith("grad/")})
        graph = references.Graph(model, torch.float64, False)
        for optimizer, (keys, own, *_) in OPTIMIZERS.items():
            if entry == "vit-tiny-slim" and optimizer.startswith("lion"):  # biases of keys have no gradient, and the sign of rounding is none
                continue
            exact = train(model, data, recipe, optimizer, names, torch.float64)
            noise = [train(model, data, recipe, optimizer, names, torch.float32, nudge) for nudge in references.NUDGES]
            least = lambda key: 2e-6 if key in ("loss", "eval") else 1e-5
            tolerance = {key: float(f"{max(least(key), 8 * max(distance(value, other[key]) for other in noise)):.3g}") for key, value in exact.items()}
            grouped = [re.escape(name) for name in names if is_grouped(name, graph.constants[name], optimizer)]
            cases.append({"model": entry, "optimizer": optimizer,
                          "flags": ["--optimizer", f"{optimizer}:{keys}", "--group", f"{'|'.join(grouped)}:{own}", "--clip-norm", str(CLIP)],
                          "expected": exact, "tolerance": tolerance})
            print(entry, optimizer, exact["loss"][0], exact["loss"][-1], exact["eval"][0], max(tolerance.values()), flush=True)
    text = ",\n".join(json.dumps(case) for case in cases)
    (FOLDER / "optimizers.json").write_text(f"[\n{text}\n]\n")


if __name__ == "__main__":
    main()
