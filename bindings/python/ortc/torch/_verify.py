"""Whether a compiled step gives the numbers of its module: whatever a graph cannot say, and whatever an exporter says wrongly,
or has taken for constant, is other numbers.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree

from ortc._errors import CompileError
from ortc.torch._export import Replaced, Request
from ortc.torch._layout import Layout
from ortc.torch._step import Step

FAR, FAR_NARROW = 1e-2, 1e-1
"""Of the size of a tensor: what sums of another order, and what bfloat16's 8 bits in each operator, are far from reaching."""
_SMALL, _SMALL_NARROW = 1e-3, 1e-1
"""Gradients that are so much smaller than others may be rounding alone: those of biases before a batch normalisation, and
of attention's keys, are zero except for that."""
_CHANGE = 0.05
"""Steps are compared with numbers that are so much others than those that they were traced with."""
TIMES = 8
"""Where PyTorch's own float32 is far from float64, a step may be so many times as far."""


def verify(request: Request, folder: Path, meta: dict[str, Any]) -> None:
    """In a child, whose module nobody needs any more. Random modules have other numbers in any case."""
    step = Step(folder, meta, request.module, request.threads)
    entry = step.program.steps()["default"]["forward" if request.has_grad else "predict"]
    outputs = {name: (dtype, shape) for name, dtype, shape in entry[1]}
    for i, (shape, dtype) in enumerate(step.results):
        got = outputs[f"output.{i}"]
        if got != (str(dtype).removeprefix("torch."), shape):
            raise CompileError(f"the export gives output {i} as {got[0]}{list(got[1])}, PyTorch as {dtype}{list(shape)}")
    if step.is_random:
        return
    leaves = [changed(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in request.plain]
    lifted = [leaf if isinstance(leaf, torch.Tensor) else own for leaf, own in zip(leaves, request.leaves, strict=True)]
    layout = Layout(request.module)
    trained = [changed(layout.get(name)) for name in step.trained]
    torch.manual_seed(0)
    cotangents = [torch.randn(shape, dtype=dtype) if i in step.cotangents else None for i, (shape, dtype) in enumerate(step.results)]
    mine = _compiled(request, step, layout, lifted, trained, cotangents)
    wanted = _eager(request, step, leaves, trained, cotangents)
    is_narrow = request.autocast is not None
    far = FAR_NARROW if is_narrow else FAR
    sizes = [float(each.abs().mean()) for name, each in wanted.items() if "gradient" in name and each is not None and each.numel()]
    least = max(1e-6, max(sizes, default=0.0) * (_SMALL_NARROW if is_narrow else _SMALL))
    doubtful = []
    for name, each in wanted.items():
        size, distance = _measure(each, mine[name])
        if not distance <= far * size + (far * least * _count(each, mine[name]) if "gradient" in name else 1e-9):
            doubtful.append(name)
    if not doubtful:
        return
    exact: dict[str, Any] = {}
    if not is_narrow:
        try:
            request.module.double()
            exact = _eager(request, step, doubled(leaves), doubled(trained), doubled(cotangents))
        except Exception:  # it makes float32 by itself
            exact = {}
    for name in doubtful:
        if name not in exact or not _measure(exact[name], mine[name])[1] <= TIMES * _measure(exact[name], wanted[name])[1]:
            raise CompileError(f"the compiled step gives other numbers than the module: {name}")


def _eager(
    request: Request, step: Step, leaves: list[Any], trained: list[torch.Tensor], cotangents: list[Any]
) -> dict[str, torch.Tensor | None]:
    """Outputs and gradients by name, as PyTorch computes them."""
    args, kwargs = pytree.tree_unflatten(leaves, request.spec)
    replaced = Replaced(request.module, dict(zip(step.trained, trained, strict=True)))
    with torch.set_grad_enabled(request.has_grad), replaced:
        results = [each for each in pytree.tree_leaves(request.forward(*args, **kwargs)) if isinstance(each, torch.Tensor)]
        found: dict[str, torch.Tensor | None] = {f"output {i}": each.detach() for i, each in enumerate(results)}
        if not request.has_grad:
            return found
        tensors = [i for i, leaf in enumerate(request.leaves) if isinstance(leaf, torch.Tensor)]
        gradients = torch.autograd.grad(  # where forward may be computed again, as by checkpointing: of the same parameters
            [results[i] for i in step.cotangents],
            [*trained, *(leaves[tensors[number]] for number in _differentiable(step))],
            [cotangents[i] for i in step.cotangents],
            allow_unused=True,
        )
    return found | dict(zip(_name_gradients(step), gradients, strict=True))


def _compiled(
    request: Request, step: Step, layout: Layout, leaves: list[Any], trained: list[torch.Tensor], cotangents: list[Any]
) -> dict[str, torch.Tensor | None]:
    """The same of the compiled step."""
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    inputs = tuple((layout.get(name) if number is None else tensors[number]).detach().contiguous() for number, name in step.sources)
    weights = (*(each.contiguous() for each in trained), *(layout.get(name).clone() for name in step.statistics))
    lease = step.lease()
    with torch.no_grad():
        outputs = step.forward(lease, inputs, weights, 0)
        found: dict[str, torch.Tensor | None] = {f"output {i}": each for i, each in enumerate(outputs)}
        if not request.has_grad:
            return found
        given = tuple(torch.empty_like(inputs[i]) for i in step.gradient_inputs)
        kept, reread = (tuple(values[i] for i in which) for values, which in ((inputs, step.kept), (outputs, step.reread)))
        assert lease.frame is not None
        buffer = step.backward(lease.frame, cotangents, kept, weights, reread, given)
        gradients = [*step.gradients(buffer, step.plan((True,) * len(outputs))), *given]
    return found | dict(zip(_name_gradients(step), gradients, strict=True))


def _differentiable(step: Step) -> list[int]:
    """Numbers of the call's tensors."""
    return [number for number in (step.sources[i][0] for i in step.gradient_inputs) if number is not None]


def _name_gradients(step: Step) -> list[str]:
    return [*(f"the gradient of {name}" for name in step.trained), *(f"the gradient of input {i}" for i in _differentiable(step))]


def changed(tensor: torch.Tensor) -> torch.Tensor:
    """Another tensor with numbers that are somewhat others."""
    other = tensor.detach().clone()
    if other.is_floating_point():
        other.mul_(1 + _CHANGE * torch.randn_like(other))
    return other.requires_grad_(tensor.requires_grad)


def doubled(values: Sequence[Any]) -> list[Any]:
    return [
        each.detach().double().requires_grad_(each.requires_grad) if isinstance(each, torch.Tensor) and each.is_floating_point() else each
        for each in values
    ]


def _count(*tensors: torch.Tensor | None) -> int:
    return max(each.numel() for each in (*tensors, torch.empty(0)) if each is not None)


def _measure(wanted: torch.Tensor | None, got: torch.Tensor | None) -> tuple[float, float]:
    """The size of what is wanted, and how far the other is off: both sums of absolute values. None is zeros."""
    if wanted is None or got is None:
        return 0.0, sum(float(each.abs().double().sum()) for each in (wanted, got) if each is not None)
    first, second = wanted.detach().double(), got.detach().double()
    same = (first == second) | (first.isnan() & second.isnan())
    return float(first.masked_fill(same, 0.0).abs().sum()), float((first - second).masked_fill(same, 0.0).abs().sum())
