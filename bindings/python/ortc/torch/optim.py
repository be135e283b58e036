"""Optimizers with a compiled step: the classes of torch.optim and of other packages, with their arguments, groups and state.

    optimizer = ortc.torch.optim.AdamW(model.parameters(), lr=1e-3)

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

A step is one call for all tensors of a group, in the memory of parameters and state, on as many threads as
torch.set_num_threads says; where an optimizer looks at whole tensors (a norm, a product), it is one call for each. Results
have the same bits for every number of threads. What the compiled step does not take (other types, other devices, sparse
gradients) is a step of PyTorch's own, as a whole: both go on from the same state.
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
from ortc.torch._recipes import InBytes, Recipe, ScheduleFree
from ortc.torch._report import Report
from ortc.torch._rules import RULES
from ortc.torch._rules.rule import Group, Numbers, Rule, scalars_of
from ortc.torch._threads import pool
from ortc.torch._update import Form, Whole, open_update, open_whole

__all__ = [
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "AdamW8bit",
    "AdamWScheduleFree",
    "Adamax",
    "Lamb",
    "Lars",
    "Lion",
    "Lion8bit",
    "Muon",
    "NAdam",
    "RAdam",
    "RMSprop",
    "SGDScheduleFree",
]


class _Eager(Exception):
    """Why a step is PyTorch's own."""


class _Work:
    """Parameters of one group and type that have a gradient, and what belongs to them."""

    def __init__(self, rule: Rule, group: Group, first: torch.Tensor) -> None:
        self.rule = rule
        self.group = group
        self.dtype = first.dtype
        self.switches = rule.switches(group)
        self.parameters: list[torch.Tensor] = []
        self.gradients: list[torch.Tensor] = []
        self.owners: list[dict[str, Any]] = []
        """PyTorch's states; empty ones of parameters that have had no step."""
        self.states: dict[str, list[torch.Tensor]] = {name: [] for name in rule.states(self.switches, first)}
        self.forms = tuple(self._find_form(name, first) for name in self.states)
        self.is_changed = False
        """Whether there are states that the owners do not have."""

    def _find_form(self, name: str, p: torch.Tensor) -> Form:
        if self.rule.block == 1:
            return Form(name, self.dtype, 1)
        like = self.rule.start(name, torch.empty_like(p, device="meta"), self.group)
        return Form(name, like.dtype, self.rule.block if name in self.rule.of_blocks else 1)

    def find_states(self) -> None:
        """Those that there are, and what they are at first; the owners get them when the step is sure to be compiled."""
        self.is_changed = not all(self.owners)
        for name in self.states:
            if any(own and own.get(name) is None for own in self.owners):
                raise _Eager(f"a parameter has no state {name}: the steps before were of other settings")
            self.states[name] = [
                own[name] if own else self.rule.start(name, p, self.group)
                for p, own in zip(self.parameters, self.owners)
            ]

    def lists(self) -> tuple[list[torch.Tensor], ...]:
        return self.parameters, self.gradients, *self.states.values()

    def scalars(self, numbers: Numbers) -> list[float]:
        return scalars_of(self.rule, self.switches, self.group, numbers)

    def check_layouts(self) -> None:
        for gradient in self.gradients:
            if gradient.layout is not torch.strided:
                raise _Eager(f"a gradient is {gradient.layout}")

    def fit(self) -> None:
        """Gives gradients and states the strides of their parameters, and their types."""
        self.is_changed = True
        self.check_layouts()
        for i, p in enumerate(self.parameters):
            for form in (Form("gradient", self.dtype, 1), *self.forms):
                tensors = self.states.get(form.name, self.gradients)
                each = tensors[i]
                if each.shape == p.shape and (each.dtype, each.stride()) != (form.dtype, p.stride()):
                    tensors[i] = torch.empty_like(p, dtype=form.dtype).copy_(each)

    def keep_states(self, state: dict[torch.Tensor, Any]) -> None:
        for i, (p, own) in enumerate(zip(self.parameters, self.owners)):
            if not own:
                own = self.owners[i] = state[p]
                if self.rule.counts:
                    own["step"] = torch.zeros((), dtype=torch.float32)
                for name, _ in self.rule.factors:
                    own[name] = torch.ones((), dtype=torch.float32)
            for name, tensors in self.states.items():
                own[name] = tensors[i]

    def count(self) -> list[Numbers]:
        """Adds a step to each parameter's, and gives them with the other numbers."""
        try:
            ages = _runtime.advance([own["step"] for own in self.owners])
        except ShapeError:
            for own in self.owners:
                own["step"] = own["step"].to("cpu", torch.float32)
            ages = _runtime.advance([own["step"] for own in self.owners])
        if not self.rule.factors:
            return [(age,) for age in ages]
        for name, factor in self.rule.factors:
            for own, age in zip(self.owners, ages):
                own[name] *= factor(self.group, age)
        return [
            (age, *(float(own[name]) for name, _ in self.rule.factors)) for own, age in zip(self.owners, ages)
        ]


def _gather(rule: Rule, group: Group, state: dict[torch.Tensor, Any]) -> list[_Work]:
    """What a step of a group has to do. Changes nothing: the step may still be PyTorch's."""
    for name in ("capturable", "differentiable"):
        if group.get(name):
            raise _Eager(f"a group is {name}")
    if len(set(map(id, group["params"]))) != len(group["params"]):
        raise _Eager("a parameter is in a group twice")
    found: dict[Any, _Work] = {}
    for p in group["params"]:
        g = p.grad
        if g is None:
            continue
        key = (p.dtype, rule.states(rule.switches(group), p)) if rule.is_whole or rule.block > 1 else p.dtype
        work = found.get(key)
        if work is None:
            if p.dtype not in (torch.float32, torch.float64) or p.is_neg():
                raise _Eager(f"a parameter is {p.dtype}")
            work = found[key] = _Work(rule, group, p)
        work.parameters.append(p)
        work.gradients.append(g.resolve_neg() if g.is_neg() else g)
        work.owners.append(state.get(p) or {})
    for work in found.values():
        work.find_states()
    return list(found.values())


class _Pieces:
    """The step of a rule that sees pieces: one call for all tensors."""

    def __init__(self, work: _Work, scalars: int) -> None:
        self.update = open_update(work.rule, work.switches, work.dtype, scalars, work.forms)
        try:
            self.batch = self.update.prepare(work.lists())
            return
        except ShapeError:
            work.fit()
        try:
            self.batch = self.update.prepare(work.lists())
        except ShapeError as error:
            raise _Eager(str(error)) from None

    def run(self, work: _Work, numbers: list[Numbers]) -> None:
        threads = pool(torch.get_num_threads())
        for each in sorted(set(numbers)):
            chosen = [other == each for other in numbers]
            batch = self.batch
            if not all(chosen):  # parameters that had no gradient in some steps
                batch = self.update.prepare(tuple(list(compress(tensors, chosen)) for tensors in work.lists()))
            self.update.step(threads, batch, work.scalars(each))


class _Wholes:
    """The step of a rule that sees whole tensors: one call for each."""

    def __init__(self, work: _Work, scalars: int) -> None:
        work.check_layouts()
        self.updates: list[Whole] = []
        for tensors in zip(*work.lists()):
            if tensors[0].device.type != "cpu" or not tensors[0].numel():
                raise _Eager(f"a parameter is of {tensors[0].device}" if tensors[0].numel() else "a parameter is empty")
            shapes = tuple(tuple(each.shape) for each in tensors)
            threads = torch.get_num_threads()
            self.updates.append(open_whole(work.rule, work.switches, work.dtype, scalars, work.forms, shapes, threads))

    def run(self, work: _Work, numbers: list[Numbers]) -> None:
        scalars = {each: [torch.tensor(x, dtype=work.dtype) for x in work.scalars(each)] for each in set(numbers)}
        for update, each, tensors in zip(self.updates, numbers, zip(*work.lists())):
            update.step(tensors, scalars[each])


class _Compiled:
    """What the classes below put before those that they compile."""

    rule: Rule
    __dict__: dict[str, Any]
    state: dict[torch.Tensor, Any]
    param_groups: list[Group]

    def __init_subclass__(cls) -> None:
        if cls.__name__ in RULES and cls.__module__ == __name__:
            base = cls.__mro__[2]
            cls.rule = RULES[cls.__name__]
            cls.__signature__ = cls.rule.arguments or inspect.signature(base)  # type: ignore[attr-defined]

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
            groups = [dict(group) for group in self.param_groups]
            more = self.rule.begin(groups)
            found = [work for group in groups for work in _gather(self.rule, group | more, self.state)]
            updates = [(work, self._open(work)) for work in found]
        except _Eager as why:
            self.report.eager[str(why)] += 1
            inspect.unwrap(super().step)(self)  # type: ignore[misc]  # hooks of a step have run already
            return loss
        for group, after in zip(self.param_groups, groups):
            group.update(after)
        for work, update in updates:
            numbers: list[Numbers] = [(2.0 if own else 1.0,) for own in work.owners]
            if work.is_changed and (work.rule.counts or work.states):
                work.keep_states(self.state)
            if work.rule.counts:
                numbers = work.count()
            update.run(work, numbers)
            torch.autograd.graph.increment_version(work.parameters)
        self.report.compiled += 1
        return loss

    def _open(self, work: _Work) -> _Pieces | _Wholes:
        scalars = len(work.scalars((1.0, *(0.5 for _ in work.rule.factors))))
        try:
            return _Wholes(work, scalars) if work.rule.is_whole else _Pieces(work, scalars)
        except _Eager:
            raise
        except Exception as error:
            text = str(error) if isinstance(error, CompileError) else f"{type(error).__name__}: {error}"
            self.report.failures.append(text)
            warnings.warn(f"ortc.torch.optim: {type(self).__name__} goes on without compiling: {text}", stacklevel=5)
            raise _Eager("it could not be compiled") from None


# The table: a class has the arguments, groups and state of the one behind _Compiled, and the rule of its name in RULES.


class SGD(_Compiled, torch.optim.SGD):
    """torch.optim.SGD with a compiled step."""


class Adam(_Compiled, torch.optim.Adam):
    """torch.optim.Adam with a compiled step."""


class AdamW(_Compiled, torch.optim.AdamW):
    """torch.optim.AdamW with a compiled step."""


class RMSprop(_Compiled, torch.optim.RMSprop):
    """torch.optim.RMSprop with a compiled step."""


class Adagrad(_Compiled, torch.optim.Adagrad):
    """torch.optim.Adagrad with a compiled step."""


class Adadelta(_Compiled, torch.optim.Adadelta):
    """torch.optim.Adadelta with a compiled step."""


class Adamax(_Compiled, torch.optim.Adamax):
    """torch.optim.Adamax with a compiled step."""


class NAdam(_Compiled, torch.optim.NAdam):
    """torch.optim.NAdam with a compiled step."""


class RAdam(_Compiled, torch.optim.RAdam):
    """torch.optim.RAdam with a compiled step."""


class Adafactor(_Compiled, torch.optim.Adafactor):
    """torch.optim.Adafactor with a compiled step."""


class Muon(_Compiled, torch.optim.Muon):
    """torch.optim.Muon with a compiled step, whose products are in the type of the parameter and not in bfloat16."""


class Lion(_Compiled, Recipe):
    """Lion as lion-pytorch has it, with a compiled step."""


class Lamb(_Compiled, Recipe):
    """Lamb as timm has it, with a compiled step."""


class Lars(_Compiled, Recipe):
    """Lars as timm has it, with a compiled step."""


class SGDScheduleFree(_Compiled, ScheduleFree):
    """SGDScheduleFree of the package schedulefree, with a compiled step."""


class AdamWScheduleFree(_Compiled, ScheduleFree):
    """AdamWScheduleFree of the package schedulefree, with a compiled step."""


class AdamW8bit(_Compiled, InBytes):
    """AdamW8bit of bitsandbytes with a compiled step. Codes are the nearest ones, as those of its kernels for GPUs are; its code
    for processors takes neighbours of some. Norms are as others: tensors below min_8bit_size values are float32."""


class Lion8bit(_Compiled, InBytes):
    """Lion8bit of bitsandbytes with a compiled step. Codes are as those of AdamW8bit."""
