"""The names of ONNX Runtime Training over ortc: `from ortc.compat.ort_training import ORTModule` (docs/migrating-from-onnxruntime.md).

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Names are loaded when they are first used: the on-device classes need no PyTorch.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from ortc.compat.ort_training._missing import Finder, answer_for

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

_answer = answer_for(__name__)
sys.meta_path.append(Finder())


def __getattr__(name: str) -> Any:
    if name not in __all__:
        return _answer(name)
    if name not in _HOMES:
        return importlib.import_module(f"{__name__}.{name}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
