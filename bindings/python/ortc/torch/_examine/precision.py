"""A module in another precision, and how far its own rounding moves its numbers.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import copy
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ortc._errors import CompileError
from ortc.sources.torch import Call
from ortc.torch._layout import Layout
from ortc.torch._wrap import restore_

MIDDLE = 0.5
"""The numbers in place of random ones where they are compared: of the uniform and of the normal distribution."""


@dataclass
class Numbers:
    """The results of a call, by the names of tensors."""

    outputs: list[torch.Tensor]
    gradients: dict[str, torch.Tensor] = field(default_factory=dict)
    """Gradients of parameters; zeros where there is none."""
    inputs: dict[str, torch.Tensor] = field(default_factory=dict)
    """Gradients of inputs."""
    statistics: dict[str, torch.Tensor] = field(default_factory=dict)
    """Buffers that the call has changed."""
    is_random: bool = False

    def by_name(self) -> dict[tuple[str, str], torch.Tensor]:
        """All, by what they are and whose."""
        parts = {"gradient": self.gradients, "input gradient": self.inputs, "statistics": self.statistics}
        found = {("output", str(i)): each for i, each in enumerate(self.outputs)}
        return found | {(kind, name): each for kind, values in parts.items() for name, each in values.items()}


class Twin:
    """A copy of a module, in a precision of its own."""

    def __init__(self, model: torch.nn.Module, dtype: torch.dtype) -> None:
        try:
            self.model = restore_(copy.deepcopy(model))
        except Exception as error:
            raise CompileError(f"the module cannot be copied, which a comparison needs: {error}") from error
        self.dtype = dtype
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _convert(self.model, dtype)
        self.is_random = _drop_nothing(self.model)
        self.kept = {name: each.detach().clone() for name, each in self._tensors().items()}

    def _tensors(self) -> dict[str, torch.Tensor]:
        return dict(self.model.named_parameters()) | dict(self.model.named_buffers())

    def trained(self) -> dict[str, torch.nn.Parameter]:
        return {name: each for name, each in self.model.named_parameters() if each.requires_grad}

    def run(
        self, call: Call, inputs: Mapping[str, torch.Tensor], weights: Mapping[str, torch.Tensor], mode: Any = None
    ) -> Numbers:
        """`weights`: values of trained parameters. `mode`: is active meanwhile."""
        tensors = self._tensors()
        with torch.no_grad():
            for name, each in tensors.items():
                each.copy_(weights.get(name, self.kept[name]))
        leaves = {name: _widen(each, self.dtype) for name, each in inputs.items()}
        trained = self.trained()
        fixed, state = _Precision(self.dtype), torch.get_rng_state()
        with warnings.catch_warnings(), torch.enable_grad(), mode or contextlib.nullcontext(), fixed:
            warnings.simplefilter("ignore")
            result = call.apply(self.model, {name: each.clone() for name, each in leaves.items()})  # which may change in place
            outputs = [each for each in pytree.tree_leaves(result) if isinstance(each, torch.Tensor)]
            sources = [(i, each) for i, each in enumerate(outputs) if each.requires_grad and each.is_floating_point()]
            with torch._C.DisableTorchFunction():
                given = [cotangent(i, each) for i, each in sources]
            for each in (*trained.values(), *leaves.values()):
                each.grad = None
            if sources:
                torch.autograd.backward([each for _, each in sources], given)

        if not torch.equal(state, torch.get_rng_state()):
            torch.set_rng_state(state)
            raise CompileError("the module draws random numbers within a function of PyTorch, which are not compared")

        def gradients(of: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            return {name: torch.zeros_like(each) if each.grad is None else each.grad.detach() for name, each in of.items()}

        changed = {
            name: each.detach().clone()
            for name, each in self.model.named_buffers()
            if each.is_floating_point() and not torch.equal(each, self.kept[name])
        }
        return Numbers(
            outputs=[each.detach() for each in outputs],
            gradients=gradients(trained),
            inputs=gradients({name: each for name, each in leaves.items() if each.requires_grad}),
            statistics=changed,
            is_random=fixed.is_random or self.is_random,
        )


def cotangent(i: int, output: torch.Tensor) -> torch.Tensor:
    """The gradient that an output is given: another number for each element, the same in every precision."""
    draw = torch.Generator().manual_seed(i)
    numbers = torch.randint(1, 17, output.shape, generator=draw) * (torch.randint(0, 2, output.shape, generator=draw) * 2 - 1)
    return (numbers / 16).to(output.dtype)


def _widen(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    each = tensor.detach().cpu().clone()
    return each.to(dtype).requires_grad_() if each.is_floating_point() else each


def _convert(model: torch.nn.Module, dtype: torch.dtype) -> None:
    """Parameters, buffers, and tensors that are attributes, of modules that are not registered too."""
    model.cpu().to(dtype)
    for module in Layout(model).modules:
        for name, value in list(module.__dict__.items()):
            if name.startswith("_") or name == "forward":
                continue
            if isinstance(value, torch.nn.Module):
                _convert(value, dtype)
            elif isinstance(value, (torch.Tensor, list, tuple, dict)):
                turn = lambda each: each.detach().to(dtype) if isinstance(each, torch.Tensor) and each.is_floating_point() else each
                with contextlib.suppress(Exception):
                    object.__setattr__(module, name, pytree.tree_map_only(torch.Tensor, turn, value))


def _drop_nothing(model: torch.nn.Module) -> bool:
    """Sets rates of dropout to 0 that are attributes; whether one was above in training mode."""
    nn, found = torch.nn, False
    for each in model.modules():
        names = {nn.modules.dropout._DropoutNd: "p", nn.RNNBase: "dropout", nn.MultiheadAttention: "dropout"}
        for kind, name in names.items():
            if isinstance(each, kind):
                found |= each.training and bool(getattr(each, name))
                setattr(each, name, 0.0)
    return found


_MIDDLES = {torch.randn, torch.randn_like, torch.rand, torch.rand_like}
_DRAWS = {
    *(torch.normal, torch.Tensor.normal_, torch.Tensor.uniform_, torch.bernoulli, torch.Tensor.bernoulli, torch.Tensor.bernoulli_),
    *(torch.multinomial, torch.Tensor.multinomial, torch.randint, torch.randperm, torch.poisson, torch.Tensor.geometric_),
}
_DROPOUTS = {
    *(torch.nn.functional.dropout, torch.nn.functional.dropout1d, torch.nn.functional.dropout2d, torch.nn.functional.dropout3d),
    *(torch.nn.functional.alpha_dropout, torch.nn.functional.feature_alpha_dropout, torch.dropout, torch.alpha_dropout),
    *(torch.feature_dropout, torch.feature_alpha_dropout),
    *(torch.dropout_, torch.alpha_dropout_, torch.feature_dropout_, torch.feature_alpha_dropout_),
}
_SLOPES = {torch.nn.functional.rrelu, torch.rrelu, torch.rrelu_}


class _Precision(torch.overrides.TorchFunctionMode):
    """Everything in one precision, what a module casts to float32 by itself, too, nothing is dropped, and random numbers are one
    number."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.is_random = False

    def __enter__(self) -> Any:
        self.before = torch.get_default_dtype()
        torch.set_default_dtype(self.dtype)
        return super().__enter__()

    def __exit__(self, *arguments: Any) -> None:
        torch.set_default_dtype(self.before)
        super().__exit__(*arguments)

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if self.dtype == torch.float64:
            if function is torch.Tensor.float:
                return args[0].to(self.dtype)
            args = tuple(self.dtype if each is torch.float32 else each for each in args)
            kwargs = {key: self.dtype if each is torch.float32 else each for key, each in kwargs.items()}
        if function in _DROPOUTS:
            self.is_random |= bool(_argument(args, kwargs, 2, "training", True) and _argument(args, kwargs, 1, "p", 0.5))
            return _argument(args, kwargs, 0, "input")
        if function in _SLOPES and _argument(args, kwargs, 3, "training", False):
            self.is_random = True
            low, high = _argument(args, kwargs, 1, "lower", 1 / 8), _argument(args, kwargs, 2, "upper", 1 / 3)
            return torch.nn.functional.leaky_relu(_argument(args, kwargs, 0, "input"), low + (high - low) * MIDDLE)
        if function is torch.nn.functional.gumbel_softmax:
            self.is_random = True
            return _gumbel_softmax(*args, **kwargs)
        if function is torch.nn.functional.scaled_dot_product_attention:
            args, kwargs, dropped = _without_dropout(args, kwargs)
            self.is_random |= dropped
        if function in _MIDDLES:
            self.is_random = True
            with torch.random.fork_rng(devices=[]):
                return torch.full_like(function(*args, **kwargs), MIDDLE)
        if function is torch.Tensor.exponential_:
            self.is_random = True
            return args[0].fill_(-math.log(1 - MIDDLE) / _argument(args, kwargs, 1, "lambd", 1.0))
        if function in _DRAWS:
            raise CompileError(f"the module draws random numbers with {function.__name__}, which are not compared")
        return function(*args, **kwargs)


def _argument(args: Any, kwargs: Mapping[str, Any], place: int, name: str, default: Any = None) -> Any:
    return kwargs.get(name, args[place] if len(args) > place else default)


def _gumbel_softmax(logits: torch.Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> torch.Tensor:
    """torch.nn.functional.gumbel_softmax, whose own draws no mode sees."""
    soft = ((logits - math.log(-math.log(1 - MIDDLE))) / tau).softmax(dim)
    if not hard:
        return soft
    return torch.zeros_like(logits).scatter_(dim, soft.argmax(dim, keepdim=True), 1.0) - soft.detach() + soft


def _without_dropout(args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any], bool]:
    if len(args) > 4:
        return (*args[:4], 0.0, *args[5:]), kwargs, bool(args[4])
    return args, {**kwargs, "dropout_p": 0.0}, bool(kwargs.get("dropout_p"))


_aten = torch.ops.aten
_PICKS = {_aten.topk.default, _aten.kthvalue.default, _aten.median.dim, _aten.mode.default}
"""Operators that say nothing of which of equal elements they give."""


class Rounding(TorchDispatchMode):
    """Every operation is off by some units in the last place, as another order of sums would be. Numbers that are exact stay as they are,
    and equal ones stay equal: zeros, ties and bounds that are no accident of rounding remain. Among equal elements, operators that may
    pick any pick others: the first ones, or with an odd seed the last."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.is_last = bool(seed % 2)
        self.factor = 2 * seed + 0x9E3779B97F4A7C15 - (1 << 64)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if function in _PICKS:
            return self._pick(args[0], result, args[1:], function)
        if function._schema.is_mutable or any(each.alias_info is not None for each in function._schema.returns):
            return result
        return pytree.tree_map_only(torch.Tensor, self._move, result)

    def _pick(self, x: torch.Tensor, result: Any, rest: Any, function: Any) -> Any:
        """The same values, of other places where there are several."""
        values, _ = result
        axis = int(rest[0 if function is _aten.median.dim else 1]) if len(rest) > (function is not _aten.median.dim) else -1
        if not x.dim():
            return result
        kept = values.dim() == x.dim()
        wide = values if kept else values.unsqueeze(axis)
        source = x.flip(axis) if self.is_last else x
        if function is _aten.topk.default:
            is_descending = bool(rest[2]) if len(rest) > 2 else True
            ordered, places = torch.sort(source, dim=axis, descending=is_descending, stable=True)
            values, places = (each.narrow(axis, 0, values.shape[axis]).contiguous() for each in (ordered, places))
        else:
            places = (source == wide).to(torch.uint8).argmax(axis, keepdim=kept)
        if self.is_last:
            places = x.shape[axis] - 1 - places
        return values, places

    def _move(self, x: torch.Tensor) -> torch.Tensor:
        if x.dtype != torch.float64 or not x.numel():
            return x
        is_exact = (x == x.float().double()) | ~x.isfinite()
        bits = x.contiguous().view(torch.int64)
        share = ((bits * self.factor) >> 40).double() / 2.0**23  # from -1 to 1, by the number itself
        return torch.where(is_exact, x, x * (1 + share * 2.0**-46))
