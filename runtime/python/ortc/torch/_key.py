"""What a compilation depends on, as a digest: the module, the call, the compiler and the machine.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import os
import sys
import sysconfig
import types
import weakref
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import torch

from ortc import _runtime
from ortc._compile import find_compiler

_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size)
_DEPTH = 6


@cache
def _file_identity(path: str) -> str:
    status = os.stat(path)
    return f"{path} {status.st_size} {status.st_mtime_ns}"


@cache
def _installed_roots() -> tuple[str, ...]:
    return tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


@cache
def _is_installed(path: str) -> bool:
    return path.startswith(_installed_roots()) or os.sep + "site-packages" + os.sep in path


def compiler_identity() -> str:
    """Of the compiler that would run; empty where there is none."""
    compiler = find_compiler()
    return _file_identity(compiler) if compiler and Path(compiler).is_file() else ""


@cache
def _is_source(path: str) -> bool:
    """Of an installed package the version is enough, which paths and times of its files tell."""
    return path.endswith(".py") and not _is_installed(path)


@cache
def _text_digest(path: str, size: int, time: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@cache
def _list_sources(count: int, last: str) -> list[tuple[str, str]]:
    """Names and files of what was loaded and is no installed package. `count`, `last`: of all modules, the last one's name:
    there are thousands, and they are gone through when some were loaded since."""
    # Without getattr, which some modules answer by loading more.
    files = [(name, getattr(module, "__dict__", {}).get("__file__")) for name, module in list(sys.modules.items())]
    return sorted((name, path) for name, path in files if path and _is_source(path))


def _sources() -> Iterable[str]:
    """The text of everything that was loaded and is no installed package: classes and functions that a module may use."""
    for name, path in _list_sources(len(sys.modules), next(reversed(sys.modules))):
        try:
            status = os.stat(path)
            yield f"{name} {_text_digest(path, status.st_size, status.st_mtime_ns)}"
        except OSError:
            continue


@cache
def exporter() -> tuple[str, ...]:
    """What makes graphs of modules."""
    return tuple(_file_identity(str(path)) for path in sorted(Path(__file__).parent.glob("*.py")))


def look_ahead() -> None:
    """Reads what digests of all modules need, so that no step has to."""
    compiler_identity()
    exporter()
    list(_sources())


def content_digest(tensor: torch.Tensor) -> str:
    """Of the values."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return hashlib.sha256(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"").hexdigest()


def _describe_code(code: types.CodeType) -> str:
    constants = [_describe_code(each) if isinstance(each, types.CodeType) else repr(each) for each in code.co_consts]
    return f"{hashlib.sha256(code.co_code).hexdigest()}{code.co_names}{constants}"


class _Describer:
    """Values as text that is the same in another process where the value is."""

    def __init__(self) -> None:
        self.is_complete = True
        self.known: set[int] = set()
        """Modules that are described one by one."""

    def describe(self, value: Any, depth: int = 0) -> str:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        if isinstance(value, _PLAIN):
            return repr(value)
        if isinstance(value, torch.Tensor):
            return f"{kind}{tuple(value.shape)}{value.dtype}{content_digest(value)}"
        if type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
            return f"{kind}{getattr(value, 'shape', '')}{value.dtype}{hashlib.sha256(value.tobytes()).hexdigest()}"
        if isinstance(value, weakref.ref):  # to a parameter, in torch.nn.RNNBase
            return self.describe(value(), depth + 1) if not isinstance(value(), torch.Tensor) else kind
        if depth >= _DEPTH:
            self.is_complete = False
            return kind
        deeper = functools.partial(self.describe, depth=depth + 1)
        if isinstance(value, (set, frozenset)):
            return f"{kind}{sorted(map(deeper, value))}"
        if isinstance(value, (list, tuple)):
            return f"{kind}{list(map(deeper, value))}"
        if isinstance(value, dict):
            return f"{kind}{[(deeper(key), deeper(item)) for key, item in value.items()]}"
        if isinstance(value, functools.partial):
            return f"{kind}{deeper(value.func)}{deeper(value.args)}{deeper(value.keywords)}"
        if isinstance(value, types.MethodType):
            return f"{kind}{deeper(value.__func__)}"
        if isinstance(value, types.FunctionType):
            cells = [each.cell_contents for each in value.__closure__ or ()]
            return f"{kind}{value.__qualname__}{_describe_code(value.__code__)}{deeper(cells)}{deeper(value.__defaults__)}"
        if isinstance(value, (type, types.BuiltinFunctionType, types.ModuleType)) or inspect.isroutine(value):
            return f"{kind}{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value)}"
        if isinstance(value, torch.nn.Module):
            self.is_complete &= id(value) in self.known
            return kind
        if hasattr(value, "__dict__"):
            return f"{kind}{[(name, deeper(each)) for name, each in sorted(vars(value).items())]}"
        if dataclasses.is_dataclass(value):  # with slots
            return f"{kind}{[(each.name, deeper(getattr(value, each.name))) for each in dataclasses.fields(value)]}"
        self.is_complete = False
        return kind

    def describe_module(self, module: torch.nn.Module) -> Iterable[str]:
        skipped = {"_parameters", "_buffers", "_modules", "forward"}
        self.known = {id(each) for each in module.modules()}
        for name, each in module.named_modules():
            kind = type(each)
            yield f"{name}: {kind.__module__}.{kind.__qualname__}"
            for base in kind.__mro__:
                if base.__module__.partition(".")[0] in ("torch", "builtins"):
                    continue
                path = getattr(sys.modules.get(base.__module__), "__file__", None)
                if path and _is_installed(path) and "<locals>" not in base.__qualname__:
                    yield _file_identity(path)
                    continue
                self.is_complete &= bool(path)  # else what it calls is not known
                yield from (self.describe(item) for item in vars(base).values() if isinstance(item, types.FunctionType))
            for key in sorted(each.__dict__):
                if key not in skipped and not key.endswith("_hooks") and not key.endswith("_hooks_with_kwargs"):
                    value = each.__dict__[key]
                    yield f"{key}={self.describe(value)}"


def digest(
    module: torch.nn.Module, tensors: Iterable[tuple[str, torch.Tensor]], constants: Iterable[torch.Tensor], call: str
) -> str:
    """`tensors`: parameters and running statistics, whose values do not matter; `constants`: buffers, whose values do.
    `call`: inputs and flags. What cannot be described has a digest of its own: nothing that was compiled before is it."""
    text = hashlib.sha256()
    describer = _Describer()
    parts: list[str] = [
        torch.__version__,
        compiler_identity(),
        repr(_runtime.host()),
        *exporter(),
        call,
        *_sources(),
        *describer.describe_module(module),
        *(f"{name} {tuple(each.shape)} {each.dtype} {each.requires_grad}" for name, each in tensors),
        *(f"{tuple(each.shape)} {each.dtype} {content_digest(each)}" for each in constants),
    ]
    if not describer.is_complete:
        parts.append(os.urandom(16).hex())
    for part in parts:
        text.update(part.encode("utf-8", "surrogateescape"))
        text.update(b"\0")
    return text.hexdigest()
