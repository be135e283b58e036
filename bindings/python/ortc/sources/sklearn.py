"""Perceptrons of scikit-learn: MLPClassifier and MLPRegressor, with the loss, the optimizer and the penalty that they say.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ortc._errors import CompileError
from ortc.sources import Export, Inputs, _graph, need

_OPSET = 17
_AUTO_ROWS = 200
"""The value of batch_size="auto", for data of so many rows at least."""
_ACTIVATIONS = {"identity": "Identity", "logistic": "Sigmoid", "tanh": "Tanh", "relu": "Relu"}


def names(model: Any) -> dict[str, tuple[int, ...]]:
    return {name: values.shape for name, values in _weights(model).items()}


def _weights(model: Any) -> dict[str, NDArray[Any]]:
    if not hasattr(model, "coefs_"):
        raise CompileError(f"the {type(model).__name__} has no weights yet: call its partial_fit on a first batch")
    weights = {f"coefs_.{i}": values for i, values in enumerate(model.coefs_)}
    return weights | {f"intercepts_.{i}": values for i, values in enumerate(model.intercepts_)}


def export(model: Any, inputs: Inputs | None, batch: int | None, folder: str) -> Export:
    onnx = need("onnx", "a model of scikit-learn")
    weights = _weights(model)
    if model.solver not in ("adam", "sgd"):
        raise CompileError(f"the solver '{model.solver}' of {type(model).__name__} is not compiled; adam and sgd are")
    rows = batch if batch is not None else _AUTO_ROWS if model.batch_size == "auto" else int(model.batch_size)
    helper = onnx.helper
    nodes, value = [], "x"
    for i in range(len(model.coefs_)):
        nodes.append(helper.make_node("Gemm", [value, f"coefs_.{i}", f"intercepts_.{i}"], [f"layer.{i}"]))
        value = f"layer.{i}"
        if i + 1 < len(model.coefs_):
            nodes.append(helper.make_node(_ACTIVATIONS[model.activation], [value], [f"hidden.{i}"]))
            value = f"hidden.{i}"
    outputs = _add_outputs(helper, nodes, model, value)
    features, units = model.coefs_[0].shape[0], model.coefs_[-1].shape[1]
    single = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        type(model).__name__,
        [helper.make_tensor_value_info("x", single, ["batch", features])],
        [helper.make_tensor_value_info(name, single, ["batch", width or units]) for name, width in outputs.items()],
        [onnx.numpy_helper.from_array(values.astype(np.float32), name) for name, values in weights.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)
    _graph.set_trained(proto, weights)
    path = os.path.join(folder, "model.onnx")
    onnx.save(proto, path)
    return Export(path, {"batch": rows}, _describe_training(model, next(iter(outputs)), rows, units))


def _add_outputs(helper: Any, nodes: list[Any], model: Any, value: str) -> dict[str, int]:
    """Names and widths of outputs (0: that of the last layer), what the loss reads first."""
    kind = model.out_activation_
    if kind in ("identity", "exp"):
        nodes.append(helper.make_node("Identity" if kind == "identity" else "Exp", [value], ["output"]))
        return {"output": 0}
    nodes.append(helper.make_node("Identity", [value], ["logits"]))
    if kind == "softmax":
        nodes.append(helper.make_node("Softmax", [value], ["probabilities"], axis=1))
        return {"logits": 0, "probabilities": 0}
    is_binary = model.n_outputs_ == 1 and len(model.classes_) == 2
    nodes.append(helper.make_node("Sigmoid", [value], ["positive" if is_binary else "probabilities"]))
    if is_binary:  # of both classes, as predict_proba gives them
        nodes.append(helper.make_node("Neg", [value], ["opposite"]))
        nodes.append(helper.make_node("Sigmoid", ["opposite"], ["negative"]))
        nodes.append(helper.make_node("Concat", ["negative", "positive"], ["probabilities"], axis=1))
    return {"logits": 0, "probabilities": 2 if is_binary else 0}


def _describe_training(model: Any, output: str, rows: int, units: int) -> dict[str, Any]:
    """Flags that train as the model's own `partial_fit` does.

    scikit-learn sums a loss over outputs, halves squares, and means over rows; losses here are means over all. Gradients are
    `scale` times those of scikit-learn then, which rates and penalties take back: steps are the same."""
    if model.out_activation_ == "softmax":
        loss, scale = "cross_entropy", 1.0
    elif model.out_activation_ == "logistic":
        loss, scale = "bce_with_logits", 1.0 / units
    elif model.out_activation_ == "identity":
        loss, scale = "mse", 2.0 / units
    else:
        raise CompileError(f"the loss '{model.loss}' of {type(model).__name__} is not compiled; squared_error is")
    decay = scale * float(model.alpha) / rows
    rate = float(model.learning_rate_init)
    if model.solver == "sgd":
        kept, nesterov = float(model.momentum), int(model.nesterovs_momentum and model.momentum > 0)
        optimizer = f"sgd:lr={rate / scale!r},momentum={kept!r},nesterov={nesterov},weight_decay={decay!r}"
    else:
        betas = f"beta1={float(model.beta_1)!r},beta2={float(model.beta_2)!r}"
        epsilon = f"epsilon={float(model.epsilon) * scale!r},epsilon_hat=1"
        optimizer = f"adam:lr={rate!r},{betas},{epsilon},weight_decay={decay!r}"
    return {"loss": loss, "loss_input": output, "optimizer": optimizer, "group": ["intercepts_.*:weight_decay=0"]}


def labels(model: Any, y: Any) -> NDArray[Any]:
    """Labels as a session takes them: indices into classes_, or float32 of shape (rows, outputs)."""
    values = np.asarray(y)
    if not hasattr(model, "classes_"):  # a regressor
        return values.astype(np.float32).reshape(len(values), -1)
    found = model._label_binarizer.transform(values)
    if model.out_activation_ == "softmax":
        return np.asarray(found).argmax(1).astype(np.int64)
    return np.asarray(found).astype(np.float32).reshape(len(values), -1)


def update(model: Any, values: Mapping[str, NDArray[Any]]) -> Any:
    for name, new in values.items():
        kind, number = name.split(".")
        old = getattr(model, kind)[int(number)]
        getattr(model, kind)[int(number)] = new.astype(old.dtype)
    return model
