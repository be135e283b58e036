"""Where gradients go otherwise than operators say.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

from ortc.torch._symbolics.build import detach, straight_through


def _detach(g: Any, x: Any) -> Any:
    """torch.detach."""
    from torch.onnx import symbolic_helper as helper

    return detach(g, x) if helper._is_fp(x) else x


RULES: dict[str, Any] = {"detach": _detach, "ortc::straight_through": straight_through}
