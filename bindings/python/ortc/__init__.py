"""Trains models that ortc has compiled: sessions over the runtime, and the compiler where the package `ortc` is installed.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ortc._errors import (
    ArgumentError,
    CompileError,
    CompileWarning,
    DifferenceError,
    Error,
    FormatError,
    NotFiniteError,
    NotFoundError,
    RangeError,
    ShapeError,
    StateError,
    TargetError,
)

if TYPE_CHECKING:
    from ortc import callbacks, sources
    from ortc._artifact import Artifact, load
    from ortc._compile import compile
    from ortc._plan import Plan
    from ortc._session import Loaded, Session
    from ortc._trainer import Trainer

__version__ = "0.1.0"
__all__ = [
    "ArgumentError",
    "Artifact",
    "CompileError",
    "CompileWarning",
    "DifferenceError",
    "Error",
    "FormatError",
    "Loaded",
    "NotFiniteError",
    "NotFoundError",
    "Plan",
    "RangeError",
    "Session",
    "ShapeError",
    "StateError",
    "TargetError",
    "Trainer",
    "callbacks",
    "compile",
    "load",
    "sources",
]
_HOMES = {
    "Artifact": "ortc._artifact",
    "load": "ortc._artifact",
    "compile": "ortc._compile",
    "Plan": "ortc._plan",
    "Loaded": "ortc._session",
    "Session": "ortc._session",
    "Trainer": "ortc._trainer",
}


def __getattr__(name: str) -> Any:
    if name in ("callbacks", "sources"):
        return importlib.import_module(f"ortc.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'ortc' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
