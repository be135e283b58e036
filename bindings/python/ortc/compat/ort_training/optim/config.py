"""Optimizers of ORTTrainer, as settings: SGD, Adam and LAMB.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from ortc._errors import ArgumentError

Groups = Sequence[Mapping[str, Any]]


class _OptimizerConfig:
    """Settings of all parameters, and groups of parameters, by name, that have others: `{"params": [NAME], "alpha": 0.8}`."""

    def __init__(self, name: str, params: Groups, defaults: Mapping[str, Any]) -> None:
        for key, value in defaults.items():
            if key not in ("ratio_min", "ratio_max") and not value >= 0:
                raise ArgumentError(f"{name}: '{key}' is {value}, but must be at least 0")
        for group in params:
            if "params" not in group or len(group) < 2:
                raise ArgumentError(f"{name}: a group has 'params', names of parameters, and settings of its own; this has {list(group)}")
            for key in group:
                if key == "lr" or key not in ("params", *defaults):
                    raise ArgumentError(f"{name}: a group has no '{key}'; there are {', '.join(k for k in defaults if k != 'lr')}")
        self.name = name
        self.lr = float(defaults["lr"])
        self.defaults = dict(defaults)
        self.params = [{**defaults, **group} for group in params]

    def settings(self, parameter: str) -> dict[str, Any]:
        """Of a parameter: the first group that names it, or the defaults."""
        return next((group for group in self.params if parameter in group["params"]), self.defaults)


class SGDConfig(_OptimizerConfig):
    """Gradient descent, without groups."""

    def __init__(self, params: Groups = (), lr: float = 0.001) -> None:
        if params:
            raise ArgumentError("SGDConfig has no groups: 'params' must be empty")
        super().__init__("SGDOptimizer", params, {"lr": lr})


class AdamConfig(_OptimizerConfig):
    """Adam with a weight decay of its own. Gradients are scaled where the norm of all is above `max_norm_clip`."""

    class DecayMode(IntEnum):
        BEFORE_WEIGHT_UPDATE = 0
        """As torch.optim.AdamW."""
        AFTER_WEIGHT_UPDATE = 1
        """As AdamW of transformers had it: epsilon is added before the correction of the bias, too."""

    def __init__(
        self,
        params: Groups = (),
        lr: float = 0.001,
        alpha: float = 0.9,
        beta: float = 0.999,
        lambda_coef: float = 0.0,
        epsilon: float = 1e-8,
        max_norm_clip: float = 1.0,
        do_bias_correction: bool = True,
        weight_decay_mode: DecayMode = DecayMode.BEFORE_WEIGHT_UPDATE,
    ) -> None:
        defaults = {
            "lr": lr,
            "alpha": alpha,
            "beta": beta,
            "lambda_coef": lambda_coef,
            "epsilon": epsilon,
            "max_norm_clip": max_norm_clip,
            "do_bias_correction": do_bias_correction,
            "weight_decay_mode": AdamConfig.DecayMode(weight_decay_mode),
        }
        super().__init__("AdamOptimizer", params, defaults)
        for group in self.params:
            if group["weight_decay_mode"] != weight_decay_mode:
                raise ArgumentError("AdamConfig: all groups have one 'weight_decay_mode'")


class LambConfig(_OptimizerConfig):
    """LAMB: Adam's direction, as long as the parameter itself. Gradients are scaled as for AdamConfig."""

    def __init__(
        self,
        params: Groups = (),
        lr: float = 0.001,
        alpha: float = 0.9,
        beta: float = 0.999,
        lambda_coef: float = 0.0,
        ratio_min: float = float("-inf"),
        ratio_max: float = float("inf"),
        epsilon: float = 1e-6,
        max_norm_clip: float = 1.0,
        do_bias_correction: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "alpha": alpha,
            "beta": beta,
            "lambda_coef": lambda_coef,
            "ratio_min": ratio_min,
            "ratio_max": ratio_max,
            "epsilon": epsilon,
            "max_norm_clip": max_norm_clip,
            "do_bias_correction": do_bias_correction,
        }
        super().__init__("LambOptimizer", params, defaults)
