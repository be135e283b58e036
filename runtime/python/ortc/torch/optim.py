"""PyTorch's optimizers with a compiled step: the classes of torch.optim, with their arguments, groups and state.

    optimizer = ortc.torch.optim.AdamW(model.parameters(), lr=1e-3)

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

A step is one call for all tensors of a group, in the memory of parameters and state, on as many threads as
torch.set_num_threads says. Results have the same bits for every number of threads. What the compiled step does not take
(other types, other devices, sparse gradients) is a step of PyTorch's own, as a whole: both go on from the same state.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from itertools import compress
from typing import Any

import torch

from ortc import _runtime
from ortc._errors import CompileError, ShapeError
from ortc.torch._report import Report
from ortc.torch._rules import RULES, Rule
from ortc.torch._threads import pool
from ortc.torch._update import open_update

__all__ = ["SGD", "Adam", "AdamW"]

class _Eager(Exception):
    """Why a step is PyTorch's own."""


class _Work:
    """Parameters of one group and type that have a gradient, and what belongs to them."""

    def __init__(self, group: dict[str, Any], names: tuple[str, ...]) -> None:
        self.group = group
        self.parameters: list[torch.Tensor] = []
        self.gradients: list[torch.Tensor] = []
        self.owners: list[dict[str, Any]] = []
        """PyTorch's states; empty ones of parameters that have had no step."""
        self.states: dict[str, list[torch.Tensor]] = {name: [] for name in names}
        self.is_changed = False
        """Whether there are states that the owners do not have."""

    def find_states(self) -> None:
        """Those that there are, and zeros; the owners get them when the step is sure to be compiled."""
        self.is_changed = not all(self.owners)
        for name in self.states:
            if any(own and own.get(name) is None for own in self.owners):
                raise _Eager(f"a parameter has no state {name}: the steps before were of other settings")
            self.states[name] = [
                own[name] if own else torch.zeros_like(p, memory_format=torch.preserve_format)
                for p, own in zip(self.parameters, self.owners)
            ]

    def lists(self) -> tuple[list[torch.Tensor], ...]:
        return self.parameters, self.gradients, *self.states.values()

    def fit(self) -> None:
        """Gives gradients and states the strides of their parameters, and states their type."""
        self.is_changed = True
        for i, p in enumerate(self.parameters):
            if self.gradients[i].layout is not torch.strided:
                raise _Eager(f"a gradient is {self.gradients[i].layout}")
            for tensors in (self.gradients, *self.states.values()):
                each = tensors[i]
                if each.shape == p.shape and (each.dtype, each.stride()) != (p.dtype, p.stride()):
                    tensors[i] = torch.empty_like(p).copy_(each)

    def keep_states(self, state: dict[torch.Tensor, Any], counts: bool) -> None:
        for i, (p, own) in enumerate(zip(self.parameters, self.owners)):
            if not own:
                own = self.owners[i] = state[p]
                if counts:
                    own["step"] = torch.zeros((), dtype=torch.float32)
            for name, tensors in self.states.items():
                own[name] = tensors[i]


def _gather(rule: Rule, group: dict[str, Any], state: dict[torch.Tensor, Any]) -> list[_Work]:
    """What a step of a group has to do. Changes nothing: the step may still be PyTorch's."""
    for name in ("capturable", "differentiable"):
        if group.get(name):
            raise _Eager(f"a group is {name}")
    if len(set(map(id, group["params"]))) != len(group["params"]):
        raise _Eager("a parameter is in a group twice")
    found: dict[torch.dtype, _Work] = {}
    for p in group["params"]:
        g = p.grad
        if g is None:
            continue
        work = found.get(p.dtype)
        if work is None:
            if p.dtype not in (torch.float32, torch.float64) or p.is_neg():
                raise _Eager(f"a parameter is {p.dtype}")
            work = found[p.dtype] = _Work(group, rule.states(rule.switches(group)))
        work.parameters.append(p)
        work.gradients.append(g.resolve_neg() if g.is_neg() else g)
        work.owners.append(state.get(p) or {})
    for work in found.values():
        work.find_states()
    return list(found.values())


class _Compiled:
    """What the classes below put before those of PyTorch."""

    rule: Rule
    __dict__: dict[str, Any]
    state: dict[torch.Tensor, Any]
    param_groups: list[dict[str, Any]]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        for name in ("capturable", "differentiable"):
            if options.get(name):
                kind = type(self).__name__
                raise ValueError(f"{name}=True: a compiled step has no graph; leave it out, or take torch.optim.{kind}")
        options.pop("fused", None)  # it demands of PyTorch what a compiled step does not need; groups have None
        super().__init__(*arguments, **options)

    @property
    def report(self) -> Report:
        """How many steps were compiled, and why the others were not."""
        report: Report = self.__dict__.setdefault("_report", Report())
        return report

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step. `closure`: computes loss and gradients anew, and gives the loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        try:
            if self.report.failures:
                raise _Eager("it could not be compiled")
            found = [work for group in self.param_groups for work in _gather(self.rule, group, self.state)]
            updates = [(work, *self._prepare(work)) for work in found]
        except _Eager as why:
            self.report.eager[str(why)] += 1
            inspect.unwrap(super().step)(self)  # type: ignore[misc]  # hooks of a step have run already
            return loss
        for each in updates:
            self._update(*each)
        self.report.compiled += 1
        return loss

    def _open(self, work: _Work) -> _runtime.Update:
        switches = self.rule.switches(work.group)
        scalars = len(self.rule.scalars(switches, work.group, 1))
        try:
            return open_update(self.rule, switches, work.parameters[0].dtype, scalars)
        except Exception as error:
            text = str(error) if isinstance(error, CompileError) else f"{type(error).__name__}: {error}"
            self.report.failures.append(text)
            warnings.warn(f"ortc.torch.optim: {type(self).__name__} goes on without compiling: {text}", stacklevel=5)
            raise _Eager("it could not be compiled") from None

    def _prepare(self, work: _Work) -> tuple[_runtime.Update, _runtime.Update.Batch]:
        update = self._open(work)
        try:
            return update, update.prepare(work.lists())
        except ShapeError:
            work.fit()
        try:
            return update, update.prepare(work.lists())
        except ShapeError as error:
            raise _Eager(str(error)) from None

    def _update(self, work: _Work, update: _runtime.Update, batch: _runtime.Update.Batch) -> None:
        rule, group = self.rule, work.group
        switches = rule.switches(group)
        ages = [2.0 if own else 1.0 for own in work.owners]
        if work.is_changed and (rule.counts or work.states):
            work.keep_states(self.state, rule.counts)
        if rule.counts:
            ages = self._count(work.owners)
        threads = pool(torch.get_num_threads())
        for age in sorted(set(ages)):
            chosen = [each == age for each in ages]
            if not all(chosen):  # parameters that had no gradient in some steps
                batch = update.prepare(tuple(list(compress(each, chosen)) for each in work.lists()))
            update.step(threads, batch, rule.scalars(switches, group, age))
        torch.autograd.graph.increment_version(work.parameters)

    def _count(self, owners: list[dict[str, Any]]) -> list[float]:
        """Adds a step to each parameter's, and gives them."""
        try:
            return _runtime.advance([own["step"] for own in owners])
        except ShapeError:
            for own in owners:
                own["step"] = own["step"].to("cpu", torch.float32)
            return _runtime.advance([own["step"] for own in owners])


class SGD(_Compiled, torch.optim.SGD):
    """torch.optim.SGD with a compiled step."""

    rule = RULES[torch.optim.SGD]
    __signature__ = inspect.signature(torch.optim.SGD)


class Adam(_Compiled, torch.optim.Adam):
    """torch.optim.Adam with a compiled step."""

    rule = RULES[torch.optim.Adam]
    __signature__ = inspect.signature(torch.optim.Adam)


class AdamW(_Compiled, torch.optim.AdamW):
    """torch.optim.AdamW with a compiled step."""

    rule = RULES[torch.optim.AdamW]
    __signature__ = inspect.signature(torch.optim.AdamW)
