"""Arguments and files that are refused before the work.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from typing import Any

from ortc._errors import ArgumentError

File = str | os.PathLike[str]


_LARGEST = 3.4028234663852886e38
"""Of float32, which hyper-parameters are."""


def check_whole(name: str, value: Any, least: int, most: int = (1 << 53) - 1) -> int:
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= most:
        raise ArgumentError(f"{name} is {value!r}, but must be a whole number from {least} to {most}")
    return number


def check_rate(name: str, value: Any) -> float:
    try:
        number = -1.0 if isinstance(value, (bool, str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if not 0 <= number <= _LARGEST:
        raise ArgumentError(f"{name} is {value!r}, but must be a number from 0 to 3.4e38")
    return number


def check_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ArgumentError(f"{name} is {value!r}, but must be a text")
    return value


def check_output(what: str, file: File, inputs: Iterable[tuple[str, File]] = ()) -> None:
    """Of a file that replaces what is there: as support/OutputPaths.h has it. `inputs`: files that are read, and what each
    is."""
    from ortc import _runtime  # not for who writes no file

    _runtime.check_output(what, os.fspath(file), [(name, os.fspath(each)) for name, each in inputs])
