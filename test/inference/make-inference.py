#!/usr/bin/env python3
"""Makes the models of this folder: modules in training mode, as both exporters of PyTorch write them, with what they give in
evaluation mode.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: make-inference.py    writes FOLDER/model.onnx and FOLDER/eval.npz beside this file
Needs torch, onnx, onnxscript and numpy. eval.npz has the input `x`, labels, and the output `y` in evaluation mode, computed in float64.
"""
import contextlib
import copy
import io
import pathlib
import warnings

import numpy as np
import onnx
import torch
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent


class StochasticDepth(nn.Module):
    """Stochastic depth of samples ("row") or of the whole ("batch"), as torchvision and timm write it."""

    def __init__(self, rate, of, has_scale=True):
        super().__init__()
        self.rate, self.of, self.has_scale = rate, of, has_scale

    def forward(self, x):
        if not self.training:
            return x
        size = [x.shape[0]] + [1] * (x.ndim - 1) if self.of == "row" else [1] * x.ndim
        noise = torch.empty(size, dtype=x.dtype).bernoulli_(1 - self.rate)
        if self.has_scale:
            noise.div_(1 - self.rate)
        return x * noise


class Written(nn.Module):
    """Dropout by a formula of x and the probability to keep."""

    def __init__(self, formula):
        super().__init__()
        self.formula = formula

    def forward(self, x):
        return self.formula(x, 0.75) if self.training else x


FORMULAS = {
    "floor": lambda x, q: x.div(q) * (q + torch.rand((x.shape[0], 1, 1, 1), dtype=x.dtype)).floor_(),
    "where": lambda x, q: torch.where(torch.rand_like(x) >= q, torch.zeros_like(x), x / q),
    "filled": lambda x, q: x.masked_fill(q < torch.rand_like(x), 0.0) / q,
    "bernoulli": lambda x, q: x * torch.bernoulli(torch.full_like(x, q)) / q,
    "inverted": lambda x, q: x * (1 - (torch.rand_like(x) > q).float()) * (1 / q),
}


class Masks(nn.Module):
    """All kinds, one after the other."""

    def __init__(self, more):
        super().__init__()
        self.first, self.second, self.third = nn.Conv2d(2, 4, 3), nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 1)
        self.start = nn.Sequential(*more)
        self.drops = nn.Sequential(nn.Dropout(0.2, inplace=True), *(Written(each) for each in FORMULAS.values()))
        self.row, self.whole, self.bare = StochasticDepth(0.3, "row"), StochasticDepth(0.3, "batch"), StochasticDepth(0.3, "row", False)
        self.norm, self.drop, self.head = nn.BatchNorm2d(4), nn.Dropout(0.4), nn.Linear(64, 3)

    def forward(self, x):
        x = self.drops(self.start(torch.tanh(self.first(x))) * 1.0)
        x = x + self.row(torch.tanh(self.second(x)))
        x = x + self.whole(torch.tanh(self.third(x)))
        return self.head(self.drop(self.norm(x + self.bare(x * 0.5))).flatten(1))


class Norms(nn.Module):
    """Forms that the standard has."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.drop = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.4)
        self.hidden, self.flat, self.head = nn.Linear(64, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)

    def forward(self, x):
        x = self.drop(torch.relu(self.norm(self.conv(x)))).flatten(1)
        return self.head(torch.tanh(self.flat(self.hidden(x))))


class Randomised(nn.Module):
    """A leaky ReLU with slopes that are drawn."""

    def __init__(self):
        super().__init__()
        self.conv, self.act, self.head = nn.Conv2d(2, 4, 3), nn.RReLU(0.1, 0.4), nn.Linear(64, 3)

    def forward(self, x):
        return self.head(self.act(self.conv(x)).flatten(1))


def strip(model):
    """Without stack traces and paths."""
    for node in model.graph.node:
        del node.metadata_props[:]
        node.ClearField("doc_string")
    for value in [*model.graph.value_info, *model.graph.input, *model.graph.output, *model.graph.initializer]:
        kept = [each for each in value.metadata_props if "signature" in each.key or "folded_from" in each.key]
        del value.metadata_props[:]
        value.metadata_props.extend(kept)
    kept = [each for each in model.graph.metadata_props if "signature" in each.key]
    del model.graph.metadata_props[:]
    model.graph.metadata_props.extend(kept)
    return model


def make(name, module, dynamo, **options):
    torch.manual_seed(0)
    for each in module.modules():
        if isinstance(each, (nn.BatchNorm1d, nn.BatchNorm2d)):
            each.running_mean.uniform_(-0.5, 0.5)
            each.running_var.uniform_(0.5, 2.0)
            nn.init.uniform_(each.weight, 0.5, 1.5)
            nn.init.uniform_(each.bias, -0.5, 0.5)
    x = torch.randn(4, 2, 6, 6)
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    path = folder / "model.onnx"
    if dynamo:
        options |= {"external_data": False}
    else:
        batch = {0: "batch"}
        options |= {"do_constant_folding": False, "training": torch.onnx.TrainingMode.TRAINING, "dynamic_axes": {"x": batch, "y": batch}}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(module.train(), (x,), path, dynamo=dynamo, input_names=["x"], output_names=["y"], **options)
    onnx.save(strip(onnx.load(path)), path)
    # Behind the export, whose forward pass moves running statistics.
    wanted = copy.deepcopy(module).eval().double()(x.double())
    np.savez(folder / "eval.npz", x=x.numpy(), label=np.arange(4) % 3, y=wanted.detach().numpy().astype(np.float32))


def main():
    alpha = [nn.AlphaDropout(0.3), nn.FeatureAlphaDropout(0.2), nn.Dropout2d(0.3)]
    make("masks-dynamo-plain", Masks(alpha), True, optimize=False)
    # Dynamo's optimizer computes Bernoulli of a constant once, which leaves no mask to find.
    FORMULAS.pop("bernoulli")
    make("masks-dynamo", Masks(alpha), True)
    FORMULAS["bernoulli"] = lambda x, q: x * torch.bernoulli(torch.full_like(x, q)) / q
    make("masks-torchscript", Masks([]), False)
    for opset in (13, 20):
        make(f"norms-torchscript-{opset}", Norms(), False, opset_version=opset)
    make("slopes-torchscript", Randomised(), False)


if __name__ == "__main__":
    main()
