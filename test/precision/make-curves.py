#!/usr/bin/env python3
"""Writes curves.json: losses of 300 steps of some entries of test/zoo in PyTorch, and how far torch.autocast is from them.

    python make-curves.py

model.onnx is run op by op as test/zoo/references.py does it, with AdamW as in the recipe; batches of data.npz come round again. Per
entry `f32`, the losses, and `bf16` and `f16`: the mean distance from them of four runs with torch.autocast, from weights that are off by
nothing, one, two and four units in the last place; those of f16 with torch.amp.GradScaler as it comes. What narrow products cost there is
the measure of what they may cost here. Needs torch, onnx and numpy.
SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import pathlib
import sys

import numpy as np
import onnx
import torch

FOLDER = pathlib.Path(__file__).parent
ZOO = FOLDER.parent / "zoo"
sys.path.insert(0, str(ZOO))
import references  # noqa: E402

ENTRIES = ("bert-tiny", "gpt2-tiny", "resnet-tiny", "unet", "mlp-mixer-tiny", "gru-forecast")
STEPS = 300


def curve(folder, narrow=None, nudge=0.0, store=lambda value: value):
    """Losses. `store` rounds the weights, at first and after every step."""
    recipe = json.loads((folder / "recipe.json").read_text())
    model = onnx.load(folder / "model.onnx")
    data = {name: np.split(value, recipe["steps"]) for name, value in np.load(folder / "data.npz").items()}
    graph = references.Graph(model, torch.float32, references.flag(recipe, "--batch-norm") == "train")
    names = sorted({key[5:] for key in np.load(folder / "golden.npz") if key.startswith("grad/")})
    random = torch.Generator().manual_seed(int(nudge * 2 ** 24))
    tensors = {}
    for name in names:
        value = graph.constants[name]
        value = value * (1 + nudge * torch.randn(value.shape, generator=random))
        tensors[name] = store(value).requires_grad_()
    optimizer = references.optimizer_of(recipe["optimizers"]["adamw"], list(tensors.values()))
    inputs = {i.name for i in model.graph.input} - set(graph.constants)
    spec, output = references.flag(recipe, "--loss"), references.flag(recipe, "--loss-input") or model.graph.output[0].name
    scaler = torch.amp.GradScaler("cpu", enabled=narrow == torch.float16)
    losses = []
    for step in range(STEPS):
        part = {name: torch.from_numpy(values[step % recipe["steps"]]) for name, values in data.items()}
        with torch.autocast("cpu", dtype=narrow or torch.bfloat16, enabled=narrow is not None):
            outputs = graph({name: part[name] for name in inputs}, tensors)
            loss = references.loss_of(spec, outputs[output], part.get("label"))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        with torch.no_grad():
            for value in tensors.values():
                value.copy_(store(value))
        graph.constants.update({name: value.detach().float() for name, value in graph.statistics.items()})
        losses.append(float(f"{float(loss.detach()):.7g}"))
    return losses


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    curves = {}
    for name in ENTRIES:
        wide = curve(ZOO / name)
        curves[name] = {"f32": wide}
        for label, narrow in {"bf16": torch.bfloat16, "f16": torch.float16}.items():
            runs = [curve(ZOO / name, narrow, nudge) for nudge in references.NUDGES]
            curves[name][label] = [float(f"{np.abs(np.array(losses) - wide).mean():.3g}") for losses in runs]
            print(f"{name}, {label}: {wide[0]:.4f} to {wide[-1]:.4f}, autocast is apart by {curves[name][label]} on average", flush=True)
    lines = [f' "{name}": {json.dumps(values)}' for name, values in curves.items()]
    (FOLDER / "curves.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
