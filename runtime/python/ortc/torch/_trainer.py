"""The fused step: forward, loss, gradients and the optimizer's update as one compiled call.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree

from ortc._artifact import Artifact
from ortc._flags import format_flags
from ortc._errors import CompileError, ShapeError
from ortc._session import Session
from ortc.torch import _cache
from ortc.torch._export import Job, make_request
from ortc.torch._layout import Layout, keep, place_of
from ortc.torch._step import autocast_dtype
from ortc.torch._threads import default_threads


class _WithLoss(torch.nn.Module):
    """The loss as the only output."""

    def __init__(self, model: torch.nn.Module, loss: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.model = model
        self.loss = loss

    def forward(self, inputs: Any, labels: Any) -> torch.Tensor:
        result = self.model(*inputs) if isinstance(inputs, tuple) else self.model(inputs)
        return self.loss(result, *labels) if isinstance(labels, tuple) else self.loss(result, labels)


def describe_optimizer(optimizer: str | torch.optim.Optimizer, lr: float | None = None) -> str:
    """The flag for an optimizer of PyTorch's, with its learning rate or another. Raises CompileError for what the flag
    cannot say."""
    if isinstance(optimizer, str):
        return optimizer
    if len(optimizer.param_groups) != 1:
        raise CompileError("the optimizer has several groups of parameters; give the flag, and group=[...]")
    given = optimizer.param_groups[0]
    for key in ("amsgrad", "maximize", "dampening", "differentiable"):
        if given.get(key):
            raise CompileError(f"{key} of {type(optimizer).__name__} is not compiled")
    keys = {"lr": float(given["lr"]) if lr is None else lr, "weight_decay": float(given["weight_decay"])}
    if isinstance(optimizer, torch.optim.SGD):
        name = "sgd"
        keys.update(momentum=float(given["momentum"]), nesterov=int(given["nesterov"]))
    elif isinstance(optimizer, (torch.optim.AdamW, torch.optim.Adam)):
        decoupled = isinstance(optimizer, torch.optim.AdamW) or given.get("decoupled_weight_decay")
        name = "adamw" if decoupled else "adam"
        keys.update(beta1=given["betas"][0], beta2=given["betas"][1], epsilon=given["eps"])
    else:
        raise CompileError(f"{type(optimizer).__name__} is not compiled; SGD, Adam and AdamW are")
    return name + ":" + ",".join(f"{key}={value!r}" for key, value in keys.items())


def _settings(optimizer: torch.optim.Optimizer) -> list[Any]:
    """What an artifact takes from an optimizer."""
    return [value for group in optimizer.param_groups for key, value in group.items() if key not in ("params", "lr")]


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
        optimizer: str | torch.optim.Optimizer,
        *,
        threads: int | None = None,
        **flags: Any,
    ) -> None:
        """`loss` takes what the model gives, then the labels. `optimizer`: SGD, Adam or AdamW of PyTorch, whose learning
        rate is taken before every step (schedulers may change it), or what `ortc train --optimizer` takes; then `lr` is
        the session's. `flags`: of `ortc train`, with underscores."""
        self.model = model
        self.optimizer = optimizer
        self.threads = threads or default_threads()
        self.flags = ["--optimizer", describe_optimizer(optimizer), *format_flags(flags)]
        if isinstance(optimizer, torch.optim.Optimizer):
            held = {id(each) for group in optimizer.param_groups for each in group["params"]}
            if held != {id(each) for each in model.parameters() if each.requires_grad}:
                raise CompileError("the optimizer has other parameters than those that the module trains")
            if optimizer.state:
                raise CompileError("the optimizer has taken steps already, and its state would be lost")
        self._settings = [] if isinstance(optimizer, str) else _settings(optimizer)
        self._whole = _WithLoss(model, loss)
        self._places: dict[str, tuple[torch.Tensor, int]] = {}
        """In the memory of the session, with the address."""
        self._sessions: dict[Any, tuple[Session, list[tuple[str, int]], list[Any]]] = {}
        """With the session's inputs and which of the tensors they are, and what has its address in the key."""
        self._call: Any = None
        """What the last step was given; and what the module was then:"""
        self._taken: Layout | None = None
        self._fixed: list[torch.Tensor] = []
        self._known: list[Any] = []
        self._names: list[tuple[str, int]] = []
        self._current: Session | None = None
        self._layout: Layout | None = None

    def step(self, inputs: Any, labels: Any) -> float:
        """One step, and its loss before the update. Inputs and labels are tensors, or tuples of them; each combination of
        shapes is compiled once, which the first step of it waits for."""
        leaves, form = _flatten(inputs, labels)
        layout = self._layout
        if layout is None or not layout.is_current():
            layout = self._layout = Layout(self._whole)
        call = (form, autocast_dtype(), [(leaf.shape, leaf.dtype) for leaf in leaves])
        if call != self._call or layout is not self._taken or self._state(layout) != self._known:
            self._take(layout, leaves, call, ((inputs, labels), {}))
        session = self.session
        self._follow(layout)
        if isinstance(self.optimizer, torch.optim.Optimizer):
            if _settings(self.optimizer) != self._settings:
                raise CompileError("settings of the optimizer other than lr have changed since the trainer was made")
            session.lr = float(self.optimizer.param_groups[0]["lr"])
        loss = session.train_step(**{name: _plain(leaves[i]) for name, i in self._names})
        layout.count_batches()
        return loss

    def _take(self, layout: Layout, leaves: list[torch.Tensor], call: Any, given: Any) -> None:
        """The session of a call that is not as the one before, which the first of a kind compiles."""
        trained = [name for name in layout.parameters if layout.get(name).requires_grad]
        fixed = [*(layout.get(name) for name in layout.fixed(trained)), *layout.fixed_tensors]
        form, narrow, kinds = call
        key = (form, narrow, tuple(kinds), tuple(trained), (layout.attributes, *layout.places), tuple(map(place_of, fixed)))
        if key not in self._sessions:
            spec = pytree.tree_structure(given)
            self._sessions[key] = *self._compile(layout, leaves, spec), [*keep(fixed), *layout.objects]
        session, self._names, _ = self._sessions[key]
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
            raise ShapeError("the first step makes the session")
        return self._current

    def _compile(self, layout: Layout, leaves: list[torch.Tensor], spec: Any) -> tuple[Session, list[tuple[str, int]]]:
        if refusal := layout.refusal():
            raise CompileError(refusal)
        request = make_request(self._whole, self._whole.forward, layout, leaves, spec, None, self.threads, self.flags, fused=True)
        folder = _cache.find(request.digest)
        if folder is None:
            job = Job(request)
            job.is_done(wait=True)
            if job.error:
                raise CompileError(job.error)
            folder = _cache.find(request.digest) or Path()
        session = Session(Artifact(folder / "artifact"), threads=self.threads)
        steps = session.program.steps()["default"]["train"]
        return session, [(name, int(name.split(".")[1])) for name, _, _ in steps[0]]

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
        for name, (tensors, key) in layout.slots.items():
            tensor = session.artifact.tensors.get(f"m.{name}")
            if tensor is None or tensor.role not in ("parameter", "state"):
                continue
            place = torch.from_dlpack(session.tensor(f"m.{name}"))
            if self._current is None:
                place.copy_(tensors[key].detach())
            tensors[key].data = place
            self._places[name] = place, place.data_ptr()
        self._current = session

    def _follow(self, layout: Layout) -> None:
        """Takes tensors that have moved since the last step."""
        for name, (place, address) in self._places.items():
            tensors, key = layout.slots[name]
            if tensors[key].data_ptr() != address:
                place.copy_(tensors[key].detach())
                tensors[key].data = place
