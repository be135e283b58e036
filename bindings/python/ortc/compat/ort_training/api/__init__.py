"""The on-device classes, without PyTorch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from ortc.compat.ort_training._missing import answer_for
from ortc.compat.ort_training.api.checkpoint_state import CheckpointState
from ortc.compat.ort_training.api.lr_scheduler import LinearLRScheduler
from ortc.compat.ort_training.api.module import Module
from ortc.compat.ort_training.api.optimizer import Optimizer

__all__ = ["CheckpointState", "LinearLRScheduler", "Module", "Optimizer"]
__getattr__ = answer_for(__name__)
