"""ORTModule: a module whose forward runs compiled steps.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import os
import types
from enum import IntEnum
from typing import Any, NoReturn

import torch

from ortc._errors import ArgumentError
from ortc.compat.ort_training._missing import answer_for
from ortc.compat.ort_training._notes import note, refuse
from ortc.torch import compile_

_SWITCHES = {
    "ORTMODULE_CACHE_DIR": "set ORTC_CACHE_DIR",
    "ORTMODULE_FALLBACK_POLICY": 'ortc.torch.compile_(model, fallback="error") raises where a call is not compiled',
    "ORTMODULE_LOG_LEVEL": "print(ortc.torch.report(module)) says what ran, and why",
    "ORTMODULE_MEMORY_OPT_LEVEL": 'ortc.torch.compile_(model, memory_budget="512MiB") computes again what does not fit',
}
"""The most frequent ones, and what to do instead."""
__getattr__ = answer_for(__name__)
__path__: list[str] = []
"""So that imports of what was within it say what is instead."""


class LogLevel(IntEnum):
    VERBOSE = 0
    DEVINFO = 1
    INFO = 2
    WARNING = 3
    ERROR = 4
    FATAL = 5


class DebugOptions:
    def __init__(
        self,
        log_level: LogLevel = LogLevel.WARNING,
        save_onnx: bool = False,
        onnx_prefix: str = "",
        save_path: str = "",
        config: Any = None,
    ) -> None:
        if save_onnx:
            refuse("DebugOptions(save_onnx=True)", "torch.onnx.export(module, arguments, path, dynamo=False) writes the graph")
        if log_level != LogLevel.WARNING:
            note("DebugOptions' log_level has no effect: print(ortc.torch.report(module)) says what ran, and why")
        if onnx_prefix or save_path or config is not None:
            note("DebugOptions' onnx_prefix, save_path and config have no effect")
        self.log_level = log_level
        self.save_onnx = save_onnx
        self.onnx_prefix = onnx_prefix


class ORTModule(torch.nn.Module):
    """The module itself under another class, which is also a class of its own kind: every attribute, parameter, hook and method
    is the module's, so that keys of state_dict are its own. `module` is the object that was given; compile_ has its steps."""

    __slots__ = ("_wrapped",)
    _wrapped: torch.nn.Module

    def __new__(cls, module: torch.nn.Module, debug_options: DebugOptions | None = None) -> ORTModule:
        if not isinstance(module, torch.nn.Module) or isinstance(module, torch.jit.ScriptModule):
            raise ArgumentError(f"ORTModule takes a torch.nn.Module of Python, not {type(module).__qualname__}")
        if isinstance(module, ORTModule):
            raise ArgumentError("the module is an ORTModule already")
        kind = type(module)
        names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
        both = types.new_class(kind.__name__, (cls, kind), {}, lambda space: space.update(names))
        return object.__new__(both)  # type: ignore[no-any-return]

    def __init__(self, module: torch.nn.Module, debug_options: DebugOptions | None = None) -> None:
        object.__setattr__(self, "_wrapped", module)
        object.__setattr__(self, "__dict__", module.__dict__)
        _note_switches()
        compile_(module)

    @property
    def module(self) -> torch.nn.Module:
        return self._wrapped

    def __deepcopy__(self, memo: dict[int, Any]) -> ORTModule:
        return _wrap(self._base(), copy.deepcopy(self._wrapped, memo))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _wrap, (self._base(), self._wrapped)

    def _base(self) -> type[ORTModule]:
        """The class that was called, which may be one below ORTModule."""
        return type(self).__bases__[0]

    def _replicate_for_data_parallel(self) -> NoReturn:
        refuse("torch.nn.DataParallel of an ORTModule", "use torch.nn.parallel.DistributedDataParallel")


def _note_switches() -> None:
    """Notes on variables of the environment: none has an effect."""
    given = sorted(name for name in os.environ if name.startswith("ORTMODULE_"))
    if given:
        known = "; ".join(f"{name}: {_SWITCHES[name]}" for name in given if name in _SWITCHES)
        note(
            f"{', '.join(given)} of the environment {'has' if len(given) == 1 else 'have'} no effect{' (' + known + ')' if known else ''}: "
            "docs/migrating-from-onnxruntime.md lists what is instead"
        )


def _wrap(kind: type[ORTModule], module: torch.nn.Module) -> ORTModule:
    return kind(module)
