"""From a rule of an optimizer to compiled code that updates tensors of any length in place.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

The formula is compiled once for vectors of 16, 32, ... 262,144 elements: a tensor is so many of these pieces. No model,
shape or group of parameters is in the artifact, so that it is made once on a machine, in half a second. Why this and
not an artifact for each model: docs/decisions/0046-optimizers-for-torch.md.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import shutil
import warnings
from pathlib import Path
from typing import Any

import torch

from ortc import _runtime
from ortc._artifact import Artifact
from ortc._compile import run_compiler
from ortc._errors import CompileError
from ortc.torch import _cache, _key, _symbolics
from ortc.torch._rules import Rule, Switches

PIECES = tuple(1 << bits for bits in range(18, 3, -1))


class _Formula(torch.nn.Module):
    """A formula as a function of tensors alone."""

    def __init__(self, rule: Rule, switches: Switches, states: int) -> None:
        super().__init__()
        self.rule, self.switches, self.states = rule, switches, states

    def forward(self, p: torch.Tensor, g: torch.Tensor, *rest: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.rule.formula(self.switches, p, g, rest[: self.states], rest[self.states :])


def _export(rule: Rule, switches: Switches, dtype: torch.dtype, scalars: int, path: Path) -> None:
    states = rule.states(switches)
    vectors = ["parameter", "gradient", *states]
    names = [*vectors, *(f"scalar.{i}" for i in range(scalars))]
    given = [torch.ones(PIECES[-1], dtype=dtype) for _ in vectors] + [torch.ones((), dtype=dtype) for _ in range(scalars)]
    with warnings.catch_warnings(), torch.autocast("cpu", enabled=False):
        warnings.simplefilter("ignore")
        torch.onnx.export(
            _Formula(rule, switches, len(states)),
            tuple(given),
            str(path),
            input_names=names,
            output_names=[f"{name}.new" for name in ("parameter", *states)],
            dynamic_axes={name: {0: "n"} for name in vectors},
            opset_version=_symbolics.OPSET,
            dynamo=False,
        )


def _verify(folder: Path) -> None:
    """Compares results that lie over what they were computed from with results of their own: the compiler gives an
    elementwise graph one loop, which reads an element before it writes it, but does not promise to."""
    from ortc._session import Session

    artifact = Artifact(folder)
    update = _runtime.Update(artifact.program())
    generator = torch.Generator().manual_seed(0)
    for piece in update.pieces:
        session = Session(artifact, threads=1)
        session.use_binding(f"n{piece}")
        inputs = {name: session.artifact.tensors[name] for name in update.vectors}
        dtype = getattr(torch, next(iter(inputs.values())).dtype)
        vectors = {name: torch.rand(piece, generator=generator, dtype=dtype) for name in update.vectors}
        scalars = torch.rand(len(update.scalars), generator=generator, dtype=dtype)
        results = session.predict(**vectors, **dict(zip(update.scalars, scalars, strict=True)))
        update.step(_runtime.Pool(1), update.prepare(tuple([each] for each in vectors.values())), scalars.tolist())
        for name, wanted in results.items():
            if not torch.equal(torch.from_numpy(wanted), vectors[name.removesuffix(".new")]):
                raise CompileError(f"the compiled update of {piece} elements gives other numbers in place: {name}")


def _compile(rule: Rule, switches: Switches, dtype: torch.dtype, scalars: int, folder: Path) -> None:
    _export(rule, switches, dtype, scalars, folder / "model.onnx")
    bindings = [flag for piece in PIECES for flag in ("--binding", f"n{piece}", "--shape", f"n={piece}")]
    run_compiler(
        [
            *("train", str(folder / "model.onnx"), "--output", str(folder / "artifact"), "--loss", "none", *bindings),
            *("--target", "native", "--max-workers", "1", "--quiet"),
        ]
    )
    _verify(folder / "artifact")
    (folder / "model.onnx").unlink()
    (folder / "meta.json").write_text("{}")


def _digest(rule: Rule, switches: Switches, dtype: torch.dtype, scalars: int) -> str:
    source = inspect.getsource(inspect.getmodule(rule.formula) or rule.formula)
    depends: Any = (torch.__version__, _key.compiler_identity(), _runtime.host(), source, rule.name, switches, str(dtype), scalars, PIECES)
    return hashlib.sha256(repr(depends).encode()).hexdigest()


@functools.cache
def open_update(rule: Rule, switches: Switches, dtype: torch.dtype, scalars: int) -> _runtime.Update:
    """The update of a rule, from the cache or compiled now. Raises CompileError."""
    digest = _digest(rule, switches, dtype, scalars)
    folder = _cache.find(digest)
    if folder is None:
        try:
            made = _cache.begin(digest)
        except OSError as error:
            raise CompileError(f"there is no place to compile: {error}") from error
        try:
            _compile(rule, switches, dtype, scalars, made)
            _cache.commit(made, digest)
        except Exception:
            shutil.rmtree(made, ignore_errors=True)
            raise
        folder = _cache.find(digest) or made
    return _runtime.Update(Artifact(folder / "artifact").program())
