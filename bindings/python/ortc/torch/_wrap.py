"""compile_: a module's forward, replaced on the object itself. Class, keys, hooks and everything else stay.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
import os
import sys
import types
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
import torch.utils._pytree as pytree
from torch import is_grad_enabled
from torch.nn.utils.rnn import PackedSequence

from ortc._errors import CompileError
from ortc.torch import _cache, _key
from ortc.torch._compare import PATIENCE_S, Comparison, compare
from ortc.torch._export import Job, Replaced, Request, make_request
from ortc.torch._kinds import Kind, Kinds
from ortc.torch._layout import Layout, keep
from ortc.torch._modes import Checkpoints, find_observer, is_traced
from ortc.torch._report import Report
from ortc.torch._step import Apply, Call, Step, autocast_dtype
from ortc.torch._threads import default_threads

_MOST_SHAPES = 8
_WARNED_SHAPES = 4
_MOST_JOBS = 2
_MOST_KINDS = 64
_WORTH = 32
"""Compiled calls for each module that the module has been, which pay for its compilation."""
_MOST_CHANGES = 2
"""Changes of the module by calls of one kind: the first one may make what others use."""
_CHANGES = "the module changes its attributes or buffers in forward, which a compiled step does not"
_PLAIN = {type(None), bool, int, float, str}


def _walk(spec: pytree.TreeSpec) -> Iterator[pytree.TreeSpec]:
    yield spec
    for child in spec._children:
        yield from _walk(child)


class _Entry:
    """What becomes of calls of one kind."""

    def __init__(self, call: Any, reason: str) -> None:
        self.call = call
        """Their kind, whatever the module is."""
        self.step: Step | None = None
        self.job: Job | None = None
        self.found: Step | None = None
        """The entry of the cache, until it is compared."""
        self.comparison: Comparison | None = None
        self.reason = reason
        """Why there will be no step."""
        self.waiting = ""
        """Why there is none yet."""
        self.calls = 0
        self.used: set[int] = set()
        """Outputs that have had gradients."""
        self.requested: set[int] | None = None
        """Those that the job compiles for; None: all."""

    def note(self, used: Iterable[int]) -> None:
        self.used.update(used)

    def refuse(self, reason: str) -> None:
        self.drop()
        self.step, self.reason = None, self.reason or reason

    def drop(self) -> None:
        for child in (self.job, self.comparison):
            if child is not None:
                child.cancel()
        self.job = self.comparison = None


class Compiled:
    """The forward of a module."""

    def __init__(self, module: torch.nn.Module, options: dict[str, Any]) -> None:
        self.module = module
        self.options = options
        self.report = Report()
        self.entries: OrderedDict[Any, _Entry] = OrderedDict()
        self.latest: _Entry | None = None
        self.plain: list[Any] | None = None
        """Arguments of the last call, where some were numbers."""
        self.shapes: set[Any] = set()
        self.warned = False
        self.refusal = ""
        """Why no call is compiled any more."""
        self.layout: Layout | None = None
        """As of the last call; a copy's module is not whole before that."""
        self.state: list[Any] = []
        self.is_trained = self.is_dense = True
        """Whether a parameter has a gradient, and whether all are in order of rows."""
        self.kind: Kind | None = None
        """The module as it is now: plain attributes, what its tensors are, values of its buffers, what its code reads."""
        self.kinds = Kinds()
        self.is_called_without = False
        """Gradients, in training mode: by checkpointing, which computes again then, and must draw the same numbers."""
        self.noted: set[str] = set()
        self.compared: set[str] = set()
        """Digests of artifacts that have the numbers of the module."""
        self.own: dict[str, str] = {}
        """By the digests of others: those of artifacts for this process alone."""
        self.used: dict[Any, set[int]] = {}
        self.numbers: dict[Any, tuple[list[Any], set[int]]] = {}
        """The arguments of the first call of a kind, and which of them have changed since."""
        self.changes: dict[Any, tuple[int, str]] = {}
        """How many calls of one kind have changed something, and what that means."""
        self.checkpoints = Checkpoints()

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
        if args and args[0] is self.module:  # as a bound method: accelerate, where it takes mixed precision away
            args = args[1:]
        caller = sys._getframe(1).f_locals.get("self")
        if isinstance(caller, torch.nn.Module) and caller.__dict__ is not self.module.__dict__ and caller.__dict__.get("forward") is self:
            self.report.eager["it is a shallow copy (copy.copy), which has this forward, and may have other parameters"] += 1
            return type(caller).forward(caller, *args, **kwargs)
        if is_traced():
            return self._eager(args, kwargs)
        leaves: Sequence[Any] = args
        spec = self.plain = None
        if kwargs or not all([isinstance(each, torch.Tensor) for each in args]):
            given, spec = pytree.tree_flatten((args, kwargs))
            leaves, self.plain = self._lift(given, spec), given
        checkpoint = self.checkpoints.now()
        if checkpoint is not None and checkpoint[1] is not None:
            return self._repeat(checkpoint[0][checkpoint[1] :], args, kwargs, leaves, spec)
        reason, waiting, entry = self.refusal or find_observer(), "", None
        if not reason and self.module.training and not is_grad_enabled():
            self.is_called_without = True
            reason = "gradients are disabled in training mode"
        if not reason:
            layout = self._follow()
            has_grad = is_grad_enabled() and (
                self.is_trained or any([each.requires_grad for each in leaves if isinstance(each, torch.Tensor)])
            )
            if has_grad or not self.module.training:
                entry = self._find(layout, leaves, spec, has_grad)
            else:
                reason = "nothing has a gradient in training mode: eval() lets it be compiled"
        if entry is not None:
            if entry.step is not None and entry.step.is_random and self.is_called_without:
                entry.step, entry.reason = None, "a module with random operators is called without gradients, too"
            if entry.step is not None:
                self.report.compiled += 1
                if checkpoint is not None:
                    checkpoint[0].append((entry, entry.step))
                return self._run(entry, entry.step, layout, leaves, spec, has_grad, checkpoint is not None)
            reason, waiting = entry.reason, entry.waiting
        if reason and self.options["fallback"] == "error":
            raise CompileError(f"ortc.torch: this call is not compiled: {reason}")
        self.report.eager[reason or waiting] += 1
        if checkpoint is not None:
            checkpoint[0].append(None)
        return self._watched(entry, args, kwargs, leaves, spec)

    def _eager(self, args: Any, kwargs: Any) -> Any:
        return type(self.module).forward(self.module, *args, **kwargs)

    def _repeat(self, rest: Sequence[Any], args: Any, kwargs: Any, leaves: Sequence[Any], spec: Any) -> Any:
        """A call that a checkpoint computes again. `rest`: what it ran the first time, and what followed."""
        if not rest or rest[0] is None:
            self.report.eager["a checkpoint computes again what was not compiled"] += 1
            return self._eager(args, kwargs)
        self.report.compiled += 1
        entry, step = rest[0]
        return self._run(entry, step, self._follow(), leaves, spec, True, True)

    def _watched(self, entry: _Entry | None, args: Any, kwargs: Any, leaves: Sequence[Any], spec: Any) -> Any:
        """An eager call that notes which outputs get gradients, and whether the module is another one then."""
        if entry is None:
            return self._eager(args, kwargs)
        layout = self._follow()
        before = layout.values()
        result = self._eager(args, kwargs)
        change = "" if before == (layout if layout.is_current() else Layout(self.module)).values() else _CHANGES
        if not change and self.kind is not None and not self.kind.description.watch.is_current():
            change = f"forward changes {self.kind.description.watch.find_change()}, which a compiled step does not"
        if change:
            if len(self.changes) > _MOST_KINDS:
                self.changes.clear()
            count, _ = self.changes.get(entry.call, (0, ""))
            self.changes[entry.call] = count + 1, change
        if torch.is_grad_enabled():
            used = self.used.setdefault((spec, len(leaves)), set())
            tensors = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
            for i, each in enumerate(tensors):
                if each.requires_grad and each.grad_fn is not None:
                    each.register_hook(lambda _, i=i: used.add(i))  # type: ignore[misc]
        return result

    def _lift(self, leaves: list[Any], spec: Any) -> list[Any]:
        """Numbers that were others in an earlier call are tensors, so that no number is a compilation."""
        if not any(type(leaf) in (int, float) for leaf in leaves):
            return leaves
        numbers = [leaf if type(leaf) in (int, float) else None for leaf in leaves]
        seen, varying = self.numbers.setdefault((spec, len(leaves)), (numbers, set()))
        lifted = list(leaves)
        for i, leaf in enumerate(leaves):
            if type(leaf) not in (int, float):
                continue
            if repr(seen[i]) != repr(leaf):  # which tells 1 from 1.0, and the zeros apart
                varying.add(i)
            if i in varying and (type(leaf) is float or -(2**63) <= leaf < 2**63):
                lifted[i] = torch.tensor(leaf, dtype=torch.float32 if type(leaf) is float else torch.int64)
        return lifted

    def _follow(self) -> Layout:
        """What the module is now."""
        layout = self.layout
        if layout is None or not layout.is_current():
            before, self.layout = layout, Layout(self.module)
            layout = self.layout
            if before and (before.modules != layout.modules or (before.parameters, before.places) != (layout.parameters, layout.places)):
                self.forget()  # others are shared, or there
            self.state = []
        state = layout.state()
        if state != self.state or self.kind is None or not self.kind.description.watch.is_current():
            self.state = state
            self.is_trained, self.is_dense = layout.is_trained(), layout.is_dense()
            key = (layout.attributes, *state)
            self.kind = self.kinds.find(key) or self._describe(key, layout)
        return layout

    def _describe(self, key: Any, layout: Layout) -> Kind:
        """The module is one that it has not been yet."""
        if self.kinds.descriptions > _MOST_KINDS:
            if self.report.compiled < _MOST_KINDS * _WORTH:
                what = f"{self.kinds.change}, which its code reads," if self.kinds.change else "attributes or buffers"
                self.refusal = f"the module has been {_MOST_KINDS} different ones: {what} change from call to call"
            self.kinds.clear()
            self.forget()
        return self.kinds.add(self.module, key, [*keep(layout.fixed_tensors), *layout.objects])

    def forget(self) -> None:
        """Begins anew."""
        for entry in self.entries.values():
            entry.drop()
        self.entries.clear()

    def _find(self, layout: Layout, leaves: Sequence[Any], spec: Any, has_grad: bool) -> _Entry:
        """What is known of calls like this one."""
        parts = [
            (leaf.shape, leaf.dtype, leaf.requires_grad, leaf.is_cpu, leaf.layout, leaf.__class__)
            if isinstance(leaf, torch.Tensor)
            else (leaf if leaf.__class__ in _PLAIN else None, leaf.__class__)
            for leaf in leaves
        ]
        call = (spec, has_grad, autocast_dtype(), torch.get_default_dtype(), *parts)
        assert self.kind is not None
        key = (self.kind.number, call)
        entry = self.entries.get(key)
        if entry is None:
            changes, reason = self.changes.get(call, (0, ""))
            reason = (reason if changes >= _MOST_CHANGES else "") or self._refuse_arguments(leaves, spec) or layout.refusal(has_grad) or layout.misplaced()
            entry = self.entries[key] = _Entry(call, reason)
            if not entry.reason:
                self._warn_of_shapes(leaves)
            while len(self.entries) > _MOST_SHAPES:
                self.entries.popitem(last=False)[1].drop()
        if entry is not self.latest:
            self.latest = entry
            self.entries.move_to_end(key)
        if entry.step is None and not entry.reason:
            used = self.used.get((spec, len(leaves))) if has_grad else None
            self._advance(entry, layout, leaves, spec, used, has_grad, self.options["wait"])
        elif has_grad and entry.step is not None and not entry.reason and entry.used and entry.used != entry.step.cotangent_set:
            self._advance(entry, layout, leaves, spec, entry.used, has_grad, False)
        entry.calls += 1
        return entry

    def _refuse_arguments(self, leaves: Sequence[Any], spec: Any) -> str:
        if spec is not None and any(each._context is PackedSequence for each in _walk(spec)):
            return "an argument is a PackedSequence: give forward the padded tensor and the lengths, and let it pack them"
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                if leaf.device.type != "cpu" or leaf.layout != torch.strided or leaf.is_complex():
                    return f"an input is on {leaf.device}, {leaf.layout}, {leaf.dtype}"
                if leaf.requires_grad and leaf.dtype != torch.float32:
                    return f"an input of {leaf.dtype} has a gradient"
                if type(leaf) not in (torch.Tensor, torch.nn.Parameter):
                    return f"an input is a {type(leaf).__qualname__}"
            elif leaf.__class__ not in _PLAIN:
                return f"an argument is a {type(leaf).__qualname__}"
        return ""

    def _warn_of_shapes(self, leaves: Sequence[Any]) -> None:
        self.shapes.add(tuple(leaf.shape for leaf in leaves if isinstance(leaf, torch.Tensor)))
        if len(self.shapes) == _WARNED_SHAPES and not self.warned:
            self.warned = True
            warnings.warn(
                f"ortc.torch: inputs have come in {_WARNED_SHAPES} shapes, and each is compiled: fill batches up, drop "
                "the last one (drop_last=True), or group samples by length",
                stacklevel=5,
            )

    # ---- Compiling.

    def _advance(
        self, entry: _Entry, layout: Layout, leaves: Sequence[Any], spec: Any, used: set[int] | None, has_grad: bool, wait: bool
    ) -> None:
        """Looks for the artifact, starts what makes it, or takes it. Where there is one already, for other gradients, that
        goes on until then."""
        if entry.comparison is not None and self._is_taken(entry, math.inf if wait else 0.0) is not False:
            return
        if entry.job is None:
            request = self._request(layout, leaves, spec, sorted(used) if used else None, has_grad)
            request.digest = self.own.get(request.digest, request.digest)
            if self._look_up(entry, request, wait) is not False:
                return
            request.digest = self.own.get(request.digest, request.digest)
            if entry.calls == 0 and not wait:  # the first call is not slowed: the next one starts the compiler
                entry.waiting = "compiling begins with the second call"
                return
            if not wait and sum(each.job is not None for each in self.entries.values()) >= _MOST_JOBS:
                entry.waiting = "compiling others"
                return
            entry.requested = None if request.cotangents is None else set(request.cotangents)
            try:
                entry.job = Job(request)
            except OSError as error:
                self._fail(entry, f"there is no place to compile: {error}")
                return
        entry.waiting = "compiling"
        if not entry.job.is_done(math.inf if wait else 0.0):
            return
        job, entry.job = entry.job, None
        if not job.error and used and entry.requested and not used <= entry.requested:
            return self._advance(entry, layout, leaves, spec, used, has_grad, wait)  # other outputs have had gradients meanwhile
        if job.error:
            self._fail(entry, job.error)
            return
        self.compared.add(job.digest)
        if not self._use(entry, self._load(job.digest)):
            self._fail(entry, "its artifact cannot be opened")

    def _look_up(self, entry: _Entry, request: Request, wait: bool) -> bool | None:
        """As _is_taken, of what the cache has."""
        entry.found = self._load(request.digest)
        if request.digest in self.compared or entry.found is None:
            return self._use(entry, entry.found)
        entry.requested = None if request.cotangents is None else set(request.cotangents)
        try:
            entry.comparison = compare(request)
        except OSError:  # no more is there for a child that compiles, which is told
            return False
        return self._is_taken(entry, math.inf if wait else PATIENCE_S)

    def _is_taken(self, entry: _Entry, limit_s: float) -> bool | None:
        """Whether what is compared with the module has its numbers, and is used from now on. None: that is not known yet."""
        comparison = entry.comparison
        if comparison is None or not comparison.is_done(limit_s):
            entry.waiting = "comparing what the cache has"
            return None
        entry.comparison = None
        if comparison.difference:
            self.own[comparison.digest] = os.urandom(32).hex()
            self.report.failures.append(
                "what the cache has was made of something else, which its key does not say, and this module is compiled for this process "
                f"alone: {comparison.difference}"
            )
            return False
        self.compared.add(comparison.digest)
        return self._use(entry, entry.found)

    def _fail(self, entry: _Entry, text: str) -> None:
        entry.reason = text.splitlines()[0] if text else "unknown"
        self.report.failures.append(text)
        if entry.reason not in self.noted:
            self.noted.add(entry.reason)
            warnings.warn(f"ortc.torch: {type(self.module).__name__} goes on without compiling: {text}", stacklevel=6)

    def _load(self, digest: str) -> Step | None:
        def make(folder: Path, meta: dict[str, Any]) -> Step:
            return Step(folder, meta, self.module, self.options["threads"])

        return _cache.open_entry(digest, make, self.report.failures)

    def _use(self, entry: _Entry, step: Step | None) -> bool:
        entry.step = step or entry.step
        self.report.artifacts = sum(each.step is not None for each in self.entries.values())
        return step is not None

    def _request(
        self, layout: Layout, leaves: Sequence[Any], spec: Any, cotangents: list[int] | None, has_grad: bool
    ) -> Request:
        if spec is None:
            spec = pytree.tree_structure((tuple(leaves), {}))
        assert self.kind is not None
        return make_request(
            self.module,
            types.MethodType(type(self.module).forward, self.module),
            layout,
            list(leaves),
            spec,
            cotangents,
            self.options["threads"],
            self.options["flags"],
            self.kind.description,
            self.plain,
            has_grad=has_grad,
        )

    # ---- Running.

    def _run(
        self, entry: _Entry, step: Step, layout: Layout, leaves: Sequence[Any], spec: Any, has_grad: bool, is_checkpointed: bool
    ) -> Any:
        tensors = leaves if step.takes_tensors else [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        given = []
        for number, name in step.sources:
            each = layout.get(name) if number is None else tensors[number]
            if not each.is_contiguous() or each.is_neg() or each.data_ptr() % each.element_size():
                each = each.resolve_neg().clone(memory_format=torch.contiguous_format)
            given.append(each)
        trained, statistics = layout.find(step.trained), tuple(layout.find(step.statistics))
        if statistics:  # before the step, which a checkpoint may end early
            torch.autograd.graph.increment_version(statistics)
            layout.count_batches()
        seed = int(torch.randint(2**31, ())) if step.is_random else 0
        if has_grad:
            assert self.kind is not None
            versions = [0 if leaf.is_inference() else leaf._version for leaf in leaves if isinstance(leaf, torch.Tensor)]
            before = self.kind.number, versions, autocast_dtype()
            again = functools.partial(self._again, leaves, spec, step.sources, given, trained, before)
            call = Call(
                *(step, entry.note, entry.refuse, statistics, seed),
                again=again,
                is_dense=self.is_dense,
                is_checkpointed=is_checkpointed,
            )
            results = Apply.apply(call, *given, *trained)
        else:
            lease = step.lease()
            results = step.forward(lease, tuple(given), statistics, seed)
            lease.end()
        if step.gives_tensor:
            return results[0]
        flat = list(step.constants)
        for place, result in zip(step.tensor_places, results, strict=True):
            flat[place] = result
        return pytree.tree_unflatten(flat, step.spec)

    def _again(
        self,
        leaves: Sequence[Any],
        spec: Any,
        sources: Any,
        given: Sequence[Any],
        trained: Sequence[Any],
        before: tuple[int, list[int], torch.dtype | None],
        cotangents: Sequence[Any],
    ) -> list[Any]:
        """Gradients of what was given and is trained, where the compiled step has none. `before`: what the module, versions of the
        inputs, and the type that autocast casts to were in forward."""
        number, versions, narrow = before
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if versions != [0 if each.is_inference() else each._version for each in tensors]:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: an input of "
                f"{type(self.module).__name__} was changed between forward and backward"
            )
        self._follow()
        if self.kind is None or self.kind.number != number:
            raise RuntimeError(f"{type(self.module).__name__} was changed between forward and backward, which computes it again")
        is_differentiated = torch.is_grad_enabled()
        if not is_differentiated:
            leaves = [leaf.detach().requires_grad_(leaf.requires_grad) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        args, kwargs = (tuple(leaves), {}) if spec is None else pytree.tree_unflatten(leaves, spec)
        copies = {name: buffer.clone() for name, buffer in self.module.named_buffers()}  # which move a second time
        casts = torch.autocast("cpu", narrow or torch.bfloat16, enabled=narrow is not None)
        with torch.enable_grad(), casts, Replaced(self.module, copies):
            results = [each for each in pytree.tree_leaves(self._eager(args, kwargs)) if isinstance(each, torch.Tensor)]
        pairs = [(each, cotangent) for each, cotangent in zip(results, cotangents, strict=True) if cotangent is not None]
        targets = [each if number is None else tensors[number] for each, (number, _) in zip(given, sources, strict=True)] + [*trained]
        wanted = [each for each in targets if each.requires_grad]
        outputs, gradients = zip(*pairs)
        found = iter(torch.autograd.grad(outputs, wanted, gradients, create_graph=is_differentiated, allow_unused=True))
        return [next(found) if each.requires_grad else None for each in targets]


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
    from ortc._flags import format_flags

    if fallback not in ("eager", "error"):
        raise ValueError(f"fallback is {fallback!r}, but must be 'eager' or 'error'")
    if isinstance(model.__dict__.get("forward"), Compiled):
        restore_(model)
    if "forward" in model.__dict__:
        raise ValueError("the module's forward has been replaced by something else: compile_ comes before that, or is of the module within")
    options = {"wait": wait, "fallback": fallback, "threads": threads or default_threads(), "flags": format_flags(flags)}
    model.__dict__["forward"] = Compiled(model, options)
    _key.look_ahead()
    return model


def restore_(model: torch.nn.Module) -> torch.nn.Module:
    """Undoes compile_, and ends what compiles for it."""
    compiled = model.__dict__.get("forward")
    if isinstance(compiled, Compiled):
        compiled.forget()
        del model.__dict__["forward"]
    return model


def report(model: torch.nn.Module) -> Report:
    """How many calls were compiled, and why the others were not."""
    forward = model.__dict__.get("forward")
    while forward is not None and not isinstance(forward, Compiled):  # accelerate puts mixed precision around it
        forward = getattr(forward, "__func__", None) or getattr(forward, "__wrapped__", None)
    if forward is None:
        raise ValueError("the module is not compiled: ortc.torch.compile_(model)")
    return forward.report
