"""How far a run of training may be from the same run in float64.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import torch


def limit(wanted: torch.Tensor, runs: list[torch.Tensor]) -> float:
    """For losses or weights, of which `wanted` are those in float64. Sums that are rounded in another order move weights to
    slightly other places, and the next step begins there: how fast that grows is a property of the model, not of who computes it.
    So it is eight times what the farthest of PyTorch's own float32 `runs` is off, and no less than eight roundings."""
    rounding = torch.finfo(torch.float32).eps * float(wanted.abs().max())
    return 8 * max(rounding, *(distance(wanted, run) for run in runs))


def distance(wanted: torch.Tensor, got: torch.Tensor) -> float:
    """The largest."""
    return float((wanted - got).abs().max())


def nudge(model: torch.nn.Module, seed: int) -> torch.nn.Module:
    """Moves every weight by one unit in its last place, up or down: a run from there is as right as one from the weights."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for each in model.parameters():
            up = torch.randint(2, each.shape, generator=draw).bool()
            each.copy_(torch.nextafter(each, torch.where(up, torch.inf, -torch.inf)))
    return model
