"""Names of ONNX Runtime Training that are not here, and what is instead.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import dis
import importlib.abc
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn

from ortc._errors import ArgumentError

_HOME = __package__ or ""
MISSING = {
    "amp": "torch.autocast around a compiled module is compiled; parameters stay float32, so that losses need no scale",
    "amp.DynamicLossScaler": "parameters are float32, and losses need no scale",
    "amp.LossScaler": "parameters are float32, and losses need no scale",
    "checkpoint": "ORTTrainer.save_checkpoint and load_checkpoint, or api.CheckpointState",
    "experimental": "ortc.compile(model, gradients=True): the gradients of an artifact are those of ortc.Session.gradients_step",
    "experimental.gradient_graph": "ortc.compile(model, gradients=True): the gradients of an artifact are those of ortc.Session.gradients_step",
    "is_ortmodule_available": "ORTModule is there where PyTorch is",
    "ort_triton": "kernels are compiled and fused in any case",
    "ortmodule.GraphExecutionManagerFactory": "print(ortc.torch.report(module)) says what ran, and why",
    "ortmodule.ONNX_OPSET_VERSION": "compile_ chooses the opset",
    "ortmodule.ORTPipelineModule": "torch.nn.parallel.DistributedDataParallel around the module; parts of one model on several machines there are not",
    "ortmodule.experimental": "ORTModule, or ortc.torch.compile_, of each part",
    "ortmodule.experimental.hierarchical_ortmodule": "ORTModule, or ortc.torch.compile_, of each part",
    "ortmodule.experimental.json_config": "ortc.torch.compile_(model, **flags) takes flags of `ortc train`",
    "ortmodule.experimental.pipe": "torch.nn.parallel.DistributedDataParallel around the module; parts of one model on several machines there are not",
    "ortmodule.torch_cpp_extensions": "nothing is built at the user's side: leave the step out",
    "orttrainer.IODescription": 'ORTTrainer takes a dict: {"inputs": [("x", ["batch", 64])], "outputs": [("loss", [], True)]}',
    "utils.hooks": "hooks of the module itself are called; print(ortc.torch.report(module)) says what ran",
    "PropagateCastOpsStrategy": "leave it out: operators are always fused",
    "TrainingParameters": "generate_artifacts, or ortc.compile, takes what it said as arguments",
}
"""By path in onnxruntime.training."""


class MissingAttribute(ArgumentError, AttributeError):
    """So that hasattr says no."""


class MissingImport(ArgumentError, ImportError):
    """So that `from ... import` shows the text, which it does of no AttributeError."""


def _is_import() -> bool:
    """Whether `from ... import` has called the __getattr__ of a module."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name == "__getattr__":
        frame = frame.f_back
    return frame is not None and frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]


def refuse_name(name: str, instead: str) -> NoReturn:
    """For the __getattr__ of a module."""
    kind = MissingImport if _is_import() else MissingAttribute
    raise kind(f"ortc.compat.ort_training: {name} is not supported: {instead}")


def _find(path: str) -> str | None:
    """The nearest entry."""
    while path and path not in MISSING:
        path = path.rpartition(".")[0]
    return MISSING.get(path)


def answer_for(module: str) -> Callable[[str], Any]:
    """The __getattr__ of a module that has all its names."""

    def __getattr__(name: str) -> Any:
        path = f"{module}.{name}".removeprefix(f"{_HOME}.")
        if instead := _find(path):
            refuse_name(path, instead)
        raise AttributeError(f"module '{module}' has no '{name}': docs/migrating-from-onnxruntime.md lists what there is")

    return __getattr__


class Finder(importlib.abc.MetaPathFinder):
    """The words for modules that are not there."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        if fullname.startswith(f"{_HOME}.") and (instead := _find(fullname.removeprefix(f"{_HOME}."))):
            name = fullname.removeprefix(f"{_HOME}.")
            raise MissingImport(f"ortc.compat.ort_training: {name} is not supported: {instead}")
