"""The fused step: forward, loss, gradients and the optimizer's update as one compiled call.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree

from ortc._artifact import Artifact
from ortc._flags import format_flags
from ortc._errors import CompileError, FormatError, ShapeError
from ortc._session import Session
from ortc.compat.ort_training._safetensors import parse
from ortc.torch import _cache
from ortc.torch._compare import Comparison
from ortc.torch._describe import Described
from ortc.torch._export import Job, Request, make_request
from ortc.torch._kinds import Kind, Kinds
from ortc.torch._layout import Layout, keep, place_of
from ortc.torch._step import autocast_dtype
from ortc.torch._states import check_kind, has_state, read_states, write_states
from ortc.torch._threads import default_threads
from ortc.torch._verify_fused import verify_fused


class _WithLoss(torch.nn.Module):
    """The loss as the only output."""

    def __init__(self, model: torch.nn.Module, loss: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.model = model
        self.loss = loss

    def forward(self, inputs: Any, labels: Any) -> torch.Tensor:
        result = self.model(*inputs) if isinstance(inputs, tuple) else self.model(inputs)
        return self.loss(result, *labels) if isinstance(labels, tuple) else self.loss(result, labels)


def _flatten(inputs: Any, labels: Any) -> tuple[list[torch.Tensor], Any]:
    """The tensors, and how they were given."""
    first = inputs if isinstance(inputs, tuple) else (inputs,)
    second = labels if isinstance(labels, tuple) else (labels,)
    leaves, form = [*first, *second], (type(inputs), len(first), type(labels))
    if not all([isinstance(leaf, torch.Tensor) for leaf in leaves]):
        leaves, form = pytree.tree_flatten((inputs, labels))
        if not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
            raise ShapeError("inputs and labels are tensors, or tuples of tensors")
    return leaves, form


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """As sessions read it."""
    return tensor.detach().resolve_neg().contiguous() if tensor.requires_grad or tensor.is_neg() else tensor.contiguous()


class Trainer:
    """Trains a module with whole compiled steps. Its parameters and running statistics lie in the memory of the session
    from then on: `state_dict` and evaluation see what the last step has made."""

    def __init__(
        self,
        model: torch.nn.Module,
        loss: Callable[..., torch.Tensor],
        optimizer: str | torch.optim.Optimizer | Sequence[torch.optim.Optimizer],
        *,
        threads: int | None = None,
        **flags: Any,
    ) -> None:
        """`loss` takes what the model gives, then the labels. `optimizer`: of PyTorch, of `ortc.torch.optim` or of the packages
        that this names, or several for parts of the parameters. Each group becomes one of the step; rates and other
        hyper-parameters are taken before every step, so that schedulers may change them. Or what `ortc train --optimizer`
        takes; then they are the session's. `flags`: of `ortc train`, with underscores."""
        self.model = model
        self.optimizer = optimizer
        self.threads = threads or default_threads()
        self._described: Described | None = None
        self._has_flags = bool(flags)
        self.failures: list[str] = []
        """Artifacts of the cache that were made of something else, and what differs."""
        self._compared: set[str] = set()
        self._own: dict[str, str] = {}
        """By digests of such artifacts: those of this process alone."""
        if isinstance(optimizer, str):
            self.flags = ["--optimizer", optimizer, *format_flags(flags)]
        else:
            several = [optimizer] if isinstance(optimizer, torch.optim.Optimizer) else list(optimizer)
            names = {id(p): f"m.model.{name}" for name, p in model.named_parameters() if p.requires_grad}
            self._described = Described(several, names)
            if self._described.limit is not None:
                flags.setdefault("clip_norm", self._described.limit)
            if self._described.others and flags.get("group"):
                raise CompileError("the optimizer has groups, and group=... is given, too; give one of them")
            self.flags = [*self._described.flags, *format_flags(flags)]
            for each in several:
                each.register_state_dict_pre_hook(self._give_state)
                each.register_state_dict_post_hook(self._forget_state)
                each.register_load_state_dict_post_hook(self._take_state)
        self._before: dict[Any, Any] = {}
        """The states of an optimizer itself, while its state_dict is made."""
        self._checkpoint = b""
        """The checkpoint for a session, until there is one."""
        self._whole = _WithLoss(model, loss)
        self._places: dict[str, tuple[torch.Tensor, int]] = {}
        """In the memory of the session, with the address."""
        self._sessions: dict[Any, tuple[Session, list[tuple[str, int | str]]]] = {}
        """With the session's inputs and which of the tensors they are."""
        self._kinds = Kinds()
        self._kind: Kind | None = None
        self._call: Any = None
        """What the last step was given; and what the module was then:"""
        self._taken: Layout | None = None
        self._fixed: list[torch.Tensor] = []
        self._known: list[Any] = []
        self._names: list[tuple[str, int | str]] = []
        self._current: Session | None = None
        self._followed: Session | None = None
        self._layout: Layout | None = None

    def step(self, inputs: Any, labels: Any) -> float:
        """One step, and its loss before the update. Inputs and labels are tensors, or tuples of them; each combination of
        shapes is compiled once, which the first step of it waits for."""
        leaves, form = _flatten(inputs, labels)
        layout = self._layout
        if layout is None or not layout.is_current():
            layout = self._layout = Layout(self._whole)
        call = (form, autocast_dtype(), [(leaf.shape, leaf.dtype) for leaf in leaves])
        is_known = self._kind is not None and self._kind.description.watch.is_current()
        if call != self._call or layout is not self._taken or not is_known or self._state(layout) != self._known:
            self._take(layout, leaves, call, ((inputs, labels), {}))
        session = self.session
        self._follow(layout)
        if self._described is not None:
            self._described.follow(session, session is not self._followed)
            self._followed = session
        given = {name: leaves[i] if isinstance(i, int) else layout.get(i) for name, i in self._names}
        loss = session.train_step(**{name: _plain(each) for name, each in given.items()})
        layout.count_batches()
        return loss

    def _take(self, layout: Layout, leaves: list[torch.Tensor], call: Any, given: Any) -> None:
        """The session of a call that is not as the one before, which the first of a kind compiles."""
        trained = [name for name in layout.parameters if layout.get(name).requires_grad]
        fixed = [*(layout.get(name) for name in layout.fixed(trained)), *layout.fixed_tensors]
        form, narrow, kinds = call
        of_module = (layout.attributes, *layout.places, *map(place_of, fixed))
        kind = self._kinds.find(of_module) or self._kinds.add(self._whole, of_module, [*keep(fixed), *layout.objects])
        self._kind = kind
        key = (form, narrow, tuple(kinds), tuple(trained), kind.number)
        if key not in self._sessions:
            self._sessions[key] = self._compile(layout, leaves, pytree.tree_structure(given), kind)
        session, self._names = self._sessions[key]
        if session is not self._current:
            self._move_to(session, layout)
        self._call, self._taken, self._fixed = call, layout, fixed
        self._known = self._state(layout)

    def _state(self, layout: Layout) -> list[Any]:
        """What the artifact of the last step takes for granted."""
        return layout.state() + [place_of(each) for each in self._fixed]

    @property
    def session(self) -> Session:
        """With parameters, optimizer state and checkpoints, after the first step."""
        if self._current is None:
            raise ShapeError("the first step makes the session; load(path) of the trainer takes a checkpoint before that, too")
        return self._current

    def save(self, path: str | os.PathLike[str]) -> None:
        """A checkpoint of parameters, running statistics, optimizer state and hyper-parameters, after the first step."""
        self.session.save(path)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Takes such a checkpoint, before the first step, too: parameters and running statistics at once. Hyper-parameters are those
        of the optimizer."""
        if self._current is not None:
            self._current.load(path)
            self._followed = None
            return
        file = Path(path).read_bytes()
        found, _ = parse(file, os.fspath(path))
        slots = Layout(self._whole).slots
        values = {name.removeprefix("m."): each for name, each in found.items() if name.removeprefix("m.") in slots}
        if not values:
            raise FormatError(f"{os.fspath(path)}: has no tensor of the module; save(path) of a trainer writes them")
        for name, each in values.items():
            tensors, key = slots[name]
            if tuple(tensors[key].shape) != each.shape:
                raise ShapeError(
                    f"{os.fspath(path)}: '{name.removeprefix('model.')}' is {list(each.shape)}, but the module has {list(tensors[key].shape)}"
                )
        with torch.no_grad():
            for name, each in values.items():
                tensors, key = slots[name]
                tensors[key].copy_(torch.from_numpy(each))
        self._checkpoint = file

    def _give_state(self, optimizer: torch.optim.Optimizer) -> None:
        """Before its state_dict."""
        self._before = dict(optimizer.state)
        if self._current is not None and self._described is not None:
            read_states(self._current, self._described, optimizer)
        elif self._checkpoint:
            raise CompileError("the optimizer's state is in the checkpoint that the trainer has loaded, until the first step")

    def _forget_state(self, optimizer: torch.optim.Optimizer, _: Any) -> None:
        """After its state_dict, which has copies."""
        optimizer.state.clear()
        optimizer.state.update(self._before)

    def _take_state(self, optimizer: torch.optim.Optimizer) -> None:
        """After its load_state_dict."""
        assert self._described is not None
        for group in self._described.groups():
            if group.optimizer is optimizer and has_state(optimizer):
                check_kind(group)
        if self._current is not None:
            write_states(self._current, self._described, optimizer)
            self._followed = None

    def _compile(self, layout: Layout, leaves: list[torch.Tensor], spec: Any, kind: Kind) -> tuple[Session, list[tuple[str, int | str]]]:
        if refusal := layout.refusal():
            raise CompileError(refusal)
        forward, flags = self._whole.forward, self.flags
        request = make_request(self._whole, forward, layout, leaves, spec, None, self.threads, flags, kind.description, fused=True)
        failures: list[str] = []
        request.digest = self._own.get(request.digest, request.digest)
        found = _cache.open_entry(request.digest, self._open, failures)
        if found is not None and (difference := self._compare(request)):
            self.failures.append(difference)
            request.digest = self._own[request.digest] = os.urandom(32).hex()
            found = _cache.open_entry(request.digest, self._open, failures)
        if found is None:
            try:
                job = Job(request)
            except OSError as error:
                raise CompileError(f"there is no place to compile: {error}") from error
            job.is_done(math.inf)
            if job.error:
                raise CompileError(job.error)
            found = _cache.open_entry(request.digest, self._open, failures)
            if found is not None and (difference := self._compare(request, is_new=True)):
                raise CompileError(difference)
        if found is None:
            raise CompileError("; ".join(["the artifact cannot be opened", *failures[-1:]]))
        return found

    def _compare(self, request: Request, is_new: bool = False) -> str:
        """The difference from the module, found in a child, which has no threads of a session. New artifacts may have no comparison."""
        if request.digest in self._compared:
            return ""
        described, optimizers = self._described, ()
        if described is not None and not self._has_flags and all(type(each).__module__.startswith("torch.optim") for each in described.optimizers):
            optimizers = tuple(described.optimizers)

        def follow(session: Session) -> None:
            if described is not None:
                described.follow(session, True)

        def compare() -> None:
            found = _cache.open_entry(request.digest, self._open)
            if found is None:
                raise CompileError("there is no entry any more")
            verify_fused(request, *found, follow, optimizers)

        try:
            comparison = Comparison(request.digest, compare)
        except OSError as error:
            raise CompileError(f"there is no process to compare the step with the module: {error}") from error
        comparison.is_done(math.inf)
        if comparison.difference and (comparison.is_known or not is_new):
            return comparison.difference
        self._compared.add(request.digest)
        return ""

    def _open(self, folder: Path, meta: dict[str, Any]) -> tuple[Session, list[tuple[str, int | str]]]:
        session = Session(Artifact(folder / "artifact"), threads=self.threads)
        steps = session.program.steps()["default"]["train"]
        found: list[tuple[str, int | str]] = []
        for name, _, _ in steps[0]:
            kind, _, rest = name.partition(".")
            found.append((name, int(rest) if kind == "input" else rest))  # a weight that no gradient reaches
        return session, found

    def _move_to(self, session: Session, layout: Layout) -> None:
        """Takes state along, and lets the module's tensors be those of the session."""
        if self._current is not None:
            before = self._current.artifact.names("parameter")
            if new := [name for name in session.artifact.names("parameter") if name not in before]:
                raise CompileError(
                    f"'{new[0].removeprefix('m.model.')}' was not trained in the step before, and the optimizer has no state for it: "
                    "begin with another Trainer, or train with ortc.torch.compile_, whose optimizer is PyTorch's"
                )
            session.from_bytes(self._current.to_bytes())
        elif self._checkpoint:
            session.from_bytes(self._checkpoint)
            self._checkpoint = b""
        for name, (tensors, key) in layout.slots.items():
            tensor = session.artifact.tensors.get(f"m.{name}")
            if tensor is None or tensor.role not in ("parameter", "state"):
                continue
            place = torch.from_dlpack(session.tensor(f"m.{name}"))
            if self._current is None:
                place.copy_(tensors[key].detach())
            tensors[key].data = place
            self._places[name] = place, place.data_ptr()
        if self._current is None and self._described is not None:
            for each in filter(has_state, self._described.optimizers):
                write_states(session, self._described, each)
        self._current = session

    def _follow(self, layout: Layout) -> None:
        """Takes tensors that have moved since the last step."""
        for name, (place, address) in self._places.items():
            tensors, key = layout.slots[name]
            if tensors[key].data_ptr() != address:
                place.copy_(tensors[key].detach())
                tensors[key].data = place
