"""PyTorch's curves of the recipes: what the model.py of each of them calls. Needs torch and numpy.

A curve is a list of numbers, such as the losses of all steps, of a float32 run. Beside each number stands how far another run may be from it: eight
times the largest distance of four others near there, three in float32 whose first weights are off by one, two and four units in the last place, and
one in float64; at least 1e-5 of the largest number so far. That is how rounding grows in this training, and no two programs round alike.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import math

import torch

torch.set_num_threads(1)  # sums in one order, so that all is the same when it is made again


def nudge(module, units):
    """Moves all weights by units in the last place."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(1 + units * 2.0**-23)


def export(module, inputs, path, input_names, output_names, **dimensions):
    """Writes the graph and its weights as they are; dimensions: {axis: name} by the name of an input."""
    shapes = tuple({axis: torch.export.Dim(name) for axis, name in dimensions.get(each, {}).items()} for each in input_names)
    torch.onnx.export(
        module, inputs, path, dynamo=True, optimize=False, external_data=False, opset_version=20,
        input_names=input_names, output_names=output_names, dynamic_shapes=shapes, verbose=False,
    )  # fmt: skip


def cosine(warmup, total):
    """The factor of the learning rate in a step: `--schedule lr=cosine:warmup=...,total=...`."""
    top = max(warmup - 1, 0)
    return lambda step: (step + 1) / warmup if step < top else (1 + math.cos(math.pi * (step - top) / (total - top))) / 2


def write(path, train):
    """train(dtype, units) gives {name: list of numbers}; PATH gets them, of five runs."""
    curves = train(torch.float32, 0)
    others = [train(torch.float32, units) for units in (1, 2, 4)] + [train(torch.float64, 0)]
    result = {}
    for name, values in curves.items():
        assert all(len(other[name]) == len(values) for other in others), f"{name}: runs end at different steps"
        distances = [max(abs(other[name][i] - value) for other in others) for i, value in enumerate(values)]
        near = max(1, len(values) // 40)
        tolerances = [max(8 * max(distances[max(0, i - near) : i + near + 1]), 1e-5 * max(map(abs, values[: i + 1]))) for i in range(len(values))]
        result[name] = {"values": [float(f"{value:.7g}") for value in values], "tolerances": [float(f"{each:.3g}") for each in tolerances]}
        print(f"{name}: {len(values)} numbers, {values[0]:.4g} to {values[-1]:.4g}, tolerance {tolerances[0]:.2g} to {tolerances[-1]:.2g}")
    with open(path, "w") as file:
        file.write(json.dumps(result).replace("}, ", "},\n") + "\n")
