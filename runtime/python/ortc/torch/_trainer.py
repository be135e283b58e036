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
from ortc._compile import format_flags
from ortc._errors import CompileError, ShapeError
from ortc._session import Session
from ortc.torch import _cache
from ortc.torch._export import Job, make_request
from ortc.torch._layout import Layout, keep, place_of
from ortc.torch._step import autocast_dtype, default_threads


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
        self._settings = "" if isinstance(optimizer, str) else describe_optimizer(optimizer, lr=0.0)
        self._whole = _WithLoss(model, loss)
        self._places: dict[str, torch.Tensor] = {}
        self._sessions: dict[Any, tuple[Session, list[str], list[Any]]] = {}
        """With the memory and the objects whose addresses are in the key."""
        self._current: Session | None = None
        self._layout: Layout | None = None

    def step(self, inputs: Any, labels: Any) -> float:
        """One step, and its loss before the update. Inputs and labels are tensors, or tuples of them; each combination of
        shapes is compiled once, which the first step of it waits for."""
        leaves, spec = pytree.tree_flatten(((inputs, labels), {}))
        if not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
            raise ShapeError("inputs and labels are tensors, or tuples of tensors")
        if self._layout is None or not self._layout.is_current():
            self._layout = Layout(self._whole)
        layout = self._layout
        trained = [name for name in layout.parameters if layout.get(name).requires_grad]
        fixed = [*(layout.get(name) for name in layout.fixed(trained)), *layout.fixed_tensors]
        key = (
            spec,
            tuple((leaf.shape, leaf.dtype) for leaf in leaves),
            tuple(trained),
            (layout.attributes, *layout.places),
            tuple(map(place_of, fixed)),
            autocast_dtype(),
        )
        if key not in self._sessions:
            self._sessions[key] = *self._compile(layout, leaves, spec), [*keep(fixed), *layout.objects]
        session, names, _ = self._sessions[key]
        if session is not self._current:
            self._move_to(session, layout)
        self._follow(layout)
        if isinstance(self.optimizer, torch.optim.Optimizer):
            if describe_optimizer(self.optimizer, lr=0.0) != self._settings:
                raise CompileError("settings of the optimizer other than lr have changed since the trainer was made")
            session.lr = float(self.optimizer.param_groups[0]["lr"])
        loss = session.train_step(**{name: leaves[int(name.split(".")[1])].detach().resolve_neg().contiguous() for name in names})
        layout.count_batches()
        return loss

    @property
    def session(self) -> Session:
        """With parameters, optimizer state and checkpoints, after the first step."""
        if self._current is None:
            raise ShapeError("the first step makes the session")
        return self._current

    def _compile(self, layout: Layout, leaves: list[Any], spec: Any) -> tuple[Session, list[str]]:
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
        return session, [name for name, _, _ in steps[0]]

    def _move_to(self, session: Session, layout: Layout) -> None:
        """Takes state along, and lets the module's tensors be those of the session."""
        if self._current is not None:
            session.from_bytes(self._current.to_bytes())
        for name, (tensors, key) in layout.slots.items():
            tensor = session.artifact.tensors.get(f"m.{name}")
            if tensor is None or tensor.role not in ("parameter", "state"):
                continue
            place = torch.from_dlpack(session.tensor(f"m.{name}"))
            if self._current is None:
                place.copy_(tensors[key].detach())
            tensors[key].data = self._places[name] = place
        self._current = session

    def _follow(self, layout: Layout) -> None:
        """Takes tensors that have moved since the last step."""
        for name, place in self._places.items():
            tensors, key = layout.slots[name]
            if tensors[key].data_ptr() != place.data_ptr():
                place.copy_(tensors[key].detach())
                tensors[key].data = place
