"""Functions of JAX with their parameters, a pytree of arrays that is the first argument, by jax2onnx.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ortc._errors import CompileError
from ortc.sources import Export, Inputs, _graph, _windows, name_inputs, name_outputs, need

_OPSET = 21


def _leaves(parameters: Any) -> dict[str, Any]:
    """Arrays by their path, such as `layers/0/kernel`, in the order of the tree."""
    from jax import tree_util

    found = tree_util.tree_flatten_with_path(parameters)[0]
    return {tree_util.keystr(path, simple=True, separator="/") or "parameters": leaf for path, leaf in found}


def names(model: tuple[Callable[..., Any], Any]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(np.shape(leaf)) for name, leaf in _leaves(model[1]).items()}


def export(model: tuple[Callable[..., Any], Any], inputs: Inputs | None, batch: int | None, folder: str) -> Export:
    if inputs is None:
        raise CompileError("a function of JAX needs examples of what it takes beside its parameters: inputs=(x,), or a dict by name")
    need("jax", "a function of JAX")
    from jax import tree_util

    function, parameters = model
    given, positional = name_inputs(function, (parameters,), inputs)
    arrays = {name: np.asarray(value) for name, value in given.items() if hasattr(value, "shape")}
    tree = tree_util.tree_structure(parameters)

    def call(leaves: list[Any], tensors: list[Any]) -> Any:
        values = {**given, **dict(zip(arrays, tensors, strict=True))}
        return function(tree_util.tree_unflatten(tree, leaves), *[values.pop(name) for name in list(values)[:positional]], **values)

    weights = _leaves(parameters)
    trained = [name for name, leaf in weights.items() if np.dtype(leaf.dtype).kind == "f"]
    return write(call, weights, trained, arrays, batch, folder)


def write(
    call: Callable[[list[Any], list[Any]], Any],
    weights: Mapping[str, Any],
    trained: list[str],
    inputs: Mapping[str, NDArray[Any]],
    batch: int | None,
    folder: str,
) -> Export:
    """`call`: from weights and inputs to a result. `trained`: names of weights."""
    jax2onnx = need("jax2onnx", "a function of JAX")
    onnx = need("onnx", "a function of JAX")
    import jax

    count = len(weights)
    shape = jax.eval_shape(lambda *given: call(list(given[:count]), list(given[count:])), *weights.values(), *inputs.values())
    leaves = jax.tree_util.tree_flatten_with_path(shape)[0]
    outputs = name_outputs([[jax.tree_util.keystr((key,), simple=True) for key in path] for path, _ in leaves], inputs)
    examples = [jax.ShapeDtypeStruct(np.shape(leaf), jax.dtypes.canonicalize_dtype(leaf.dtype)) for leaf in weights.values()]
    for value in inputs.values():
        rows = value.shape if batch is None else ("batch", *value.shape[1:])
        examples.append(jax.ShapeDtypeStruct(rows, jax.dtypes.canonicalize_dtype(value.dtype)))
    try:
        with _forward_scans():
            proto = jax2onnx.to_onnx(
                lambda *given: tuple(jax.tree_util.tree_leaves(call(list(given[:count]), list(given[count:])))),
                examples,
                input_names=[*weights, *inputs],
                output_names=outputs,
                opset=_OPSET,
            )
    except Exception as error:
        raise CompileError(f"jax2onnx cannot export the function: {error}") from error
    _windows.rewrite(proto)
    _graph.lift(proto, {name: np.asarray(leaf) for name, leaf in weights.items()})
    _graph.set_trained(proto, trained)
    path = os.path.join(folder, "model.onnx")
    onnx.save(proto, path)
    return Export(path, {} if batch is None else {"batch": batch})


@contextmanager
def _forward_scans() -> Iterator[None]:
    """jax2onnx has no scan from the end: one from the beginning, over what was turned round, is the same."""
    import jax
    import jax.numpy as jnp

    own = jax.lax.scan

    def scan(f: Any, init: Any, xs: Any = None, length: Any = None, reverse: bool = False, **options: Any) -> Any:
        if not reverse:
            return own(f, init, xs, length, **options)

        def turn(tree: Any) -> Any:
            return jax.tree_util.tree_map(lambda each: jnp.flip(each, 0), tree)

        carry, ys = own(f, init, turn(xs), length, **options)
        return carry, turn(ys)

    jax.lax.scan = scan
    try:
        yield
    finally:
        jax.lax.scan = own


def update(model: tuple[Callable[..., Any], Any], values: Mapping[str, NDArray[Any]]) -> tuple[Callable[..., Any], Any]:
    import jax

    leaves = []
    for name, leaf in _leaves(model[1]).items():
        new = values.get(name)
        if new is not None:
            leaf = new.astype(leaf.dtype) if isinstance(leaf, np.ndarray) else jax.numpy.asarray(new, leaf.dtype)
        leaves.append(leaf)
    return model[0], jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(model[1]), leaves)
