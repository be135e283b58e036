"""The modules, parameters and buffers of a module, looked up once and found again fast.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch

_BatchNorm = torch.nn.modules.batchnorm._BatchNorm
_PLAIN = {bool, int, float, str, tuple, torch.dtype}
_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


def walk(module: torch.nn.Module, found: list[torch.nn.Module]) -> list[torch.nn.Module]:
    """All modules, in order, those that are there several times several times."""
    found.append(module)
    for child in module._modules.values():
        if child is not None:
            walk(child, found)
    return found


class Layout:
    """Of one module; `modules` says whether it is still so."""

    def __init__(self, module: torch.nn.Module, modules: list[torch.nn.Module]) -> None:
        self.modules = modules
        self.norms = [each for each in modules if isinstance(each, _BatchNorm)]
        self.slots: dict[str, tuple[dict[str, Any], str]] = {}
        """Where the tensor of a name is: the dict of its module, and its key there."""
        self.parameters: list[str] = []
        self.statistics: set[str] = set()
        self.constants: list[str] = []
        """Buffers whose values are in artifacts."""
        self.padding: dict[str, int] = {}
        """Weights of embeddings of which a row has no gradient."""
        seen: set[int] = set()
        self.places: list[tuple[dict[str, Any], str]] = []
        """Of all parameters, shared ones and those that are None too."""
        for path, each in module.named_modules(remove_duplicate=False):
            prefix = path + "." if path else ""
            if isinstance(each, torch.nn.Embedding) and each.padding_idx is not None:
                self.padding[prefix + "weight"] = each.padding_idx
            for key, parameter in each._parameters.items():
                self.places.append((each._parameters, key))
                if parameter is None:
                    continue
                self.slots[prefix + key] = (each._parameters, key)
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    self.parameters.append(prefix + key)
            for key, buffer in each._buffers.items():
                self.slots[prefix + key] = (each._buffers, key)
                if buffer is None:
                    continue
                if isinstance(each, _BatchNorm) and key in _STATISTICS:
                    self.statistics.add(prefix + key)
                else:
                    self.constants.append(prefix + key)

    def identities(self) -> list[int]:
        """Which object each parameter is."""
        return [id(parameters.get(key)) for parameters, key in self.places]

    def refusal(self) -> str:
        """What of the module has other numbers, or other gradients, when it is exported; empty where nothing has."""
        owners: dict[int, int] = {}
        for tensors, key in self.slots.values():
            owners[id(tensors[key])] = owners.get(id(tensors[key]), 0) + 1
        for name in self.padding:
            if owners[id(self.get(name))] > 1:
                return f"'{name}' is shared, and its embedding has a padding row"
        for name in self.parameters:
            if isinstance(self.get(name), torch.nn.UninitializedParameter):
                return f"parameter '{name}' is not initialized"
        for each in self.modules:
            kind = type(each).__name__
            if isinstance(each, (torch.nn.Embedding, torch.nn.EmbeddingBag)):
                if each.max_norm is not None or each.scale_grad_by_freq or each.sparse:
                    return f"a {kind} has max_norm, scale_grad_by_freq or sparse"
            if isinstance(each, torch.nn.EmbeddingBag) and each.padding_idx is not None:
                return f"a {kind} has a padding row"
            if isinstance(each, _BatchNorm) and each.training and each.momentum is None and each.track_running_stats:
                return f"a {kind} averages over all steps (momentum=None)"
            if isinstance(each, torch.nn.SyncBatchNorm):
                return f"a {kind} exchanges statistics with other processes"
        return ""

    def attributes(self) -> tuple[Any, ...]:
        """Plain attributes of all modules, `training` among them, tensors that are attributes, and whether modules within
        have hooks."""
        found: list[Any] = []
        for each in self.modules:
            for value in each.__dict__.values():
                if value.__class__ in _PLAIN:
                    found.append(value)
                elif isinstance(value, torch.Tensor):
                    found.append((value.data_ptr(), value._version, value.requires_grad))
                elif value.__class__ is list:
                    found.append((len(value), *(item for item in value if item.__class__ in _PLAIN)))
        found.append(self.has_hooks())
        try:
            hash(tuple(found))
        except TypeError:  # a tuple of what has no hash
            return (repr(found),)
        return tuple(found)

    def has_hooks(self) -> bool:
        """Of modules within the module, and for parameters that it makes anew."""
        return any(
            [each._forward_hooks or each._forward_pre_hooks or each._backward_hooks or each._backward_pre_hooks for each in self.modules[1:]]
        )

    def tensors(self) -> tuple[Any, ...]:
        """What compiled steps take for granted of parameters."""
        return tuple(
            [(each.requires_grad, each.dtype, each.shape, each.is_contiguous(), each.is_cpu) for each in map(self.get, self.parameters)]
        )

    def versions(self) -> tuple[Any, ...]:
        """What says that a buffer has other values, where it belongs to the graph."""
        return tuple([(each.data_ptr(), each._version) for each in map(self.get, self.constants)])

    def get(self, name: str) -> torch.Tensor:
        tensors, key = self.slots[name]
        return tensors[key]  # type: ignore[no-any-return]
