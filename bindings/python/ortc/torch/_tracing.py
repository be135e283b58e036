"""What stands around a module's forward while it is exported: sizes are numbers, cut gradients are operators of the graph,
and what a graph cannot say is refused.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.nn.modules import transformer

from ortc._errors import CompileError
from ortc.torch import _bags, _estimators
from ortc.torch._losses import REFUSED

_TAKES = {
    *(getattr(torch.Tensor, name) for name in ("__bool__", "__int__", "__float__", "__index__", "item", "tolist")),
    *(getattr(torch.Tensor, name) for name in ("numpy", "nonzero", "unique", "__contains__", "__array__")),
    *(getattr(torch.Tensor, name) for name in ("equal", "allclose", "is_nonzero", "masked_select", "bincount")),
    *(torch.equal, torch.allclose, torch.is_nonzero, torch.nonzero, torch.unique, torch.masked_select, torch.bincount),
}
_HOOKS = {torch.Tensor.register_hook, torch.Tensor.register_post_accumulate_grad_hook}
_TRACER = torch._C._dispatch_key_parse("Tracer")
_GRADIENTS = {torch.autograd.grad, torch.autograd.backward, torch.Tensor.backward}
_DATA = torch.Tensor.data.__get__  # type: ignore[attr-defined]
_REPLACED = {torch.Tensor.detach_, torch.detach_, torch.Tensor.data.__set__}  # type: ignore[attr-defined]


def _tensors(values: Any) -> list[torch.Tensor]:
    found = []
    for each in pytree.tree_leaves(values):
        parts = (each.start, each.stop, each.step) if isinstance(each, slice) else (each,)
        found += [part for part in parts if isinstance(part, torch.Tensor)]
    return found


def _memory(tensor: torch.Tensor) -> Any:
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):  # within torch.vmap
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor.untyped_storage()


def untraced(function: Any) -> Any:
    """What the tracer does not see is a number of its graph."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if torch._C._dispatch_tls_is_dispatch_key_excluded(_TRACER):  # within an operator that is traced as a whole
            return function(*args, **kwargs)
        state = torch._C._get_tracing_state()
        torch._C._set_tracing_state(None)
        try:
            return function(*args, **kwargs)
        finally:
            torch._C._set_tracing_state(state)

    return call


_OF_SHAPES = {
    torch.Tensor.shape.__get__,  # type: ignore[attr-defined]
    *(getattr(torch.Tensor, name) for name in ("size", "numel", "nelement", "stride", "dim")),
}
_SIZES = {
    "shape": property(untraced(torch.Tensor.shape.__get__)),  # type: ignore[attr-defined]
    **{name: untraced(getattr(torch.Tensor, name)) for name in ("size", "numel", "nelement", "stride")},
}
"""Of every tensor, within functions of PyTorch too."""


def _is_said_to_be_causal(mask: Any, is_causal: bool | None = None, size: int | None = None) -> bool:
    return is_causal is True


_check_with: Any = torch._check_with  # type: ignore[attr-defined]


def _check_sizes(error: Any, condition: Any, message: Any = None) -> None:
    """torch._check_with, also of what sizes are compared to while a batch is open: tensors."""
    _check_with(error, untraced(bool)(condition), message)


class Tracing(torch.overrides.TorchFunctionMode):
    """For one forward.

    Refused is what takes numbers out of tensors that are others in another step, since the graph would have those of one
    step for ever. Which they are is followed by memory, so that views and changes in place are seen.
    """

    def __init__(self, varying: Iterable[torch.Tensor], has_sizes: bool = True) -> None:
        """`varying`: tensors that are others in another step; `has_sizes`: their shapes are not."""
        super().__init__()
        self.replaced = _SIZES if has_sizes else {}
        self.inlined = _estimators.Inlined(self._mark)
        self.varying: dict[int, Any] = {}
        """Memory whose numbers change from step to step, kept alive so that no other has its address."""
        self._mark(varying)

    def __enter__(self) -> Any:
        # Libraries take the way of a compilation: they do not look at numbers there, and sizes are numbers.
        functions: list[tuple[Any, str, Any]] = [(torch.compiler, "is_compiling", lambda: True), (torch.jit, "is_tracing", lambda: False), *REFUSED]
        # A mask that is causal gives the same as a mask, and PyTorch's question would be a look at its numbers.
        functions.append((transformer, "_detect_is_causal_mask", _is_said_to_be_causal))
        if not self.replaced:
            functions.append((torch, "_check_with", _check_sizes))
        self.kept = [(owner, name, getattr(owner, name)) for owner, name, _ in functions]
        for owner, name, function in functions:
            setattr(owner, name, function)
        # The fast path of evaluation is one operator, which does no more than the modules within it.
        self.is_fast = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        for name, value in self.replaced.items():
            setattr(torch.Tensor, name, value)
        self.inlined.__enter__()
        return super().__enter__()

    def __exit__(self, *arguments: Any) -> None:
        for owner, name, function in self.kept:
            setattr(owner, name, function)
        torch.backends.mha.set_fastpath_enabled(self.is_fast)
        self.inlined.__exit__()
        for name in self.replaced:
            delattr(torch.Tensor, name)  # those of its base again
        super().__exit__(*arguments)

    def _mark(self, tensors: Iterable[torch.Tensor]) -> None:
        self.varying |= {storage._cdata: storage for storage in map(_memory, tensors)}

    def _varies(self, tensors: Iterable[torch.Tensor]) -> bool:
        return any(_memory(each)._cdata in self.varying for each in tensors)

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function is torch._C._set_grad_enabled:
            self.inlined.has_grad = args[0]
        name = getattr(function, "__name__", str(function))
        if function in _HOOKS:
            raise CompileError("the module registers hooks of tensors in forward")
        if torch.autograd.forward_ad._current_level >= 0:
            raise CompileError("the module computes forward-mode gradients in forward, as torch.func.jvp does")
        if function in _GRADIENTS:
            raise CompileError(f"the module computes gradients in forward ({name})")
        if function == torch.nn.functional.gaussian_nll_loss:
            function = _gaussian_nll
        if function == torch.nn.functional.embedding_bag:
            function = _bags.embedding_bag
        if function == _DATA:
            function = torch.detach
        given = _tensors((args, kwargs))
        varies = self._varies(given) and function not in _OF_SHAPES
        if varies and (function in _TAKES or _takes_by_index(function, args)):
            raise CompileError(f"the module looks at numbers of a tensor ({name}), on which its graph may depend")
        if function in _REPLACED and any(each.requires_grad for each in given):
            raise CompileError(f"the module cuts gradients off in forward ({name})")
        versions = [each._version for each in given]
        state = torch.get_rng_state()
        result = function(*args, **kwargs)
        changed = [each for each, version in zip(given, versions, strict=True) if each._version != version]
        if varies or not torch.equal(state, torch.get_rng_state()):
            self._mark([*_tensors(result), *changed])
        if not torch.is_grad_enabled() and any(each.requires_grad for each in given):
            if any(each.requires_grad for each in changed):
                raise CompileError(f"the module changes in place, without gradients, what has gradients ({name})")
            result = pytree.tree_map_only(torch.Tensor, _cut, result)
        return result


def _gaussian_nll(
    x: torch.Tensor, target: torch.Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> torch.Tensor:
    """torch.nn.functional.gaussian_nll_loss, which holds the variance back in place, and hands its gradient on as it is."""
    if isinstance(var, float):
        var = var * torch.ones_like(x)
    elif var.shape != x.shape and x.shape[:-1] == var.shape:
        var = var.unsqueeze(-1)
    least = _estimators.straight_through(var.detach().clamp(min=eps), var)
    loss = 0.5 * (torch.log(least) + (x - target) ** 2 / least)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def _cut(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach() if tensor.is_floating_point() else tensor


def _takes_by_index(function: Any, args: Any) -> bool:
    """Whether a slice, or a mask that makes a shape, is of numbers in tensors."""
    if function != torch.Tensor.__getitem__:
        return False
    parts = args[1] if isinstance(args[1], tuple) else (args[1],)
    return any(
        bool(_tensors(each)) if isinstance(each, slice) else isinstance(each, torch.Tensor) and each.dtype in (torch.bool, torch.uint8)
        for each in parts
    )
