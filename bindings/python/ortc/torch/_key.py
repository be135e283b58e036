"""What a compilation depends on, as a digest: the module, the call, the compiler and the machine.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch

from ortc import _runtime
from ortc._compile import find_compiler
from ortc.torch._layout import gradient_hooks
from ortc.torch._values import Describer, content_digest, identify_file, is_class_of_package, is_installed, names_of_class
from ortc.torch._watch import Watch


def compiler_identity() -> str:
    """Of the compiler that would run; empty where there is none."""
    compiler = find_compiler()
    return identify_file(compiler) if compiler and Path(compiler).is_file() else ""


@cache
def _is_source(path: str) -> bool:
    """Of an installed package the version is enough, which paths and times of its files tell."""
    return path.endswith(".py") and not is_installed(path)


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
    return tuple(identify_file(str(path)) for path in sorted(Path(__file__).parent.rglob("*.py")))


def look_ahead() -> None:
    """Reads what digests of all modules need, so that no step has to."""
    compiler_identity()
    exporter()
    list(_sources())


def _describe_module(describer: Describer, module: torch.nn.Module) -> Iterable[str]:
    """Itself, and the modules within."""
    skipped = {"_parameters", "_buffers", "_modules"}
    for name, each in module.named_modules():
        kind = type(each)
        describer.watch.note_item(vars(kind), "forward", f"{kind.__qualname__}.forward")
        yield f"{name}: {describer.describe_class(kind)}"
        for base in kind.__mro__:
            if not is_class_of_package(base):
                describer.is_complete &= hasattr(sys.modules.get(base.__module__), "__file__")  # else what it calls is not known
        for key, value in sorted(each.__dict__.items()):
            if key in skipped or key.endswith(("_hooks", "_hooks_with_kwargs")) or (each is module and key == "forward"):
                continue
            if not isinstance(value, (torch.Tensor, torch.nn.Module)):  # which the module's layout follows
                describer.watch.note_root(value, f"{name}.{key}".removeprefix("."), is_attribute=True)
            yield f"{key}={describer.describe(value)}"
        if each is not module:
            yield f"hooks: {len(gradient_hooks(each))}"


def _names_of_packages(module: torch.nn.Module) -> set[str]:
    """Attributes that classes of installed packages mention, such as the fields of configurations that models of transformers read.
    Fields that others read, such as the times of a Trainer of Lightning that a module has, change in every call."""
    kinds = {base for each in module.modules() for base in type(each).__mro__}
    return set().union(*(names_of_class(base) for base in kinds if is_class_of_package(base)))


class Description(NamedTuple):
    """Classes and attributes of a module, and what code of them reads."""

    text: str
    watch: Watch
    """Whether that is current."""
    is_complete: bool
    """Else the module is something else in every process."""


def describe(module: torch.nn.Module) -> Description:
    named = {id(each): f"module {name}" for name, each in module.named_modules()}
    named |= {id(each): f"tensor {name}" for name, each in (*module.named_parameters(), *module.named_buffers())}
    describer = Describer(named)
    try:
        parts = [*_describe_module(describer, module), *describer.describe_patched(), *describer.describe_mentioned()]
        is_complete = describer.is_complete
    except Exception:  # of code of theirs, such as a property
        parts, is_complete = [os.urandom(16).hex()], False
    text = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
    return Description(text, describer.watch.finish(describer.names, _names_of_packages(module), named), is_complete)


def digest(
    described: Description, tensors: Iterable[tuple[str, torch.Tensor]], constants: Iterable[torch.Tensor], call: str
) -> str:
    """`tensors`: parameters and running statistics, whose values do not matter; `constants`: buffers, whose values do.
    `call`: inputs and flags. What cannot be described has a digest of its own: nothing that was compiled before is it."""
    text = hashlib.sha256()
    parts: list[str] = [
        torch.__version__,
        str(torch.get_default_dtype()),
        compiler_identity(),
        repr(_runtime.host()),
        *exporter(),
        call,
        *_sources(),
        described.text if described.is_complete else os.urandom(16).hex(),
        *(f"{name} {tuple(each.shape)} {each.dtype} {each.requires_grad}" for name, each in tensors),
        *(f"{tuple(each.shape)} {each.dtype} {content_digest(each)}" for each in constants),
    ]
    for part in parts:
        text.update(part.encode("utf-8", "surrogateescape"))
        text.update(b"\0")
    return text.hexdigest()
