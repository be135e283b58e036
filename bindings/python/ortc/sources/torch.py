"""Modules of PyTorch, by the exporter that ortc.torch uses. For a module in the middle of a loop there is ortc.torch itself.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ortc._errors import ArgumentError, CompileError
from ortc.sources import Export, Inputs, _graph, name_outputs, need

_PREFIX = "m."


def names(model: Any) -> dict[str, tuple[int, ...]]:
    return {name: tuple(values.shape) for name, values in _tensors(model).items()}


def _tensors(model: Any) -> dict[str, Any]:
    """Parameters and buffers, shared ones once."""
    return dict(model.named_parameters()) | dict(model.named_buffers())


def _state(model: Any) -> dict[str, Any]:
    """What calls may change."""
    return {name: values for name, values in _tensors(model).items() if not values.requires_grad}


def export(model: Any, inputs: Inputs | None, batch: int | None, folder: str) -> Export:
    need("onnx", "a torch.nn.Module")

    if inputs is None:
        raise CompileError("a torch.nn.Module needs examples of what it takes: inputs=(x,), or a dict by name")
    args, kwargs = ((), dict(inputs)) if isinstance(inputs, Mapping) else (tuple(inputs), {})
    return write_call(model, describe_call(model, args, kwargs), batch, folder)


@dataclass
class Call:
    """How a module is called."""

    tensors: dict[str, Any]
    """By the names of the parameters of its forward, and by the path within what is nested."""
    apply: Callable[[Any, Mapping[str, Any]], Any]
    """Calls a module with others in their place."""


def describe_call(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
    """`model`: whose forward is called with these arguments. Those that hold no tensors are part of the graph."""
    import torch
    import torch.utils._pytree as pytree

    try:
        bound = inspect.signature(model.forward).bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(f"the module's forward does not take these arguments: {error}") from error
    parameters = bound.signature.parameters
    leaves, spec = pytree.tree_flatten_with_path(dict(bound.arguments))
    names: list[str] = []
    for path, _ in leaves:
        parts = [str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", "")))) for key in path]
        if parameters[parts[0]].kind is inspect.Parameter.VAR_KEYWORD and len(parts) > 1:
            parts = parts[1:]
        names.append(".".join(parts))
    values = [leaf for _, leaf in leaves]

    def apply(module: Any, given: Mapping[str, Any]) -> Any:
        exchanged = [given.get(name, leaf) if isinstance(leaf, torch.Tensor) else leaf for name, leaf in zip(names, values, strict=True)]
        again = inspect.BoundArguments(bound.signature, OrderedDict(pytree.tree_unflatten(exchanged, spec)))  # type: ignore[arg-type]
        return module(*again.args, **again.kwargs)

    return Call({name: leaf for name, leaf in zip(names, values, strict=True) if isinstance(leaf, torch.Tensor)}, apply)


def write_call(model: Any, call: Call, batch: int | None, folder: str) -> Export:
    """Writes a module as it is called into a folder."""
    from ortc.torch._checks import one_forward

    trained = [name for name, each in model.named_parameters() if each.requires_grad]
    places = {name: name for name in _tensors(model)}
    return write(model, lambda values: call.apply(model, values), call.tensors, batch, folder, places, trained, one_forward(model))


def write(
    model: Any,
    call: Callable[[Mapping[str, Any]], Any],
    inputs: Mapping[str, Any],
    batch: int | None,
    folder: str,
    places: Mapping[str, str],
    trained: list[str],
    checks: AbstractContextManager[None] | None = None,
) -> Export:
    """`call`: calls the model with tensors by name. `places`: names in the file of the model's tensors; `trained`: such names.
    `checks`: stands around one call."""
    import onnx
    import torch

    from ortc.torch import _symbolics
    from ortc.torch._layout import Layout
    from ortc.torch._reasons import explain_exporter

    layout = Layout(model)
    if refusal := layout.refusal():
        raise CompileError(refusal)
    flat = _make_flat(model, call, list(inputs), layout.find([*layout.parameters, *layout.statistics]), batch is None)
    examples = tuple(value.detach().clone().requires_grad_(value.is_floating_point()) for value in inputs.values())
    path = os.path.join(folder, "model.onnx")
    with _undisturbed(model), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with checks or nullcontext():
            paths = _look(flat, examples)
        outputs = name_outputs(paths, inputs)
        _symbolics.register()
        try:
            with _silent():
                torch.onnx.export(
                    flat,
                    examples,
                    path,
                    input_names=list(inputs),
                    output_names=outputs,
                    dynamic_axes={} if batch is None else {name: {0: "batch"} for name in inputs},
                    training=torch.onnx.TrainingMode.PRESERVE,
                    do_constant_folding=False,
                    opset_version=_symbolics.OPSET,
                    dynamo=False,
                )
        except CompileError:
            raise
        except Exception as error:
            raise CompileError(explain_exporter(error)) from error
        finally:
            _symbolics.unregister()
    proto = onnx.load(path, load_external_data=False)
    state = {_PREFIX + name: values for name, values in _state(model).items()}
    for each in proto.graph.initializer:  # the exporter has called the module, too, and has written what that left
        if each.name in state:
            each.CopyFrom(onnx.numpy_helper.from_array(state[each.name].numpy(force=True), each.name))
    _graph.rename(proto.graph, {_PREFIX + name: place for name, place in places.items()})
    _graph.set_trained(proto, trained)
    _graph.settle_marks(proto)
    onnx.save(proto, path)
    flags = {"batch_norm": "as-exported:unbiased=1"} if layout.norms else {}
    return Export(path, {} if batch is None else {"batch": batch}, flags)


@contextmanager
def _silent() -> Iterator[None]:
    """The exporter's own code prints graphs and warnings past Python."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    kept = [os.dup(each) for each in (1, 2)]
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            for each in (1, 2):
                os.dup2(nowhere, each)
            yield
        finally:
            os.close(nowhere)
            for each, before in zip((1, 2), kept, strict=True):
                os.dup2(before, each)
    finally:
        for before in kept:
            os.close(before)


def _make_flat(
    model: Any, call: Callable[[Mapping[str, Any]], Any], names: list[str], trained: list[Any], has_sizes: bool
) -> Any:
    """The module as a function from tensors to tensors."""
    import torch
    import torch.utils._pytree as pytree

    from ortc.torch._tracing import Tracing

    class Flat(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.m = model
            self.paths: list[Any] = []

        def forward(self, *given: Any) -> tuple[Any, ...]:
            tensors = [_unlock(each) for each in given]
            with Tracing([*tensors, *trained], has_sizes):
                result = call(dict(zip(names, tensors, strict=True)))
            leaves = [(path, leaf) for path, leaf in pytree.tree_flatten_with_path(result)[0] if isinstance(leaf, torch.Tensor)]
            self.paths = [[getattr(key, "key", getattr(key, "idx", getattr(key, "name", ""))) for key in path] for path, _ in leaves]
            return tuple(leaf for _, leaf in leaves)

    return Flat()


def _unlock(leaf: Any) -> Any:
    """The same value of the graph as a tensor that may be changed in place, which a leaf with a gradient must not."""
    import torch

    if not leaf.requires_grad:
        return leaf
    state = torch._C._get_tracing_state()
    if state is None:
        return leaf.clone()
    value = torch._C._get_value_trace(leaf)
    torch._C._set_tracing_state(None)
    copy = leaf.clone()
    torch._C._set_tracing_state(state)
    torch._C._set_value_trace(copy, value)
    return copy


@contextmanager
def _undisturbed(model: Any) -> Iterator[None]:
    """Calls within leave buffers and random numbers as they were."""
    import torch

    kept = {name: values.clone() for name, values in _state(model).items()}
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            with torch.no_grad():
                for name, values in _state(model).items():
                    values.copy_(kept[name])


def _look(flat: Any, examples: tuple[Any, ...]) -> list[Any]:
    """Where outputs are in the module's result, of a call that refuses what a graph cannot say."""
    import torch

    from ortc.torch._checks import check_graph

    with torch.enable_grad():
        results = flat(*examples)
    check_graph(results)
    return list(flat.paths)


def update(model: Any, values: Mapping[str, NDArray[Any]]) -> Any:
    import torch

    tensors = _tensors(model)
    with torch.no_grad():
        for name, new in values.items():
            tensors[name].copy_(torch.from_numpy(new))
    return model
