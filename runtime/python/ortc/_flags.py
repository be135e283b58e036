"""The flags of `ortc train` as keywords.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

Number = int | float
Path = str | os.PathLike[str]
Several = str | Iterable[str]
Settings = Mapping[str, Any]
"""Keys of a flag, such as {"decay": 0.99}: "decay=0.99"."""
Patterns = str | Iterable[str] | Mapping[str, str | Settings]
"""Flags of regular expressions: "REGEX:key=value", several of them, or {"REGEX": {"key": value}}."""


class Flags(TypedDict, total=False):
    """What docs/command-line.md says of each, with a dash for an underscore."""

    loss: str | Iterable[str] | Mapping[str, str]
    """A loss, several "NAME=SPEC@OUTPUT:weight=W", or {"NAME": "SPEC@OUTPUT:weight=W"}."""
    loss_input: str
    teacher: str
    optimizer: str
    group: Patterns
    no_decay: str
    sparse: Patterns
    clip_norm: Number
    clip_value: Number
    schedule: str | Mapping[str, str]
    """"lr=cosine:total=1000", or {"lr": "cosine:total=1000"}."""
    step_outputs: str
    ema: str | Number | Settings
    """"decay=0.999", 0.999, or {"decay": 0.999, "warmup": True}."""
    swa: str | Settings
    regularize: Patterns
    mask: Path
    loss_scale: str | Number
    accumulate: int | str
    train_outputs: Several
    train: Patterns
    freeze: Several
    materialize_gradients: Several
    untie: Several
    tie: Several
    batch_norm: str
    dropout: str
    lora: Patterns
    qat: Patterns
    base: str
    head_chunk: int
    attention: str
    seed: int
    gradients: bool
    cotangents: Several
    bind: str
    input_gradients: Several
    no_source: bool
    no_weights: bool
    max_workers: int
    memory_budget: int | str
    target: Several
    opt: str
    numerics: str
    precision: str
    parameters: str
    emit: str
    object: str
    ptxas: Path
    kernel_cache: Path
    tune: bool
    tune_cache: Path
    compile_to: str
    dump_ir: Path
    dump_buffers: Path
    report: Path


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _format_settings(settings: Settings) -> str:
    return ",".join(f"{key}={_format(value)}" for key, value in settings.items())


def _list_values(name: str, value: Any) -> list[str]:
    """Of a flag that is given once for each."""
    if name in ("ema", "swa"):
        if isinstance(value, Mapping):
            return [_format_settings(value)]
        return [f"decay={value}" if isinstance(value, (int, float)) else _format(value)]
    if isinstance(value, Mapping):
        joint = "=" if name in ("loss", "schedule") else ":"
        items = {key: _format_settings(each) if isinstance(each, Mapping) else each for key, each in value.items()}
        return [f"{key}{joint}{each}" if each else key for key, each in items.items()]
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return [_format(value)]
    return [_format(each) for each in value]


def format_flags(options: Mapping[str, Any]) -> list[str]:
    """Flags of `ortc train`: max_workers=2 is `--max-workers 2`, True is the flag alone, a list or a dict is the flag for
    each of its items."""
    flags = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            flags.append(flag)
            continue
        for each in _list_values(name, value):
            flags += [flag, each]
    return flags
