"""Losses that PyTorch's exporter has no rule for and no formula stands for: each says what to do.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ortc._errors import CompileError


def _refuse(name: str, more: str = "") -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise CompileError(f"{name} is not compiled: let the module give what it takes, and compute it outside{more}")

    return refuse


REFUSED: list[tuple[Any, str, Callable[..., Any]]] = [
    (torch, "ctc_loss", _refuse("ctc_loss", " (or train the exported model with ortc train --loss ctc)")),
    (torch._C._nn, "multilabel_margin_loss", _refuse("multilabel_margin_loss")),
]
"""Where PyTorch has each, under which name, and the function in its place while a module is traced."""
