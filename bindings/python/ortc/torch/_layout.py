"""The modules, parameters and buffers of a module, looked up once and found again fast.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import dis
import sys
import types
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch

from ortc import _runtime

_BatchNorm = torch.nn.modules.batchnorm._BatchNorm
_PLAIN = {bool, int, float, str, tuple, torch.dtype}
_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")
_OF_MODULES = set(torch.nn.Module().__dict__)
"""Attributes that every module has."""
_MOST_COLLECTIONS = 1000
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


_STRAIGHT = ("CACHE", "LOAD_ATTR", "LOAD_CONST", "LOAD_METHOD", "NOP", "POP_TOP", "PRECALL", "PUSH_NULL", "RESUME", "RETURN_CONST", "RETURN_VALUE")


@cache
def _asks_for_gradients(code: types.CodeType) -> bool:
    """Whether a hook of a forward does no more than `output.requires_grad_(True)`, so that checkpoints have gradients after frozen
    modules: transformers and PEFT register such hooks."""
    if code.co_names != ("requires_grad_",) or code.co_freevars or any(each not in (None, True) for each in code.co_consts):
        return False
    instructions = list(dis.get_instructions(code))
    is_straight = all(each.opname in _STRAIGHT or each.opname.startswith(("LOAD_FAST", "CALL")) for each in instructions)
    end = [each for each in instructions if each.opname != "CACHE"][-2:]
    return is_straight and end[-1].argval is None and (end[-1].opname == "RETURN_CONST" or end[0].opname == "LOAD_CONST" and end[0].argval is None)


def gradient_hooks(module: torch.nn.Module) -> list[Any]:
    """The hooks of its forward that only let its output have a gradient."""
    hooks = module._forward_hooks.values()
    return [each for each in hooks if isinstance(each, types.FunctionType) and _asks_for_gradients(each.__code__)]


def _walk(module: torch.nn.Module, found: list[torch.nn.Module]) -> list[torch.nn.Module]:
    """All modules, in order, those that are there several times several times."""
    found.append(module)
    for child in module._modules.values():
        if child is not None:
            _walk(child, found)
    return found


def place_of(tensor: torch.Tensor) -> tuple[int, int]:
    """Where the values are, and how often they have been written."""
    place = tensor.data_ptr() if tensor.layout is torch.strided else id(tensor)
    return place, 0 if tensor.is_inference() else tensor._version


def keep(tensors: list[torch.Tensor]) -> list[Any]:
    """What sees to it that no other tensor gets one of these places."""
    return [each.untyped_storage() if each.layout is torch.strided else each for each in tensors]


def _collections(module: torch.nn.Module) -> list[Any]:
    """Lists and dicts that are attributes of the module's own, and those within them."""
    found = [value for name, value in module.__dict__.items() if value.__class__ in (list, dict) and name not in _OF_MODULES]
    for each in found:  # which grows meanwhile
        items = each.values() if isinstance(each, dict) else each
        found += [item for item in items if item.__class__ in (list, dict) and len(found) < _MOST_COLLECTIONS]
    return found


def _wrappers() -> tuple[type, ...]:
    """Modules whose forward exchanges something with other processes or devices."""
    found: list[type] = [torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel]
    if sharded := sys.modules.get("torch.distributed.fsdp"):
        found += [sharded.FullyShardedDataParallel, sharded.FSDPModule]
    return tuple(found)


def _is_plain(item: Any) -> bool:
    """Of a list, or the key and value of a dict."""
    return item.__class__ in _PLAIN and (item.__class__ is not tuple or all(each.__class__ in _PLAIN for each in item))


class Layout:
    """Of one module, as it is now; is_current() says whether it is still so."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.modules = _walk(module, [])
        self.norms = [each for each in self.modules if isinstance(each, _BatchNorm)]
        self.slots: dict[str, tuple[dict[str, Any], str]] = {}
        """Where the tensor of a name is: the dict of its module, and its key there."""
        self.parameters: list[str] = []
        self.statistics: list[str] = []
        self.fixed_statistics: list[str] = []
        """Running statistics that steps read, and do not write."""
        self.constants: list[str] = []
        """Buffers whose values are in artifacts."""
        self.places: list[int] = []
        """Which tensor each parameter is, by the order in which they come first: shared ones have one number."""
        order: dict[int, int] = {}
        for path, each in module.named_modules(remove_duplicate=False):
            prefix = path + "." if path else ""
            for key, parameter in each._parameters.items():
                is_new = id(parameter) not in order
                self.places.append(order.setdefault(id(parameter), len(order)))
                if parameter is None:
                    continue
                self.slots[prefix + key] = (each._parameters, key)
                if is_new:
                    self.parameters.append(prefix + key)
            for key, buffer in each._buffers.items():
                self.slots[prefix + key] = (each._buffers, key)
                if buffer is None:
                    continue
                if isinstance(each, _BatchNorm) and key in _STATISTICS:
                    self.statistics.append(prefix + key)
                    if not each.training and key != "num_batches_tracked":
                        self.fixed_statistics.append(prefix + key)
                else:
                    self.constants.append(prefix + key)
        self.counters = [
            each.num_batches_tracked for each in self.norms if each.training and each.num_batches_tracked is not None
        ]
        """Of batch normalisations in training mode: how often they have run."""
        self._live = self.find(self.parameters)
        self.fixed_tensors = self.find(self.constants)
        """Tensors whose values are in artifacts: those buffers, and tensors that are attributes."""
        own = {id(each) for each in self.modules}
        containers: list[Any] = []
        self._nested = [_collections(each) for each in self.modules]
        for each, collections in zip(self.modules, self._nested, strict=True):
            containers += [each.__dict__, each._modules, each._parameters, each._buffers, *collections]
            if each is not module:
                containers += [each.__dict__[name] for name in _HOOKS]
            for values in (each.__dict__, *collections):
                for value in values.values() if isinstance(values, dict) else values:
                    if isinstance(value, torch.Tensor):
                        self.fixed_tensors.append(value)
                    elif isinstance(value, torch.nn.Module) and id(value) not in own:  # a teacher that is not registered
                        self.fixed_tensors += [*value.parameters(), *value.buffers()]
        self._containers = tuple(containers)
        self._snapshot = _runtime.take_snapshot(self._containers)
        self.objects: list[Any] = []
        """Attributes that are known by their addresses."""
        self.attributes = self._describe()
        """Plain attributes of all modules, `training` among them, and whether modules within have hooks."""

    def is_current(self) -> bool:
        """Whether the modules have the same modules, tensors, attributes and hooks, as objects."""
        return _runtime.is_unchanged(self._containers, self._snapshot)

    def state(self) -> list[Any]:
        """What compiled steps take for granted of tensors, and may change while they are the same objects: what parameters
        are, and the values of other tensors, by their versions."""
        found: list[Any] = [(each.requires_grad, each.dtype, each.shape, each.is_contiguous(), each.is_cpu) for each in self._live]
        found += [(*place_of(each), each.requires_grad) for each in self.fixed_tensors]
        return found

    def values(self) -> tuple[Any, ...]:
        """What forward must leave as it is: plain attributes, and tensors other than running statistics."""
        return self.attributes, [place_of(each) for each in self.fixed_tensors]

    def has_hooks(self) -> bool:
        """Whether modules within the module have hooks that a graph does not stand for."""
        return any(getattr(each, name) for each in self.modules[1:] for name in _HOOKS[1:]) or any(
            len(gradient_hooks(each)) < len(each._forward_hooks) for each in self.modules[1:] if each._forward_hooks
        )

    def with_gradient_hooks(self) -> Iterator[tuple[int, torch.nn.Module]]:
        """Modules within the module, with their numbers."""
        return ((i, each) for i, each in enumerate(self.modules) if i and gradient_hooks(each))

    def fixed(self, trained: list[str]) -> list[str]:
        """Parameters and statistics that steps only read."""
        return [name for name in (*self.parameters, *self.fixed_statistics) if name not in set(trained)]

    def is_trained(self) -> bool:
        """Whether a parameter has a gradient."""
        return any([each.requires_grad for each in self._live])

    def is_dense(self) -> bool:
        """Whether all parameters are in order of rows."""
        return all([each.is_contiguous() for each in self._live])

    def refusal(self, has_grad: bool = True) -> str:
        """What of the module has other numbers, or other gradients, when it is exported; empty where nothing has."""
        if has_grad and any(each.grad_fn is not None for each in self.fixed_tensors):
            return (
                "a tensor that is no parameter comes with a gradient from outside of forward (weight_norm and spectral_norm of "
                "torch.nn.utils do so; those of torch.nn.utils.parametrizations do not)"
            )
        for name in self.parameters:
            parameter = self.get(name)
            if isinstance(parameter, torch.nn.UninitializedParameter):
                return f"parameter '{name}' is not initialized"
            if type(parameter) not in (torch.nn.Parameter, torch.Tensor):
                return f"parameter '{name}' is a {type(parameter).__qualname__}"
        if self.has_hooks():
            return "a module within the module has hooks"
        for module in self.modules:
            name = type(module).__name__
            kind = f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
            if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)):
                if module.max_norm is not None or module.scale_grad_by_freq or module.sparse:
                    return f"{kind} has max_norm, scale_grad_by_freq or sparse"
            if isinstance(module, _BatchNorm) and module.training and module.momentum is None and module.track_running_stats:
                return f"{kind} averages over all steps (momentum=None)"
            if isinstance(module, _wrappers()):
                return f"{kind} is in it: compile_ comes before a module is wrapped, or is of the module within"
            if isinstance(module, torch.nn.SyncBatchNorm):
                return f"{kind} exchanges statistics with other processes"
        return ""

    def misplaced(self) -> str:
        """What of its tensors steps cannot use in place."""
        for name in (*self.parameters, *self.statistics):
            each = self.get(name)
            if each.device.type != "cpu" or each.layout is not torch.strided:
                return f"'{name}' is on {each.device}, {each.layout}: parameters and statistics are dense, on the processor"
            if each.is_floating_point() and each.dtype != torch.float32:
                return f"'{name}' is {each.dtype}: parameters and statistics are float32 (module.float(), and torch.autocast)"
            if each.is_neg() or (name in self.statistics and not each.is_contiguous()):
                return f"'{name}' is a view with other strides or signs: give it memory of its own (clone())"
        return ""

    def count_batches(self) -> None:
        """What batch normalisations do in a step besides their statistics."""
        if self.counters:
            torch._foreach_add_(self.counters, 1)

    def get(self, name: str) -> torch.Tensor:
        tensors, key = self.slots[name]
        return tensors[key]  # type: ignore[no-any-return]

    def find(self, names: list[str]) -> list[torch.Tensor]:
        return [tensors[key] for tensors, key in map(self.slots.__getitem__, names)]

    def _describe(self) -> tuple[Any, ...]:
        found: list[Any] = [self.has_hooks(), *(i for i, _ in self.with_gradient_hooks())]
        for each, collections in zip(self.modules, self._nested, strict=True):
            for name, value in each.__dict__.items():
                if value.__class__ in _PLAIN:
                    found.append((name, value))
                elif name not in _OF_MODULES and name != "forward" and not isinstance(value, (list, dict, torch.Tensor)):
                    found.append((name, id(value)))
                    self.objects.append(value)
            for values in collections:
                items = values.items() if isinstance(values, dict) else values
                found.append((len(values), *(item for item in items if _is_plain(item))))
        try:
            hash(tuple(found))
        except TypeError:  # a tuple of what has no hash
            return (repr(found),)
        return tuple(found)
