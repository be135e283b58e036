"""Arrays without a buffer of Python, which numpy must help with.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def without_buffer(values: Any, may_copy: bool) -> tuple[NDArray[Any], bool] | None:
    """An array with a buffer and whether it is one of bfloat16; None for what DLPack must take."""
    if not isinstance(values, np.ndarray):
        if hasattr(values, "__dlpack__"):
            return None
        raise TypeError(f"{type(values).__name__} is no array: give one of numpy, or an object with __dlpack__")
    is_bfloat = values.dtype.name == "bfloat16"
    if is_bfloat:
        values = values.view(np.uint16)
    return np.ascontiguousarray(values) if may_copy else values, is_bfloat


def as_bfloat16(values: NDArray[np.uint16]) -> NDArray[Any]:
    """The same elements as ml_dtypes' bfloat16, where that package is installed."""
    try:
        import ml_dtypes
    except ImportError:
        return values
    return values.view(ml_dtypes.bfloat16)
