"""The modules, parameters and buffers of a module, looked up once and found again fast.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch

_BatchNorm = torch.nn.modules.batchnorm._BatchNorm
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
        seen: set[int] = set()
        for path, each in module.named_modules(remove_duplicate=False):
            prefix = path + "." if path else ""
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

    def get(self, name: str) -> torch.Tensor:
        tensors, key = self.slots[name]
        return tensors[key]  # type: ignore[no-any-return]
