"""The work of a step of ortc.torch.optim: tensors of a group, what belongs to them, and the compiled update.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress
from typing import Any

import torch

from ortc import _runtime
from ortc._errors import ShapeError
from ortc.torch._optimizers import Group, Known, Numbers
from ortc.torch._threads import pool
from ortc.torch._update import Form, Pieces, Whole, open_pieces, open_whole


class Eager(Exception):
    """Why a step is not that of compiled code on the tensors as they are."""


class Work:
    """Parameters of one group and form that have a gradient, and what belongs to them."""

    def __init__(self, known: Known, group: Group, first: torch.Tensor) -> None:
        self.known = known
        self.group = group
        self.dtype = first.dtype
        self.shape = tuple(first.shape)
        self.has_bytes = known.has_bytes and first.numel() >= group["min_8bit_size"]
        self.parameters: list[torch.Tensor] = []
        self.gradients: list[torch.Tensor] = []
        self.owners: list[dict[str, Any]] = []
        """PyTorch's states; empty ones of parameters that have had no step."""
        self.forms: dict[str, Form] = {}
        """Those of states, by their names in checkpoints; from open() on, as the states."""
        self.states: dict[str, list[torch.Tensor]] = {}
        self.is_changed = False
        """Whether there are states that the owners do not have."""

    def add(self, p: torch.Tensor, gradient: torch.Tensor, own: dict[str, Any]) -> None:
        self.parameters.append(p)
        self.gradients.append(gradient.resolve_neg() if gradient.is_neg() else gradient)
        self.owners.append(own)

    def open(self) -> None:
        """Finds the compiled update and the states. Raises Eager, CompileError where there is none, and ValueError for settings
        that make no step."""
        known, choices = self.known, self.known.choices(self.group)
        self.update: _Pieces | _Wholes
        if known.is_whole:
            if not self.parameters[0].numel():
                raise Eager("a parameter is empty")
            self.update = _Wholes(open_whole(known, choices, self.dtype, self.shape, torch.get_num_threads()))
        else:
            self.update = _Pieces(open_pieces(known, choices, self.dtype, self.has_bytes))
        if "betas" in self.group:
            self.scalars((1.0, *(0.5 for _ in known.products)))
        self.forms = self.update.code.states
        self._find_states()
        self.update.prepare(self)

    def _find_states(self) -> None:
        """Those that there are, and what they are at first; the owners get them when the step is sure to be compiled."""
        self.is_changed = not all(self.owners)
        for name, form in self.forms.items():
            if any(own and own.get(name) is None for own in self.owners):
                raise Eager(f"a parameter has no state {name}: the steps before were of other settings")
            self.states[name] = [own[name] if own else self.start(name, form, p) for p, own in zip(self.parameters, self.owners)]

    def start(self, name: str, form: Form, p: torch.Tensor) -> torch.Tensor:
        """A state before the first step."""
        if form.block > 1:
            return torch.zeros(-(-p.numel() // form.block), dtype=form.dtype)
        if form.shape is not None:
            return torch.zeros(form.shape, dtype=form.dtype)
        first = self.known.starts.get(name)
        if first == "parameter":
            return torch.clone(p, memory_format=torch.preserve_format)
        return torch.full_like(p, self.group[first] if first else 0, dtype=form.dtype, memory_format=torch.preserve_format)

    def lists(self) -> tuple[list[torch.Tensor], ...]:
        return self.parameters, self.gradients, *self.states.values()

    def scalars(self, numbers: Numbers) -> list[float]:
        return self.known.scalars(self.update.code.scalars, self.group, numbers)

    def check_layouts(self) -> None:
        for gradient in self.gradients:
            if gradient.layout is not torch.strided:
                raise Eager(f"a gradient is {gradient.layout}")

    def fit(self) -> None:
        """Gives gradients and states the strides of their parameters, and their types."""
        self.is_changed = True
        self.check_layouts()
        for i, p in enumerate(self.parameters):
            for name, form in (("", Form("gradient", self.dtype)), *self.forms.items()):
                tensors = self.states.get(name, self.gradients)
                each = tensors[i]
                if each.shape == p.shape and (each.dtype, each.stride()) != (form.dtype, p.stride()):
                    tensors[i] = torch.empty_like(p, dtype=form.dtype).copy_(each)

    def keep_states(self, state: dict[torch.Tensor, Any]) -> None:
        for i, (p, own) in enumerate(zip(self.parameters, self.owners)):
            if not own:
                own = self.owners[i] = state[p]
                own.update(begin_counting(self.known))
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
        return [(age, *(float(own[name]) for name in self.known.products)) for own, age in zip(self.owners, ages)]

    def step(self, state: dict[torch.Tensor, Any]) -> None:
        """The step, with the states that `state` has of parameters; nothing raises Eager any more."""
        numbers: list[Numbers] = [(2.0 if own else 1.0,) for own in self.owners]
        if self.is_changed and (self.known.counts or self.states):
            self.keep_states(state)
        if self.known.counts:
            numbers = self.count()
        self.update.run(self, numbers)

    def keep_products(self, made: list[float], owners: list[dict[str, Any]]) -> None:
        for name, value in zip(self.known.products, made, strict=True):
            for own in owners:
                own[name].fill_(value)


def compute_loss(closure: Callable[[], Any] | None) -> Any:
    """The loss that a step's closure computes anew, with gradients; None without one."""
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()


def begin_counting(known: Known) -> dict[str, torch.Tensor]:
    """States of one number before the first step."""
    own = {"step": torch.zeros((), dtype=torch.float32)} if known.counts else {}
    return own | {name: torch.ones((), dtype=torch.float32) for name in known.products}


def gather(known: Known, group: Group, state: dict[torch.Tensor, Any]) -> list[Work]:
    """Lists what a step of a group has to do. Changes nothing: the step may still be another one. Raises Eager."""
    for name in ("capturable", "differentiable"):
        if group.get(name):
            raise Eager(f"a group is {name}")
    if len(set(map(id, group["params"]))) != len(group["params"]):
        raise Eager("a parameter is in a group twice")
    found: dict[Any, Work] = {}
    for p in group["params"]:
        g = p.grad
        if g is None:
            continue
        key: Any = p.dtype
        if known.is_whole:
            key = p.dtype, p.shape
        elif known.has_bytes:
            key = p.dtype, p.numel() < group["min_8bit_size"]
        work = found.get(key)
        if work is None:
            if p.dtype not in (torch.float32, torch.float64) or p.is_neg():
                raise Eager(f"a parameter is {p.dtype}")
            work = found[key] = Work(known, group, p)
        work.add(p, g, state.get(p) or {})
    return list(found.values())


class _Pieces:
    """Pieces of tensors: one call for all of them."""

    def __init__(self, code: Pieces) -> None:
        self.code = code

    def prepare(self, work: Work) -> None:
        try:
            self.batch = self.code.update.prepare(work.lists())
            return
        except ShapeError:
            work.fit()
        try:
            self.batch = self.code.update.prepare(work.lists())
        except ShapeError as error:
            raise Eager(str(error)) from None

    def run(self, work: Work, numbers: list[Numbers]) -> None:
        threads = pool(torch.get_num_threads())
        for each in sorted(set(numbers)):
            chosen = [other == each for other in numbers]
            batch = self.batch
            if not all(chosen):  # parameters that had no gradient in some steps
                batch = self.code.update.prepare(tuple(list(compress(tensors, chosen)) for tensors in work.lists()))
            made = self.code.update.step(threads, batch, work.scalars(each))
            if made:
                work.keep_products(made, list(compress(work.owners, chosen)))


class _Wholes:
    """Whole tensors of one shape: one call for each."""

    def __init__(self, code: Whole) -> None:
        self.code = code

    def prepare(self, work: Work) -> None:
        work.check_layouts()
        for p in work.parameters:
            if p.device.type != "cpu":
                raise Eager(f"a parameter is of {p.device}")

    def run(self, work: Work, numbers: list[Numbers]) -> None:
        scalars = {each: [torch.tensor(x, dtype=torch.float64) for x in work.scalars(each)] for each in set(numbers)}
        for each, tensors in zip(numbers, zip(*work.lists())):
            self.code.step(tensors, scalars[each])
