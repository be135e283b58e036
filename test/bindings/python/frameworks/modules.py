"""Small modules, one for each thing that scripts do, and how far results are apart.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
import unittest
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from torch import nn


def use_own_cache() -> None:
    """For setUpModule: artifacts go into a folder that lasts as long as the tests of the file do."""
    # What still compiles when the tests have ended may write there while it goes.
    cache = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    unittest.addModuleCleanup(cache.cleanup)
    os.environ["ORTC_CACHE_DIR"] = cache.name
    torch.set_num_threads(2)


def take_step(
    trainer: Any, module: nn.Module, optimizers: list[Any], loss: Callable[..., torch.Tensor], x: torch.Tensor, y: torch.Tensor
) -> float:
    """The fused step of a trainer, or without one that of PyTorch: the loss before the update."""
    if trainer:
        return float(trainer.step(x, y))
    for each in optimizers:
        each.zero_grad()
    found = loss(module(x), y)
    found.backward()
    for each in optimizers:
        each.step()
    return float(found.item())


def distance(wanted: torch.Tensor, got: torch.Tensor) -> float:
    largest = max(float(wanted.abs().max()), 1e-3) if wanted.numel() else 1.0
    return float((wanted.double() - got.double()).abs().max()) / largest if wanted.numel() else 0.0


def resident_pages() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])


def widen(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.tanh(self.first(x)))


class ConvNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(2, 4, 3, bias=False), nn.BatchNorm2d(4), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.norm(self.conv(x))).mean((2, 3)))


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(11, 6), nn.Linear(6, 11, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.embed(tokens))


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, *, scale: float = 1.0, other: torch.Tensor | None = None) -> dict[str, Any]:
        y = self.layer(x) * scale
        return {"y": y, "nothing": None, "pair": (y.sum(), y if other is None else y + other), "rows": 4}


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(3, 5, batch_first=True), nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0][:, -1])


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.norm, self.out = nn.Linear(8, 24), nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        return x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True))


class Masked(nn.Module):
    """A buffer whose values matter, and which scripts may change."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("mask", torch.tensor([1.0, 0.0, 1.0, 1.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) * self.mask


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.left, self.right = nn.Linear(4, 6), nn.Linear(6, 2), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = torch.relu(self.trunk(x))
        return self.left(h), self.right(h)


class Dropping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.drop, self.second = nn.Linear(64, 256), nn.Dropout(0.5), nn.Linear(256, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.drop(self.first(x)))


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor, count: int) -> torch.Tensor:
        return self.layer(x).sum() / count


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) if x.sum() > 0 else -self.layer(x)


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    weight: float


pytree.register_dataclass(Batch) if hasattr(pytree, "register_dataclass") else None


class FromBatch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, batch: Batch) -> torch.Tensor:
        return self.layer(batch.x) * batch.weight


def total(result: Any) -> torch.Tensor:
    """A loss of everything that a module gives."""
    parts = [each for each in pytree.tree_leaves(result) if isinstance(each, torch.Tensor)]
    return sum(((each * each).mean() + each.sum() * 0.1 for each in parts), torch.zeros(()))
