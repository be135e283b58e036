"""Compares functions with PyTorch, many in one compilation.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch
import torch.utils._pytree as pytree
from functions import Case
from torch import nn


class Group(nn.Module):
    """Each function of parameters that are its operands; all results as one tuple."""

    def __init__(self, cases: list[Case]) -> None:
        super().__init__()
        self.cases = cases
        self.values = nn.ModuleList()
        for case in cases:
            self.values.append(nn.ParameterList([nn.Parameter(each.clone(), each.is_floating_point()) for each in case.operands]))

    def forward(self, x: torch.Tensor) -> Any:
        return [case.function(*values) for case, values in zip(self.cases, self.values, strict=True)]


def warm(module: Group) -> None:
    """Other numbers, which are nothing special."""
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for each in module.parameters():
            if each.is_floating_point():
                each.copy_(torch.rand(each.shape, generator=draw) * 0.6 + 0.2)


def restore(module: Group) -> None:
    with torch.no_grad():
        for case, values in zip(module.cases, module.values, strict=True):
            for each, operand in zip(values, case.operands, strict=True):
                each.copy_(operand)


def cotangent(result: torch.Tensor) -> torch.Tensor:
    """Another number for each element, none of them zero."""
    return (torch.arange(result.numel(), dtype=result.dtype) % 7 + 1).reshape(result.shape) / 4


Results = tuple[list[torch.Tensor], list[torch.Tensor | None]]
"""The results of a case, and gradients of its operands."""


def collect(module: Group) -> tuple[list[Results], list[torch.Tensor | None]]:
    """By case; and the gradient that each result was given, None where it has none."""
    module.zero_grad()
    x = torch.ones(1, dtype=next(module.parameters()).dtype)
    results = [[each for each in pytree.tree_leaves(part) if isinstance(each, torch.Tensor)] for part in module(x)]
    flat = [each for part in results for each in part]
    cotangents = [cotangent(each) if each.requires_grad else None for each in flat]
    pairs = [(each, given) for each, given in zip(flat, cotangents, strict=True) if given is not None]
    torch.autograd.backward([each for each, _ in pairs], [given for _, given in pairs])
    found = [
        ([each.detach().clone() for each in part], [None if p.grad is None else p.grad.clone() for p in values])
        for part, values in zip(results, module.values, strict=True)
    ]
    return found, cotangents


def run(module: Group) -> list[Results]:
    return collect(module)[0]


def _share_ties(gradient: torch.Tensor, operand: torch.Tensor, axis: int) -> torch.Tensor:
    """The mean over equal elements along an axis."""
    rows, values = (each.movedim(axis, -1) for each in (gradient, operand))
    same = (values[..., None] == values[..., None, :]).to(rows.dtype)
    return ((same @ rows[..., None])[..., 0] / same.sum(-1)).movedim(-1, axis)


def differences(wanted: Results, got: Results, case: Case) -> list[str]:
    """Elements where PyTorch is defined and the other is not the same. A gradient of NaN is not defined."""
    found = []
    undefined = [each.isnan() for each in wanted[0]]
    pairs = [(f"result {i}", *both) for i, both in enumerate(zip(wanted[0], got[0], strict=True))]
    pairs += [(f"gradient {i}", *both) for i, both in enumerate(zip(wanted[1], got[1], strict=True))]
    for what, mine, other in pairs:
        like = case.operands[int(what.split()[1])] if "gradient" in what else None
        mine = torch.zeros_like(like) if mine is None and like is not None else mine
        other = torch.zeros_like(like) if other is None and like is not None else other
        if mine.shape != other.shape:
            found.append(f"{what}: shape {tuple(other.shape)}, wanted {tuple(mine.shape)}")
            continue
        if case.picks_along is not None and like is not None:
            mine, other = (_share_ties(each, like, case.picks_along) for each in (mine, other))
        mine, other = mine.double().flatten(), other.double().flatten()
        unknown = mine.isnan()
        if like is not None and len(undefined) == 1 and undefined[0].shape == like.shape:
            unknown = unknown | undefined[0].flatten()
        bad = ~((mine == other) | unknown | ((mine - other).abs() <= 1e-5 * torch.clamp(mine.abs(), min=1.0)))
        for i in bad.nonzero().flatten().tolist()[:4]:
            at = [tuple(each.flatten().tolist())[i] if each.numel() == mine.numel() else "" for each in case.operands]
            found.append(f"{what}[{i}] at {at}: {float(other[i])}, wanted {float(mine[i])}")
    return found
