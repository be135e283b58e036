"""From a module and a call of it to an artifact, in a child process: exporting changes modules while it lasts, and a
compiler that is killed or runs out of memory is no harm to the one who trains.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import hashlib
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
from ortc.torch import _cache, _key, _symbolics, _trees
from ortc.torch._checks import ChangeError, check_graph, one_forward, outputs_with_gradients
from ortc.torch._child import run_clean
from ortc.torch._fork import Forked
from ortc.torch._layout import Layout
from ortc.torch._reasons import explain, explain_exception
from ortc.torch._step import autocast_dtype
from ortc.torch._tracing import Tracing
from ortc.torch._watch import Watch

# The first gradient of a process starts a thread for each device, and a process with such threads has no gradients in its
# forked children, in which modules are exported.
# Fake tensors make a device of CUDA up: this gradient comes before them.
torch.zeros((), requires_grad=True).backward()


@dataclass
class Request:
    """One compilation."""

    module: torch.nn.Module
    forward: Callable[..., Any]
    """Of the module, as its class has it."""
    leaves: list[Any]
    """Arguments of the call, flat, with tensors in place of numbers that vary."""
    plain: list[Any]
    """The same with those numbers."""
    spec: Any
    """How they are put together."""
    trained: list[str]
    """Parameters that are trained; all others are inputs."""
    frozen: list[str]
    cotangents: list[int] | None
    """Outputs, by number, that had gradients, in this run or the last one; None: all that may have."""
    threads: int
    flags: list[str]
    digest: str
    base: str
    """The digest of the same without `cotangents`."""
    watch: Watch
    """Whether what code reads is still what it was."""
    fused: bool = False
    """A training step of the only output, which is the loss, with parameters in the session."""
    has_grad: bool = True
    """Without: only outputs."""
    autocast: torch.dtype | None = None
    """The type that the call casts to, as torch.autocast does."""


def make_request(
    module: torch.nn.Module,
    forward: Callable[..., Any],
    layout: Layout,
    leaves: list[Any],
    spec: Any,
    cotangents: list[int] | None,
    threads: int,
    flags: list[str],
    description: _key.Description,
    plain: list[Any] | None = None,
    fused: bool = False,
    has_grad: bool = True,
) -> Request:
    """Of a call of the module as it is now. Without gradients, all its tensors are inputs."""
    trained = [name for name in layout.parameters if has_grad and layout.get(name).requires_grad]
    frozen = [] if fused else layout.fixed(trained)
    moving = [*layout.parameters, *layout.statistics]  # whose values do not matter
    fixed = [*layout.constants, *(layout.fixed(trained) if fused else ())]
    shapes = [(leaf.shape, leaf.dtype, leaf.requires_grad) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    autocast = autocast_dtype()
    call = repr((shapes, str(spec), threads, flags, fused, has_grad, autocast, torch.get_default_dtype(), layout.places))
    base = _key.digest(description, [(name, layout.get(name)) for name in moving], [layout.get(name) for name in fixed], call)
    if cotangents is None and has_grad and not fused:
        cotangents = _cache.read_used(base)
    return Request(
        module=module,
        forward=forward,
        leaves=leaves,
        plain=leaves if plain is None else plain,
        spec=spec,
        trained=trained,
        frozen=frozen,
        cotangents=cotangents,
        threads=threads,
        flags=flags,
        digest=hashlib.sha256(f"{base} {cotangents}".encode()).hexdigest(),
        base=base,
        watch=description.watch,
        fused=fused,
        has_grad=has_grad,
        autocast=autocast,
    )


class _Flat(torch.nn.Module):
    """The module as a function of tensors: those of the call, then weights that are not trained."""

    def __init__(self, request: Request, inputs: list[str], layout: Layout) -> None:
        super().__init__()
        self.m = request.module
        self.varying = layout.find([*layout.parameters, *layout.statistics])
        self.request = request
        self.inputs = inputs
        self.spec: Any = None
        self.tensors: list[int] = []

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rest = list(tensors)
        leaves = [rest.pop(0) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.request.leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self.request.spec)
        narrow = self.request.autocast
        casts = torch.autocast("cpu", narrow or torch.bfloat16, enabled=narrow is not None, cache_enabled=False)
        with casts, Replaced(self.m, dict(zip(self.inputs, rest, strict=True))), Tracing([*tensors, *self.varying]):
            result = self.request.forward(*args, **kwargs)
        flat, self.spec = pytree.tree_flatten(result)
        self.tensors = [i for i, leaf in enumerate(flat) if isinstance(leaf, torch.Tensor)]
        self.constants = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in flat]
        return tuple(leaf for leaf in flat if isinstance(leaf, torch.Tensor))


class Replaced:
    """Parameters and buffers that are others for a while."""

    def __init__(self, module: torch.nn.Module, values: dict[str, torch.Tensor]) -> None:
        self.owners = []
        slots = Layout(module).slots
        for name, value in values.items():
            tensors, key = slots[name]
            replaced = tensors[key]  # a shared one is in several places
            self.owners += [(*place, value) for place in slots.values() if place[0][place[1]] is replaced]

    def _exchange(self) -> None:
        exchanged = []
        for tensors, key, value in self.owners:
            exchanged.append((tensors, key, tensors[key]))
            tensors[key] = value
        self.owners = exchanged[::-1]

    def __enter__(self) -> None:
        self._exchange()

    def __exit__(self, *_: object) -> None:
        self._exchange()


def _call(request: Request, call: Callable[[], Any]) -> Any:
    """The results. A change that only the first call makes, and that changes no number, is none: what is computed once and kept, as
    transformers does with the kind of a problem in a configuration."""
    state = torch.get_rng_state()
    results: Any = ()
    try:
        with one_forward(request.module, request.watch):
            results = call()
        return results
    except ChangeError:
        torch.set_rng_state(state)
        request.watch = _key.describe(request.module).watch
        with one_forward(request.module, request.watch):
            again = call()
        if not all(torch.equal(*map(torch.nan_to_num, pair)) for pair in zip(results, again, strict=True)):
            raise
        return again


def _export(request: Request, inputs: list[str], path: Path) -> dict[str, Any]:
    """Writes the ONNX file; `inputs`: weights that are inputs of it. What is known of it."""
    layout = Layout(request.module)
    flat = _Flat(request, inputs, layout)
    tensors = [leaf for leaf in request.leaves if isinstance(leaf, torch.Tensor)]
    names = [f"input.{i}" for i in range(len(tensors))] + [f"weight.{name}" for name in inputs]
    given = tuple(each.detach().clone() for each in [*tensors, *map(layout.get, inputs)])
    for each, leaf in zip(given, tensors):
        each.requires_grad_(leaf.requires_grad and request.has_grad)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        versions = [each._version for each in given]
        with torch.set_grad_enabled(request.has_grad), outputs_with_gradients(layout) as leaves:
            results = _call(request, lambda: flat(*given))
        if changed := [name for name, each, version in zip(names, given, versions, strict=True) if each._version != version]:
            what = changed[0].replace("input.", "argument ").removeprefix("weight.")
            raise CompileError(f"the module changes {what} in place: give it a copy")
        check_graph(results, [*given, *map(layout.get, layout.parameters), *leaves])
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
            raise CompileError(
                f"an output is a {type(leaf).__qualname__}, neither a tensor nor a plain value, nor a container that PyTorch's "
                "pytrees know: give a tuple, a dict or a namedtuple (of a dataclass: torch.export.register_dataclass)"
            )
    wanted = {name: layout.get(name) for name in request.trained if name not in inputs}
    wanted |= {f"input.{i}": each for i, each in enumerate(given) if each.requires_grad}
    return {
        "reached": _reached(results, wanted),
        "takes_tensors": len(tensors) == len(request.leaves),
        "differentiable": [i for i, each in enumerate(results) if each.requires_grad],
        "shapes": [list(each.shape) for each in results],
        "dtypes": [str(each.dtype).removeprefix("torch.") for each in results],
        "tensors": flat.tensors,
        "constants": flat.constants,
        "spec": _trees.dump(flat.spec),
    }


def _reached(results: tuple[torch.Tensor, ...], wanted: dict[str, torch.Tensor]) -> list[list[str]]:
    """The parameters and inputs that each output depends on."""
    found = []
    for each in results:
        gradients = (
            torch.autograd.grad(each.sum(), list(wanted.values()), retain_graph=True, allow_unused=True)
            if each.requires_grad and wanted
            else ()
        )
        found.append([name for name, gradient in zip(wanted, gradients) if gradient is not None])
    return found


def _name_gradients(sources: list[int], reached: set[str]) -> list[str]:
    """Flags for the gradients that a backward step takes and gives."""
    flags = [flag for i in sources for flag in ("--cotangents", f"output.{i}")]
    inputs = sorted(name for name in reached if name.startswith("input."))
    return [*flags, *(flag for name in inputs for flag in ("--input-gradients", name)), "--bind", "parameters,gradients"]


def _compile(request: Request, folder: Path) -> dict[str, Any]:
    """The facts of the artifact that is in the folder then."""
    model, names = folder / "model.onnx", folder / "trained.txt"
    inputs = list(request.frozen)
    meta = _export(request, inputs, model)
    sources = meta["differentiable"] if request.cotangents is None else request.cotangents
    if request.has_grad and not sources:
        raise CompileError("no output has a gradient, although something is trained: call it under torch.no_grad()")
    reached = set().union(*(meta["reached"][i] for i in sources))
    trained = [name for name in request.trained if name in reached]
    if unreached := [name for name in request.trained if name not in reached]:
        # Others may change them: they must not be constants. Outputs depend on what they have depended on.
        inputs += unreached
        meta = _export(request, inputs, model) | {key: meta[key] for key in ("differentiable", "reached")}
    names.write_text("".join(f"m.{name}\n" for name in trained))
    if not request.has_grad:
        flags = ["--loss", "none"]
    else:
        flags = ["--loss", "output:output.0"] if request.fused else _name_gradients(sources, reached)
        flags += ["--train", f"@{names}", "--materialize-gradients", f"@{names}"]  # PyTorch has zeros where none reaches them
        flags += ["--no-weights", "--batch-norm", "as-exported:unbiased=1"]
    arguments = [
        *("train", str(model), "--output", str(folder / "artifact"), "--quiet"),
        *(() if "--target" in request.flags else ("--target", "native")),
        *("--max-workers", str(request.threads), *flags, *request.flags),
        *(() if "--kernel-cache" in request.flags else _cache.kernel_flags()),
    ]
    try:
        run_compiler(arguments)
    except CompileError as error:  # without the name of a file that is gone by then
        raise CompileError(explain(str(error).replace(f"{model}: ", ""))) from error
    manifest = json.loads((folder / "artifact" / "manifest.json").read_text())
    if lost := {each["name"].removeprefix("m.") for each in manifest["frozen"]} & set(trained):
        raise CompileError(f"parameter '{min(lost)}' has a gradient that the exported graph has not")
    meta["cotangents"] = sources
    model.unlink()
    names.unlink()
    _verify(request, folder, meta)
    return meta


def _verify(request: Request, folder: Path, meta: dict[str, Any]) -> None:
    if not request.fused:  # whose trainer compares it
        from ortc.torch._verify import verify

        verify(request, folder, meta)


def _work(request: Request, folder: Path) -> None:
    """What the child does; its end is that of the process."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.nice(10)
        run_clean(lambda: _make(request, folder))
    finally:
        os._exit(1)


def _forget_origins(module: torch.nn.Module) -> None:
    """Hooks on gradients of parameters, which see those that PyTorch makes, not those that it hands on; and what a parameter was
    computed from, as by torch.func.functional_call."""
    leaves: dict[int, Any] = {}
    for each in module.modules():
        for name, parameter in each._parameters.items():
            if parameter is None:
                continue
            if parameter.grad_fn is not None:
                parameter = leaves.setdefault(id(parameter), parameter.detach().requires_grad_())
                each._parameters[name] = parameter
            parameter._backward_hooks = None


def _make(request: Request, folder: Path) -> None:
    status = 1
    try:
        torch.set_num_threads(1)
        log = os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        _symbolics.register()
        _forget_origins(request.module)
        with _cache.lock(request.digest):  # of several processes one compiles
            found = _cache.find(request.digest)
            if found is None:
                with torch.random.fork_rng():
                    meta = _compile(request, folder)
                (folder / "log.txt").unlink()
                _cache.commit(folder, request.digest, meta)
            else:
                _verify(request, *found)
                shutil.rmtree(folder, ignore_errors=True)
        if request.cotangents is not None:
            _cache.write_used(request.base, request.cotangents)
        status = 0
    except BaseException as error:
        try:
            text = str(error) if isinstance(error, CompileError) else explain_exception(error)
            (folder / "error.txt").write_text(text)
            traceback.print_exc()
            sys.stderr.flush()
        except BaseException:
            pass
    os._exit(status)


class Job(Forked):
    """A compilation that runs in a child."""

    def __init__(self, request: Request) -> None:
        """Raises OSError where there is no place, or no process, for it."""
        self.digest = request.digest
        self.folder = _cache.begin(request.digest)
        self.error = ""
        try:
            self.start(lambda: _work(request, self.folder))
        except OSError:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def cancel(self) -> None:
        """Ends it."""
        if self.is_running and self.owner == os.getpid():
            super().cancel()
            shutil.rmtree(self.folder, ignore_errors=True)

    def is_done(self, limit_s: float = 0.0) -> bool:
        """Waits so many seconds at most."""
        if not self.is_running:
            return True
        try:
            code = self.poll(limit_s)
        except ChildProcessError:
            if self.owner != os.getpid():  # of a parent, which a fork has left behind
                self.error = "another process compiles"
                return True
            code = 0 if _cache.find(self.digest) else 1  # somebody else has waited for all children
        if code is None:
            return False
        if code != 0:
            try:
                self.error = (self.folder / "error.txt").read_text()
            except OSError:
                self.error = f"signal {-code} has ended the process that compiles" if code < 0 else "the process that compiles has ended"
            shutil.rmtree(self.folder, ignore_errors=True)
        return True
