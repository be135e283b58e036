"""torch.nn.functional.embedding_bag as operators that every graph has: PyTorch's exporter writes loops whose bounds are data.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from ortc._errors import CompileError


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """As PyTorch's: elements of the padding row are in no bag, empty bags are zeros, and of equal elements the first is the largest."""
    if max_norm is not None or scale_grad_by_freq:
        raise CompileError("embedding_bag with max_norm or scale_grad_by_freq is not compiled")
    if weight.dtype in (torch.int64, torch.int32):  # the older order
        input, weight = weight, input
    rows = F.embedding(input, weight, padding_idx)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[..., None]
    kept = torch.ones_like(input, dtype=torch.bool)
    if padding_idx is not None:
        kept = input != padding_idx % weight.shape[0]
        rows = torch.where(kept[..., None], rows, torch.zeros_like(rows))
    if input.dim() == 2:
        if mode == "max":
            return _largest(rows, kept)
        total = rows.sum(1)
        return total if mode == "sum" else total / kept.sum(1).clamp(min=1)[:, None].to(total.dtype)
    if offsets is None:
        raise CompileError("embedding_bag of one dimension has offsets")
    starts = offsets[:-1] if include_last_offset else offsets
    place = torch.arange(input.shape[0])
    is_behind = place >= starts[:, None]
    bag = is_behind.sum(0) - 1
    if mode == "max":
        is_member = (bag == torch.arange(starts.shape[0])[:, None]) & kept
        return _largest(rows.expand(starts.shape[0], *rows.shape), is_member)
    total = torch.zeros(starts.shape[0], weight.shape[1], dtype=rows.dtype).index_add(0, bag, rows)
    if mode == "sum":
        return total
    count = torch.zeros(starts.shape[0], dtype=rows.dtype).index_add(0, bag, kept.to(rows.dtype))
    return total / count.clamp(min=1)[:, None]


def _largest(rows: Tensor, kept: Tensor) -> Tensor:
    """The maximum of the rows of each bag that are kept."""
    chosen = torch.where(kept[..., None], rows, torch.full_like(rows, -math.inf)).max(1).values
    return torch.where(kept.any(1)[:, None], chosen, torch.zeros_like(chosen))
