"""Losses that PyTorch's exporter has no rule for, as formulas of operators that it has.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

They take the place of PyTorch's functions while a module is traced, and have the numbers and the gradients of those, at zeros, ties
and bounds, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ortc._errors import CompileError

_MEAN, _SUM = 1, 2
"""Numbers of reductions."""


def _reduce(loss: Tensor, reduction: int) -> Tensor:
    return loss.mean() if reduction == _MEAN else loss.sum() if reduction == _SUM else loss


def _at_least_zero(x: Tensor) -> Tensor:
    return torch.clamp(x, min=0)


def _l1(x: Tensor, y: Tensor, reduction: int = _MEAN) -> Tensor:
    return _reduce((x - y).abs(), reduction)


def _poisson(x: Tensor, y: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    loss = torch.exp(x) - y * x if log_input else x - y * torch.log(x + eps)
    if full:  # Stirling's formula
        is_large = y > 1
        safe = torch.where(is_large, y, torch.ones_like(y))
        stirling = safe * torch.log(safe) - safe + 0.5 * torch.log(2 * math.pi * safe)
        loss = loss + torch.where(is_large, stirling, torch.zeros_like(y))
    return _reduce(loss, reduction)


def _hinge_embedding(x: Tensor, y: Tensor, margin: float = 1.0, reduction: int = _MEAN) -> Tensor:
    zeros = torch.zeros_like(x)
    far = torch.where(y == 1, zeros, _at_least_zero(margin - x))
    return _reduce(far + torch.where(y == -1, zeros, x), reduction)


def _margin_ranking(x: Tensor, other: Tensor, y: Tensor, margin: float = 0.0, reduction: int = _MEAN) -> Tensor:
    return _reduce(_at_least_zero(-y * (x - other) + margin), reduction)


def _cosine_embedding(x: Tensor, other: Tensor, y: Tensor, margin: float = 0.0, reduction: int = _MEAN) -> Tensor:
    products = (x * other).sum(-1)
    sizes = ((x * x).sum(-1) + 1e-12) * ((other * other).sum(-1) + 1e-12)
    cosine = products / torch.sqrt(sizes)
    zeros = torch.zeros_like(cosine)
    near = torch.where(y == 1, 1 - cosine, zeros)
    return _reduce(near + torch.where(y == -1, _at_least_zero(cosine - margin), zeros), reduction)


def _distance(x: Tensor, other: Tensor, p: float, eps: float) -> Tensor:
    gap = x - other + eps
    if p == 2:
        return torch.sqrt((gap * gap).sum(-1))
    if p == 1:
        return gap.abs().sum(-1)
    raise CompileError(f"triplet_margin_loss with p={p} is not compiled; p=1 and p=2 are")


def _triplet_margin(
    x: Tensor, near: Tensor, far: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, reduction: int = _MEAN
) -> Tensor:
    distance = _distance(x, far, p, eps)
    if swap:
        distance = torch.minimum(distance, _distance(near, far, p, eps))
    return _reduce(_at_least_zero(margin + _distance(x, near, p, eps) - distance), reduction)


def _refuse(name: str, instead: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise CompileError(f"{name} is not compiled: {instead}")

    return refuse


_OUTSIDE = "let the module give what it takes, and compute it outside"
FORMULAS: list[tuple[Any, str, Callable[..., Any]]] = [
    (torch._C._nn, "l1_loss", _l1),
    (torch, "poisson_nll_loss", _poisson),
    (torch, "hinge_embedding_loss", _hinge_embedding),
    (torch, "margin_ranking_loss", _margin_ranking),
    (torch, "cosine_embedding_loss", _cosine_embedding),
    (torch, "triplet_margin_loss", _triplet_margin),
    (torch, "ctc_loss", _refuse("ctc_loss", f"{_OUTSIDE} (or train the exported model with ortc train --loss ctc)")),
    (torch._C._nn, "multilabel_margin_loss", _refuse("multilabel_margin_loss", _OUTSIDE)),
]
"""Where PyTorch has each, and under which name."""
