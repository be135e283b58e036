"""Models of other libraries: `ortc.compile` takes them as they are, and `update` puts into them what a session has trained.

    art = ortc.compile(module, inputs=(x,), loss="cross_entropy", optimizer="adamw:lr=1e-3")
    ...
    ortc.sources.update(module, session)

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Each library has a module here with three functions: `export` writes the model as ONNX, in which tensors have the names and
layouts that they have in the library; `names` lists them; `update` takes values by name. A library is imported when a model of
it comes.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ortc import _packages
from ortc._arrays import widen
from ortc._errors import ArgumentError, CompileError, ShapeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ortc._session import Session

_CLASSES = {
    "keras.src.models.model.Model": "keras",  # with its torch backend, it is a torch.nn.Module as well
    "torch.nn.modules.module.Module": "torch",
    "sklearn.neural_network._multilayer_perceptron.BaseMultilayerPerceptron": "sklearn",
}
"""The module here, by the names of classes: of the bases of a model's class, the first that is here counts."""

Inputs = Iterable[Any] | Mapping[str, Any]


@dataclass
class Export:
    """An ONNX file, and how it is compiled where the caller does not say."""

    path: str
    shapes: dict[str, int] = field(default_factory=dict)
    flags: dict[str, Any] = field(default_factory=dict)


class Source(Protocol):
    """What a module here has."""

    export: Callable[[Any, Inputs | None, int | None, str], Export]
    """Model, example inputs, rows of a batch (None: inputs have no such dimension), and a folder for the file."""
    names: Callable[[Any], dict[str, tuple[int, ...]]]
    """Tensors of a model, with their shapes."""
    update: Callable[[Any, Mapping[str, NDArray[Any]]], Any]
    """Puts values into a model, and gives it."""


def find(model: Any) -> Source | None:
    """The module for a model; None where it is of no library that is known."""
    if isinstance(model, tuple) and len(model) == 2 and callable(model[0]):
        return _load("jax")
    for base in type(model).__mro__:
        if name := _CLASSES.get(f"{base.__module__}.{base.__qualname__}"):
            return _load(name)
    return None


def _load(name: str) -> Source:
    return importlib.import_module(f"ortc.sources.{name}")


def need(package: str, what: str) -> Any:
    """Imports a package that exports models."""
    return _packages.need(package, what, CompileError)


def list_values(inputs: Inputs) -> list[Any]:
    """Example inputs in order, by name or not."""
    return list(inputs.values()) if isinstance(inputs, Mapping) else list(inputs)


def name_inputs(function: Callable[..., Any], first: tuple[Any, ...], inputs: Inputs) -> tuple[dict[str, Any], int]:
    """Example inputs by the names that a function has for them, after its `first` arguments; and how many go by position."""
    if isinstance(inputs, Mapping):
        return dict(inputs), 0
    bound = inspect.signature(function).bind(*first, *inputs)
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if bound.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            named |= {f"{name}.{i}": each for i, each in enumerate(value)}
        else:
            named[name] = value
    names = list(named)[len(first) :]
    return {name: named[name] for name in names}, len(names)


def name_outputs(paths: Iterable[Iterable[Any]], inputs: Iterable[str]) -> list[str]:
    """Names of outputs by where they are in a result, such as `logits` or `output.0`; `output` where the result is one."""
    names = [".".join(map(str, path)) for path in paths]
    return [f"output.{name}" if name[:1].isdigit() or name in inputs else name or "output" for name in names]


def find_batch(inputs: Inputs | None, shapes: Iterable[Mapping[str, Any]]) -> int | None:
    """Rows of a batch: what shapes say, else the leading dimension that all example inputs have."""
    for each in shapes:
        if isinstance(rows := each.get("batch"), int):
            return rows
    found = {value.shape[0] if value.shape else None for value in list_values(inputs or ()) if hasattr(value, "shape")}
    return found.pop() if len(found) == 1 else None


def export(model: Any, inputs: Inputs | None, shapes: Iterable[Mapping[str, Any]], folder: str) -> Export:
    """Writes a model into a folder. `shapes`: those of each binding."""
    source = find(model)
    if source is None:
        if steps := getattr(model, "steps", None):  # a Pipeline of scikit-learn
            if isinstance(steps, list) and find(steps[-1][-1]) is not None:
                raise CompileError(
                    f"a {type(model).__qualname__} has steps before its model: compile model[-1], and give it data of model[:-1].transform(x)"
                )
        raise CompileError(
            f"a {type(model).__module__}.{type(model).__qualname__} is no model: give a path, the bytes of an ONNX file, an "
            "onnx.ModelProto, a torch.nn.Module, a Keras model, a pair of a JAX function and its parameters, or an MLP of scikit-learn"
        )
    if hasattr(inputs, "shape") or isinstance(inputs, (str, bytes)):
        raise ArgumentError("inputs is a tuple of example inputs, or a dict of them by name: inputs=(x,)")
    if inputs is not None and not isinstance(inputs, Mapping):
        inputs = tuple(inputs)
    return source.export(model, inputs, find_batch(inputs, shapes), folder)


def labels(model: Any, y: Any) -> NDArray[Any]:
    """Labels of a scikit-learn estimator, names of classes among them, as sessions of it take them: indices into `classes_`, or
    float32 of shape (rows, outputs). Raises ArgumentError for other models, which take labels as they are."""
    source = find(model)
    if source is None or not hasattr(source, "labels"):
        raise ArgumentError(f"a {type(model).__qualname__} takes labels as they are")
    encoded: NDArray[Any] = source.labels(model, y)
    return encoded


def update(model: Any, session: Session) -> Any:
    """Puts what a session has trained into the model that was compiled, running statistics too, and gives the model: the same
    object, or of a JAX function and its parameters a pair with new ones. The session need not be the one of the
    compilation: what counts is the names of tensors."""
    source = find(model)
    if source is None:
        raise ArgumentError(f"a {type(model).__qualname__} takes no weights")
    places = source.names(model)
    values = {}
    for name, tensor in session.artifact.tensors.items():
        if tensor.role not in ("parameter", "state"):
            continue
        if name not in places:
            if tensor.role == "parameter":
                raise ArgumentError(f"the session has trained '{name}', which the model does not have; `ortc export` merges what was added")
            continue
        if tensor.shape != places[name]:
            raise ShapeError(f"'{name}' is {list(tensor.shape)} in the session and {list(places[name])} in the model")
        values[name] = _read(session, name)
    return source.update(model, values)


def _read(session: Session, name: str) -> NDArray[Any]:
    """A copy, in a type that numpy has."""
    values: NDArray[Any] = session.read(name)
    return widen(values) if session.artifact.tensors[name].dtype == "bfloat16" else values
