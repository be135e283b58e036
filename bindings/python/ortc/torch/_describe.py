"""Optimizers of PyTorch as flags of `ortc train`, for the fused step.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from ortc._errors import ArgumentError, CompileError
from ortc._session import Session
from ortc.torch._optimizers import Group, settings_of
from ortc.torch._states import check_kind, has_state
from ortc.torch.optim import KNOWN

_HOMES = ("torch.optim", "ortc.torch.optim", "lion_pytorch", "timm.optim", "schedulefree", "bitsandbytes.optim")
_CORRECTIONS = {"beta1": "bias_correction1", "beta2": "bias_correction2"}
"""States that are 1 - beta^step in PyTorch, whatever beta was before."""
_NEEDED = {
    "bias_correction": True,
    "caution": False,
    "decoupled_decay": False,
    "corrected_weight_decay": False,
    "differentiable": False,
    "capturable": False,
    "min_8bit_size": 4096,
    "max_unorm": 0.0,
    "skip_zeros": False,
}
"""Keys without a flag: what they must be."""
_IGNORED = ("params", "foreach", "fused", "max_grad_norm", "use_triton")
"""Keys that choose code, or that are flags of their own."""
_NOTHING = SimpleNamespace()
_MOST = 3000
"""Characters of a regular expression; the compiler takes 4096."""


def _find_name(optimizer: torch.optim.Optimizer) -> str:
    for kind in type(optimizer).__mro__:
        if kind.__name__ in KNOWN and kind.__module__.startswith(_HOMES):
            return kind.__name__
    raise CompileError(f"{type(optimizer).__name__} is not compiled; {', '.join(KNOWN)} are, and what optimizer=SPEC takes")


def _list_keys(name: str) -> list[str]:
    """Those of a group that the flag has, too."""
    taken = KNOWN[name].arguments or inspect.signature(getattr(torch.optim, name))
    keys = [key for key in taken.parameters if key not in (*_IGNORED, *_NEEDED, *dict(KNOWN[name].only))]
    return [key for key in keys if not (name == "Adam" and key == "decoupled_weight_decay")]


class OfGroup:
    """A group of parameters: its settings as those of the flag."""

    def __init__(self, optimizer: torch.optim.Optimizer, number: int) -> None:
        self.name = _find_name(optimizer)
        self.optimizer, self.number = optimizer, number
        group = self.group
        given = vars(getattr(optimizer, "args", None) or _NOTHING) | group  # of bitsandbytes
        for key, value in _NEEDED.items():
            if given.get(key, value) != value:
                raise CompileError(
                    f"{key}={given[key]!r} of {type(optimizer).__name__} is not compiled by ortc.torch.Trainer; {key}={value!r} is"
                )
        self.keys = _list_keys(self.name)
        self.flag = "adamw" if self.name == "AdamW" else KNOWN[self.name].flag_of(group)
        self.compiled = self.settings()
        self.own: list[str] = []
        """Settings that its flag gives."""
        self.prefix = ""
        """Of its hyper-parameters."""

    @property
    def group(self) -> Group:
        """As it is now: load_state_dict puts another one there."""
        found: Group = self.optimizer.param_groups[self.number]
        return found

    def values(self) -> list[Any]:
        return [self.group[key] for key in self.keys]

    def settings(self) -> dict[str, Any]:
        return settings_of(self.group, self.keys)


def _format(settings: Mapping[str, Any]) -> str:
    return ",".join(f"{key}={value if isinstance(value, str) else repr(value)}" for key, value in settings.items())


def _cut(names: list[str]) -> list[str]:
    """Regular expressions of names."""
    found: list[str] = []
    for name in names:
        escaped = re.sub(r"([.^$*+?()\[\]{}|\\/-])", r"\\\1", name)
        if found and len(found[-1]) + len(escaped) < _MOST:
            found[-1] += f"|{escaped}"
        else:
            found.append(escaped)
    return found


class Described:
    """Optimizers whose groups are those of an artifact."""

    def __init__(self, optimizers: Sequence[torch.optim.Optimizer], names: Mapping[int, str]) -> None:
        """`names`: of trained parameters in the artifact, by id. Raises CompileError for what flags cannot say."""
        self.optimizers = optimizers
        self.names = names
        groups = [(each, number, len(group["params"])) for each in optimizers for number, group in enumerate(each.param_groups)]
        held = [id(p) for each in optimizers for group in each.param_groups for p in group["params"]]
        if set(held) != set(names):
            raise CompileError("the optimizer has other parameters than those that the module trains")
        if len(held) != len(set(held)):
            raise CompileError("a parameter is in two groups")
        # What `--optimizer` says is that of the largest group, so that the others' names are few.
        groups.sort(key=lambda each: -each[2])
        self.base = OfGroup(*groups[0][:2])
        settings = self.base.settings()
        self.flags = ["--optimizer", f"{self.base.flag}:{_format(settings)}"]
        self.base.own = list(settings)
        self.others: list[OfGroup] = []
        for optimizer, number, _ in groups[1:]:
            for pattern in _cut([names[id(p)] for p in optimizer.param_groups[number]["params"]]):
                self._add_group(OfGroup(optimizer, number), pattern, settings)
        for each in self.groups():
            if has_state(each.optimizer):
                check_kind(each)
        self.limit = self._find_limit()
        self._known = self._values()

    def _add_group(self, group: OfGroup, pattern: str, base: dict[str, Any]) -> None:
        settings = group.settings()
        if group.flag == self.base.flag:
            settings = {key: value for key, value in settings.items() if key == "lr" or base.get(key) != value}
            head = ""
        else:
            head = f"optimizer={group.flag},"
        group.own, group.prefix = list(settings), f"group{len(self.others)}."
        self.flags += ["--group", f"({pattern}):{head}{_format(settings)}"]
        self.others.append(group)

    def _find_limit(self) -> float | None:
        """Of the norm of all gradients, where an optimizer limits it."""
        given = [group.group.get("max_grad_norm") for group in (self.base, *self.others)]
        limits = {float(limit) for limit in given if limit is not None}
        if len(limits) > 1 or (limits and len(self.optimizers) > 1):
            raise CompileError("max_grad_norm of one optimizer among several: give None, and clip_norm=X, which is of all gradients")
        return limits.pop() if limits else None

    def groups(self) -> list[OfGroup]:
        """Some are in several parts, whose names do not fit into one pattern."""
        return [self.base, *self.others]

    def _values(self) -> list[Any]:
        return [value for group in self.groups() for value in group.values()]

    def follow(self, session: Session, is_new: bool) -> None:
        """Gives a session what has changed since the last step, such as rates, and a new one everything. Raises CompileError
        for what is no hyper-parameter."""
        values = self._values()
        if values == self._known and not is_new:
            return
        scalars, base = session.artifact.names("scalar"), self.base.settings()
        for group in (self.base, *self.others):
            for key, value in group.settings().items():
                if key not in group.own and base.get(key) == value:
                    continue  # it is the base's
                if group.prefix + key in scalars:
                    _set(session, group.prefix, key, value)
                elif group.compiled.get(key) != value:
                    raise CompileError(
                        f"{key} of the optimizer has changed since the trainer was made, and is compiled into the step"
                    )
        self._known = values


def _set(session: Session, prefix: str, key: str, value: float) -> None:
    """A hyper-parameter, and what PyTorch computes from it and the number of steps."""
    correction = prefix + _CORRECTIONS.get(key, "")
    if key == "beta1" and correction in session.state and not value < 1:
        raise ArgumentError(f"{key} of the optimizer is {value}, and a step divides by 1 - {key}^n, so that it must be below 1")
    if correction in session.state and session[prefix + key] != value:
        session.write(correction, np.float64(1 - value ** session["step"]))
    session.set_scalar(prefix + key, value)
