"""States of optimizers of PyTorch, in sessions and back.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

A session's states of a parameter have PyTorch's names and meanings. Numbers of steps, and what follows from them, are one in a session
and of each parameter in PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ortc._errors import CompileError
from ortc._session import Session
from ortc.torch.optim import KNOWN

if TYPE_CHECKING:
    from ortc.torch._describe import Described, OfGroup

_COUNTS = ("step", "updates")
_INSTEAD = "its state is that of trainer.session: trainer.save(path) and trainer.load(path) keep it"


def has_state(optimizer: torch.optim.Optimizer) -> bool:
    """Whether there was a step: Adagrad has states before."""
    return any(float(own.get("step", 1)) != 0 and any(each is not None for each in own.values()) for own in optimizer.state.values())


def _initial(group: OfGroup, state: str) -> float:
    """What PyTorch has in a state from the beginning on, and a session adds when it reads it."""
    return float(group.group["initial_accumulator_value"]) if (group.name, state) == ("Adagrad", "sum") else 0.0


def check_kind(group: OfGroup) -> None:
    """Raises CompileError where a session has the state otherwise."""
    if KNOWN[group.name].states is None:
        raise CompileError(f"the state of {group.name} is no state of a session: {_INSTEAD}")


def _names(group: OfGroup, name: str, known: Mapping[str, Any]) -> list[str]:
    """The states that a session has of a parameter; none where it is not trained any more."""
    return [each for each in KNOWN[group.name].states or () if f"{name}.{each}" in known]


def _groups(described: Described, optimizer: torch.optim.Optimizer) -> Iterator[tuple[OfGroup, torch.Tensor, str]]:
    seen = set()
    for group in described.groups():
        if group.optimizer is optimizer and group.number not in seen:
            seen.add(group.number)
            yield from ((group, p, described.names[id(p)]) for p in group.group["params"] if id(p) in described.names)


def read_states(session: Session, described: Described, optimizer: torch.optim.Optimizer) -> None:
    """Gives an optimizer what the session has: copies."""
    known = session.state
    for group, p, name in _groups(described, optimizer):
        check_kind(group)
        own: dict[str, Any] = {}
        if KNOWN[group.name].counts:
            own["step"] = torch.tensor(float(session["updates" if "updates" in known else "step"]))
        for product in KNOWN[group.name].products:
            own[product] = torch.tensor(float(session[group.prefix + product if group.prefix + product in known else product]))
        for each in _names(group, name, known):
            own[each] = torch.from_numpy(np.array(known[f"{name}.{each}"])) + _initial(group, each)
        optimizer.state[p] = own


def write_states(session: Session, described: Described, optimizer: torch.optim.Optimizer) -> None:
    """Gives a session what an optimizer has."""
    known = session.state
    steps = set()
    for group, p, name in _groups(described, optimizer):
        check_kind(group)
        own = optimizer.state.get(p) or {}
        steps.add(float(own.get("step", 1.0)))
        for each in _names(group, name, known):
            if each not in own:
                raise CompileError(f"'{name.removeprefix('m.model.')}' has no state {each}, which the optimizer's settings ask for")
            if own[each] is not None:
                value = own[each].detach().to(torch.float32) - _initial(group, each)
                session.write(f"{name}.{each}", value.contiguous().numpy())
        for product in KNOWN[group.name].products:
            for key in (product, group.prefix + product):
                if key in known and product in own:
                    _write_number(session, key, float(own[product]))
    if len(steps) > 1:
        raise CompileError(
            f"parameters have taken {', '.join(f'{each:.0f}' for each in sorted(steps))} steps, and a session counts one number: "
            "begin with another optimizer, or train with ortc.torch.compile_, whose optimizer is PyTorch's"
        )
    counts = any(KNOWN[group.name].counts for group, _, _ in _groups(described, optimizer))
    if steps and (counts or not session["step"]):
        _count(session, described, steps.pop())


def _count(session: Session, described: Described, steps: float) -> None:
    for key in _COUNTS:
        if key in session.state:
            _write_number(session, key, steps)
    for group in described.groups():
        for number, beta in enumerate(group.group.get("betas", ()), 1):
            for key in {f"bias_correction{number}", f"{group.prefix}bias_correction{number}"} & {*session.state}:
                if key.startswith(group.prefix or "bias"):
                    _write_number(session, key, 1 - float(beta) ** steps)


def _write_number(session: Session, name: str, value: float) -> None:
    session.write(name, np.asarray(value, session.artifact.tensors[name].dtype))
