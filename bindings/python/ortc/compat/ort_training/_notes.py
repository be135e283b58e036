"""Notes about arguments that have no effect, or cannot be used.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import NoReturn

from ortc._errors import ArgumentError


@cache
def note(text: str) -> None:
    """Warns once in a process of an argument that is ignored."""
    warnings.warn(f"ortc.compat.ort_training: {text}", stacklevel=3)


def refuse(what: str, instead: str) -> NoReturn:
    """Raises for an argument that changes results here or cannot be had, with what to do."""
    raise ArgumentError(f"ortc.compat.ort_training: {what} is not supported: {instead}")
