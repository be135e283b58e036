"""The compiled step of one artifact, as a function that PyTorch differentiates.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ortc import _runtime
from ortc._artifact import Artifact
from ortc.torch import _threads, _trees

_ALIGNMENT = 64
_CPU = torch.device("cpu")
"""Also where another device is the default."""


def autocast_dtype() -> torch.dtype | None:
    """What torch.autocast casts to now, or None without it."""
    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None


class _Buffer:
    """One piece of memory for all gradients of a step."""

    def __init__(self, size: int) -> None:
        self.flat = torch.empty(size // 4 + _ALIGNMENT // 4, dtype=torch.float32, device=_CPU)
        skip = -self.flat.data_ptr() % _ALIGNMENT
        self.first = skip // 4
        self.address = self.flat.data_ptr() + skip
        self.storage = self.flat.untyped_storage()

    def is_free(self) -> bool:
        # The tensor, and the storage object of Python.
        return bool(torch._C._storage_Use_Count(self.storage._cdata) <= 2)


class Frame:
    """What one forward step keeps for its backward step, and where that puts gradients."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.native = _runtime.Frame(step.program, step.pool)
        self.buffers: list[_Buffer] = []
        self.generation = _threads.generation

    def gradients(self) -> _Buffer:
        """Memory that no gradient of an earlier step is in, the one of the last time if possible."""
        for i, buffer in enumerate(self.buffers):
            if buffer.is_free():
                self.buffers.insert(0, self.buffers.pop(i))
                return buffer
        del self.buffers[3:]
        self.buffers.insert(0, _Buffer(self.native.gradient_bytes))
        return self.buffers[0]


class _Lease:
    """The use of a frame from a forward step to its backward step, or until nobody can ask for that."""

    __slots__ = ("frame",)

    def __init__(self, frame: Frame) -> None:
        self.frame: Frame | None = frame

    def end(self) -> None:
        frame, self.frame = self.frame, None
        if frame is not None and frame.generation == _threads.generation:
            frame.step.idle.append(frame)

    def __del__(self) -> None:
        self.end()


@dataclass
class _Plan:
    """What backward does for one set of outputs with gradients."""

    used: list[int]
    surplus: list[int]
    """Those that the artifact has no cotangent for."""
    gradients: list[tuple[tuple[int, ...], tuple[int, ...], int] | None]
    """Of trained parameters: shape, strides and place in the buffer; None where there is no gradient."""
    inputs: list[int | None]
    """Of inputs: which of the input gradients is theirs."""


class Step:
    """An artifact with what a call of it needs."""

    def __init__(self, folder: Path, meta: dict[str, Any], module: torch.nn.Module, threads: int) -> None:
        """`meta`: what is known of the artifact in `folder`."""
        self.spec = _trees.load(meta["spec"])
        self.tensor_places: list[int] = meta["tensors"]
        self.constants: list[Any] = meta["constants"]
        self.takes_tensors: bool = meta["takes_tensors"]
        self.results = [(tuple(shape), getattr(torch, name)) for shape, name in zip(meta["shapes"], meta["dtypes"], strict=True)]
        """Shapes and types of the tensors that the module gives."""
        self.cotangents: list[int] = meta["cotangents"]
        self.cotangent_set = set(self.cotangents)
        self.fixed = [i for i in range(len(self.results)) if i not in meta["differentiable"]]
        self.reached = [frozenset(names) for names in meta["reached"]]
        """By output: the parameters that have a gradient when it has one, and inputs as "input.NUMBER"."""
        self.artifact = Artifact(folder / "artifact")
        self.program = self.artifact.program()
        self.threads = threads
        self.pool = _threads.pool(threads)
        self.generation = _threads.generation
        self.is_random = "random.seed" in self.artifact.names("scalar")
        self.idle: list[Frame] = []
        self.plans: dict[tuple[bool, ...], _Plan] = {}
        frame = Frame(self)
        self.idle.append(frame)
        names = frame.native.names
        taken = names("inputs")
        self.taken = len(taken)
        """Inputs that forward reads; the others have gradients of zeros."""
        self.inputs = taken + [f"input.{i}" for i in _numbers(names("input_gradients")) if f"input.{i}" not in taken]
        self.sources: list[tuple[int | None, str]] = [
            (int(rest), "") if kind == "input" else (None, rest)
            for kind, _, rest in (name.partition(".") for name in self.inputs)
        ]
        """Of the inputs: numbers of the call's tensors, or names of weights that are not trained."""
        self.gives_tensor = self.spec.is_leaf() and len(self.tensor_places) == 1
        self.outputs = _numbers(names("outputs"))
        bound = [name.removeprefix("m.") for name in names("bound")]
        order = [name.removeprefix("m.").removesuffix(".gradient") for name in names("gradients")]  # some of zeros, and of nothing bound
        self.cotangent_order = _numbers(names("cotangents"))
        self.reread = _numbers(names("reread"))
        self.kept = [self.inputs.index(name) for name in names("kept")]
        tensors = dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers())
        self.trained = [name for name in bound if name in set(order)] + [name for name in order if name not in set(bound)]
        self.statistics = [name for name in bound if name not in set(order)]
        place = {name: i for i, name in enumerate([*self.trained, *self.statistics])}
        self.bound_order = [place[name] for name in bound]
        self.gradient_inputs = [self.inputs.index(f"input.{number}") for number in _numbers(names("input_gradients"))]
        self.gradient_places = {
            name: (tuple(tensors[name].shape), tuple(torch.empty(tensors[name].shape, device="meta").stride()), offset // 4)
            for name, offset in zip(order, frame.native.gradient_offsets, strict=True)
        }

    def lease(self) -> _Lease:
        if self.generation != _threads.generation:  # a child of a fork makes threads of its own
            self.generation, self.pool, self.idle = _threads.generation, _threads.pool(self.threads), []
        return _Lease(self.idle.pop() if self.idle else Frame(self))

    def plan(self, present: tuple[bool, ...]) -> _Plan:
        used = [i for i, has in enumerate(present) if has]
        reached: frozenset[str] = frozenset().union(*(self.reached[i] for i in used))
        return _Plan(
            used=used,
            surplus=[i for i in used if i not in self.cotangent_set],
            gradients=[self.gradient_places[name] if name in reached else None for name in self.trained],
            inputs=[
                self.gradient_inputs.index(i) if i in self.gradient_inputs and name in reached else None
                for i, name in enumerate(self.inputs)
            ],
        )

    def forward(
        self, lease: _Lease, inputs: tuple[torch.Tensor, ...], weights: tuple[torch.Tensor, ...], seed: int
    ) -> list[torch.Tensor]:
        """The tensors that the module gives, in its order. `weights`: what is trained, then running statistics."""
        assert lease.frame is not None
        results = [torch.empty(shape, dtype=dtype, device=_CPU) for shape, dtype in self.results]
        bound = tuple([weights[i] for i in self.bound_order])
        lease.frame.native.forward(inputs[: self.taken], bound, tuple([results[i] for i in self.outputs]), seed)
        return results

    def backward(
        self,
        frame: Frame,
        cotangents: Sequence[Any],
        kept: tuple[torch.Tensor, ...],
        weights: tuple[torch.Tensor, ...],
        reread: tuple[torch.Tensor, ...],
        input_gradients: tuple[torch.Tensor, ...],
    ) -> _Buffer:
        """The buffer that has the gradients of parameters then. `kept`, `weights` and `reread`: what forward was given and
        has written, wherever it is now."""
        given = []
        for i in self.cotangent_order:
            each = cotangents[i]
            if each is None:
                shape, dtype = self.results[i]
                each = torch.zeros(shape, dtype=dtype, device=_CPU)
            given.append(each.resolve_neg().contiguous())
        bound = tuple([weights[i].contiguous() for i in self.bound_order])
        buffer = frame.gradients()
        frame.native.backward(tuple(given), buffer.address, input_gradients, kept, bound, reread)
        return buffer

    def gradients(self, buffer: _Buffer, plan: _Plan) -> list[torch.Tensor | None]:
        """Of the trained parameters, in the buffer."""
        found: list[torch.Tensor | None] = []
        flat, first = buffer.flat, buffer.first
        for each in plan.gradients:
            if each is None:
                found.append(None)
                continue
            shape, strides, offset = each
            found.append(flat.as_strided(shape, strides, first + offset))
        return found


def _numbers(names: list[str]) -> list[int]:
    """Of input.0, output.0, output.0.gradient."""
    return [int(name.split(".")[1]) for name in names]


@dataclass(slots=True)
class Call:
    """One call of a step."""

    step: Step
    note: Callable[[list[int]], None]
    """Is told which outputs have had gradients."""
    refuse: Callable[[str], None]
    """Is told why calls like this one are better not compiled."""
    statistics: tuple[torch.Tensor, ...]
    seed: int
    weights: tuple[torch.Tensor, ...] = ()
    versions: tuple[int, ...] = ()
    lease: _Lease | None = None
    is_checkpointed: bool = False
    is_dense: bool = True
    """Weights are in order of rows."""
    is_kept: bool = False
    """The graph is, by retain_graph=True: backward may come again."""
    again: Callable[[Sequence[Any]], list[Any]] | None = None
    """Takes gradients of outputs, and computes forward and backward anew with PyTorch: gradients of inputs, and of the trained
    parameters. These have gradients, too, where gradients are enabled."""
    like: tuple[tuple[torch.Size, torch.dtype], ...] = ()
    """Shapes and types of the inputs that have gradients."""

    def compute_again(self, cotangents: Sequence[Any], reason: str) -> list[Any]:
        """Gradients that the compiled step does not have."""
        if self.step.is_random or self.again is None:
            raise RuntimeError(f"{reason}, and computing it again would draw other random numbers; the next steps will do: repeat this one")
        return self.again(cotangents)


class Apply(torch.autograd.Function):
    """Inputs, then trained parameters, to outputs."""

    @staticmethod
    def forward(ctx: Any, call: Call, *tensors: torch.Tensor) -> Any:  # type: ignore[override]
        ctx.set_materialize_grads(False)
        step = call.step
        call.lease = step.lease()
        count = len(step.inputs)
        inputs, trained = tensors[:count], tensors[count:]
        call.weights = trained + call.statistics
        call.versions = tuple([each._version for each in trained])
        weights = call.weights if call.is_dense else tuple([each.contiguous() for each in call.weights])
        results = step.forward(call.lease, inputs, weights, call.seed)
        ctx.call = call
        if step.gradient_inputs:
            call.like = tuple((inputs[i].shape, inputs[i].dtype) for i in step.gradient_inputs)
        if step.kept or step.reread:
            ctx.save_for_backward(*[inputs[i] for i in step.kept], *[results[i] for i in step.reread])
        elif call.is_checkpointed and call.statistics:  # a checkpoint that nothing is saved in does not move them again
            ctx.save_for_backward(torch.empty(0, device=_CPU))
        if step.fixed:
            ctx.mark_non_differentiable(*[results[i] for i in step.fixed])
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        call: Call = ctx.call
        step = call.step
        saved = ctx.saved_tensors  # says when one was changed since
        frame = call.lease.frame if call.lease else None
        if frame is None and not call.is_kept:
            raise RuntimeError(
                "Trying to backward through the graph a second time: saved values have been freed (retain_graph=True keeps them)"
            )
        if frame is not None and frame.generation != _threads.generation:
            raise RuntimeError("the forward step was another process's: a forked child begins with a forward step")
        trained = call.weights[: len(step.trained)]
        if call.versions != tuple([each._version for each in trained]):
            name = next(n for n, each, was in zip(step.trained, trained, call.versions) if each._version != was)
            raise RuntimeError(
                f"one of the variables needed for gradient computation has been modified by an inplace operation: '{name}' "
                "was changed between forward and backward"
            )
        call.is_kept = torch._C._autograd._get_current_graph_task_keep_graph()
        reason = (
            "gradients of its gradients are taken (create_graph=True)"
            if torch.is_grad_enabled()
            else "backward goes through one forward several times (retain_graph=True)"
            if frame is None
            else "gradients are taken in batches (torch.vmap, is_grads_batched=True)"
            if not all([each is None or torch._C._has_storage(each) for each in cotangents])
            else ""
        )
        if reason:
            call.refuse(reason)
            return (None, *call.compute_again(cotangents, reason))
        assert frame is not None and call.lease is not None
        present = tuple([each is not None for each in cotangents])
        plan = step.plans.get(present)
        if plan is None:
            plan = step.plans[present] = step.plan(present)
        call.note(plan.used)
        if plan.surplus:
            call.lease.end()
            return (None, *call.compute_again(cotangents, f"output {plan.surplus[0]} had no gradient in the steps before this one"))
        inputs = tuple([torch.empty(shape, dtype=dtype, device=_CPU) for shape, dtype in call.like])
        kept = len(step.kept)
        dense = tuple([each.contiguous() for each in saved])
        reread = dense[kept : kept + len(step.reread)]
        buffer = step.backward(frame, cotangents, dense[:kept], call.weights, reread, inputs)
        gradients = step.gradients(buffer, plan)
        call.lease.end()
        return (None, *[None if i is None else inputs[i] for i in plan.inputs], *gradients)
