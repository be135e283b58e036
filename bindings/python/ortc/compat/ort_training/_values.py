"""Arrays in and out: of numpy, or OrtValue of the package onnxruntime.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_ort_value(value: Any) -> bool:
    """Without loading onnxruntime, which nobody needs who has none."""
    return type(value).__name__ == "OrtValue" and type(value).__module__.startswith("onnxruntime")


def to_array(value: Any) -> Any:
    """The array that a session takes."""
    if isinstance(value, np.ndarray) or (hasattr(value, "__dlpack__") and not is_ort_value(value)):
        return value
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)


def are_ort_values(values: Iterable[Any]) -> bool:
    """Whether results are OrtValues, too: where arguments are, and none is an array of numpy."""
    given = list(values)
    return any(map(is_ort_value, given)) and not any(isinstance(each, np.ndarray) for each in given)


def to_ort_value(array: NDArray[Any]) -> Any:
    """Only for who has given one."""
    return sys.modules["onnxruntime"].OrtValue.ortvalue_from_numpy(np.asarray(array, order="C"))
