"""Names of settings and states: those of ortc.torch.optim, for those of the compiler.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Formulas are the compiler's (compiler/passes/train/optimizers). Settings have the compiler's names except those below.
Numbers are inputs of a step, so that schedules compile nothing; numbers of which a zero compiles nothing, switches and
words decide what is compiled. Numbers that parameters share in a step, such as bias corrections, follow from what
checkpoints count.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import torch

Group = dict[str, Any]
"""Of Optimizer.param_groups."""
Groups = list[Group]
Numbers = tuple[float, ...]
"""The number of this step of a parameter, and its `products`. Without counting, the number is 1 in
the first step and 2 afterwards."""

RENAMED = {"betas": ("beta1", "beta2"), "eps": ("epsilon",), "ns_coefficients": ("ns_a", "ns_b", "ns_c")}
"""Settings of several numbers, and those that the compiler calls otherwise."""
PAIR_OF_EPSILONS = ("epsilon1", "epsilon2")
_PLACES = {name: (key, i) for key, names in RENAMED.items() for i, name in enumerate(names) if len(names) > 1}
_PLACES |= {name: ("eps", i) for i, name in enumerate(PAIR_OF_EPSILONS)}
_CORRECTIONS = {"bias_correction1": 0, "bias_correction2": 1}


def _begin_nothing(_groups: Groups) -> dict[str, float]:
    return {}


@dataclass(frozen=True, eq=False)  # a key of caches, in every step
class Known:
    """An optimizer."""

    flag: str
    """Its name in `ortc train --optimizer`."""
    optional: tuple[str, ...] = ("weight_decay",)
    """Settings of which a zero compiles nothing."""
    compiled: tuple[str, ...] = ()
    """Switches, words and whole numbers, which are compiled in."""
    states: tuple[str, ...] | None = None
    """Those that sessions of `ortc.torch.Trainer` have by the names of checkpoints, where settings or shapes need them. None: its
    package has its state otherwise."""
    decouples: bool = False
    """Whether weight decay is no part of the gradient: then it is an input even where it is 0."""
    counts: bool = True
    """Whether there is a state `step` of each parameter."""
    counter: str = ""
    """Where a group counts for all of its parameters: the key."""
    products: tuple[str, ...] = ()
    """States of one number, 1 at first, which a step gives new values of."""
    begin: Callable[[Groups], dict[str, float]] = _begin_nothing
    """Before every step: moves what the groups count, and gives what scalars find in a group beside its own."""
    is_whole: bool = False
    """The formula looks at all of a tensor (a norm, a product), so that each shape is a compilation."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """States that checkpoints call otherwise than the compiler."""
    starts: Mapping[str, str] = field(default_factory=dict)
    """States that do not begin with zeros: "parameter", or the key of the group that says with what."""
    has_bytes: bool = False
    """States are bytes of tensors of `min_8bit_size` elements and more, float32 of others."""
    arguments: inspect.Signature | None = None
    """Those that make one that torch.optim has not, with the defaults; all are keys of its groups."""
    kept: tuple[tuple[str, Any], ...] = ()
    """Keys of its groups that are no arguments."""
    only: tuple[tuple[str, Any], ...] = ()
    """Arguments that are no keys of its groups, and the only values that they may have."""

    def flag_of(self, group: Group) -> str:
        return self._name(self._decouples(group))

    def _name(self, decouples: bool) -> str:
        return "adamw" if self.flag == "adam" and decouples else self.flag

    def _decouples(self, group: Group) -> bool:
        return self.decouples or bool(group.get("decoupled_weight_decay"))

    def choices(self, group: Group) -> tuple[Any, ...]:
        """The settings that decide which operations there are."""
        decouples = self._decouples(group)
        return decouples, *[group[key] for key in self.compiled], *[_is_there(group, key, decouples) for key in self.optional]

    def spec(self, choices: tuple[Any, ...]) -> str:
        """For `ortc update --optimizer`. Only whether a number is 0 matters."""
        decouples, *rest = choices
        given = [(key, value) for key, value in zip((*self.compiled, *self.optional), rest, strict=True) if value is not None]
        return f"{self._name(decouples)}:" + ",".join(f"{key}={int(value) if isinstance(value, bool) else value}" for key, value in given)

    def scalars(self, names: tuple[str, ...], group: Group, numbers: Numbers) -> list[float]:
        """Inputs of a step. Raises ValueError where it divides by a bias correction of 0."""
        steps = float(group[self.counter]) if self.counter else numbers[0]
        return [read(group, steps, numbers) for read in _readers(self, names)]


_Reader = Callable[[Group, float, Numbers], float]


@cache
def _readers(known: Known, names: tuple[str, ...]) -> list[_Reader]:
    return [_find_reader(known, name) for name in names]


def _find_reader(known: Known, name: str) -> _Reader:
    """Reads an input of that name, of a group after so many steps."""
    if name == "gradient_scale":
        return lambda group, steps, numbers: (-1.0 if group.get("maximize") else 1.0) * group.get("clip", 1.0)
    if name == "updates":
        return lambda group, steps, numbers: steps
    if name in _CORRECTIONS:
        return partial(_correct, known.flag, _CORRECTIONS[name])
    if name in known.products:
        place = 1 + known.products.index(name)
        return lambda group, steps, numbers: numbers[place]
    if name in _PLACES:
        key, i = _PLACES[name]
        return lambda group, steps, numbers: float(group[key][i])
    key = "eps" if name == "epsilon" else name
    return lambda group, steps, numbers: float(group[key])


def _correct(flag: str, i: int, group: Group, steps: float, _: Numbers) -> float:
    if not group.get("bias_correction", True):
        return 1.0
    correction: float = 1 - float(group["betas"][i]) ** steps
    if not correction:
        raise ValueError(f"Invalid betas: {group['betas']} of {flag}; a step divides by 1 - beta^n, so that each must be below 1")
    return correction


def _is_there(group: Group, key: str, decouples: bool) -> bool:
    if key == "epsilon1":
        return group["eps"][0] is not None
    return bool(group[key]) or (decouples and key == "weight_decay")


def settings_of(group: Group, keys: list[str]) -> dict[str, Any]:
    """Settings of a group as those of `ortc train`."""
    found: dict[str, Any] = {}
    for key in keys:
        value = group[key]
        names = RENAMED.get(key, (key,))
        if key == "eps" and isinstance(value, (tuple, list)):
            names = PAIR_OF_EPSILONS
        values = value if isinstance(value, (tuple, list)) else (value,)
        for name, each in zip(names, values, strict=True):
            if isinstance(each, torch.Tensor):
                each = each.item()
            if each is not None:
                found[name] = int(each) if isinstance(each, bool) else each
    return found


def list_arguments(**defaults: Any) -> inspect.Signature:
    """A signature of parameters and these, in order."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature(
        [
            inspect.Parameter("params", kind),
            *(inspect.Parameter(name, kind, default=value) for name, value in defaults.items()),
        ]
    )
