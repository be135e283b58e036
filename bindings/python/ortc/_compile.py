"""The compiler: the program `ortc`, in a process of its own.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import tempfile
import warnings
import weakref
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Unpack

from ortc import sources
from ortc._artifact import Artifact
from ortc._errors import ArgumentError, CompileError, CompileWarning
from ortc._flags import Flags, format_flags

Shape = int | Iterable[int]


def find_compiler() -> str | None:
    """The program: what ORTC_COMPILER names, that of the package `ortc`, or the one of PATH."""
    if named := os.environ.get("ORTC_COMPILER"):
        return named
    try:
        package = importlib.metadata.distribution("ortc")
    except importlib.metadata.PackageNotFoundError:
        return shutil.which("ortc")
    places = [Path(str(file.locate())) for file in package.files or () if file.name == "ortc" and file.parent.name == "bin"]
    # pip install --target moves programs beside the packages, and leaves its record as it was.
    for path in (*places, Path(str(package.locate_file("bin/ortc")))):
        if path.is_file():
            return str(path.resolve())
    return shutil.which("ortc")


def run_compiler(arguments: list[str]) -> tuple[str, str]:
    """Output and messages of `ortc ARGUMENTS`. Raises CompileError with the program's own text."""
    program = find_compiler()
    if program is None:
        raise CompileError("there is no compiler: pip install ortc, or name the program in ORTC_COMPILER")
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise CompileError(f"the compiler cannot be run: {error}") from error
    if done.returncode < 0:
        raise CompileError(f"signal {-done.returncode} has ended the compiler; its last words: {done.stderr[-500:]}")
    if done.returncode:
        text = "\n".join(re.sub(r"^ortc: error: ", "", line) for line in done.stderr.strip().splitlines())
        raise CompileError(text or f"the compiler has failed with status {done.returncode}")
    return done.stdout, done.stderr


@cache
def list_flags(command: str) -> frozenset[str]:
    """The flags that a command of the program takes."""
    listed = json.loads(run_compiler(["flags", command, "--json"])[0])
    return frozenset("--" + flag["name"] for flag in listed["commands"][0]["flags"])


def _format_shapes(shapes: Mapping[str, Shape]) -> list[str]:
    """--shape for each: a number for a dimension, numbers for a whole input."""
    flags = []
    for name, shape in shapes.items():
        text = str(shape) if isinstance(shape, int) else "x".join(str(size) for size in shape)
        flags += ["--shape", f"{name}={text}"]
    return flags


def _report(messages: str) -> list[str]:
    """Warns of what the compiler warns of, and gives its notes."""
    notes = []
    for line in messages.splitlines():
        if line.startswith("ortc: warning: "):
            warnings.warn(line.removeprefix("ortc: warning: "), CompileWarning, stacklevel=3)
        elif line.startswith("ortc: note: "):
            notes.append(line.removeprefix("ortc: note: "))
    return notes


def compile(
    model: Any,
    *,
    inputs: Iterable[Any] | Mapping[str, Any] | None = None,
    shapes: Mapping[str, Shape] | None = None,
    bindings: Mapping[str, Mapping[str, Shape]] | None = None,
    output: str | os.PathLike[str] | None = None,
    **options: Unpack[Flags],
) -> Artifact:
    """Compiles a model for training.

    `model`: a path, the bytes of an ONNX file, an object with SerializeToString (onnx.ModelProto), or a model of another
    library (docs/sources.md): a torch.nn.Module, a Keras model, a pair of a JAX function and its parameters, an MLP of scikit-learn.
    `inputs`: examples of what such a model takes, in order or by name.
    `shapes`: a number for each symbolic dimension, or the whole shape of an input. `bindings`: several of those, by name.
    `output`: the folder of the artifact; without one it is in a temporary folder that goes with the artifact.
    `options`: every flag of `ortc train` (docs/commands/train.md), with underscores. Flags with names or patterns take dicts,
    too: loss={"boxes": "smooth_l1@boxes:weight=0.25"}, group={".*bias": {"weight_decay": 0}}, ema={"decay": 0.999}.
    """
    is_path = isinstance(model, (str, os.PathLike))
    is_file = is_path or isinstance(model, bytes) or hasattr(model, "SerializeToString")
    given: dict[str, Any] = dict(options)
    kept = tempfile.mkdtemp(prefix="ortc-") if output is None or not is_path else ""
    try:
        if is_file and inputs is not None:
            raise ArgumentError("inputs goes with models of other libraries; an ONNX file says what it takes")
        if is_file:
            source = os.fspath(model) if is_path else _write_model(model, kept)
        else:
            exported = sources.export(model, inputs, [shapes or {}, *(bindings or {}).values()], kept)
            source, given = exported.path, exported.flags | given
            shapes = exported.shapes if shapes is None and bindings is None else shapes
        folder = os.fspath(output) if output is not None else os.path.join(kept, "artifact")
        flags = _format_shapes(shapes or {})
        for name, each in (bindings or {}).items():
            flags += ["--binding", name, *_format_shapes(each)]
        flags += format_flags(given)
        _, messages = run_compiler(["train", source, "--output", folder, "--quiet", *flags])
        artifact = Artifact(folder)
    except BaseException:
        shutil.rmtree(kept, ignore_errors=True)
        raise
    if kept:
        weakref.finalize(artifact, shutil.rmtree, kept, ignore_errors=True)
    artifact.notes = _report(messages)
    artifact.plan_command = [source, *flags]
    return artifact


def _write_model(model: Any, folder: str) -> str:
    path = os.path.join(folder, "model.onnx")
    Path(path).write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    return path
