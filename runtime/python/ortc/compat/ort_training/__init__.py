"""The names of ONNX Runtime Training over ortc: `from ortc.compat.ort_training import ORTModule` (docs/migrating-from-onnxruntime.md).

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Names are loaded when they are first used: the on-device classes need no PyTorch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ortc.compat.ort_training import api, artifacts, onnxblock, optim, ortmodule, orttrainer, utils
    from ortc.compat.ort_training.ortmodule import ORTModule
    from ortc.compat.ort_training.orttrainer import ORTTrainer, TrainStepInfo
    from ortc.compat.ort_training.orttrainer_options import ORTTrainerOptions

__all__ = [
    "ORTModule",
    "ORTTrainer",
    "ORTTrainerOptions",
    "TrainStepInfo",
    "api",
    "artifacts",
    "onnxblock",
    "optim",
    "ortmodule",
    "orttrainer",
    "utils",
]
_HOMES = {
    "ORTModule": "ortmodule",
    "ORTTrainer": "orttrainer",
    "ORTTrainerOptions": "orttrainer_options",
    "TrainStepInfo": "orttrainer",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no '{name}': docs/migrating-from-onnxruntime.md lists what there is")
    if name not in _HOMES:
        return importlib.import_module(f"{__name__}.{name}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
