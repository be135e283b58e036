"""Optimizers, their configurations for ORTTrainer, and learning rates.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ortc.compat.ort_training._missing import answer_for
from ortc.compat.ort_training.optim.config import AdamConfig, LambConfig, SGDConfig
from ortc.compat.ort_training.optim.lr_scheduler import (
    ConstantWarmupLRScheduler,
    CosineWarmupLRScheduler,
    LinearWarmupLRScheduler,
    PolyWarmupLRScheduler,
    _LRScheduler,
)

if TYPE_CHECKING:
    from ortc.compat.ort_training.optim.fp16_optimizer import FP16_Optimizer
    from ortc.compat.ort_training.optim.fused_adam import AdamWMode, FusedAdam

__all__ = [
    "AdamConfig",
    "AdamWMode",
    "ConstantWarmupLRScheduler",
    "CosineWarmupLRScheduler",
    "FP16_Optimizer",
    "FusedAdam",
    "LambConfig",
    "LinearWarmupLRScheduler",
    "PolyWarmupLRScheduler",
    "SGDConfig",
    "_LRScheduler",
]
_WITH_TORCH = {"AdamWMode": "fused_adam", "FusedAdam": "fused_adam", "FP16_Optimizer": "fp16_optimizer"}

_answer = answer_for(__name__)


def __getattr__(name: str) -> Any:
    if name not in _WITH_TORCH:
        return _answer(name)
    return getattr(importlib.import_module(f"{__name__}.{_WITH_TORCH[name]}"), name)
