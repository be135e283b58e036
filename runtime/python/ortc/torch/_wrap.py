"""compile_: a module's forward, replaced on the object itself. Class, keys, hooks and everything else stay.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import inspect
import os
import types
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal

import torch
import torch.utils._pytree as pytree

from ortc._errors import CompileError
from ortc.torch import _cache, _key
from ortc.torch._export import Job, Request
from ortc.torch._layout import Layout, walk
from ortc.torch._report import Report
from ortc.torch._step import Apply, Step

_MOST_SHAPES = 8
_WARNED_SHAPES = 4
_MOST_JOBS = 2


class _Eager(Exception):
    """Why a call is not compiled."""


class _Entry:
    """What becomes of calls of one kind."""

    def __init__(self) -> None:
        self.step: Step | None = None
        self.job: Job | None = None
        self.reason = ""
        """Why there will be no step."""
        self.waiting = ""
        self.calls = 0
        self.used: set[int] = set()
        """Outputs that have had gradients."""
        self.requested: set[int] | None = None
        """Those that the job compiles for; None: all."""

    def note(self, used: tuple[int, ...]) -> None:
        self.used.update(used)

    def drop(self) -> None:
        if self.job is not None:
            self.job.cancel()
            self.job = None


class Compiled:
    """The forward of a module."""

    def __init__(self, module: torch.nn.Module, options: dict[str, Any]) -> None:
        self.module = module
        self.options = options
        self.report = Report()
        self.entries: OrderedDict[Any, _Entry] = OrderedDict()
        self.shapes: set[Any] = set()
        self.warned = False
        self.refusal = ""
        """Why no call is compiled any more."""
        self.layout: Layout | None = None
        self.noted: set[str] = set()
        self.used: dict[Any, set[int]] = {}
        self.numbers: dict[Any, tuple[list[Any], set[int]]] = {}
        """Of calls of one kind: the arguments of the first, and which of them have changed since."""

    @property
    def __signature__(self) -> inspect.Signature:
        """That of the module's own forward: trainers ask what it takes."""
        return inspect.signature(types.MethodType(type(self.module).forward, self.module))

    # ---- A copy is of the copied module, and compiles by itself.

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        return Compiled(copy.deepcopy(self.module, memo), dict(self.options))

    def __reduce__(self) -> Any:
        return Compiled, (self.module, dict(self.options))

    # ---- Calls.

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or torch.jit.is_tracing():
            return self._eager(args, kwargs)
        if kwargs or not all(isinstance(each, torch.Tensor) for each in args):
            leaves, spec = pytree.tree_flatten((args, kwargs))
            leaves = self._lift(leaves, spec)
        else:
            leaves, spec = list(args), None
        try:
            key = self._key(leaves, spec)
            entry = self._find(key, leaves, spec)
            if entry.step is None:
                raise _Eager(entry.reason or entry.waiting)
        except _Eager as why:
            self.report.eager[str(why)] += 1
            return self._watched(args, kwargs, leaves, spec, why)
        self.report.compiled += 1
        return self._run(entry, leaves)

    def _eager(self, args: Any, kwargs: Any) -> Any:
        return type(self.module).forward(self.module, *args, **kwargs)

    def _watched(self, args: Any, kwargs: Any, leaves: list[Any], spec: Any, why: _Eager) -> Any:
        """An eager call that notes which outputs get gradients."""
        if self.options["fallback"] == "error" and not str(why).startswith("compiling"):
            raise CompileError(f"ortc.torch: this call is not compiled: {why}")
        layout = self._layout()
        before = layout.attributes(), layout.versions()
        result = self._eager(args, kwargs)
        if before != (layout.attributes(), layout.versions()):
            self.refusal = "the module changes its attributes or buffers in forward"
        if torch.is_grad_enabled() and self.module.training:
            used = self.used.setdefault(self._kind(leaves, spec), set())
            tensors = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
            for i, each in enumerate(tensors):
                if each.requires_grad and each.grad_fn is not None:
                    each.register_hook(lambda _, i=i: used.add(i))  # type: ignore[misc]
        return result

    def _kind(self, leaves: list[Any], spec: Any) -> Any:
        return spec, len(leaves)

    def _lift(self, leaves: list[Any], spec: Any) -> list[Any]:
        """Numbers that were others in an earlier call are tensors, so that no number is a compilation."""
        if not any(type(leaf) in (int, float) for leaf in leaves):
            return leaves
        numbers = [leaf if type(leaf) in (int, float) else None for leaf in leaves]
        seen, varying = self.numbers.setdefault(self._kind(leaves, spec), (numbers, set()))
        lifted = list(leaves)
        for i, leaf in enumerate(leaves):
            if type(leaf) not in (int, float):
                continue
            if type(seen[i]) is not type(leaf) or seen[i] != leaf:
                varying.add(i)
            if i in varying:
                lifted[i] = torch.tensor(leaf, dtype=torch.float32 if type(leaf) is float else torch.int64)
        return lifted

    def _key(self, leaves: list[Any], spec: Any) -> Any:
        """What a compilation depends on that may change between calls; raises _Eager for what is never compiled."""
        module = self.module
        if self.refusal:
            raise _Eager(self.refusal)
        if not torch.is_grad_enabled():
            if module.training and any(each.step is not None and each.step.is_random for each in self.entries.values()):
                # Checkpointing computes again what it has first computed so, and must draw the same numbers.
                self.refusal = "a module with random operators is called without gradients, too"
            raise _Eager("gradients are disabled")
        if not module.training:
            raise _Eager("evaluation mode")
        if torch.is_autocast_enabled("cpu"):
            raise _Eager("autocast")
        parts: list[Any] = []
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                if leaf.device.type != "cpu" or leaf.layout != torch.strided or leaf.is_complex():
                    raise _Eager(f"an input is on {leaf.device}, {leaf.layout}, {leaf.dtype}")
                if leaf.requires_grad and leaf.dtype != torch.float32:
                    raise _Eager(f"an input of {leaf.dtype} has a gradient")
                if type(leaf) not in (torch.Tensor, torch.nn.Parameter):
                    raise _Eager(f"an input is a {type(leaf).__qualname__}")
                parts.append((leaf.shape, leaf.dtype, leaf.requires_grad))
            elif leaf is None or isinstance(leaf, (bool, int, float, str)):
                parts.append((type(leaf), leaf))
            else:
                raise _Eager(f"an argument is a {type(leaf).__qualname__}")
        layout = self._layout()
        return spec, tuple(parts), layout.attributes(), layout.tensors(), layout.versions()

    def _layout(self) -> Layout:
        modules = walk(self.module, [])
        if self.layout is None or self.layout.modules != modules:
            self.layout = Layout(self.module, modules)
            self.identities = self.layout.identities()
            self._forget()
        elif self.identities != self.layout.identities():
            before, self.layout = self.layout, Layout(self.module, modules)
            self.identities = self.layout.identities()
            if before.parameters != self.layout.parameters or len(before.places) != len(self.layout.places):
                self._forget()  # others are shared, or there
        return self.layout

    def _forget(self) -> None:
        for entry in self.entries.values():
            entry.drop()
        self.entries.clear()

    def _check_module(self) -> None:
        module = self.module
        for name, each in module.named_parameters():
            if each.device.type != "cpu" or each.dtype != torch.float32 or not each.is_contiguous():
                raise _Eager(f"parameter '{name}' is not dense float32 on the processor")
        if self._layout().has_hooks():
            raise _Eager("a module within the module has hooks")
        if refusal := self._layout().refusal():
            raise _Eager(refusal)

    def _find(self, key: Any, leaves: list[Any], spec: Any) -> _Entry:
        entry = self.entries.get(key)
        if entry is None:
            self._check_module()
            self._warn_of_shapes(leaves)
            entry = self.entries[key] = _Entry()
            while len(self.entries) > _MOST_SHAPES:
                self.entries.popitem(last=False)[1].drop()
        self.entries.move_to_end(key)
        if entry.step is None and not entry.reason:
            self._advance(entry, leaves, spec, self.used.get(self._kind(leaves, spec)), self.options["wait"])
        elif entry.step is not None and not entry.reason and entry.used and entry.used != set(entry.step.cotangents):
            self._advance(entry, leaves, spec, entry.used, False)
        entry.calls += 1
        self.report.artifacts = sum(each.step is not None for each in self.entries.values())
        return entry

    def _warn_of_shapes(self, leaves: list[Any]) -> None:
        self.shapes.add(tuple(leaf.shape for leaf in leaves if isinstance(leaf, torch.Tensor)))
        if len(self.shapes) == _WARNED_SHAPES and not self.warned:
            self.warned = True
            warnings.warn(
                f"ortc.torch: inputs have come in {_WARNED_SHAPES} shapes, and each is compiled: fill batches up, drop "
                "the last one (drop_last=True), or group samples by length",
                stacklevel=5,
            )

    # ---- Compiling.

    def _advance(self, entry: _Entry, leaves: list[Any], spec: Any, used: set[int] | None, wait: bool) -> None:
        """Looks for the artifact, starts what makes it, or takes it. Where there is one already, for other gradients, that
        goes on until then."""
        if entry.job is None:
            request = self._request(leaves, spec, sorted(used) if used else None)
            if self._open(entry, request.digest):
                return
            if entry.calls == 0 and not wait:  # the first call is not slowed: the next one starts the compiler
                entry.waiting = "compiling begins with the second call"
                return
            if not wait and sum(each.job is not None for each in self.entries.values()) >= _MOST_JOBS:
                entry.waiting = "compiling others"
                return
            entry.requested = used and set(used)
            try:
                entry.job = Job(request)
            except OSError as error:
                self._fail(entry, f"there is no place to compile: {error}")
                return
        entry.waiting = "compiling"
        if not entry.job.is_done(wait):
            return
        job, entry.job = entry.job, None
        if not job.error and used and entry.requested and not used <= entry.requested:
            return self._advance(entry, leaves, spec, used, wait)  # other outputs have had gradients meanwhile
        if job.error:
            self._fail(entry, job.error)
        elif not self._open(entry, job.digest):
            self._fail(entry, "its artifact cannot be opened")

    def _fail(self, entry: _Entry, text: str) -> None:
        entry.reason = text.splitlines()[0] if text else "unknown"
        self.report.failures.append(text)
        if entry.reason not in self.noted:
            self.noted.add(entry.reason)
            warnings.warn(f"ortc.torch: {type(self.module).__name__} goes on without compiling: {text}", stacklevel=6)

    def _open(self, entry: _Entry, digest: str) -> bool:
        for _ in range(2):
            folder = _cache.find(digest)
            if folder is None:
                return False
            try:
                entry.step = Step(folder, digest, self.module, self.options["threads"])
                return True
            except Exception as error:
                self.report.failures.append(f"damaged entry of the cache, {folder}: {error}")
                _cache.drop(digest)
        return False

    def _request(self, leaves: list[Any], spec: Any, cotangents: list[int] | None) -> Request:
        module = self.module
        if spec is None:
            spec = pytree.tree_structure((tuple(leaves), {}))
        layout = self._layout()
        parameters = {name: layout.get(name) for name in layout.parameters}
        call = repr(
            (
                [(leaf.shape, leaf.dtype, leaf.requires_grad) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves],
                str(spec),
                cotangents,
                self.options["threads"],
                self.options["flags"],
            )
        )
        digest = _key.digest(
            module,
            [*parameters.items(), *((name, layout.get(name)) for name in sorted(layout.statistics))],
            [layout.get(name) for name in layout.constants],
            call,
        )
        return Request(
            module=module,
            forward=types.MethodType(type(module).forward, module),
            leaves=leaves,
            spec=spec,
            trained=[name for name, each in parameters.items() if each.requires_grad],
            frozen=[name for name, each in parameters.items() if not each.requires_grad],
            cotangents=cotangents,
            threads=self.options["threads"],
            flags=self.options["flags"],
            digest=digest,
            padding=layout.padding,
        )

    # ---- Running.

    def _run(self, entry: _Entry, leaves: list[Any]) -> Any:
        step = entry.step
        layout = self.layout  # _key has looked whether it is the module's still
        assert step is not None and layout is not None
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        given = []
        for number, name in step.sources:
            each = layout.get(name) if number is None else tensors[number]
            each = each.resolve_neg()
            if not each.is_contiguous() or each.data_ptr() % each.element_size():
                each = each.clone(memory_format=torch.contiguous_format)
            given.append(each)
        trained = [layout.get(name) for name in step.trained]
        statistics = tuple([layout.get(name) for name in step.statistics])
        seed = int(torch.randint(2**31, ())) if step.is_random else 0
        results = Apply.apply(step, entry.note, statistics, seed, *given, *trained)
        for buffer in statistics:
            torch.autograd.graph.increment_version(buffer)
        for norm in layout.norms:
            if norm.training and norm.num_batches_tracked is not None:
                norm.num_batches_tracked.add_(1)
        if step.gives_tensor:
            return results[0]
        flat = list(step.constants)
        for place, result in zip(step.tensor_places, results, strict=True):
            flat[place] = result
        return pytree.tree_unflatten(flat, step.spec)


def compile_(
    model: torch.nn.Module,
    *,
    wait: bool = False,
    fallback: Literal["eager", "error"] = "eager",
    threads: int | None = None,
    **flags: Any,
) -> torch.nn.Module:
    """Lets a module run compiled training steps, and gives it back: the same object, with class, keys and hooks.

    The first calls run as before; meanwhile a child process compiles. `wait=True` waits for it. `fallback="error"` raises
    where a call cannot be compiled. `threads`: as PyTorch has them. `flags`: of `ortc train`, with underscores.
    """
    from ortc._compile import format_flags

    if fallback not in ("eager", "error"):
        raise ValueError(f"fallback is {fallback!r}, but must be 'eager' or 'error'")
    if isinstance(model.__dict__.get("forward"), Compiled):
        restore_(model)
    if "forward" in model.__dict__:
        raise ValueError("the module's forward has been replaced by something else already")
    threads = threads or int(os.environ.get("ORTC_THREADS", 0)) or torch.get_num_threads()
    options = {"wait": wait, "fallback": fallback, "threads": threads, "flags": format_flags(flags)}
    model.__dict__["forward"] = Compiled(model, options)
    return model


def restore_(model: torch.nn.Module) -> torch.nn.Module:
    """Undoes compile_."""
    if isinstance(model.__dict__.get("forward"), Compiled):
        del model.__dict__["forward"]
    return model


def report(model: torch.nn.Module) -> Report:
    """How many calls were compiled, and why the others were not."""
    compiled = model.__dict__.get("forward")
    if not isinstance(compiled, Compiled):
        raise ValueError("the module is not compiled: ortc.torch.compile_(model)")
    return compiled.report
