"""The kinds that a module has been: attributes and tensors as its layout has them, and what its code reads.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import torch

from ortc.torch._key import Description, describe

_numbers = itertools.count(1)


class Kind(NamedTuple):
    number: int
    description: Description
    kept: list[Any]
    """The memory and the objects whose addresses are in the key."""


class Kinds:
    """The kinds of one module."""

    def __init__(self) -> None:
        self._known: dict[Any, list[Kind]] = {}
        self.descriptions = 0
        """How often the module was described."""
        self.change = ""
        """The value that code reads, and that was something else when the module was described the last time."""

    def find(self, key: Any) -> Kind | None:
        """`key`: of its layout. None: it must be described."""
        return next((each for each in self._known.get(key, ()) if each.description.watch.is_current()), None)

    def add(self, module: torch.nn.Module, key: Any, kept: list[Any]) -> Kind:
        """The kind that it is now. Something else that is equal to what code has read makes no other kind."""
        known = self._known.setdefault(key, [])
        self.change = known[-1].description.watch.find_change() if known else ""
        found = describe(module)
        self.descriptions += 1
        place = next((i for i, each in enumerate(known) if each.description.text == found.text), None)
        number = next(_numbers) if place is None else known[place].number
        kind = Kind(number, found, kept)
        if place is not None:
            del known[place]
        known.append(kind)
        return kind

    def clear(self) -> None:
        self._known.clear()
        self.descriptions = 0
