"""Samplers, in `data`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from ortc.compat.ort_training._missing import answer_for
from ortc.compat.ort_training.utils import data

__all__ = ["data"]
__getattr__ = answer_for(__name__)
