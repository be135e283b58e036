"""What fails, as exceptions.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """Anything that the runtime or the compiler refuses, or that fails."""


class ArgumentError(Error, ValueError):
    """A number or name that cannot be."""


class FormatError(Error, ValueError):
    """A file that is no artifact or checkpoint, is damaged, or was made for a newer version."""


class TargetError(Error):
    """No code in the artifact runs on this machine or device."""


class NotFoundError(Error, LookupError):
    """There is no tensor, binding or step of that name."""


class ShapeError(Error, ValueError):
    """An array has another type, shape or device than the tensor."""


class RangeError(Error, IndexError):
    """A label or index is out of range; the step has updated nothing."""


class NotFiniteError(Error, ArithmeticError):
    """The loss is not finite, and the step has updated nothing; or the weights are not, which a Trainer does not save."""


class StateError(Error, RuntimeError):
    """Not now: an input was never given, an update without gradients, a session that another thread is in."""


class CompileError(Error):
    """The compiler refuses a model or a flag; the text is the compiler's."""


class DifferenceError(CompileError):
    """A file gives other numbers than the module that it is compared with; the text has the table."""

    def __init__(self, comparison: Any) -> None:
        super().__init__(str(comparison))
        self.comparison = comparison


class CompileWarning(UserWarning):
    """What the compiler warns of."""


_BY_STATUS: dict[str, type[Error]] = {
    "argument": ArgumentError,
    "format": FormatError,
    "version": FormatError,
    "hash": FormatError,
    "target": TargetError,
    "not found": NotFoundError,
    "shape": ShapeError,
    "range": RangeError,
    "not finite": NotFiniteError,
    "state": StateError,
}


def of_status(name: str) -> type[Error]:
    """The class for a status of the runtime, by ortc_status_name."""
    return _BY_STATUS.get(name, Error)
