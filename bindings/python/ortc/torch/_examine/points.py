"""Where functions are special: zeros, ties, bounds, negative axes, equal rows.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch

_BOUNDS = (0.0, 1.0, -1.0, 6.0, -6.0, 3.0, -3.0, 0.5, -0.5, 2.0, -2.0)
"""Bounds of clamps and of activations in pieces."""

Tensors = Mapping[str, torch.Tensor]


@dataclass
class Point:
    name: str
    inputs: dict[str, torch.Tensor]
    weights: dict[str, torch.Tensor]
    """The values of trained parameters."""
    is_special: bool = True


def _bounds(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor(_BOUNDS, dtype=x.dtype).repeat(x.numel() // len(_BOUNDS) + 1)[: x.numel()].reshape(x.shape)


def _ties(x: torch.Tensor) -> torch.Tensor:
    """Whole numbers, of which neighbours are equal."""
    whole = x.round().clamp(-2, 2)
    if whole.dim() and whole.shape[-1] > 1:
        half = whole.shape[-1] // 2
        whole[..., half : 2 * half] = whole[..., :half]
    return whole


def _rows(x: torch.Tensor) -> torch.Tensor:
    return x[:1].expand_as(x).clone() if x.dim() and x.shape[0] else x


_INPUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "zeros": torch.zeros_like,
    "ones": torch.ones_like,
    "negative axis": lambda x: -(x.abs().round() + 1),
    "bounds": _bounds,
    "ties": _ties,
    "equal rows": _rows,
}
_OF_INTEGERS = ("zeros", "equal rows")


def _halves(x: torch.Tensor) -> torch.Tensor:
    """Halves up to one, whose products and sums are exact."""
    largest = float(x.abs().max()) if x.numel() else 0.0
    return (x / largest * 2).round() / 2 if largest else x.clone()


def list_points(inputs: Tensors, weights: Tensors, has_weights: bool) -> Iterator[Point]:
    """The arguments, and others. `has_weights`: parameters may have other values, too."""
    here, own = dict(inputs), dict(weights)
    yield Point("arguments", here, own, False)
    for name, change in _INPUTS.items():
        moved = {
            key: change(each) if each.is_floating_point() or each.dtype != torch.bool and name in _OF_INTEGERS else each
            for key, each in here.items()
        }
        if any(not torch.equal(moved[key], here[key]) for key in here):
            yield Point(name, moved, own)
    if has_weights and own:
        yield Point("weights of zeros", here, {key: torch.zeros_like(each) for key, each in own.items()})
        moved = {key: _ties(each) if each.is_floating_point() else each for key, each in here.items()}
        yield Point("weights of halves, ties", moved, {key: _halves(each) for key, each in own.items()})
