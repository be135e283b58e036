#!/usr/bin/env python3
"""Makes the fixtures torch-detached-* and torch-chosen-*: models whose gradients do not go as their operators say.

usage: make_marks.py    writes the folders beside this file, as make_torch.py does
"""

import warnings

import make_torch
import torch
from torch import nn


class Detached(nn.Module):
    """Detached values, a detached parameter and input of a layer, an embedding with a padding row tied with the head. The notes
    of PyTorch's exporter have it all."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 6, padding_idx=2)
        self.scale = nn.Parameter(torch.rand(6) + 0.5)
        self.inner = nn.Linear(6, 6)
        self.outer = nn.Linear(6, 6)

    def forward(self, ids):
        x = self.embed(ids)
        y = self.inner(x)
        y = y + (torch.tanh(3 * y) - y).detach()
        y = y + torch.sin(y).detach() * self.scale
        y = y * self.scale.detach()
        y = self.outer(y.detach()) + torch.tanh(y)
        return y @ self.embed.weight.T


class Steps(torch.autograd.Function):
    """Numbers in steps of an eighth, with the gradient of the numbers themselves."""

    @staticmethod
    def forward(ctx, x):
        return torch.round(x * 8) / 8

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Chosen(nn.Module):
    """Values under no_grad, and a gradient that goes past a rounding: no file says so."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 6, padding_idx=2)
        self.teacher = nn.Linear(6, 6)
        self.inner = nn.Linear(6, 6)
        self.scale = nn.Parameter(torch.rand(6) + 0.5)
        self.head = nn.Linear(6, 9)

    def forward(self, ids):
        x = self.embed(ids)
        with torch.no_grad():
            target = torch.tanh(self.teacher(x))
        return self.head(Steps.apply(self.inner(x)) * self.scale + target)


def mark_chosen(model):
    """The marks of Chosen, under the names that the file has."""

    def find(kind):
        (node,) = [node for node in model.graph.node if node.op_type == kind]
        return node

    def producer(value):
        (node,) = [node for node in model.graph.node if value in node.output]
        return node

    rounded = find("Round")
    (behind,) = [node.output[0] for node in model.graph.node if rounded.output[0] in node.input]
    before = producer(rounded.input[0]).input[0]
    return {
        "ortc.detached": find("Tanh").output[0],
        "ortc.padding": find("Gather").output[0] + "=-7",
        "ortc.straight_through": f"{behind}={before}",
    }


def main():
    warnings.filterwarnings("ignore")
    torch.manual_seed(6)
    detached, chosen = Detached(), Chosen()
    ids, next_ids = torch.randint(0, 9, (2, make_torch.STEPS, 4, 5))
    for exporter in "dynamo", "dynamo-unfolded":
        make_torch.write("detached", exporter, detached, ids, next_ids, True)
    for exporter in "dynamo-unfolded", "torchscript-unfolded":
        make_torch.write("chosen", exporter, chosen, ids, next_ids, True, mark_chosen)


if __name__ == "__main__":
    main()
