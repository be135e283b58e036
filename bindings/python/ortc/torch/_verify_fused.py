"""Whether a fused step gives the loss of its module, and moves parameters as the module's optimizer does.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree

from ortc._errors import CompileError
from ortc._session import Session
from ortc.torch._export import Replaced, Request
from ortc.torch._layout import Layout
from ortc.torch._states import has_state
from ortc.torch._verify import FAR, FAR_NARROW, TIMES, changed, doubled

_FAR_UPDATE = 0.3
"""The share of an update by size, weighted by gradients: what approximations of an optimizer are far from reaching."""
_SMALL_UPDATE = 0.02
"""The share of the updates of all parameters: smaller ones may be rounding only."""
_OTHER_NUMBERS = ("--qat", "--base", "--lora", "--precision", "--parameters", "--dropout", "--mask")
"""Flags of other numbers in forward."""

Names = list[tuple[str, Any]]
"""Inputs of a session, and the numbers of the tensors that they are, or the names of weights."""


def verify_fused(
    request: Request, session: Session, names: Names, follow: Callable[[Session], None], optimizers: Sequence[torch.optim.Optimizer]
) -> None:
    """In a child, whose module, session and optimizers nobody needs any more. Random modules have other numbers in any case.
    `follow` gives the session what optimizers have; without `optimizers` updates are not compared."""
    layout = Layout(request.module)
    tensors = session.artifact.tensors
    given = [name for name in layout.slots if f"m.{name}" in tensors and tensors[f"m.{name}"].role in ("parameter", "state")]
    if "random.seed" in tensors or any(flag in request.flags for flag in _OTHER_NUMBERS):
        return
    torch.manual_seed(0)
    trained = {name: changed(layout.get(name)) if name in given else layout.get(name) for name in request.trained}
    for name in given:
        session.write(f"m.{name}", trained.get(name, layout.get(name)).detach().numpy())
    follow(session)
    leaves = [changed(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in request.leaves]
    inputs = {name: leaves[i] if isinstance(i, int) else layout.get(i) for name, i in names}
    got = session.train_step(**{name: each.detach().contiguous().numpy() for name, each in inputs.items()})
    loss, gradients = _differentiate(request, trained, leaves)
    far = FAR if request.autocast is None else FAR_NARROW
    if not abs(got - loss) <= far * abs(loss) + 1e-6:
        exact = _exact_loss(request, trained, leaves) if request.autocast is None else None
        if exact is None or not abs(got - exact) <= TIMES * abs(loss - exact):
            raise CompileError(f"the compiled step gives another loss than the module: {got:.7g} and {loss:.7g}")
    for name in request.trained:
        if name not in given and name in gradients and gradients[name].any():
            raise CompileError(f"the compiled step has no gradient of '{name.removeprefix('model.')}'")
    if optimizers:
        _compare_updates(session, layout, {name: trained[name] for name in given if name in trained}, gradients, optimizers)


def _differentiate(request: Request, trained: dict[str, torch.Tensor], leaves: list[Any]) -> tuple[float, dict[str, torch.Tensor]]:
    args, kwargs = pytree.tree_unflatten(leaves, request.spec)
    with torch.enable_grad(), Replaced(request.module, trained):
        loss = request.forward(*args, **kwargs)
        found = torch.autograd.grad(loss, list(trained.values()), allow_unused=True)
    return float(loss.detach()), {name: each for name, each in zip(trained, found, strict=True) if each is not None}


def _exact_loss(request: Request, trained: dict[str, torch.Tensor], leaves: list[Any]) -> float | None:
    try:
        request.module.double()
        return _differentiate(request, dict(zip(trained, doubled(list(trained.values())), strict=True)), doubled(leaves))[0]
    except Exception:  # it makes float32 by itself
        return None


def _compare_updates(
    session: Session,
    layout: Layout,
    trained: dict[str, torch.Tensor],
    gradients: dict[str, torch.Tensor],
    optimizers: Sequence[torch.optim.Optimizer],
) -> None:
    """A first step: signs of gradients that are rounding alone are anything, and so the weight of a gradient is its size."""
    for name, value in trained.items():
        p = layout.get(name)
        p.data, p.grad = value.detach().float().clone(), gradients.get(name, torch.zeros_like(p))
    for each in optimizers:
        if has_state(each):
            return  # a first step is compared
        each.step()
    rows = {}
    for name, value in trained.items():
        wanted = (layout.get(name) - value).detach().double()
        got = torch.from_numpy(session.read(f"m.{name}").copy()).double() - value.detach().double()
        if name not in gradients:  # a decay, at most
            if float(got.abs().sum()) > (1 + _FAR_UPDATE) * float(wanted.abs().sum()) + 1e-6 * float(value.abs().sum()):
                raise CompileError(f"the compiled step has a gradient of '{name.removeprefix('model.')}', which the module has not")
        else:
            weight = gradients[name].double()
            rows[name] = float(((wanted - got) * weight).sum().abs()), float((wanted * weight).abs().sum())
    least = _SMALL_UPDATE * sum(size for _, size in rows.values())
    for name, (distance, size) in rows.items():
        if not distance <= _FAR_UPDATE * size + least:
            raise CompileError(f"the compiled step moves '{name.removeprefix('model.')}' otherwise than the optimizer")
