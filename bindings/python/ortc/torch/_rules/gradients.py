"""Optimizers without an average of gradients for their direction. Definitions are those of torch.optim.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import torch

from ortc.torch._rules.rule import Group, Numbers, Rule, Switches, Tensors, sign_of


def _decay(group: Group) -> list[float]:
    return [float(group["weight_decay"])] if group["weight_decay"] else []


# ---- SGD.


def _sgd_switches(group: Group) -> Switches:
    return bool(group["momentum"]), bool(group["nesterov"]), bool(group["weight_decay"])


def _sgd_states(switches: Switches, _: torch.Tensor) -> tuple[str, ...]:
    return ("momentum_buffer",) if switches[0] else ()


def _sgd_scalars(switches: Switches, group: Group, numbers: Numbers) -> list[float]:
    values = [sign_of(group), -float(group["lr"]), *_decay(group)]
    if switches[0]:  # the first gradient is taken whole
        values += [float(group["momentum"]), 1.0 if numbers[0] == 1 else 1 - float(group["dampening"])]
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


# ---- RMSprop.


def _rmsprop_switches(group: Group) -> Switches:
    return group["momentum"] > 0, bool(group["centered"]), bool(group["weight_decay"])


def _rmsprop_states(switches: Switches, _: torch.Tensor) -> tuple[str, ...]:
    has_momentum, centered, _decays = switches
    return ("square_avg", *(["momentum_buffer"] if has_momentum else []), *(["grad_avg"] if centered else []))


def _rmsprop_scalars(switches: Switches, group: Group, _: Numbers) -> list[float]:
    alpha = float(group["alpha"])
    values = [sign_of(group), -float(group["lr"]), alpha, 1 - alpha, float(group["eps"]), *_decay(group)]
    return [*values, float(group["momentum"])] if switches[0] else values


def _rmsprop(switches: Switches, p: torch.Tensor, g: torch.Tensor, states: Tensors, scalars: Tensors) -> Tensors:
    has_momentum, centered, decays = switches
    sign, rate, alpha, share, epsilon, *rest = scalars
    g = g * sign
    if decays:
        g = g + p * rest.pop(0)
    square = states[0] * alpha + g * share * g
    variance = square
    kept: Tensors = ()
    if centered:
        average = states[-1] + (g - states[-1]) * share
        # Rounding may leave less than zero of equal gradients, where PyTorch's root is NaN.
        variance, kept = torch.relu(square - average * average), (average,)
    direction = g / (variance.sqrt() + epsilon)
    if not has_momentum:
        return p + direction * rate, square, *kept
    buffer = states[1] * rest[0] + direction
    return p + buffer * rate, square, buffer, *kept


# ---- Adagrad and Adadelta.


def _decay_switches(group: Group) -> Switches:
    return (bool(group["weight_decay"]),)


def _adagrad_states(_: Switches, __: torch.Tensor) -> tuple[str, ...]:
    return ("sum",)


def _start_adagrad(_: str, p: torch.Tensor, group: Group) -> torch.Tensor:
    return torch.full_like(p, group["initial_accumulator_value"], memory_format=torch.preserve_format)


def _adagrad_scalars(_: Switches, group: Group, numbers: Numbers) -> list[float]:
    rate = -float(group["lr"]) / (1 + (numbers[0] - 1) * float(group["lr_decay"]))
    return [sign_of(group), rate, float(group["eps"]), *_decay(group)]


def _adagrad(switches: Switches, p: torch.Tensor, g: torch.Tensor, states: Tensors, scalars: Tensors) -> Tensors:
    sign, rate, epsilon = scalars[:3]
    g = g * sign
    if switches[0]:
        g = g + p * scalars[3]
    total = states[0] + g * g
    return p + g * rate / (total.sqrt() + epsilon), total


def _adadelta_states(_: Switches, __: torch.Tensor) -> tuple[str, ...]:
    return "square_avg", "acc_delta"


def _adadelta_scalars(_: Switches, group: Group, __: Numbers) -> list[float]:
    rho = float(group["rho"])
    return [sign_of(group), -float(group["lr"]), rho, 1 - rho, float(group["eps"]), *_decay(group)]


def _adadelta(switches: Switches, p: torch.Tensor, g: torch.Tensor, states: Tensors, scalars: Tensors) -> Tensors:
    sign, rate, rho, share, epsilon = scalars[:5]
    g = g * sign
    if switches[0]:
        g = g + p * scalars[5]
    square = states[0] * rho + g * share * g
    delta = (states[1] + epsilon).sqrt() / (square + epsilon).sqrt() * g
    return p + delta * rate, square, states[1] * rho + delta * share * delta


SGD = Rule("sgd", _sgd_switches, _sgd_states, _sgd_scalars, _sgd)
RMSPROP = Rule("rmsprop", _rmsprop_switches, _rmsprop_states, _rmsprop_scalars, _rmsprop, counts=True)
ADAGRAD = Rule(
    "adagrad", _decay_switches, _adagrad_states, _adagrad_scalars, _adagrad, counts=True, start=_start_adagrad
)
ADADELTA = Rule("adadelta", _decay_switches, _adadelta_states, _adadelta_scalars, _adadelta, counts=True)
