"""Blocks of losses. A label is an input of the model, which the first block that names it makes.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ortc._errors import ArgumentError
from ortc.compat.ort_training._missing import refuse_name
from ortc.compat.ort_training.onnxblock._base import Block, add_constant, add_input, add_node, has_value

__all__ = ["BCEWithLogitsLoss", "CrossEntropyLoss", "L1Loss", "MSELoss"]


def _check_reduction(reduction: str) -> str:
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError(f"reduction is '{reduction}', but must be mean, sum or none")
    return reduction


def _reduce(name: str, reduction: str) -> str:
    if reduction == "none":
        return name
    return add_node("ReduceMean" if reduction == "mean" else "ReduceSum", [name], keepdims=0)


class _Elementwise(Block):
    def __init__(self, reduction: str = "mean") -> None:
        self._reduction = _check_reduction(reduction)

    def _find_target(self, loss_input_name: str, target_name: str) -> str:
        if not has_value(target_name):
            add_input(target_name, loss_input_name)
        return target_name


class MSELoss(_Elementwise):
    def build(self, loss_input_name: str, target_name: str = "target") -> str:
        difference = add_node("Sub", [loss_input_name, self._find_target(loss_input_name, target_name)])
        return _reduce(add_node("Mul", [difference, difference]), self._reduction)


class L1Loss(_Elementwise):
    def build(self, loss_input_name: str, target_name: str = "target") -> str:
        difference = add_node("Sub", [loss_input_name, self._find_target(loss_input_name, target_name)])
        return _reduce(add_node("Abs", [difference]), self._reduction)


class BCEWithLogitsLoss(_Elementwise):
    """-pos_weight y log(s(x)) - (1 - y) log(1 - s(x)) with log(s(x)) = -softplus(-x), which no logit makes infinite."""

    def __init__(self, weight: Any = None, reduction: str = "mean", pos_weight: Any = None) -> None:
        super().__init__(reduction)
        self._weight, self._pos_weight = weight, pos_weight

    def build(self, loss_input_name: str, target_name: str = "target") -> str:
        target = self._find_target(loss_input_name, target_name)
        positive = add_node("Mul", [add_node("Softplus", [add_node("Neg", [loss_input_name])]), target])
        if self._pos_weight is not None:
            positive = add_node("Mul", [positive, add_constant(np.asarray(self._pos_weight, np.float32))])
        others = add_node("Sub", [add_constant(np.float32(1)), target])
        loss = add_node("Add", [positive, add_node("Mul", [add_node("Softplus", [loss_input_name]), others])])
        if self._weight is not None:
            loss = add_node("Mul", [loss, add_constant(np.asarray(self._weight, np.float32))])
        return _reduce(loss, self._reduction)


class CrossEntropyLoss(Block):
    """Of logits with the classes in axis 1, and class indices of int64."""

    def __init__(self, weight: Any = None, reduction: str = "mean", ignore_index: int | None = None) -> None:
        self._weight, self._reduction, self._ignore_index = weight, _check_reduction(reduction), ignore_index

    def build(self, scores_input_name: str, labels_name: str = "labels") -> str:
        import onnx

        if not has_value(labels_name):
            given = add_input(labels_name, scores_input_name).type.tensor_type
            given.elem_type = onnx.TensorProto.INT64
            if len(given.shape.dim) < 2:
                raise ArgumentError(f"CrossEntropyLoss: '{scores_input_name}' has {len(given.shape.dim)} axes, but its classes are in axis 1")
            del given.shape.dim[1]
        inputs = [scores_input_name, labels_name]
        if self._weight is not None:
            inputs.append(add_constant(np.asarray(self._weight, np.float32)))
        ignored = {} if self._ignore_index is None else {"ignore_index": self._ignore_index}
        return add_node("SoftmaxCrossEntropyLoss", inputs, reduction=self._reduction, **ignored)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    word = re.sub("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name.removesuffix("Loss")).lower()
    refuse_name(f"onnxblock.loss.{name}", f"there are {', '.join(__all__)}; generate_artifacts(loss='{word}') takes the losses of `ortc train`")
