"""From an optimizer of the compiler to code that updates tensors of PyTorch in place.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

`ortc update` compiles an optimizer for vectors of 16, 32, ... 262,144 elements, or of 256, 512, ... 16,384 where states are bytes: a
tensor is so many of these pieces. No model, shape or group of parameters is in the artifact, so that it is made once on a
machine. Why this and not an artifact for each model: docs/decisions/0046-optimizers-for-torch.md. An optimizer that looks at
whole tensors is compiled for each shape, and its results are copied to where the tensors are.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch

from ortc import _runtime
from ortc._artifact import Artifact
from ortc._compile import run_compiler
from ortc._errors import CompileError
from ortc.torch import _cache, _key, _threads
from ortc.torch._optimizers import Known

_T = TypeVar("_T")


class Form(NamedTuple):
    """The form of a state."""

    name: str
    """That of the compiler."""
    dtype: torch.dtype
    block: int = 1
    """Elements of the parameter that one of the state is of."""
    shape: tuple[int, ...] | None = None
    """None: that of the parameter, or of its blocks."""


class Request(NamedTuple):
    """The source of an artifact."""

    spec: str
    """Of `ortc update --optimizer`."""
    is_double: bool = False
    whole_states: bool = False
    shape: tuple[int, ...] = ()
    """That of the parameter; none where it takes pieces."""
    threads: int = 1

    def compile(self, folder: Path) -> None:
        run_compiler(
            [
                *("update", "--optimizer", self.spec, "--output", str(folder / "artifact")),
                *(("--shape", "x".join(map(str, self.shape))) if self.shape else ()),
                *(("--precision", "f64") if self.is_double else ()),
                *(("--whole-states",) if self.whole_states else ()),
                *("--target", "native", "--max-workers", str(self.threads), "--quiet", *_cache.kernel_flags()),
            ]
        )
        if not self.shape:
            _verify(folder / "artifact")

    def digest(self) -> str:
        return hashlib.sha256(repr((_key.compiler_identity(), _runtime.host(), tuple(self))).encode()).hexdigest()

    def open(self, make: Callable[[_runtime.Program], _T]) -> _T:
        """Gives what `make` makes of the program, from the cache, or compiled now. Raises CompileError."""
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
    program one loop, which reads an element before it writes it, but does not promise to."""
    from ortc._session import Session

    artifact = Artifact(folder)
    update = _runtime.Update(artifact.program())
    generator = torch.Generator().manual_seed(0)
    for piece in update.pieces:
        session = Session(artifact, threads=1)
        session.use_binding(f"n{piece}")
        vectors = {name: _fill(getattr(torch, dtype), piece // block, generator) for name, dtype, block in update.vectors}
        scalars = torch.rand(len(update.scalars), generator=generator, dtype=torch.float64)
        results = session.predict(**vectors, **dict(zip(update.scalars, scalars, strict=True)))
        made = update.step(_runtime.Pool(1), update.prepare(tuple([each] for each in vectors.values())), scalars.tolist())
        found = vectors | {name: torch.tensor(value, dtype=torch.float64) for name, value in zip(update.advanced, made, strict=True)}
        for name, wanted in results.items():
            if wanted.tobytes() != found[name.removesuffix(".new")].numpy().tobytes():
                raise CompileError(f"the compiled update of {piece} elements gives other numbers in place: {name}")


def _fill(dtype: torch.dtype, size: int, generator: torch.Generator) -> torch.Tensor:
    if dtype.is_floating_point:
        return torch.rand(size, generator=generator, dtype=dtype)
    return torch.randint(256, (size,), generator=generator, dtype=dtype)


class Pieces:
    """The update of tensors of any shape."""

    def __init__(self, known: Known, request: Request) -> None:
        self.update = request.open(_runtime.Update)
        self.scalars = tuple(self.update.scalars)
        forms = (Form(name, getattr(torch, dtype), block) for name, dtype, block in self.update.vectors[2:])
        self.states = {known.renamed.get(form.name, form.name): form for form in forms}
        """By their names in checkpoints."""


class Whole:
    """The update of tensors of one shape."""

    def __init__(self, request: Request) -> None:
        self.threads = request.threads
        self.program = request.open(self._start)

    def _start(self, program: _runtime.Program) -> _runtime.Program:
        inputs, _ = program.steps()["default"]["predict"]
        shapes = {name: tuple(shape) for name, _, shape in inputs}
        self.dtype = next(getattr(torch, dtype) for name, dtype, _ in inputs if name == "parameter")
        self.scalars = tuple(name for name in shapes if not shapes[name])
        states = [name for name in shapes if shapes[name] and name not in ("parameter", "gradient")]
        own = shapes["parameter"]
        self.states = {name: Form(name, self.dtype, shape=None if shapes[name] == own else shapes[name]) for name in states}
        self.generation = _threads.generation
        self.frame = _runtime.Frame(program, _threads.pool(self.threads))
        places = {name: i for i, name in enumerate(["parameter", "gradient", *states, *self.scalars])}
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
def open_pieces(known: Known, choices: tuple[Any, ...], dtype: torch.dtype, has_bytes: bool) -> Pieces:
    """The update of tensors of any shape; `choices` as those of a group. Raises CompileError."""
    return Pieces(known, Request(known.spec(choices), dtype == torch.float64, not has_bytes))


@functools.cache
def open_whole(known: Known, choices: tuple[Any, ...], dtype: torch.dtype, shape: tuple[int, ...], threads: int) -> Whole:
    """The update of tensors of one shape. Raises CompileError."""
    return Whole(Request(known.spec(choices), dtype == torch.float64, shape=shape or (1,), threads=threads))
