"""The compiled step of one artifact, as a function that PyTorch differentiates.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree

from ortc import _runtime
from ortc._artifact import Artifact

_ALIGNMENT = 64
_pools: dict[int, _runtime.Pool] = {}


def pool(threads: int) -> _runtime.Pool:
    """The threads of this process, one set for each number."""
    if threads not in _pools:
        _pools[threads] = _runtime.Pool(threads)
    return _pools[threads]


generation = 0


def _forget_threads() -> None:
    """In a forked child, where the threads are not: they must not be waited for, so what stands for them is kept."""
    global generation
    generation += 1
    _abandoned.append(dict(_pools))
    _pools.clear()


_abandoned: list[dict[int, _runtime.Pool]] = []
os.register_at_fork(after_in_child=_forget_threads)


class _Buffer:
    """One piece of memory for all gradients of a step."""

    def __init__(self, size: int) -> None:
        self.flat = torch.empty(size // 4 + _ALIGNMENT // 4, dtype=torch.float32)
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
        self.generation = generation

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
        if frame is not None and frame.generation == generation:
            frame.step.idle.append(frame)

    def __del__(self) -> None:
        self.end()


class Step:
    """An artifact with what a call of it needs."""

    def __init__(self, folder: Path, digest: str, module: torch.nn.Module, threads: int) -> None:
        meta = json.loads((folder / "meta.json").read_text())
        if meta["digest"] != digest:
            raise ValueError("it was compiled from something else")
        self.spec = pytree.treespec_loads(meta["spec"])
        self.tensor_places: list[int] = meta["tensors"]
        self.constants: list[Any] = meta["constants"]
        self.shapes = [tuple(shape) for shape in meta["shapes"]]
        self.dtypes = [getattr(torch, name) for name in meta["dtypes"]]
        self.cotangents: list[int] = meta["cotangents"]
        self.fixed = [i for i in range(len(self.shapes)) if i not in meta["differentiable"]]
        self.padding: dict[str, int] = meta["padding"]
        self.reached = [frozenset(names) for names in meta["reached"]]
        """By output: the parameters that have a gradient when it has one, and inputs as "input.NUMBER"."""
        self.artifact = Artifact(folder / "artifact")
        self.program = self.artifact.program()
        self.threads = threads
        self.pool = pool(threads)
        self.generation = generation
        self.is_random = "random.seed" in self.artifact.names("scalar")
        self.idle: list[Frame] = []
        frame = Frame(self)
        self.idle.append(frame)
        names = frame.native.names
        self.inputs = names("inputs")
        self.sources: list[tuple[int | None, str]] = [
            (int(rest), "") if kind == "input" else (None, rest)
            for kind, _, rest in (name.partition(".") for name in self.inputs)
        ]
        """Of the inputs: numbers of the call's tensors, or names of weights that are not trained."""
        self.gives_tensor = self.spec.is_leaf()
        self.outputs = [int(name.split(".")[1]) for name in names("outputs")]
        self.bound = [name.removeprefix("m.") for name in names("bound")]
        self.gradient_order = [name.removeprefix("m.").removesuffix(".gradient") for name in names("gradients")]
        self.input_gradients = [int(name.split(".")[1]) for name in names("input_gradients")]
        self.cotangent_order = [int(name.split(".")[1]) for name in names("cotangents")]
        self.reread = [int(name.split(".")[1]) for name in names("reread")]
        kept = set(names("kept"))
        self.kept = [i for i, name in enumerate(self.inputs) if name in kept]
        tensors = dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers())
        self.trained = [name for name in self.bound if name in set(self.gradient_order)]
        self.statistics = [name for name in self.bound if name not in set(self.gradient_order)]
        place = {name: i for i, name in enumerate([*self.trained, *self.statistics])}
        self.bound_order = [place[name] for name in self.bound]
        self.gradient_inputs = [self.inputs.index(f"input.{number}") for number in self.input_gradients]
        shapes = {name: tuple(tensors[name].shape) for name in self.trained}
        offset, self.gradient_places = 0, {}
        for name in self.gradient_order:
            size = 4
            for each in shapes[name]:
                size *= each
            strides: list[int] = []
            stride = 1
            for each in reversed(shapes[name]):
                strides.insert(0, stride)
                stride *= max(each, 1)
            self.gradient_places[name] = (shapes[name], tuple(strides), offset // 4)
            offset += -(-size // _ALIGNMENT) * _ALIGNMENT

    def lease(self) -> _Lease:
        if self.generation != generation:  # a child of a fork makes threads of its own
            self.generation, self.pool, self.idle = generation, pool(self.threads), []
        try:
            return _Lease(self.idle.pop())
        except IndexError:
            return _Lease(Frame(self))

    def forward(
        self, lease: _Lease, inputs: tuple[torch.Tensor, ...], weights: tuple[torch.Tensor, ...], seed: int
    ) -> list[torch.Tensor]:
        """The tensors that the module gives, in its order. `weights`: what is trained, then running statistics."""
        assert lease.frame is not None
        results: list[torch.Tensor] = [
            torch.empty(shape, dtype=dtype) for shape, dtype in zip(self.shapes, self.dtypes, strict=True)
        ]
        bound = tuple(weights[i] for i in self.bound_order)
        lease.frame.native.forward(inputs, bound, tuple(results[i] for i in self.outputs), seed)
        return results

    def backward(
        self,
        frame: Frame,
        cotangents: tuple[Any, ...],
        saved: tuple[torch.Tensor, ...],
        statistics: tuple[torch.Tensor, ...],
        input_gradients: tuple[torch.Tensor, ...],
    ) -> _Buffer:
        """`saved`: inputs and parameters of the forward step, and outputs that are read again, wherever they are now."""
        given = []
        for i in self.cotangent_order:
            each = cotangents[i]
            if each is None:
                each = torch.zeros(self.shapes[i], dtype=self.dtypes[i])
            given.append(each.contiguous())
        dense = tuple(each.contiguous() for each in saved)
        kept, rest = dense[: len(self.kept)], dense[len(self.kept) :]
        weights = rest[: len(self.trained)] + statistics
        bound = tuple(weights[i] for i in self.bound_order)
        buffer = frame.gradients()
        frame.native.backward(tuple(given), buffer.address, input_gradients, kept, bound, rest[len(self.trained) :])
        return buffer


class Apply(torch.autograd.Function):
    """Inputs, then trained parameters, to outputs."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        step: Step,
        note: Callable[[tuple[int, ...]], None],
        statistics: tuple[torch.Tensor, ...],
        seed: int,
        *tensors: torch.Tensor,
    ) -> Any:
        ctx.set_materialize_grads(False)
        lease = step.lease()
        count = len(step.inputs)
        inputs, trained = tensors[:count], tensors[count:]
        results = step.forward(lease, inputs, trained + statistics, seed)
        ctx.step, ctx.lease, ctx.note, ctx.statistics = step, lease, note, statistics
        ctx.like = [(inputs[i].shape, inputs[i].dtype) for i in step.gradient_inputs]
        ctx.save_for_backward(*(inputs[i] for i in step.kept), *trained, *(results[i] for i in step.reread))
        ctx.mark_non_differentiable(*(results[i] for i in step.fixed))
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "a compiled step has no gradient of its gradient (create_graph=True); ortc.torch.restore_(model) has"
            )
        step: Step = ctx.step
        saved = ctx.saved_tensors  # says when one was changed since
        frame = ctx.lease.frame
        if frame is not None and frame.generation != generation:
            raise RuntimeError("the forward step was another process's: a forked child begins with a forward step")
        if frame is None:
            raise RuntimeError(
                "Trying to backward through the graph a second time: a compiled step has its saved values once "
                "(ortc.torch.restore_(model) for retain_graph=True)"
            )
        ctx.note(tuple(i for i, each in enumerate(cotangents) if each is not None))
        surplus = [i for i, each in enumerate(cotangents) if each is not None and i not in step.cotangents]
        if surplus:
            raise RuntimeError(
                f"output {surplus[0]} had no gradient in the steps before this one, and the compiled step has none "
                "for it; the next steps will: repeat this one"
            )
        inputs = tuple(torch.empty(shape, dtype=dtype) for shape, dtype in ctx.like)
        reached: frozenset[str] = frozenset().union(
            *(step.reached[i] for i, each in enumerate(cotangents) if each is not None)
        )
        buffer = step.backward(frame, cotangents, saved, ctx.statistics, inputs)
        given: list[Any] = [None] * len(step.inputs)
        for i, each in zip(step.gradient_inputs, inputs, strict=True):
            given[i] = each if step.inputs[i] in reached else None
        flat, first = buffer.flat, buffer.first
        for name in step.trained:
            if name not in reached:
                given.append(None)
                continue
            shape, strides, offset = step.gradient_places[name]
            gradient = torch.as_strided(flat, shape, strides, first + offset)
            if name in step.padding:
                gradient[step.padding[name]].zero_()
            given.append(gradient)
        ctx.lease.end()
        return (None, None, None, None, *given)
