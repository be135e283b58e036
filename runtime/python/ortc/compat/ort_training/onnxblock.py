"""Blocks that build graphs node by node are not here: each name says what to use.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

from ortc.compat.ort_training._notes import refuse

INSTEAD = (
    "generate_artifacts takes loss='huber', loss={'boxes': 'smooth_l1@boxes', 'classes': 'cross_entropy@logits'} and "
    "optimizer='lion:lr=1e-4', as `ortc train` has them; or compute the loss in the model, as one of its outputs, and give "
    "loss=None, loss_input_names=[NAME]"
)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    refuse(f"onnxblock.{name}", INSTEAD)
