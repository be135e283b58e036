#!/usr/bin/env python3
"""Writes optimizers.json: what every optimizer makes of three models of test/zoo in fifty steps.

    python make-optimizers.py [NAME ...]     (without NAME all of them; other versions of torch change last digits)

The models run op by op in PyTorch, as test/zoo/references.py does it, with clipping and with a group for what is named a bias (of muon,
for all that are no matrices). For each model and optimizer the file has the flags, the losses, the loss of all data with the weights that are
kept, and the sum and the norm of every trained tensor, in float64; and the tolerances of float32: eight times the largest distance of four
float32 runs of PyTorch whose first weights are off by up to four units in the last place, at least 2e-6 of losses and 1e-5 of the others. Needs torch, numpy, onnx,
lion-pytorch, timm, schedulefree and bitsandbytes.
SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import importlib
import json
import pathlib
import re
import sys

import numpy as np
import onnx
import torch

FOLDER = pathlib.Path(__file__).parent
TEST = FOLDER.parent
CASES = TEST / "compiler/passes/train/optimizers"
sys.path += [str(TEST / "zoo"), str(CASES)]
import references  # noqa: E402

MODELS, STEPS, CLIP = ("mlp-digits", "lenet", "vit-tiny-slim"), 50, 1.0



def describe(optimizer):
    """--optimizer and its keys, the keys of the group; the class, its arguments, those of the group."""
    return importlib.import_module(optimizer).zoo()


def is_grouped(name, tensor, optimizer):
    return tensor.dim() != 2 if optimizer == "muon" else name.endswith("bias")


def optimizers_of(optimizer, tensors):
    _, _, make, base, own = describe(optimizer)
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


def main(names):
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)  # scalars of state are of the default type
    every = sorted(path.stem for path in CASES.glob("*.py"))
    cases = [each for each in json.loads((FOLDER / "optimizers.json").read_text()) if names and each["optimizer"] not in names]
    for entry in MODELS:
        recipe = json.loads((TEST / "zoo" / entry / "recipe.json").read_text())
        model = onnx.load(TEST / "zoo" / entry / "model.onnx")
        data = dict(np.load(TEST / "zoo" / entry / "data.npz"))
        tensors = sorted({key[5:] for key in np.load(TEST / "zoo" / entry / "golden.npz") if key.startswith("grad/")})
        graph = references.Graph(model, torch.float64, False)
        for optimizer in names or every:
            keys, own, *_ = describe(optimizer)
            if entry == "vit-tiny-slim" and optimizer.startswith("lion"):  # biases of keys have no gradient, and the sign of rounding is none
                continue
            exact = train(model, data, recipe, optimizer, tensors, torch.float64)
            noise = [train(model, data, recipe, optimizer, tensors, torch.float32, nudge) for nudge in references.NUDGES]
            least = lambda key: 2e-6 if key in ("loss", "eval") else 1e-5
            tolerance = {key: float(f"{max(least(key), 8 * max(distance(value, other[key]) for other in noise)):.3g}") for key, value in exact.items()}
            grouped = [re.escape(name) for name in tensors if is_grouped(name, graph.constants[name], optimizer)]
            cases.append({"model": entry, "optimizer": optimizer,
                          "flags": ["--optimizer", f"{optimizer}:{keys}", "--group", f"{'|'.join(grouped)}:{own}", "--clip-norm", str(CLIP)],
                          "expected": exact, "tolerance": tolerance})
            print(entry, optimizer, exact["loss"][0], exact["loss"][-1], exact["eval"][0], max(tolerance.values()), flush=True)
    cases.sort(key=lambda case: (MODELS.index(case["model"]), case["optimizer"]))
    text = ",\n".join(json.dumps(case) for case in cases)
    (FOLDER / "optimizers.json").write_text(f"[\n{text}\n]\n")


if __name__ == "__main__":
    main(sys.argv[1:])
