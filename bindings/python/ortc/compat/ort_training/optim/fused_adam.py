"""FusedAdam: Adam over all parameters of a group in one call.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import torch

from ortc._errors import ArgumentError
from ortc.torch._works import compute_loss
from ortc.torch.optim import Adam


class AdamWMode(IntEnum):
    ADAM_L2_REGULARIZATION = 0
    """The decay is added to the gradient, as torch.optim.Adam has it."""
    ADAMW_TRANSFORMERS = 1
    """AdamW as transformers had it: the decay comes last, and epsilon is added before the correction of the bias."""
    ADAMW_TORCH = 2
    """As torch.optim.AdamW."""


class FusedAdam(torch.optim.Optimizer):
    """Groups and state are those of torch.optim.Adam, and its step does the work; a group counts its steps, whatever had a
    gradient in them."""

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
        self._inner: Adam | None = None

    def __getstate__(self) -> dict[str, Any]:
        own = {"_adam_w_mode": self._adam_w_mode, "_set_grad_none": self._set_grad_none, "_inner": None}
        return {**super().__getstate__(), **own}

    def zero_grad(self, set_to_none: bool = True) -> None:
        super().zero_grad(set_to_none=self._set_grad_none or set_to_none)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = compute_loss(closure)
        for group in self.param_groups:
            self._count(group)
        self._decay(AdamWMode.ADAMW_TORCH)
        settings = [self._settings(group) for group in self.param_groups]
        if self._inner is None or len(self._inner.param_groups) != len(settings):
            self._inner = Adam([dict(each) for each in settings], fused=True)
        for group, each in zip(self._inner.param_groups, settings, strict=True):
            group.update(each)
        self._inner.state = self.state
        self._inner.step()
        self._decay(AdamWMode.ADAMW_TRANSFORMERS)
        return loss

    def _count(self, group: dict[str, Any]) -> None:
        """Lets the parameters that have a gradient be as old as the group."""
        before = group.get("step", 0)
        group["step"] = before + 1
        for each in group["params"]:
            if each.grad is None:
                continue
            if each.grad.is_sparse:
                raise ArgumentError("FusedAdam takes no sparse gradients; torch.optim.SparseAdam does")
            state = self.state[each]
            if not state:
                state["step"] = torch.zeros((), dtype=torch.float32)
                state["exp_avg"] = torch.zeros_like(each)
                state["exp_avg_sq"] = torch.zeros_like(each)
            state["step"].fill_(before)

    def _settings(self, group: dict[str, Any]) -> dict[str, Any]:
        """For the step of torch.optim.Adam, which divides the averages by what their bias leaves of them: rate and epsilon take
        back what a mode does not have of that."""
        beta1, beta2 = group["betas"]
        first, second = 1 - beta1 ** group["step"], math.sqrt(1 - beta2 ** group["step"])
        lr, eps = group["lr"], group["eps"]
        if self._adam_w_mode == AdamWMode.ADAMW_TRANSFORMERS or not group["bias_correction"]:
            eps = eps / second
        if not group["bias_correction"]:
            lr = lr * first / second
        decay = group["weight_decay"] if self._adam_w_mode == AdamWMode.ADAM_L2_REGULARIZATION else 0.0
        return {"params": group["params"], "lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": decay}

    def _decay(self, mode: AdamWMode) -> None:
        """Of a mode that has it here."""
        if self._adam_w_mode != mode:
            return
        for group in self.param_groups:
            parameters = [each for each in group["params"] if each.grad is not None]
            if group["weight_decay"] and parameters:
                torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
