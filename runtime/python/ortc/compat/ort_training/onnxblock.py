"""Blocks that build graphs node by node are not here: each name says what to use.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

from ortc.compat.ort_training._notes import refuse

INSTEAD = (
    "compute the loss in the model, as one of its outputs, and give generate_artifacts loss=None, loss_input_names=[NAME] "
    "(`ortc train --loss output:NAME`); other optimizers are those of `ortc train --optimizer` with ortc.Session"
)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    refuse(f"onnxblock.{name}", INSTEAD)
