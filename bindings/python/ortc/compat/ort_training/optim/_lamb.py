"""LAMB as ORTTrainer's optimizer has it.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch


class Lamb(torch.optim.Optimizer):
    """d = m / (sqrt(v) + epsilon) + lambda w, with m and v of Adam; w -= lr clamp(|w| / |d|) d, and w -= lr d where a norm is 0.
    Groups have the settings of LambConfig."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, {})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._step_one(group, parameter)

    def _step_one(self, group: dict[str, Any], parameter: torch.Tensor) -> None:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros(())
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        state["step"] += 1
        alpha, beta = group["alpha"], group["beta"]
        average = state["exp_avg"].lerp_(parameter.grad, 1 - alpha)
        square = state["exp_avg_sq"].mul_(beta).addcmul_(parameter.grad, parameter.grad, value=1 - beta)
        if group["do_bias_correction"]:
            count = int(state["step"])
            average, square = average / (1 - alpha**count), square / (1 - beta**count)
        direction = average / (square.sqrt() + group["epsilon"]) + group["lambda_coef"] * parameter
        lengths = float(parameter.norm()), float(direction.norm())
        ratio = 1.0
        if all(lengths):
            ratio = max(group["ratio_min"], min(group["ratio_max"], lengths[0] / lengths[1]))
        parameter.sub_(direction, alpha=group["lr"] * ratio)
