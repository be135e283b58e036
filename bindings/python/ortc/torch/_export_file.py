"""A module as an ONNX file that trains as the module does, and files of other exporters beside it.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ortc._errors import ArgumentError, CompileError, DifferenceError
from ortc.sources import find_batch, need
from ortc.sources.torch import Call, describe_call, write_call
from ortc.torch._examine import Comparison, compare

_MOST_BYTES = (1 << 31) - (1 << 24)
"""The most bytes of weights: a message of protobuf, which a file is, ends at 2 GiB, and the graph takes some of that."""


def export(
    module: torch.nn.Module,
    args: Any,
    path: str | os.PathLike[str],
    *,
    kwargs: Mapping[str, Any] | None = None,
    batch: bool | None = None,
    check: bool = True,
    verbose: bool = True,
    **flags: Any,
) -> Comparison:
    """Writes a module as an ONNX file from which `ortc train` trains as PyTorch does: names of inputs, outputs and parameters are the
    module's, what is trained, detached, of a padding row or a straight-through estimator is in the file's metadata. Its outputs and
    gradients are compared with the module's in float64; raises DifferenceError, and writes nothing, where they differ.

    `args`: what forward is called with: a tensor, a tuple, or a dict by name; `kwargs`: arguments by name beside them. `batch`: whether
    the leading dimension of all inputs is left open, named "batch"; None: where they have the same one and the module's graph allows it.
    `check=False`: nothing is compared. `verbose`: prints the table. `flags`: of `ortc train`, for the comparison.
    """
    need("onnx", "a torch.nn.Module")
    call = _describe(module, args, kwargs)
    rows = find_batch(call.tensors, ()) if batch is not False else None
    if batch and rows is None:
        raise ArgumentError("batch=True, but the inputs have no leading dimension that is the same in all")
    size = sum(each.numel() * each.element_size() for each in (*module.parameters(), *module.buffers()))
    if size > _MOST_BYTES:
        raise CompileError(
            f"the module's weights take {size} bytes, and one ONNX file holds at most {_MOST_BYTES}: "
            "torch.onnx.export(..., dynamo=True, optimize=False, external_data=True) puts them into a file of their own, "
            "and ortc.torch.check compares both with the module"
        )
    place = Path(os.path.abspath(path))
    if place.is_dir():
        raise ArgumentError(f"{place} is a folder: name the file")
    if not place.parent.is_dir():
        raise ArgumentError(f"there is no folder {place.parent}")
    with tempfile.TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent) as folder:
        found, note = _write(module, call, rows, batch is None, folder, check, flags)
        if note:
            found.notes.append(note)
        found.path = os.fspath(path)
        os.replace(os.path.join(folder, "model.onnx"), place)
    if verbose and check:
        print(found)
    return found


def _write(
    module: torch.nn.Module, call: Call, rows: int | None, may_fix: bool, folder: str, check: bool, flags: Mapping[str, Any]
) -> tuple[Comparison, str]:
    """Into the folder; with a note."""
    sizes = [rows, None] if rows is not None and may_fix else [rows]
    refusal = ""
    for size in sizes:
        try:
            written = write_call(module, call, size, folder)
            found = compare(module, written.path, call, flags) if check else Comparison(written.path)
            if size is not None and check:
                more = {name: torch.cat([each, each[:1]]) for name, each in call.tensors.items()}
                compare(module, written.path, Call(more, call.apply), flags, has_points=False)
            return found, refusal
        except CompileError as error:
            if size is sizes[-1]:
                raise
            reason = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
            refusal = f"the batch is fixed: {reason[:200]}"
    raise AssertionError("one of the sizes ends it")


def check(
    module: torch.nn.Module,
    path: str | os.PathLike[str],
    args: Any,
    *,
    kwargs: Mapping[str, Any] | None = None,
    verbose: bool = True,
    **flags: Any,
) -> Comparison:
    """Compares a file of any exporter with the module: outputs and gradients of the step that `ortc train` makes of it, in float64, at
    the arguments and where functions are special. Raises DifferenceError where they differ. `args`, `kwargs`, `flags`: as for export."""
    need("onnx", "a torch.nn.Module")
    try:
        found = compare(module, path, _describe(module, args, kwargs), flags)
    except DifferenceError as error:
        error.comparison.notes.append(_advise(error.comparison))
        raise DifferenceError(error.comparison) from None
    if verbose:
        print(found)
    return found


def _advise(found: Comparison) -> str:
    """Advice on a file that differs."""
    again = "ortc.torch.export(module, args, path) writes one that trains as the module does"
    failed = [row for row in found.rows if not row.passed]
    if any(row.what == "output" for row in failed):
        return f"outputs differ: the file is of another module, or of another mode (training, evaluation); {again}"
    if all(row.what == "tensor" for row in failed):
        return f"tensors differ: do as their lines say, or export again; {again}"
    return f"outputs are equal and gradients are not: the file lacks what cuts or replaces them, or has another formula at a special point; {again}"


def _describe(module: Any, args: Any, kwargs: Mapping[str, Any] | None) -> Call:
    if not isinstance(module, torch.nn.Module):
        raise ArgumentError(f"the first argument is of type {type(module).__qualname__}, and must be a torch.nn.Module")
    if isinstance(args, torch.Tensor):
        args = (args,)
    if isinstance(args, Mapping):
        return describe_call(module, (), {**args, **(kwargs or {})})
    return describe_call(module, tuple(args), dict(kwargs or {}))
