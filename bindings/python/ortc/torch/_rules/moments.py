"""Optimizers with averages of gradients and of their squares. Definitions are those of torch.optim, and of lion-pytorch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import torch

from ortc.torch._rules.rule import Group, Numbers, Rule, Switches, Tensors, arguments, sign_of


def _betas(group: Group) -> tuple[float, float]:
    beta1, beta2 = group["betas"]
    return float(beta1), float(beta2)


# ---- Adam and AdamW.


def _adam_switches(group: Group) -> Switches:
    return bool(group["amsgrad"]), bool(group["weight_decay"] and not group["decoupled_weight_decay"])


def _adam_states(switches: Switches, _: torch.Tensor) -> tuple[str, ...]:
    amsgrad, _decays = switches
    return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if amsgrad else ("exp_avg", "exp_avg_sq")


def _adam_scalars(switches: Switches, group: Group, numbers: Numbers) -> list[float]:
    _, decays_gradient = switches
    age = numbers[0]
    lr, decay = float(group["lr"]), float(group["weight_decay"])
    beta1, beta2 = _betas(group)
    keep = 1.0 if not group["decoupled_weight_decay"] else 1 - lr * decay
    inverse_root = (1 - beta2**age) ** -0.5
    rate = -lr / (1 - beta1**age)
    values = [sign_of(group), keep, 1 - beta1, beta2, 1 - beta2, inverse_root, float(group["eps"]), rate]
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


# ---- Adamax.


def _decay_switches(group: Group) -> Switches:
    return (bool(group["weight_decay"]),)


def _adamax_states(_: Switches, __: torch.Tensor) -> tuple[str, ...]:
    return "exp_avg", "exp_inf"


def _adamax_scalars(_: Switches, group: Group, numbers: Numbers) -> list[float]:
    beta1, beta2 = _betas(group)
    rate = -float(group["lr"]) / (1 - beta1 ** numbers[0])
    values = [sign_of(group), 1 - beta1, beta2, float(group["eps"]), rate]
    return [*values, float(group["weight_decay"])] if group["weight_decay"] else values


def _adamax(switches: Switches, p: torch.Tensor, g: torch.Tensor, states: Tensors, scalars: Tensors) -> Tensors:
    sign, share1, beta2, epsilon, rate = scalars[:5]
    g = g * sign
    if switches[0]:
        g = g + p * scalars[5]
    average = states[0] + (g - states[0]) * share1
    largest = torch.maximum(states[1] * beta2, g.abs() + epsilon)
    return p + average * rate / largest, average, largest


# ---- NAdam and RAdam.


def _ahead_switches(group: Group) -> Switches:
    return (bool(group["weight_decay"] and not group["decoupled_weight_decay"]),)


def _moments(_: Switches, __: torch.Tensor) -> tuple[str, ...]:
    return "exp_avg", "exp_avg_sq"


def _keep(group: Group) -> float:
    return 1 - float(group["lr"]) * float(group["weight_decay"]) if group["decoupled_weight_decay"] else 1.0


def _average(
    switches: Switches, p: torch.Tensor, g: torch.Tensor, states: Tensors, scalars: Tensors
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradient with its decay, and both averages. Scalars are those below, and others between them."""
    sign, share1, beta2, share2 = scalars[:4]
    g = g * sign
    if switches[0]:
        g = g + p * scalars[-1]
    return g, states[0] + (g - states[0]) * share1, states[1] * beta2 + g * share2 * g


def _average_scalars(switches: Switches, group: Group, others: list[float]) -> list[float]:
    beta1, beta2 = _betas(group)
    shares = [sign_of(group), 1 - beta1, beta2, 1 - beta2]
    return [*shares, *others, *([float(group["weight_decay"])] if switches[0] else [])]


def _momentum(group: Group, age: float) -> float:
    return float(_betas(group)[0] * (1.0 - 0.5 * (0.96 ** (age * float(group["momentum_decay"])))))


def _nadam_scalars(switches: Switches, group: Group, numbers: Numbers) -> list[float]:
    age, product = numbers
    lr, beta2 = float(group["lr"]), _betas(group)[1]
    mu, following = _momentum(group, age), _momentum(group, age + 1)
    of_gradient, of_average = -lr * (1 - mu) / (1 - product), -lr * following / (1 - product * following)
    inverse_root = (1 - beta2**age) ** -0.5
    others = [_keep(group), inverse_root, float(group["eps"]), of_gradient, of_average]
    return _average_scalars(switches, group, others)


def _nadam(switches: Switches, p: torch.Tensor, g: torch.Tensor, states: Tensors, scalars: Tensors) -> Tensors:
    g, average, square = _average(switches, p, g, states, scalars)
    keep, inverse_root, epsilon, of_gradient, of_average = scalars[4:9]
    direction = g * of_gradient + average * of_average
    return p * keep + direction / (square.sqrt() * inverse_root + epsilon), average, square


def _radam_scalars(switches: Switches, group: Group, numbers: Numbers) -> list[float]:
    age = numbers[0]
    beta1, beta2 = _betas(group)
    correction2 = 1 - beta2**age
    limit = 2 / (1 - beta2) - 1
    length = limit - 2 * age * beta2**age / correction2
    rate, divides = -float(group["lr"]) / (1 - beta1**age), length > 5
    if divides:
        rate *= ((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length) * correction2) ** 0.5
    others = [_keep(group), float(group["eps"]), rate, float(divides), float(not divides)]
    return _average_scalars(switches, group, others)


def _radam(switches: Switches, p: torch.Tensor, g: torch.Tensor, states: Tensors, scalars: Tensors) -> Tensors:
    _, average, square = _average(switches, p, g, states, scalars)
    keep, epsilon, rate, divides, rests = scalars[4:9]
    # The divisor is 1 as long as the average of squares is of few steps.
    return p * keep + average * rate / ((square.sqrt() + epsilon) * divides + rests), average, square


# ---- Lion.


def _lion_switches(_: Group) -> Switches:
    return ()


def _lion_states(_: Switches, __: torch.Tensor) -> tuple[str, ...]:
    return ("exp_avg",)


def _lion_scalars(_: Switches, group: Group, __: Numbers) -> list[float]:
    beta1, beta2 = _betas(group)
    lr = float(group["lr"])
    return [1 - lr * float(group["weight_decay"]), beta1, 1 - beta1, beta2, 1 - beta2, -lr]


def _lion(_: Switches, p: torch.Tensor, g: torch.Tensor, states: Tensors, scalars: Tensors) -> Tensors:
    keep, beta1, share1, beta2, share2, rate = scalars
    direction = torch.sign(states[0] * beta1 + g * share1)
    return p * keep + direction * rate, states[0] * beta2 + g * share2


ADAM = Rule("adam", _adam_switches, _adam_states, _adam_scalars, _adam, counts=True)
ADAMAX = Rule("adamax", _decay_switches, _adamax_states, _adamax_scalars, _adamax, counts=True)
NADAM = Rule(
    "nadam", _ahead_switches, _moments, _nadam_scalars, _nadam, counts=True, factors=(("mu_product", _momentum),)
)
RADAM = Rule("radam", _ahead_switches, _moments, _radam_scalars, _radam, counts=True)
LION = Rule(
    "lion",
    _lion_switches,
    _lion_states,
    _lion_scalars,
    _lion,
    arguments=arguments(lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0),
)
