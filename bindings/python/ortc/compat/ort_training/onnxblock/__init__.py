"""Blocks that build losses node by node, for generate_artifacts and by themselves. What ortc trains is the graph with the loss
in it, as `ortc train --loss output:NAME` does; gradients and updates are no nodes here.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import importlib
import os
from typing import TYPE_CHECKING, Any

from ortc._errors import ArgumentError, StateError
from ortc.compat.ort_training._graphs import add_outputs, describe_training, keep_outputs, list_parameters, make_evaluated, write_checkpoint
from ortc.compat.ort_training._missing import refuse_name
from ortc.compat.ort_training.onnxblock._base import Block, base, empty_base

if TYPE_CHECKING:
    import onnx

    from ortc.compat.ort_training.onnxblock import blocks, loss, optim

__all__ = ["Block", "ForwardBlock", "TrainingBlock", "base", "blocks", "empty_base", "loss", "optim", "save_checkpoint"]

INSTEAD = (
    "generate_artifacts takes blocks of onnxblock, loss='huber', loss={'boxes': 'smooth_l1@boxes', 'classes': "
    "'cross_entropy@logits'} and optimizer='lion:lr=1e-4', as `ortc train` has them; or compute the loss in the model, as one of "
    "its outputs, and give loss=None, loss_input_names=[NAME]"
)


def names_of(output: Any) -> tuple[str, ...]:
    """What a block has given, in names of values."""
    names = tuple(output) if isinstance(output, (tuple, list)) else (output,)
    if not names or not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"onnxblock: `build` of a block has given {output!r}, but must give the name of a value, or several")
    return names


class ForwardBlock(Block):
    """A block whose outputs are those of the model."""

    _model: onnx.ModelProto | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        output = super().__call__(*args, **kwargs)
        add_outputs(self.base, names_of(output))
        keep_outputs(self.base, names_of(output))
        self._model = copy.deepcopy(self.base)
        return output

    def to_model_proto(self) -> onnx.ModelProto:
        if self._model is None:
            raise StateError("the block has built no model yet: call it within `with onnxblock.base(model):`")
        return self._model


class Parameters(tuple[list[Any], list[Any]]):
    """Those that are trained, and those that are frozen, for save_checkpoint."""

    outputs: tuple[str, ...]
    """Beside the loss."""


class TrainingBlock(Block):
    """A block whose first output is the loss that is trained."""

    _output: tuple[str, ...] | None = None
    _model: onnx.ModelProto

    @property
    def _chosen(self) -> dict[str, bool]:
        chosen: dict[str, bool] = self.__dict__.setdefault("_requires_grad", {})
        return chosen

    def requires_grad(self, argument_name: str, value: bool = True) -> None:
        self._chosen[argument_name] = value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        output = super().__call__(*args, **kwargs)
        self._output = names_of(output)
        self._model = copy.deepcopy(self.base)
        return output

    def _check(self) -> tuple[str, ...]:
        if self._output is None:
            raise StateError("the block has built no model yet: call it within `with onnxblock.base(model):`")
        return self._output

    def parameters(self) -> Parameters:
        output = self._check()
        trained, frozen = ([name for name, value in self._chosen.items() if value is wanted] for wanted in (True, False))
        found = Parameters(list_parameters(self._model, trained, frozen))
        found.outputs = output[1:]
        return found

    def to_model_proto(self) -> tuple[onnx.ModelProto, onnx.ModelProto]:
        """What generate_artifacts writes; the optimizer is that of the optimizer model which the Module gets."""
        output, trained = self._check(), [name for name, value in self._chosen.items() if value]
        self.parameters()
        model = copy.deepcopy(self._model)
        add_outputs(model, output)
        describe_training(model, trained, {"loss": f"output:{output[0]}", "gradients": True})
        return model, make_evaluated(self._model, output)


def save_checkpoint(parameters: Parameters, path_to_checkpoint: str | os.PathLike[str]) -> None:
    """What CheckpointState.load_checkpoint reads, of parameters of a TrainingBlock."""
    import onnx

    trained, frozen = parameters
    tensors = {each.name: onnx.numpy_helper.to_array(each) for each in (*trained, *frozen)}
    write_checkpoint(path_to_checkpoint, [each.name for each in trained], tensors, getattr(parameters, "outputs", ()))


def __getattr__(name: str) -> Any:
    if name in ("blocks", "loss", "optim"):
        return importlib.import_module(f"{__name__}.{name}")
    if name.startswith("__"):
        raise AttributeError(name)
    refuse_name(f"onnxblock.{name}", INSTEAD)
