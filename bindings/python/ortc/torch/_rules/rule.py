"""What a rule of ortc.torch.optim is.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

Group = dict[str, Any]
"""Of Optimizer.param_groups."""
Groups = list[Group]
Switches = tuple[Any, ...]
Tensors = tuple[torch.Tensor, ...]
Numbers = tuple[float, ...]


def _start_with_zeros(_name: str, p: torch.Tensor, _group: Group) -> torch.Tensor:
    return torch.zeros_like(p, memory_format=torch.preserve_format)


def _begin_nothing(_groups: Groups) -> dict[str, float]:
    return {}


def sign_of(group: Group) -> float:
    return -1.0 if group["maximize"] else 1.0


@dataclass(frozen=True, eq=False)  # a key of caches, in every step
class Rule:
    """An optimizer."""

    flag: str
    """What `ortc train --optimizer` calls it."""
    switches: Callable[[Group], Switches]
    """What decides which operations there are."""
    states: Callable[[Switches, torch.Tensor], tuple[str, ...]]
    """Names in PyTorch's state, for a parameter."""
    scalars: Callable[[Switches, Group, Numbers], list[float]]
    """`Numbers`: the number of this step of a parameter, and what `factors` have made. Of rules that do not count the number
    is 1 in the first step and 2 afterwards."""
    formula: Callable[[Switches, torch.Tensor, torch.Tensor, Tensors, Tensors], Tensors]
    """From parameter, gradient, states and scalars to the parameter and the states."""
    counts: bool = False
    """Whether there is a state `step`."""
    factors: tuple[tuple[str, Callable[[Group, float], float]], ...] = ()
    """States of one number, 1 at first, and what a step with its number multiplies each by."""
    start: Callable[[str, torch.Tensor, Group], torch.Tensor] = _start_with_zeros
    """What a state is before the first step."""
    begin: Callable[[Groups], dict[str, float]] = _begin_nothing
    """Before every step: moves what the groups count, and gives what scalars find in a group beside its own."""
    is_whole: bool = False
    """The formula looks at all of a tensor (a norm, a product), so that each shape is a compilation; the others see pieces
    of tensors of any shape."""
    block: int = 1
    """The most elements of a parameter that one of a state is of. States of such a rule have types of their own, which `start`
    says; pieces are whole blocks."""
    of_blocks: tuple[str, ...] = ()
    """States with one element for each block."""
    arguments: inspect.Signature | None = None
    """Of an optimizer that torch.optim has not: what makes one, with the defaults; all are keys of its groups."""
    kept: tuple[tuple[str, Any], ...] = ()
    """Keys of its groups that are no arguments."""
    only: tuple[tuple[str, Any], ...] = ()
    """Arguments that are no keys of its groups, and the only values that they may have."""


def scalars_of(rule: Rule, switches: Switches, group: Group, numbers: Numbers) -> list[float]:
    """Of a step. Raises ValueError where they divide by a bias correction of 0."""
    try:
        return rule.scalars(switches, group, numbers)
    except ZeroDivisionError as error:
        if "betas" not in group:
            raise
        raise ValueError(f"Invalid betas: {group['betas']} of {rule.flag}; a step divides by 1 - beta^n, so that each must be below 1") from error


def arguments(**defaults: Any) -> inspect.Signature:
    """A signature of parameters and these, in order."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature(
        [
            inspect.Parameter("params", kind),
            *(inspect.Parameter(name, kind, default=value) for name, value in defaults.items()),
        ]
    )
