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
        for path, each in module.named_modules(remove_duplicate=False):
            prefix = path + "." if path else ""
            if isinstance(each, torch.nn.Embedding) and each.padding_idx is not None:
                self.padding[prefix + "weight"] = each.padding_idx
            for key, parameter in each._parameters.items():
                self.slots[prefix + key] = (each._parameters, key)
                if parameter is not None and id(parameter) not in seen:
                    seen.add(id(parameter))
                    self.parameters.append(prefix + key)
            for key, buffer in each._buffers.items():
                self.slots[prefix + key] = (each._buffers, key)
                if isinstance(each, _BatchNorm) and key in _STATISTICS:
                    self.statistics.add(prefix + key)
                elif buffer is not None:
                    self.constants.append(prefix + key)

    def refusal(self) -> str:
        """What of the module has other numbers, or other gradients, when it is exported; empty where nothing has."""
        owners: dict[int, int] = {}
        for tensors, key in self.slots.values():
            owners[id(tensors[key])] = owners.get(id(tensors[key]), 0) + 1
        for name in self.padding:
            if owners[id(self.get(name))] > 1:
                return f"'{name}' is shared, and its embedding has a padding row"
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
        """Plain attributes of all modules, `training` among them."""
        found = tuple([value for each in self.modules for value in each.__dict__.values() if value.__class__ in _PLAIN])
        try:
            hash(found)
        except TypeError:  # a tuple of what has no hash
            return (repr(found),)
        return found

    def versions(self) -> tuple[Any, ...]:
        """What says that a buffer has other values, where it belongs to the graph."""
        return tuple([(each.data_ptr(), each._version) for each in map(self.get, self.constants)])

    def get(self, name: str) -> torch.Tensor:
        tensors, key = self.slots[name]
        return tensors[key]  # type: ignore[no-any-return]
