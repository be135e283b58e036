"""Blocks of optimizers: models without nodes, with the flag of `ortc train` in their metadata.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ortc._errors import ArgumentError, StateError
from ortc.compat.ort_training._missing import refuse_name
from ortc.compat.ort_training._notes import refuse
from ortc.compat.ort_training._optimizers import Update, describe_optimizer, make_adamw

if TYPE_CHECKING:
    import onnx

__all__ = ["SGD", "AdamW", "ClipGradNorm"]


class ClipGradNorm:
    """Of all gradients, for an optimizer's `clip_grad`."""

    def __init__(self, max_norm: float) -> None:
        self.max_norm = max_norm


def _norm_of(clip_grad: ClipGradNorm | None) -> float | None:
    if clip_grad is not None and not isinstance(clip_grad, ClipGradNorm):
        raise ArgumentError(f"onnxblock.optim: clip_grad is {clip_grad!r}, but must be a ClipGradNorm, such as ClipGradNorm(1.0)")
    return None if clip_grad is None else float(clip_grad.max_norm)


class Optimizer:
    def __init__(self, update: Update) -> None:
        self.update = update
        self._is_built = False

    def __call__(self, parameters: Any) -> None:
        self._is_built = True

    def to_model_proto(self) -> onnx.ModelProto:
        if not self._is_built:
            raise StateError("an optimizer is called with the parameters of a TrainingBlock before its model is taken")
        return describe_optimizer(self.update)


class AdamW(Optimizer):
    """That of transformers, as there."""

    def __init__(
        self,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        clip_grad: ClipGradNorm | None = None,
    ) -> None:
        if not bias_correction:
            refuse("onnxblock.optim.AdamW(bias_correction=False)", "AdamW corrects the bias of its averages")
        super().__init__(make_adamw(betas, eps, weight_decay, _norm_of(clip_grad)))


class SGD(Optimizer):
    def __init__(self, clip_grad: ClipGradNorm | None = None) -> None:
        super().__init__(Update("sgd:lr=0.001", _norm_of(clip_grad)))


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    refuse_name(f"onnxblock.optim.{name}", f"there are {', '.join(__all__)}; generate_artifacts(optimizer='lion:lr=1e-4') takes the optimizers of `ortc train`")
