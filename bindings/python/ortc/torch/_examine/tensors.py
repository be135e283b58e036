"""Which tensors of a module those of a file are, whoever has exported it.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

_PREFIXES = ("m.", "model.", "module.", "_orig_mod.", "_model.")
"""That exporters and wrappers put before names."""
_MOST_AXES = 5


@dataclass
class Source:
    """A tensor of a module as a file has it."""

    name: str
    """In the module."""
    order: tuple[int, ...] | None = None
    """The axes of the module's tensor in the file's order; None: as they are."""
    shape: tuple[int, ...] = ()
    """In the file."""

    def to_file(self, tensor: torch.Tensor) -> torch.Tensor:
        turned = tensor if self.order is None else tensor.permute(self.order)
        return turned.reshape(self.shape).contiguous()

    def from_file(self, tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        if self.order is None:
            return tensor.reshape(like.shape)
        turned = tensor.reshape([like.shape[axis] for axis in self.order])
        return turned.permute([self.order.index(axis) for axis in range(len(self.order))])

    def describe(self, own: str) -> str:
        """How it differs from the module's tensor; empty where it does not."""
        said = [] if own == self.name else [f"'{own}' in the file"]
        if self.order is not None and list(self.order) != sorted(self.order):
            said.append("transposed")
        return ", ".join(said)


def _short(name: str) -> str:
    last = name.rpartition("::")[2]
    for prefix in _PREFIXES:
        last = last.removeprefix(prefix)
    return last


def match(
    names: Mapping[str, tuple[int, ...]], values: Mapping[str, NDArray[np.generic]], tensors: Mapping[str, torch.Tensor]
) -> dict[str, Source]:
    """`names`: of tensors in the file, with shapes; `values`: of those that are known; `tensors`: of the module. First by name, then by
    values, where these are of no other."""
    found: dict[str, Source] = {}
    short = {_short(name): name for name in tensors}
    for own, shape in names.items():
        name = own if own in tensors else short.get(_short(own))
        if name is not None and tuple(tensors[name].shape) == shape:
            found[own] = Source(name, None, shape)
    left = {name: each for name, each in tensors.items() if name not in {source.name for source in found.values()}}
    arrays = {name: each.detach().cpu().float().numpy() for name, each in left.items() if each.is_floating_point() and each.numel() > 1}
    for own, shape in names.items():
        if own in found or own not in values or values[own].size < 2:
            continue
        value = np.asarray(values[own], np.float32)
        hits = [(name, order) for name, array in arrays.items() for order in _orders(array, value)]
        if hits and len({name for name, _ in hits}) == 1:
            name, order = hits[0]
            found[own] = Source(name, order, shape)
    return found


def _orders(array: NDArray[np.generic], value: NDArray[np.generic]) -> Sequence[tuple[int, ...]]:
    if array.size != value.size or array.ndim > _MOST_AXES or not np.array_equal(np.sort(array, None), np.sort(value, None)):
        return ()
    for order in itertools.permutations(range(array.ndim)):
        if np.array_equal(array.transpose(order).ravel(), value.ravel()):
            return (order,)
    return ()
