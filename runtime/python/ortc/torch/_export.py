"""From a module and a call of it to an artifact, in a child process: exporting changes modules while it lasts, and a
compiler that is killed or runs out of memory is no harm to the one who trains.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree

from ortc._compile import run_compiler
from ortc._errors import CompileError
from ortc.torch import _cache, _symbolics
from ortc.torch._layout import Layout, walk


@dataclass
class Request:
    """One compilation."""

    module: torch.nn.Module
    forward: Callable[..., Any]
    """Of the module, as its class has it."""
    leaves: list[Any]
    """Arguments of the call, flat."""
    spec: Any
    """How they are put together."""
    trained: list[str]
    """Parameters that are trained; all others are inputs."""
    frozen: list[str]
    cotangents: list[int] | None
    """Outputs, by number, that had gradients; None: all that may have."""
    threads: int
    flags: list[str]
    digest: str
    padding: dict[str, int]
    """Rows of embeddings whose gradients are left out behind the step."""
    fused: bool = False
    """A training step of the only output, which is the loss, with parameters in the session."""


class _Static(torch.overrides.TorchFunctionMode):
    """Refuses what takes numbers out of tensors: the graph would have those of one batch for ever."""

    TAKES = {
        *(getattr(torch.Tensor, name) for name in ("__bool__", "__int__", "__float__", "__index__", "item", "tolist")),
        *(getattr(torch.Tensor, name) for name in ("numpy", "nonzero", "unique", "__contains__")),
    }

    def __enter__(self) -> Any:
        self.is_tracing, torch.jit.is_tracing = torch.jit.is_tracing, lambda: True  # libraries take the way of an export
        return super().__enter__()

    def __exit__(self, *arguments: Any) -> None:
        torch.jit.is_tracing = self.is_tracing
        super().__exit__(*arguments)

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in self.TAKES:
            name = getattr(function, "__name__", str(function))
            raise CompileError(f"the module looks at numbers of a tensor ({name}), on which its graph may depend")
        return function(*args, **(kwargs or {}))


class _Flat(torch.nn.Module):
    """The module as a function of tensors: those of the call, then weights that are not trained."""

    def __init__(self, request: Request, inputs: list[str]) -> None:
        super().__init__()
        self.m = request.module
        self.request = request
        self.inputs = inputs
        self.spec: Any = None
        self.tensors: list[int] = []

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rest = list(tensors)
        leaves = [rest.pop(0) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.request.leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self.request.spec)
        with _Replaced(self.m, dict(zip(self.inputs, rest, strict=True))):
            result = self.request.forward(*args, **kwargs)
        flat, self.spec = pytree.tree_flatten(result)
        self.tensors = [i for i, leaf in enumerate(flat) if isinstance(leaf, torch.Tensor)]
        self.constants = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in flat]
        return tuple(leaf for leaf in flat if isinstance(leaf, torch.Tensor))


class _Replaced:
    """Parameters that are others for a while."""

    def __init__(self, module: torch.nn.Module, values: dict[str, torch.Tensor]) -> None:
        self.owners = []
        for name, value in values.items():
            path, _, last = name.rpartition(".")
            self.owners.append((module.get_submodule(path)._parameters, last, value))

    def _exchange(self) -> None:
        exchanged = []
        for parameters, name, value in self.owners:
            exchanged.append((parameters, name, parameters[name]))
            parameters[name] = value  # type: ignore[assignment]
        self.owners = exchanged[::-1]

    def __enter__(self) -> None:
        self._exchange()

    def __exit__(self, *_: object) -> None:
        self._exchange()


def _export(request: Request, inputs: list[str], path: Path) -> dict[str, Any]:
    """Writes the ONNX file; `inputs`: weights that are inputs of it."""
    flat = _Flat(request, inputs)
    parameters = dict(request.module.named_parameters(remove_duplicate=False))
    tensors = [leaf for leaf in request.leaves if isinstance(leaf, torch.Tensor)]
    names = [f"input.{i}" for i in range(len(tensors))] + [f"weight.{name}" for name in inputs]
    given = tuple(each.detach().clone() for each in [*tensors, *(parameters[name] for name in inputs)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layout = Layout(request.module, walk(request.module, []))
        before = layout.attributes(), layout.versions()
        with torch.enable_grad(), _Static():
            results = flat(*given)
        if before != (layout.attributes(), layout.versions()):
            raise CompileError("the module changes its attributes or buffers in forward")
        torch.onnx.export(
            flat,
            given,
            str(path),
            input_names=names,
            output_names=[f"output.{i}" for i in range(len(results))],
            training=torch.onnx.TrainingMode.PRESERVE,
            do_constant_folding=False,
            opset_version=_symbolics.OPSET,
            dynamo=False,
        )
    for leaf in flat.constants:
        if not (leaf is None or isinstance(leaf, (bool, int, float, str))):
            raise CompileError(f"an output is a {type(leaf).__qualname__}, neither a tensor nor a plain value")
    trained = {name: parameters[name] for name in request.trained if name not in inputs}
    return {
        "reached": _reached(results, trained),
        "differentiable": [i for i, each in enumerate(results) if each.requires_grad],
        "shapes": [list(each.shape) for each in results],
        "dtypes": [str(each.dtype).removeprefix("torch.") for each in results],
        "tensors": flat.tensors,
        "constants": flat.constants,
        "spec": pytree.treespec_dumps(flat.spec),
        "padding": request.padding,
    }


def _reached(results: tuple[torch.Tensor, ...], trained: dict[str, torch.Tensor]) -> list[list[str]]:
    """The parameters that each output depends on."""
    found = []
    for each in results:
        gradients = (
            torch.autograd.grad(each.sum(), list(trained.values()), retain_graph=True, allow_unused=True)
            if each.requires_grad and trained
            else ()
        )
        found.append([name for name, gradient in zip(trained, gradients) if gradient is not None])
    return found


def _compile(request: Request, folder: Path) -> None:
    inputs = list(request.frozen)
    while True:
        meta = _export(request, inputs, folder / "model.onnx")
        sources = meta["differentiable"] if request.cotangents is None else request.cotangents
        flags = [flag for i in sources for flag in ("--cotangents", f"output.{i}")]
        number = 0
        for leaf in request.leaves:
            if isinstance(leaf, torch.Tensor):
                if leaf.requires_grad:
                    flags += ["--input-gradients", f"input.{number}"]
                number += 1
        if request.fused:
            flags = ["--loss", "output:output.0"]
        else:
            flags += ["--bind", "parameters,gradients"]
        trained = [name for name in request.trained if name not in inputs]
        (folder / "trained.txt").write_text("".join(f"m.{name}\n" for name in trained))
        run_compiler(
            [
                *("train", str(folder / "model.onnx"), "--output", str(folder / "artifact")),
                *("--train", f"@{folder / 'trained.txt'}", "--no-weights", "--quiet"),
                *("--batch-norm", "as-exported:unbiased=1", "--target", "native"),
                *("--max-workers", str(request.threads), *flags, *request.flags),
            ]
        )
        manifest = json.loads((folder / "artifact" / "manifest.json").read_text())
        baked = {each["name"].removeprefix("m.") for each in manifest["frozen"]}
        stale = [] if request.fused else [name for name in trained if name in baked]
        if not stale:
            break
        inputs += stale  # no gradient reaches them, but others may change them: they must not be constants
    meta.update(weights=inputs, cotangents=sources)
    for name in ("model.onnx", "trained.txt"):
        (folder / name).unlink()
    (folder / "meta.json").write_text(json.dumps(meta))


def _work(request: Request, folder: Path) -> None:
    """What the child does; its end is that of the process."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.nice(10)
        torch.set_num_threads(1)
        log = os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        _symbolics.register(bool(request.padding))
        with torch.random.fork_rng():
            _compile(request, folder)
        (folder / "log.txt").unlink()
        _cache.commit(folder, request.digest)
        status = 0
    except BaseException as error:
        try:
            text = str(error) if isinstance(error, CompileError) else f"{type(error).__name__}: {error}"
            (folder / "error.txt").write_text(text)
            traceback.print_exc()
            sys.stderr.flush()
        except BaseException:
            pass
    os._exit(status)


class Job:
    """A compilation that runs in a child."""

    def __init__(self, request: Request) -> None:
        """Raises OSError where there is no place, or no process, for it."""
        self.digest = request.digest
        self.folder = _cache.begin(request.digest)
        self.error = ""
        try:
            self.child = os.fork()
        except OSError:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        if self.child == 0:
            _work(request, self.folder)
        self.owner = os.getpid()
        self.running = True

    def is_done(self, wait: bool = False) -> bool:
        if not self.running:
            return True
        if self.owner != os.getpid():  # of a parent, which a fork has left behind
            self.running, self.error = False, "another process compiles"
            return True
        try:
            child, status = os.waitpid(self.child, 0 if wait else os.WNOHANG)
        except ChildProcessError:  # somebody else has waited for all children
            child, status = self.child, 0 if _cache.find(self.digest) else 1
        if child == 0:
            return False
        self.running = False
        if status != 0:
            code = os.waitstatus_to_exitcode(status)
            try:
                self.error = (self.folder / "error.txt").read_text()
            except OSError:
                self.error = f"signal {-code} has ended it" if code < 0 else f"it has ended with status {code}"
            shutil.rmtree(self.folder, ignore_errors=True)
        return True
