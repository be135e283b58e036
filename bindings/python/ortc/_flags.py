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


Losses = str | Iterable[str] | Mapping[str, str]
"""A loss, several "NAME=SPEC@OUTPUT:weight=W", or {"NAME": "SPEC@OUTPUT:weight=W"}."""
_FIRST_KEYS = {"ema": "decay", "swa": "start"}
"""Of flags whose settings may be one number."""


class Flags(TypedDict, total=False):
    """The flags of `ortc train`, with an underscore for a dash: docs/commands/train.md. tools/update-docs writes them."""

    # flags: begin
    no_source: bool
    """Leave the ONNX graph out of the artifact."""
    no_weights: bool
    """Leave the graph and initial trained values out, too."""
    emit: str
    """Write files to link with, too: a C library or model.wasm."""
    object: str
    """Choose the format of model.a; default: elf."""
    ptxas: Path
    """Assemble code for NVIDIA's GPUs with this program."""
    loss: Losses
    """Choose the loss; several losses are added."""
    loss_input: str
    """Choose the value that feeds the loss."""
    train: Patterns
    """Train these float initializers; default: all weights."""
    freeze: Patterns
    """Do not train these float initializers."""
    materialize_gradients: Patterns
    """Give unreached tensors of --train a gradient of zeros."""
    untie: Several
    """Give each user of this initializer its own copy."""
    tie: Several
    """Train COPY and ORIGINAL as one initializer again."""
    lora: Patterns
    """Train low-rank adapters beside these weights."""
    base: str
    """Store the weights beside adapters as small integers."""
    qat: Patterns
    """Train the layers of these weights to compute with integers."""
    batch_norm: str
    """Set batch norms to as-exported, train or frozen."""
    dropout: str
    """Set dropout to as-exported, train or off."""
    attention: str
    """Compute attention whole or in tiles; default: auto."""
    head_chunk: int
    """Compute at most N rows of logits at a time; 0: all."""
    seed: int
    """Seed dropout and other random operators; default: 0."""
    optimizer: str
    """Choose the optimizer; default: sgd."""
    group: Patterns
    """Make a parameter group with its own settings."""
    no_decay: str
    """Exclude biases, norm scales or both from weight decay."""
    clip_norm: Number
    """Clip the norm of all gradients together."""
    clip_value: Number
    """Clip every element of a gradient."""
    schedule: str | Mapping[str, str]
    """Compute the learning rate in the step, by a schedule."""
    accumulate: int | str
    """Update once after N gradient steps, by their mean."""
    ema: Number | str | Settings
    """Keep an exponential moving average of the parameters."""
    swa: Number | str | Settings
    """Keep the mean of the parameters over the updates."""
    regularize: Patterns
    """Penalize these weights, or limit their norms."""
    mask: Path
    """Keep weights at zero where this file has zeros."""
    loss_scale: Number | str
    """Scale the loss for float16, and skip overflowing steps."""
    teacher: str
    """Learn from the logits of a frozen model, too."""
    sparse: Patterns
    """Update only the rows of these tables that a step has read."""
    step_outputs: str
    """Add outputs to the step: grad_norm, param_norm."""
    train_outputs: Several
    """Add this output of the model to those of the step."""
    gradients: bool
    """Add the entries that leave gradients readable."""
    cotangents: Several
    """Take this output's gradient from the host, not from a loss."""
    input_gradients: Several
    """Add the gradient of this input to the outputs of backward."""
    bind: str
    """Keep parameters, gradients or both in memory of the host."""
    target: Several
    """Make code for host, native, all, or a target by name."""
    opt: str
    """Make fast code, or small code."""
    numerics: str
    """Compute fast, or the same bits on every target."""
    precision: str
    """Compute products in f32, bf16, f16 or tf32, or everything in f64."""
    parameters: str
    """Store trained parameters in f32 or bf16[:stochastic]."""
    max_workers: int
    """Limit the threads of a session; default: 2."""
    memory_budget: int | str
    """Limit the transient memory; recompute values to fit."""
    kernel_cache: Path
    """Keep compiled kernels in DIR, and reuse them."""
    tune: bool
    """Measure how kernels are best cut on this machine."""
    tune_cache: Path
    """Take measurements of --tune from this file."""
    compile_to: str
    """Stop after a phase, and print the IR."""
    dump_ir: Path
    """Write the IR after every phase."""
    dump_buffers: Path
    """Write the buffers of the memory plan."""
    report: Path
    """Write the times of phases and the figures of kernels."""
    config: Path
    """Take flags from this recipe; the command line wins."""
    # flags: end


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _format_settings(settings: Settings) -> str:
    return ",".join(f"{key}={_format(value)}" for key, value in settings.items())


def _list_values(name: str, value: Any) -> list[str]:
    """Of a flag that is given once for each."""
    if name in _FIRST_KEYS:
        if isinstance(value, Mapping):
            return [_format_settings(value)]
        return [f"{_FIRST_KEYS[name]}={value}" if isinstance(value, (int, float)) else _format(value)]
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
