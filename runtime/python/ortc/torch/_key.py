"""What a compilation depends on, as a digest: the module, the call, the compiler and the machine.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import hashlib
import inspect
import os
import weakref
from collections.abc import Iterable
from functools import cache
from typing import Any

import torch

from ortc import _runtime
from ortc._compile import find_compiler

_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size)


_sources: weakref.WeakKeyDictionary[type, str] = weakref.WeakKeyDictionary()


def _source_of(kind: type) -> str:
    if kind not in _sources:
        try:
            _sources[kind] = inspect.getsource(kind)
        except (OSError, TypeError):
            _sources[kind] = ""
    return _sources[kind]


@cache
def _compiler_identity(path: str) -> str:
    status = os.stat(path)
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def _describe(value: Any, depth: int = 0) -> str:
    """Plain values in full; of others what can be compared between processes."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, (list, tuple, set, frozenset)) and depth < 4:
        items = [_describe(item, depth + 1) for item in value]
        return f"{type(value).__name__}{sorted(items) if isinstance(value, (set, frozenset)) else items}"
    if isinstance(value, dict) and depth < 4:
        return repr([(_describe(key, depth + 1), _describe(item, depth + 1)) for key, item in value.items()])
    if hasattr(value, "to_dict") and depth < 2:  # configurations
        return _describe(value.to_dict(), depth + 1)
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    return type(value).__qualname__


def _describe_module(module: torch.nn.Module) -> Iterable[str]:
    skipped = {"_parameters", "_buffers", "_modules", "training", "forward"}
    for name, each in module.named_modules():
        kind = type(each)
        yield f"{name}: {kind.__module__}.{kind.__qualname__} training={each.training}"
        yield _source_of(kind)
        for key in sorted(each.__dict__):
            if key not in skipped and not key.endswith("_hooks") and not key.endswith("_hooks_with_kwargs"):
                yield f"{key}={_describe(each.__dict__[key])}"


def content_digest(tensor: torch.Tensor) -> str:
    """Of the values."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return hashlib.sha256(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"").hexdigest()


def digest(
    module: torch.nn.Module, tensors: Iterable[tuple[str, torch.Tensor]], constants: Iterable[torch.Tensor], call: str
) -> str:
    """`tensors`: parameters and running statistics, whose values do not matter; `constants`: buffers, whose values do.
    `call`: inputs and flags."""
    text = hashlib.sha256()
    compiler = find_compiler()
    parts: list[str] = [
        torch.__version__,
        _compiler_identity(compiler) if compiler else "",
        repr(_runtime.host()),
        call,
        *_describe_module(module),
        *(f"{name} {tuple(each.shape)} {each.dtype} {each.requires_grad}" for name, each in tensors),
        *(f"{tuple(each.shape)} {each.dtype} {content_digest(each)}" for each in constants),
    ]
    for part in parts:
        text.update(part.encode("utf-8", "surrogateescape"))
        text.update(b"\0")
    return text.hexdigest()
