"""Gradients that modules have of their own: classes of torch.autograd.Function, as operators of a graph.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

A graph has the numbers of forward, and says where the gradient goes: to the operand as it is (a straight-through estimator), or times
a factor for each element, which backward computes from what forward has kept. Other functions of the gradient are refused. Which of
these backward is, its own operations say: they are followed while it runs once.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ortc._errors import CompileError
from ortc.torch._child import call_directly

_aten = torch.ops.aten

_SAME = {
    *(_aten.alias.default, _aten.clone.default, _aten.detach.default, _aten.lift_fresh.default, _aten._to_copy.default),
    *(_aten.view.default, _aten._unsafe_view.default, _aten.reshape.default, _aten.contiguous.default, _aten.expand.default),
    *(_aten.view_as.default, _aten.positive.default, _aten.copy_.default),
}
"""Operations whose result is their operand, where its shape and type are the same."""
_SCALED = {
    *(_aten.mul.Tensor, _aten.mul_.Tensor, _aten.mul.Scalar, _aten.mul_.Scalar, _aten.neg.default, _aten.neg_.default),
    *(_aten.div.Tensor, _aten.div_.Tensor, _aten.div.Scalar, _aten.div_.Scalar),
    *(_aten.threshold_backward.default, _aten.sigmoid_backward.default, _aten.tanh_backward.default, _aten.hardtanh_backward.default),
    *(_aten.gelu_backward.default, _aten.silu_backward.default, _aten.leaky_relu_backward.default, _aten.elu_backward.default),
    *(_aten.softplus_backward.default, _aten.hardsigmoid_backward.default, _aten.hardswish_backward.default, _aten.mish_backward.default),
}
"""Operations that multiply each element of one operand with a number that does not depend on it."""
_SUMS = {_aten.add.Tensor, _aten.add_.Tensor, _aten.sub.Tensor, _aten.sub_.Tensor}
_CHOICES = {_aten.where.self, _aten.where.ScalarOther, _aten.where.ScalarSelf, _aten.where.Scalar}
_FILLS = {
    *(_aten.masked_fill.Scalar, _aten.masked_fill_.Scalar, _aten.masked_fill.Tensor, _aten.masked_fill_.Tensor),
    *(_aten.index_put.default, _aten.index_put_.default, _aten.zero_.default),
}


@torch.library.custom_op("ortc::straight_through", mutates_args=())
def straight_through(value: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """`value`, whose gradient goes to `x` as it is."""
    return value.clone()


@straight_through.register_fake
def _(value: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(value)


straight_through.register_autograd(lambda ctx, gradient: (None, gradient))


class _Context:
    """The values that forward keeps for backward."""

    def __init__(self, needs: tuple[bool, ...], name: str) -> None:
        self.needs_input_grad = needs
        self.saved_tensors: tuple[Any, ...] = ()
        self._fixed: list[Any] = []
        """Results without a gradient."""
        self._name = name

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        pass

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self._fixed = list(tensors)

    def mark_dirty(self, *tensors: Any) -> None:
        raise CompileError(f"the module's own {self._name} changes its input in place")

    def set_materialize_grads(self, value: bool) -> None:
        pass

    def is_fixed(self, tensor: torch.Tensor) -> bool:
        return any(each is tensor for each in self._fixed)

    def hand_on(self, other: Any) -> None:
        """To the context of PyTorch, whose backward may run, too."""
        other.save_for_backward(*self.saved_tensors)
        other.mark_non_differentiable(*self._fixed)
        for name, value in vars(self).items():
            if name not in ("needs_input_grad", "saved_tensors", "_fixed", "_name"):
                setattr(other, name, value)


class _Follow(TorchDispatchMode):
    """Which tensors are a gradient as it came, which are it times numbers, and which are some other function of it."""

    def __init__(self, gradients: list[torch.Tensor]) -> None:
        super().__init__()
        self.kinds: dict[int, tuple[str, int]] = {id(each): ("same", i) for i, each in enumerate(gradients)}
        self.kept: list[Any] = list(gradients)
        """Alive, so that identities stay theirs."""

    def kind(self, value: Any) -> tuple[str, int] | None:
        """"same", "scaled" or "other", and of which gradient; None where it depends on none."""
        return self.kinds.get(id(value)) if isinstance(value, torch.Tensor) else None

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [each for each in pytree.tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        before = [(each.shape, each.dtype) for each in given]
        result = function(*args, **(kwargs or {}))
        followed = [(each, form) for each, form in zip(given, before, strict=True) if self.kind(each)]
        if followed:
            self._note(function, args, result, followed)
        return result

    def _note(self, function: Any, args: Any, result: Any, followed: list[Any]) -> None:
        kinds = [self.kind(each) for each, _ in followed]
        first = kinds[0]
        assert first is not None
        found = ("other", first[1])
        is_whole = isinstance(result, torch.Tensor) and (result.shape, result.dtype) == followed[0][1]
        if is_whole and all(kind is not None and kind[0] != "other" and kind[1] == first[1] for kind in kinds):
            scaled = ("scaled", first[1])
            if function in _SAME and len(followed) == 1:
                found = first
            elif function in _SCALED and len(followed) == 1 and (self.kind(args[0]) or function in (_aten.mul.Tensor,)):
                found = scaled
            elif function in _SUMS and len(followed) == 2:
                found = scaled
            elif function in _CHOICES and not self.kind(args[0]) and all(self.kind(each) or _is_zero(each) for each in args[1:]):
                found = scaled
            elif function in _FILLS and len(followed) == 1 and self.kind(args[0]) and all(map(_is_zero, args[2:3])):
                found = scaled
        for each in pytree.tree_leaves(result):
            if isinstance(each, torch.Tensor):
                self.kinds[id(each)] = found
                self.kept.append(each)


def _is_zero(value: Any) -> bool:
    return not bool(value.count_nonzero()) if isinstance(value, torch.Tensor) else value == 0


@contextlib.contextmanager
def _aside() -> Iterator[None]:
    """Code within is not traced."""
    state = torch._C._get_tracing_state()
    torch._C._set_tracing_state(None)
    try:
        with torch._C.DisableTorchFunction():
            yield
    finally:
        torch._C._set_tracing_state(state)


class Inlined:
    """While it lasts, classes of torch.autograd.Function are operators of the graph that is traced."""

    def __init__(self, note: Callable[[Iterable[torch.Tensor]], None]) -> None:
        """`note`: is called with every estimator that is made."""
        self.note = note
        self.has_grad = True
        """The mode that the module has set; it is off within forward of such a class."""
        self.kept: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> None:
        self.has_grad = torch.is_grad_enabled()
        checkpoint = torch.utils.checkpoint.CheckpointFunction
        self._exchange(checkpoint, "apply", staticmethod(call_directly))
        base = torch.autograd.Function
        original = next(each.__dict__["apply"] for each in base.__mro__ if "apply" in each.__dict__)

        def apply(function: Any, *args: Any, **kwargs: Any) -> Any:
            if not _is_own(function):
                return original.__get__(None, function)(*args, **kwargs)
            with _grad(False):
                return self._run(function, _original(function), None, args, kwargs, True)

        self._exchange(base, "apply", classmethod(apply))
        for each in _list_classes(base):  # scripts keep `Class.apply` in variables, too, and that calls forward
            if each is not checkpoint and "forward" in each.__dict__ and _is_own(each):
                self._exchange(each, "ortc_forward", each.__dict__["forward"])
                self._exchange(each, "forward", staticmethod(functools.partial(self._forward, each, each.forward)))

    def __exit__(self, *_: object) -> None:
        while self.kept:
            owner, name, value = self.kept.pop()
            if value is None:
                delattr(owner, name)
            else:
                setattr(owner, name, value)

    def _exchange(self, owner: Any, name: str, value: Any) -> None:
        self.kept.append((owner, name, owner.__dict__.get(name)))
        setattr(owner, name, value)

    def _forward(self, function: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
        """The forward of a class whose `apply` is called by another name."""
        is_split = _has_setup(function)
        result = self._run(function, original, None if is_split else args[0], args if is_split else args[1:], kwargs)
        if isinstance(result, tuple) and torch._C._get_tracing_state() is not None:
            raise CompileError(f"the module calls apply of its own {function.__name__} by another name: {function.__name__}.apply(...) is exported")
        return result

    def _run(
        self, function: Any, original: Any, given: Any, operands: tuple[Any, ...], kwargs: Any, is_whole: bool = False
    ) -> Any:
        """Forward as a graph may have it: what it gives hands its gradient on as backward does. `given`: the context of PyTorch.
        `is_whole`: it stands for the whole of apply."""
        needs = tuple(self.has_grad and isinstance(each, torch.Tensor) and each.requires_grad for each in operands)
        context = _Context(needs, function.__name__)
        plain = [each.detach() if isinstance(each, torch.Tensor) else each for each in operands]
        if _has_setup(function):
            result = original(*plain, **kwargs)
            function.setup_context(context, tuple(plain), result)
        else:
            result = original(context, *plain, **kwargs)
        handled.add(function)
        results = list(result) if isinstance(result, tuple) else [result]
        if any(needs):
            _mark(function, context, results, operands, is_whole)
            self.note(each for each in results if isinstance(each, torch.Tensor))
        if given is not None:
            context.hand_on(given)
        return tuple(results) if isinstance(result, tuple) else results[0]


@contextlib.contextmanager
def _grad(mode: bool) -> Iterator[None]:
    """As torch.set_grad_enabled, which the module has not called."""
    before = torch.is_grad_enabled()
    with torch._C.DisableTorchFunction():
        torch._C._set_grad_enabled(mode)
    try:
        yield
    finally:
        with torch._C.DisableTorchFunction():
            torch._C._set_grad_enabled(before)


def _original(function: Any) -> Any:
    """Its forward, where that is exchanged."""
    owner = next(each for each in function.__mro__ if "forward" in each.__dict__)
    return owner.__dict__.get("ortc_forward", owner.__dict__["forward"])


def _has_setup(function: Any) -> bool:
    return function.setup_context is not torch.autograd.function._SingleLevelFunction.setup_context


handled: weakref.WeakSet[Any] = weakref.WeakSet()
"""Classes that graphs have had the gradient of."""


def is_handled(node: Any) -> bool:
    """Whether graphs have the gradient of a node of PyTorch's that a class has made."""
    return node._forward_cls in handled or "ortc_straight_through" in type(node).__name__


def _list_classes(base: Any) -> list[Any]:
    return [each for one in base.__subclasses__() for each in (one, *_list_classes(one))]


def _is_own(function: Any) -> bool:
    """Of PyTorch's own, some are how it differentiates what a graph has as it is."""
    return not function.__module__.startswith(("torch._", "torch.autograd", "torch.nn.parallel", "torch.distributed"))


def _mark(function: Any, context: _Context, results: list[Any], operands: tuple[Any, ...], has_grad: bool) -> None:
    """Lets results hand their gradient on as backward does. `has_grad`: in PyTorch, too."""
    moving = [
        i
        for i, each in enumerate(results)
        if isinstance(each, torch.Tensor) and each.is_floating_point() and not context.is_fixed(each)
    ]
    kinds = _probe(function, context, results, moving, operands)
    values = list(results)
    for place, i in enumerate(moving):
        parts = {k: kind for k, (kind, of) in kinds.items() if of == place}
        if not parts:
            continue
        if list(parts.values()) == ["same"]:
            source = operands[next(iter(parts))]
        else:
            cotangents = [
                (torch.ones_like if k == i else torch.zeros_like)(each) if isinstance(each, torch.Tensor) else None
                for k, each in enumerate(values)
            ]
            factors = _backward(function, context, cotangents)
            with _grad(has_grad), torch._C.DisableTorchFunction():  # in the graph, it goes through in any case
                source = functools.reduce(operator.add, (operands[k] * factors[k].detach() for k in parts))
        with _grad(has_grad), torch._C.DisableTorchFunction():
            results[i] = straight_through(values[i], source)


def _backward(function: Any, context: _Context, cotangents: list[Any]) -> list[Any]:
    backward = function.vjp if function.backward is torch.autograd.Function.backward else function.backward
    found = backward(context, cotangents) if getattr(function, "boxed_grads_call", False) else backward(context, *cotangents)
    return list(found) if isinstance(found, tuple) else [found]


def _probe(
    function: Any, context: _Context, results: list[Any], moving: list[int], args: tuple[Any, ...]
) -> dict[int, tuple[str, int]]:
    """By operand with a gradient: "same" or "scaled", and which of the results' gradients it is made from."""
    name = function.__name__
    with _aside(), torch.no_grad():
        cotangents = [torch.ones_like(each) if isinstance(each, torch.Tensor) else None for each in results]
        following = _Follow([cotangents[i] for i in moving])  # type: ignore[misc]
        with following:
            found = _backward(function, context, cotangents)
    kinds: dict[int, tuple[str, int]] = {}
    for i, (needed, each) in enumerate(zip(context.needs_input_grad, found, strict=False)):
        if not needed or each is None:
            continue
        kind = following.kind(each)
        if kind is None and _is_zero(each):
            continue
        source = results[moving[kind[1]]] if kind else None
        if kind is None or kind[0] == "other" or source is None or source.shape != args[i].shape or source.dtype != args[i].dtype:
            raise CompileError(
                f"the module has a gradient of its own ({name}) that is neither the one of its result nor that times a factor for each "
                "element: write its forward with operators of PyTorch that have this gradient"
            )
        kinds[i] = kind
    return kinds
