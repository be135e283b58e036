"""FusedAdam: Adam over all parameters of a group in one call.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import torch
from torch.optim.adam import adam

from ortc._errors import ArgumentError


class AdamWMode(IntEnum):
    ADAM_L2_REGULARIZATION = 0
    """The decay is added to the gradient, as torch.optim.Adam has it."""
    ADAMW_TRANSFORMERS = 1
    """AdamW as transformers had it: the decay comes last, and epsilon is added before the correction of the bias."""
    ADAMW_TORCH = 2
    """As torch.optim.AdamW."""


def _update(
    parameters: list[torch.Tensor],
    gradients: list[torch.Tensor],
    averages: list[torch.Tensor],
    squares: list[torch.Tensor],
    steps: list[torch.Tensor],
    **settings: float,
) -> None:
    """Adam of PyTorch's kind in one call; steps count it."""
    adam(parameters, gradients, averages, squares, [], steps, fused=True, amsgrad=False, maximize=False, **settings)


class FusedAdam(torch.optim.Optimizer):
    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        adam_w_mode: AdamWMode = AdamWMode.ADAMW_TRANSFORMERS,
        weight_decay: float = 0.0,
        set_grad_none: bool = True,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "bias_correction": bias_correction, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        )
        self._adam_w_mode = AdamWMode(adam_w_mode)
        self._set_grad_none = set_grad_none

    def zero_grad(self, set_to_none: bool = True) -> None:
        super().zero_grad(set_to_none=self._set_grad_none or set_to_none)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            group["step"] = group.get("step", 0) + 1
            parameters = [each for each in group["params"] if each.grad is not None]
            if parameters:
                self._step_group(group, parameters)
        return loss

    def _step_group(self, group: dict[str, Any], parameters: list[torch.Tensor]) -> None:
        steps = []
        for each in parameters:
            if each.grad.is_sparse:
                raise ArgumentError("FusedAdam takes no sparse gradients; torch.optim.SparseAdam does")
            state = self.state[each]
            if not state:
                state["step"] = torch.zeros(())
                state["exp_avg"] = torch.zeros_like(each)
                state["exp_avg_sq"] = torch.zeros_like(each)
            steps.append(state["step"].fill_(group["step"] - 1))  # one count for the group, as there
        mode, lr, eps, decay = self._adam_w_mode, group["lr"], group["eps"], group["weight_decay"]
        beta1, beta2 = group["betas"]
        # The call divides the averages by these; rate and epsilon take back what a mode does not have.
        first, second = 1 - beta1 ** group["step"], math.sqrt(1 - beta2 ** group["step"])
        if mode == AdamWMode.ADAMW_TRANSFORMERS or not group["bias_correction"]:
            eps = eps / second
        rate = lr if group["bias_correction"] else lr * first / second
        if decay and mode == AdamWMode.ADAMW_TORCH:
            torch._foreach_mul_(parameters, 1 - lr * decay)
        _update(
            parameters,
            [each.grad for each in parameters],
            [self.state[each]["exp_avg"] for each in parameters],
            [self.state[each]["exp_avg_sq"] for each in parameters],
            steps,
            lr=rate,
            beta1=beta1,
            beta2=beta2,
            eps=eps,
            weight_decay=decay if mode == AdamWMode.ADAM_L2_REGULARIZATION else 0.0,
        )
        if decay and mode == AdamWMode.ADAMW_TRANSFORMERS:
            torch._foreach_mul_(parameters, 1 - lr * decay)
