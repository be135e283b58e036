"""Operators of PyTorch that its exporter to ONNX has no rule for, or one whose numbers or gradients are others somewhere.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch

from ortc.torch._symbolics import attention, composed, dropouts, elementwise, gradients, losses, norms, places, products, reductions
from ortc.torch._symbolics.build import OPSET

__all__ = ["OPSET", "register", "unregister"]


def _rules() -> dict[str, Any]:
    """By names of PyTorch's operators; those of another domain than `aten` have it before them."""
    parts = (attention, dropouts, elementwise, gradients, losses, norms, places, products, reductions)
    own = {name: rule for part in parts for name, rule in part.RULES.items()}
    return {**composed.rules(own), **own}


_registered: list[str] = []


def register() -> None:
    """In the process that exports."""
    for name, symbolic in _rules().items():
        full = name if "::" in name else f"aten::{name}"
        torch.onnx.register_custom_op_symbolic(full, symbolic, OPSET)
        _registered.append(full)


def unregister() -> None:
    """Takes back what register has done, in a process that goes on."""
    while _registered:
        torch.onnx.unregister_custom_op_symbolic(_registered.pop(), OPSET)
