"""FP16_Optimizer: scripts in float32 go on as they are; libraries of float16 are refused.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch

from ortc._errors import ArgumentError
from ortc.compat.ort_training._notes import note, refuse


def FP16_Optimizer(optimizer: Any, **kwargs: Any) -> Any:  # noqa: N802 - its name
    """Gives an optimizer of PyTorch back: steps in float32 have no scale and nothing to unscale."""
    library = type(optimizer).__module__.partition(".")[0]
    if hasattr(optimizer, "_amp_stash") or library in ("apex", "deepspeed", "megatron"):
        refuse(
            f"FP16_Optimizer of {type(optimizer).__qualname__} ({library})",
            "train in float32 without it, or with torch.amp.GradScaler, which works with compiled modules",
        )
    if kwargs:
        refuse(f"FP16_Optimizer's {', '.join(sorted(kwargs))}", "it is for Megatron-LM's optimizer alone; leave it out")
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ArgumentError(f"FP16_Optimizer takes an optimizer of PyTorch, not {type(optimizer).__qualname__}")
    note("FP16_Optimizer does nothing: compiled modules are float32, and the optimizer stays as it is")
    return optimizer
