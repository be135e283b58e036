"""Optimizers of artifacts, as flags of `ortc train`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ortc._errors import ArgumentError

if TYPE_CHECKING:
    import onnx

_KEY = "ortc.compat.optimizer"
_ADAMW = "adamw:lr=0.001,beta1={},beta2={},epsilon={},weight_decay={}"


def write_adamw(betas: Any = (0.9, 0.999), eps: float = 1e-6, weight_decay: float = 0.0) -> str:
    """The AdamW of transformers; its epsilon is Module's to set."""
    return _ADAMW.format(*(repr(float(each)) for each in (*betas, eps, weight_decay)))


def is_of_transformers(flag: str) -> bool:
    """Whether write_adamw has written it."""
    return re.fullmatch(_ADAMW.replace("{}", "[^,]+"), flag) is not None


def find_rate(flag: str) -> float | None:
    """The learning rate that a flag of an optimizer gives."""
    found = re.search(r"[:,]lr=([^,]+)", flag)
    return float(found[1]) if found else None


def describe_optimizer(flag: str, clip_norm: float | None = None) -> onnx.ModelProto:
    """A model without nodes, with the flag in its metadata."""
    import onnx

    described = onnx.helper.make_model(onnx.helper.make_graph([], "optimizer", [], []), producer_name="ortc")
    described.metadata_props.add(key=_KEY, value=flag)
    if clip_norm is not None:
        described.metadata_props.add(key=f"{_KEY}.flags", value=json.dumps({"clip_norm": clip_norm}))
    return described


def read_optimizer(path: str) -> dict[str, Any]:
    """The flags of a model of describe_optimizer."""
    import onnx

    found = {each.key: each.value for each in onnx.load(path).metadata_props}
    if _KEY not in found:
        raise ArgumentError(f"{path}: is no optimizer model of generate_artifacts or onnxblock.optim")
    return {"optimizer": found[_KEY], **json.loads(found.get(f"{_KEY}.flags", "{}"))}
