"""Optimizers that torch.optim has not, from the table of rules.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Their arguments, groups and state are those of the packages lion-pytorch, timm and schedulefree, so that checkpoints go
both ways; none of these packages is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ortc.torch._rules.rule import Rule

_BELOW_ONE = ("betas", "momentum", "dampening")


def _check(name: str, value: Any) -> None:
    for each in value if isinstance(value, (tuple, list)) else (value,):
        if isinstance(each, (bool, type(None))):
            continue
        if not 0 <= each or (name in _BELOW_ONE and each > 1):
            raise ValueError(f"Invalid {name}: {each}; it must be {'from 0 to 1' if name in _BELOW_ONE else 'at least 0'}")


class Recipe(torch.optim.Optimizer):
    """An optimizer whose step without a compiler is its rule's formula, computed by PyTorch."""

    rule: Rule

    def __init__(self, params: Any, *arguments: Any, **options: Any) -> None:
        assert self.rule.arguments is not None
        bound = self.rule.arguments.bind(params, *arguments, **options)
        bound.apply_defaults()
        defaults = {name: value for name, value in bound.arguments.items() if name != "params"}
        for name, value in defaults.items():
            _check(name, value)
        if defaults.get("nesterov") and (not defaults["momentum"] or defaults["dampening"]):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults | dict(self.rule.kept))

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step. `closure`: computes loss and gradients anew, and gives the loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        rule, more = self.rule, self.rule.begin(self.param_groups)
        for group in self.param_groups:
            switches = rule.switches(group)
            for p in group["params"]:
                if p.grad is None:
                    continue
                if p.grad.layout is not torch.strided:
                    raise RuntimeError(f"{type(self).__name__} takes no sparse gradients")
                own = self.state[p]
                age, names = (2.0 if own else 1.0), rule.states(switches, p)
                if not own:
                    own.update({name: rule.start(name, p, group) for name in names})
                numbers = [torch.tensor(x, dtype=p.dtype) for x in rule.scalars(switches, group | more, (age,))]
                states = tuple(own[name] for name in names)
                results = rule.formula(switches, p, p.grad, states, tuple(numbers))
                for tensor, result in zip((p, *states), results, strict=True):
                    tensor.copy_(result)
        return loss


class ScheduleFree(Recipe):
    """With the weights that are trained, and their average, which is evaluated and saved."""

    def _momentum(self, group: dict[str, Any]) -> float:
        return float(group["betas"][0] if "betas" in group else group["momentum"])

    @torch.no_grad()
    def train(self) -> None:
        """Before training: parameters are the weights that gradients are taken at."""
        for group in self.param_groups:
            if not group["train_mode"]:
                for p in group["params"]:
                    if "z" in self.state.get(p, {}):
                        p.lerp_(end=self.state[p]["z"], weight=1 - self._momentum(group))
                group["train_mode"] = True

    @torch.no_grad()
    def eval(self) -> None:
        """Before evaluations and checkpoints: parameters are the averages."""
        for group in self.param_groups:
            if group["train_mode"]:
                for p in group["params"]:
                    if "z" in self.state.get(p, {}):
                        p.lerp_(end=self.state[p]["z"], weight=1 - 1 / self._momentum(group))
                group["train_mode"] = False
