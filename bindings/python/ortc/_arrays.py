"""Arrays without a buffer of Python, which numpy must help with.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass
class Bits:
    """Elements of bfloat16 as numbers of 16 bits, which is what there is without ml_dtypes."""

    values: NDArray[np.uint16]


def without_buffer(values: Any, may_copy: bool) -> tuple[NDArray[Any], bool] | None:
    """An array with a buffer and whether it is one of bfloat16; None for what DLPack must take."""
    is_bfloat = isinstance(values, Bits)
    if is_bfloat:
        values = values.values
    if not isinstance(values, np.ndarray):
        if hasattr(values, "__dlpack__"):
            return None
        raise TypeError(f"{type(values).__name__} is no array: give one of numpy, or an object with __dlpack__")
    if values.dtype.name == "bfloat16":
        is_bfloat, values = True, values.view(np.uint16)
    return np.ascontiguousarray(values) if may_copy else values, is_bfloat


def widen(values: NDArray[Any]) -> NDArray[np.float32]:
    """Of elements of bfloat16, in either way."""
    return (values.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def as_bfloat16(values: NDArray[np.uint16]) -> NDArray[Any]:
    """The same elements as ml_dtypes' bfloat16, where that package is installed."""
    try:
        import ml_dtypes
    except ImportError:
        return values
    return values.view(ml_dtypes.bfloat16)


def as_read(values: Any) -> Any:
    """What a tensor of bfloat16 is written with: where ml_dtypes is not installed, 16-bit numbers are what as_bfloat16 gives."""
    is_read = isinstance(values, np.ndarray) and values.dtype == np.uint16 and as_bfloat16(values) is values
    return Bits(values) if is_read else values
