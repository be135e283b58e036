"""Optimizer: the update of a module's gradients.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ortc._errors import ArgumentError, StateError
from ortc.compat.ort_training._optimizers import find_rate, is_of_transformers, make_adamw, read_optimizer

if TYPE_CHECKING:
    from ortc.compat.ort_training.api.module import Module


class Optimizer:
    def __init__(self, optimizer_uri: str | os.PathLike[str], module: Module) -> None:
        if not module._optimizer_flag:
            module._choose_optimizer(read_optimizer(os.fspath(optimizer_uri)))
        if module._has_default and make_adamw().flags != read_optimizer(os.fspath(optimizer_uri)):
            raise StateError("make the Optimizer before the module is first called: it is compiled with it")
        flag, file = module._optimizer_flag, Path(optimizer_uri).read_bytes()
        if flag.encode() not in file:
            raise ArgumentError(f"{os.fspath(optimizer_uri)}: the training model was generated with another optimizer, {flag}")
        self._module = module
        self._is_of_transformers = is_of_transformers(file)
        self._rate = float(module._state_value("lr", find_rate(flag) or 0.001))

    def step(self) -> None:
        """Changes the parameters by the gradients since the last lazy_reset_grad."""
        self._module._update(self._rate, self._is_of_transformers)

    def set_learning_rate(self, learning_rate: float) -> None:
        self._rate = float(learning_rate)

    def get_learning_rate(self) -> float:
        return self._rate

    @property
    def _steps(self) -> int:
        """Updates done."""
        return int(self._module._state_value("step", 0))
