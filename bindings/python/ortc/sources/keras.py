"""Models of Keras 3, by the exporter of their backend: jax2onnx, or PyTorch's. Tensors have the paths of Keras' variables.

Keras exports what a model predicts. With the backend of PyTorch, batch normalisations and dropouts are written as what they do in
training; jax2onnx has no words for that.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ortc._errors import CompileError
from ortc.sources import Export, Inputs, name_inputs, need


def names(model: Any) -> dict[str, tuple[int, ...]]:
    return {each.path: tuple(each.shape) for each in model.variables}


def export(model: Any, inputs: Inputs | None, batch: int | None, folder: str) -> Export:
    need("onnx", "a Keras model")
    import keras

    if not model.built:
        raise CompileError("the Keras model has no weights yet: call it on a batch, or give it an Input")
    arrays, call = _describe_inputs(model, inputs, batch)
    if keras.config.backend() == "jax":
        return _export_jax(model, arrays, call, batch, folder)
    if keras.config.backend() == "torch":
        return _export_torch(model, arrays, call, batch, folder)
    raise CompileError(f"Keras' backend {keras.config.backend()} is not exported; start with KERAS_BACKEND=torch, or jax")


def _describe_inputs(model: Any, inputs: Inputs | None, batch: int | None) -> tuple[dict[str, NDArray[Any]], Callable[..., Any]]:
    """Arrays by name, and a function that calls the model, or what stands for it, with tensors by name."""
    declared = getattr(model, "inputs", None)
    if not declared:
        if inputs is None:
            raise CompileError("this Keras model does not say what it takes: inputs=(x,), or a dict by name")
        given, positional = name_inputs(model.call, (), inputs)
        arrays = {name: np.asarray(value) for name, value in given.items()}

        def call(function: Any, tensors: Mapping[str, Any]) -> Any:
            rest = dict(tensors)
            return function(*[rest.pop(name) for name in list(rest)[:positional]], **rest)

        return arrays, call
    known = [each.name for each in declared]
    if inputs is None:
        shapes: list[tuple[Any, ...]] = [(batch, *each.shape[1:]) for each in declared]
        if any(size is None for shape in shapes for size in shape):
            raise CompileError('sizes of inputs are not known: inputs=(x,), or shapes={"batch": 64}')
        arrays = {each.name: np.zeros([size or 0 for size in shape], each.dtype) for each, shape in zip(declared, shapes, strict=True)}
    else:
        values = inputs if isinstance(inputs, Mapping) else dict(zip(known, inputs, strict=True))
        arrays = {name: np.asarray(values[name]) for name in known}
    arrays = {name: values.astype(each.dtype) for (name, values), each in zip(arrays.items(), declared, strict=True)}
    return arrays, lambda function, tensors: function(list(tensors.values()) if len(tensors) > 1 else next(iter(tensors.values())))


def _export_jax(model: Any, arrays: dict[str, NDArray[Any]], call: Callable[..., Any], batch: int | None, folder: str) -> Export:
    from ortc.sources import jax

    for layer in _list_training_layers(model, arrays, call):
        raise CompileError(
            f"layer '{layer.name}' ({type(layer).__name__}) does in training what jax2onnx does not write; start with KERAS_BACKEND=torch"
        )
    trained, others = model.trainable_variables, model.non_trainable_variables
    count = len(trained)

    def call_all(weights: list[Any], tensors: list[Any]) -> Any:
        def predict(*values: Any, **named: Any) -> Any:
            return model.stateless_call(weights[:count], weights[count:], *values, training=False, **named)[0]

        return call(predict, dict(zip(arrays, tensors, strict=True)))

    weights = {each.path: each.value for each in (*trained, *others)}
    return jax.write(call_all, weights, [each.path for each in trained], arrays, batch, folder)


def _export_torch(model: Any, arrays: dict[str, NDArray[Any]], call: Callable[..., Any], batch: int | None, folder: str) -> Export:
    import torch as torch_package

    from ortc.sources import torch

    paths = {id(each.value): each.path for each in model.variables}
    places = {name: paths[id(each)] for name, each in model.named_parameters() if id(each) in paths}
    tensors = {name: torch_package.from_numpy(values) for name, values in arrays.items()}

    def call_model(given: Mapping[str, Any]) -> Any:
        with _plain_sizes():
            return call(model, given)

    with _written_for_training(_list_training_layers(model, arrays, call)):
        return torch.write(
            model,
            call_model,
            tensors,
            batch,
            folder,
            places,
            [each.path for each in model.trainable_variables],
        )


def _list_training_layers(model: Any, arrays: dict[str, NDArray[Any]], call: Callable[..., Any]) -> list[Any]:
    """Layers that do something else in training than in prediction: those whose state a step of training changes, or that drop
    (with PyTorch's random numbers, which are no state of theirs)."""
    from keras import ops, tree

    weights = [[each.value for each in variables] for variables in (model.trainable_variables, model.non_trainable_variables)]
    tensors = {name: ops.convert_to_tensor(values) for name, values in arrays.items()}

    def run(training: bool) -> list[NDArray[Any]]:
        result, state = call(lambda *values, **named: model.stateless_call(*weights, *values, training=training, **named), tensors)
        return [ops.convert_to_numpy(each) for each in (*state, *tree.flatten(result))]

    pairs = list(zip(run(False), run(True), strict=True))
    state = model.non_trainable_variables
    changed = {id(each) for each, (old, new) in zip(state, pairs) if (old != new).any()}
    found = []
    for layer in model._flatten_layers():
        own = [*layer._non_trainable_variables, *(each.state for each in layer._seed_generators)]
        drops = layer._seed_generators and any(getattr(layer, key, 0) for key in ("rate", "dropout", "recurrent_dropout"))
        if drops or any(id(each) in changed for each in own):
            found.append(layer)
    if not found and not all(np.allclose(old, new, equal_nan=True) for old, new in pairs):
        raise CompileError("the Keras model computes something else in training than in prediction, and none of its layers says why")
    return found


@contextmanager
def _written_for_training(layers: list[Any]) -> Iterator[None]:
    """The layers compute, with PyTorch, what they do in training."""
    import keras

    replaced = []
    try:
        for layer in layers:
            if isinstance(layer, keras.layers.BatchNormalization) and not layer.renorm:
                function = _norm(layer)
            elif type(layer) is keras.layers.Dropout and layer.noise_shape is None:
                function = _dropout(layer)
            else:
                raise CompileError(f"layer '{layer.name}' ({type(layer).__name__}) does in training what is not written in ONNX")
            object.__setattr__(layer, "call", function)
            replaced.append(layer)
        yield
    finally:
        for layer in replaced:
            object.__delattr__(layer, "call")


def _plain_sizes() -> Any:
    """While PyTorch traces, sizes are tensors. Keras hands them to code that takes only numbers, so that all but the leading one, which
    may be the batch, become numbers."""
    import torch

    from ortc.torch._tracing import untraced

    class Sizes(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            if torch._C._get_tracing_state() is None or function != torch.Tensor.shape.__get__:  # type: ignore[attr-defined]
                return result
            return (*tuple(result)[:1], *untraced(function)(args[0])[1:])

    return Sizes()


def _norm(layer: Any) -> Callable[..., Any]:
    import torch.nn.functional as F

    def call(inputs: Any, training: Any = None, mask: Any = None) -> Any:
        if mask is not None:
            raise CompileError(f"layer '{layer.name}' normalises with a mask, which ONNX does not")
        axis = layer.axis % inputs.ndim
        values = F.batch_norm(
            inputs.movedim(axis, 1),
            layer.moving_mean.value,
            layer.moving_variance.value,
            layer.gamma.value if layer.scale else None,
            layer.beta.value if layer.center else None,
            training=True,
            momentum=1 - layer.momentum,
            eps=layer.epsilon,
        )
        return values.movedim(1, axis)

    return call


def _dropout(layer: Any) -> Callable[..., Any]:
    import torch.nn.functional as F

    return lambda inputs, training=None: F.dropout(inputs, layer.rate, training=True)


def update(model: Any, values: Mapping[str, NDArray[Any]]) -> Any:
    for each in model.variables:
        if each.path in values:
            each.assign(values[each.path])
    return model
