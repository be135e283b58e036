"""Optimizers of artifacts, as flags of `ortc train`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ortc._errors import ArgumentError

if TYPE_CHECKING:
    import onnx

_KEY = "ortc.compat.optimizer"
_OF_TRANSFORMERS = "ortc.compat.optimizer.transformers"


@dataclass(frozen=True)
class Update:
    flag: str
    clip_norm: float | None = None
    """Of all gradients."""
    is_of_transformers: bool = False
    """AdamW as transformers has it; its epsilon and decay are Module's to set."""

    @property
    def flags(self) -> dict[str, Any]:
        return {"optimizer": self.flag} | ({} if self.clip_norm is None else {"clip_norm": self.clip_norm})


def make_adamw(
    betas: Any = (0.9, 0.999), eps: float = 1e-6, weight_decay: float = 0.0, clip_norm: float | None = None
) -> Update:
    """That of transformers."""
    beta1, beta2, epsilon, decay = (repr(float(each)) for each in (*betas, eps, weight_decay))
    flag = f"adamw:lr=0.001,beta1={beta1},beta2={beta2},epsilon={epsilon},weight_decay={decay}"
    return Update(flag, clip_norm, is_of_transformers=True)


def is_of_transformers(file: bytes) -> bool:
    """Whether a model of describe_optimizer is of such an AdamW; read without the package onnx, which devices do without."""
    return _OF_TRANSFORMERS.encode() in file


def find_rate(flag: str) -> float | None:
    """The learning rate that a flag of an optimizer gives."""
    found = re.search(r"[:,]lr=([^,]+)", flag)
    return float(found[1]) if found else None


def describe_optimizer(update: Update) -> onnx.ModelProto:
    """A model without nodes, with the flag in its metadata."""
    import onnx

    described = onnx.helper.make_model(onnx.helper.make_graph([], "optimizer", [], []), producer_name="ortc")
    described.metadata_props.add(key=_KEY, value=update.flag)
    if update.clip_norm is not None:
        described.metadata_props.add(key=f"{_KEY}.flags", value=json.dumps({"clip_norm": update.clip_norm}))
    if update.is_of_transformers:
        described.metadata_props.add(key=_OF_TRANSFORMERS, value="1")
    return described


def read_optimizer(path: str) -> dict[str, Any]:
    """The flags of a model of describe_optimizer."""
    import onnx

    found = {each.key: each.value for each in onnx.load(path).metadata_props}
    if _KEY not in found:
        raise ArgumentError(f"{path}: is no optimizer model of generate_artifacts or onnxblock.optim")
    return {"optimizer": found[_KEY], **json.loads(found.get(f"{_KEY}.flags", "{}"))}
