"""From a rule of an optimizer to compiled code that updates tensors of any length in place.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

The formula is compiled once for vectors of 16, 32, ... 262,144 elements, or of 128, 256, ... 16,384 where states are of blocks: a
tensor is so many of these pieces. No model,
shape or group of parameters is in the artifact, so that it is made once on a machine, in half a second. Why this and
not an artifact for each model: docs/decisions/0046-optimizers-for-torch.md. A formula that looks at whole tensors is
compiled for each shape, and its results are copied to where the tensors are.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import torch

from ortc import _runtime
from ortc._artifact import Artifact
from ortc._compile import run_compiler
from ortc._errors import CompileError
from ortc.torch import _cache, _key, _symbolics, _threads
from ortc.torch._rules import rule as rules
from ortc.torch._rules.rule import Rule, Switches

PIECES = tuple(1 << bits for bits in range(18, 3, -1))
_BLOCK_PIECES = tuple(1 << bits for bits in range(14, 7, -1))
"""Of rules with blocks, whose results are copied: they stay in the second-level cache."""
Shapes = tuple[tuple[int, ...], ...]
_T = TypeVar("_T")


class Form(NamedTuple):
    """What a state is."""

    name: str
    dtype: torch.dtype
    block: int
    """Elements of the parameter that one of the state is of."""


class _Formula(torch.nn.Module):
    """A formula as a function of tensors alone."""

    def __init__(self, rule: Rule, switches: Switches, states: int) -> None:
        super().__init__()
        self.rule, self.switches, self.states = rule, switches, states

    def forward(self, p: torch.Tensor, g: torch.Tensor, *rest: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.rule.formula(self.switches, p, g, rest[: self.states], rest[self.states :])


@dataclass(frozen=True)
class _Request:
    """What an artifact is made from."""

    rule: Rule
    switches: Switches
    dtype: torch.dtype
    scalars: int
    states: tuple[Form, ...]
    shapes: Shapes
    """Of parameter, gradient and states; none where it takes pieces."""
    threads: int

    @property
    def pieces(self) -> tuple[int, ...]:
        return PIECES if self.rule.block == 1 else _BLOCK_PIECES

    def export(self, path: Path) -> None:
        tensors = [Form("parameter", self.dtype, 1), Form("gradient", self.dtype, 1), *self.states]
        names = [*(each.name for each in tensors), *(f"scalar.{i}" for i in range(self.scalars))]
        shapes = self.shapes or tuple((self.pieces[-1] // each.block,) for each in tensors)
        given = [torch.ones(shape, dtype=each.dtype) for shape, each in zip(shapes, tensors, strict=True)]
        given += [torch.ones((), dtype=self.dtype) for _ in range(self.scalars)]
        with warnings.catch_warnings(), torch.autocast("cpu", enabled=False):
            warnings.simplefilter("ignore")
            torch.onnx.export(
                _Formula(self.rule, self.switches, len(self.states)),
                tuple(given),
                str(path),
                input_names=names,
                output_names=[f"{each.name}.new" for each in (tensors[0], *self.states)],
                dynamic_axes={} if self.shapes else {each.name: {0: f"n{each.block}"} for each in tensors},
                opset_version=_symbolics.OPSET,
                dynamo=False,
            )

    def compile(self, folder: Path) -> None:
        self.export(folder / "model.onnx")
        blocks = sorted({1, *(each.block for each in self.states)})
        bindings = [
            flag
            for piece in self.pieces
            for flag in ("--binding", f"n{piece}", *(part for each in blocks for part in ("--shape", f"n{each}={piece // each}")))
        ]
        run_compiler(
            [
                *("train", str(folder / "model.onnx"), "--output", str(folder / "artifact"), "--loss", "none"),
                *([] if self.shapes else bindings),
                *("--target", "native", "--max-workers", str(self.threads), "--quiet"),
            ]
        )
        if not self.shapes:
            _verify(folder / "artifact")
        (folder / "model.onnx").unlink()

    def digest(self) -> str:
        sources = [inspect.getsource(each) for each in (inspect.getmodule(self.rule.formula) or self.rule.formula, rules)]
        versions = (torch.__version__, _key.compiler_identity(), _runtime.host(), sources)
        states = [(each.name, str(each.dtype), each.block) for each in self.states]
        kind = (self.rule.flag, self.switches, str(self.dtype), self.scalars, states, self.shapes or self.pieces, self.threads)
        return hashlib.sha256(repr((versions, kind)).encode()).hexdigest()

    def open(self, make: Callable[[_runtime.Program], _T]) -> _T:
        """What `make` makes of the program, from the cache, or compiled now. Raises CompileError."""
        digest, failures = self.digest(), list[str]()

        def use(folder: Path, _: object) -> _T:
            return make(Artifact(folder / "artifact").program())

        found = _cache.open_entry(digest, use, failures)
        if found is not None:
            return found
        try:
            made = _cache.begin(digest)
        except OSError as error:
            raise CompileError(f"there is no place to compile: {error}") from error
        try:
            self.compile(made)
            _cache.commit(made, digest, {})
        except Exception:
            shutil.rmtree(made, ignore_errors=True)
            raise
        found = _cache.open_entry(digest, use, failures)
        if found is None:
            raise CompileError("; ".join(["the artifact cannot be opened", *failures[-1:]]))
        return found


def _verify(folder: Path) -> None:
    """Compares results that replace what they were computed from with results of their own: the compiler gives an elementwise
    graph one loop, which reads an element before it writes it, but does not promise to."""
    from ortc._session import Session

    artifact = Artifact(folder)
    update = _runtime.Update(artifact.program())
    generator = torch.Generator().manual_seed(0)
    for piece in update.pieces:
        session = Session(artifact, threads=1)
        session.use_binding(f"n{piece}")
        taken = {name: (getattr(torch, dtype), shape) for name, dtype, shape in session.program.steps()[f"n{piece}"]["predict"][0]}
        vectors = {name: _fill(*taken[name], generator) for name in update.vectors}
        scalars = torch.rand(len(update.scalars), generator=generator, dtype=vectors["parameter"].dtype)
        results = session.predict(**vectors, **dict(zip(update.scalars, scalars, strict=True)))
        update.step(_runtime.Pool(1), update.prepare(tuple([each] for each in vectors.values())), scalars.tolist())
        for name, wanted in results.items():
            if not torch.equal(torch.from_numpy(wanted), vectors[name.removesuffix(".new")]):
                raise CompileError(f"the compiled update of {piece} elements gives other numbers in place: {name}")


def _fill(dtype: torch.dtype, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    if dtype.is_floating_point:
        return torch.rand(shape, generator=generator, dtype=dtype)
    return torch.randint(256, shape, generator=generator, dtype=dtype)


@functools.cache
def open_update(
    rule: Rule, switches: Switches, dtype: torch.dtype, scalars: int, states: tuple[Form, ...]
) -> _runtime.Update:
    """The update of a rule that sees pieces. Raises CompileError."""
    update = _Request(rule, switches, dtype, scalars, states, (), 1).open(_runtime.Update)
    if len(update.scalars) != scalars:
        raise CompileError(f"the rule of {rule.flag} has {scalars} scalars, of which its formula reads {len(update.scalars)}")
    return update


class Whole:
    """The update of tensors of certain shapes."""

    def __init__(self, request: _Request) -> None:
        self.dtype, self.threads, self.scalars = request.dtype, request.threads, request.scalars
        self.names = ["parameter", "gradient", *(each.name for each in request.states)]
        self.program = request.open(self._start)

    def _start(self, program: _runtime.Program) -> _runtime.Program:
        self.generation = _threads.generation
        self.frame = _runtime.Frame(program, _threads.pool(self.threads))
        places = {name: i for i, name in enumerate([*self.names, *(f"scalar.{i}" for i in range(self.scalars))])}
        self.inputs = [places[name] for name in self.frame.names("inputs")]
        self.outputs = [places[name.removesuffix(".new")] for name in self.frame.names("outputs")]
        return program

    def step(self, tensors: tuple[torch.Tensor, ...], scalars: list[torch.Tensor]) -> None:
        """Parameter, gradient and states; all but the gradient become those of the step."""
        if self.generation != _threads.generation:  # a child of a fork makes threads of its own
            self._start(self.program)
        dense = [each.to(self.dtype).contiguous() for each in tensors]
        given = [*dense, *scalars]
        results = [torch.empty_like(dense[i]) for i in self.outputs]
        self.frame.forward(tuple([given[i] for i in self.inputs]), (), tuple(results), 0)
        for i, result in zip(self.outputs, results):
            tensors[i].copy_(result)


@functools.cache
def open_whole(
    rule: Rule,
    switches: Switches,
    dtype: torch.dtype,
    scalars: int,
    states: tuple[Form, ...],
    shapes: Shapes,
    threads: int,
) -> Whole:
    """The update of a rule that sees whole tensors. Raises CompileError."""
    return Whole(_Request(rule, switches, dtype, scalars, states, shapes, threads))
