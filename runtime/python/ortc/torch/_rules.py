"""The table of ortc.torch.optim: what a step of each optimizer computes. Definitions are PyTorch's.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

A formula is Python of PyTorch, which is exported and compiled. Its vectors are the parameter, the gradient and the
states; its scalars are computed in float64 for every group and step, so that schedules compile nothing. What decides
which operations there are, such as whether there is a weight decay, is a switch: each combination is one artifact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

Switches = tuple[bool, ...]
Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Rule:
    """An optimizer. `group`: of Optimizer.param_groups."""

    name: str
    switches: Callable[[dict[str, Any]], Switches]
    states: Callable[[Switches], tuple[str, ...]]
    """Names in PyTorch's state; zeros at first, of the parameter's shape."""
    counts: bool
    """Whether there is a state `step`."""
    scalars: Callable[[Switches, dict[str, Any], float], list[float]]
    """`age`: the number of this step of a parameter; of rules that do not count, 1 in the first step and 2 afterwards."""
    formula: Callable[[Switches, torch.Tensor, torch.Tensor, Tensors, Tensors], Tensors]
    """From parameter, gradient, states and scalars to the parameter and the states."""


def _adam_switches(group: dict[str, Any]) -> Switches:
    return bool(group["amsgrad"]), bool(group["weight_decay"] and not group["decoupled_weight_decay"])


def _adam_states(switches: Switches) -> tuple[str, ...]:
    amsgrad, _ = switches
    return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if amsgrad else ("exp_avg", "exp_avg_sq")


def _adam_scalars(switches: Switches, group: dict[str, Any], age: float) -> list[float]:
    _, decays_gradient = switches
    lr, decay = float(group["lr"]), float(group["weight_decay"])
    beta1, beta2 = (float(beta) for beta in group["betas"])
    keep = 1.0 if not group["decoupled_weight_decay"] else 1 - lr * decay
    inverse_root = (1 - beta2**age) ** -0.5
    sign = -1.0 if group["maximize"] else 1.0
    values = [sign, keep, 1 - beta1, beta2, 1 - beta2, inverse_root, float(group["eps"]), -lr / (1 - beta1**age)]
    return [*values, decay] if decays_gradient else values


def _adam(switches: Switches, p: torch.Tensor, g: torch.Tensor, states: Tensors, scalars: Tensors) -> Tensors:
    amsgrad, decays_gradient = switches
    sign, keep, share1, beta2, share2, inverse_root, epsilon, rate = scalars[:8]
    g = g * sign
    if decays_gradient:
        g = g + p * scalars[8]
    average = states[0] + (g - states[0]) * share1
    square = states[1] * beta2 + g * share2 * g
    largest = torch.maximum(states[2], square) if amsgrad else square
    p = p * keep + average * rate / (largest.sqrt() * inverse_root + epsilon)
    return (p, average, square, largest) if amsgrad else (p, average, square)


def _sgd_switches(group: dict[str, Any]) -> Switches:
    return bool(group["momentum"]), bool(group["nesterov"]), bool(group["weight_decay"])


def _sgd_states(switches: Switches) -> tuple[str, ...]:
    return ("momentum_buffer",) if switches[0] else ()


def _sgd_scalars(switches: Switches, group: dict[str, Any], age: float) -> list[float]:
    has_momentum, _, decays = switches
    values = [-1.0 if group["maximize"] else 1.0, -float(group["lr"])]
    if decays:
        values.append(float(group["weight_decay"]))
    if has_momentum:  # the first gradient is taken whole
        values += [float(group["momentum"]), 1.0 if age == 1 else 1 - float(group["dampening"])]
    return values


def _sgd(switches: Switches, p: torch.Tensor, g: torch.Tensor, states: Tensors, scalars: Tensors) -> Tensors:
    has_momentum, nesterov, decays = switches
    sign, rate, *rest = scalars
    g = g * sign
    if decays:
        g = g + p * rest.pop(0)
    if not has_momentum:
        return (p + g * rate,)
    momentum, share = rest
    buffer = states[0] * momentum + g * share
    direction = g + buffer * momentum if nesterov else buffer
    return p + direction * rate, buffer


_ADAM = Rule("adam", _adam_switches, _adam_states, True, _adam_scalars, _adam)
_SGD = Rule("sgd", _sgd_switches, _sgd_states, False, _sgd_scalars, _sgd)

RULES = {torch.optim.SGD: _SGD, torch.optim.Adam: _ADAM, torch.optim.AdamW: _ADAM}
"""By the class of PyTorch whose arguments, groups and state the optimizer has."""
