"""Schedule-free optimizers: definitions, arguments and state of the package schedulefree (arXiv:2405.15682).

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

The parameter is y, at which gradients are taken, in training, and x, the average, in evaluation; the state z is what the
gradients move. A group counts for all of its parameters.
"""

from __future__ import annotations

import torch

from ortc.torch._rules.rule import Group, Groups, Numbers, Rule, Switches, Tensors, arguments

_KEPT = (("k", 0), ("train_mode", False), ("weight_sum", 0.0), ("lr_max", -1.0), ("scheduled_lr", 0.0))


def _begin(groups: Groups) -> dict[str, float]:
    if not groups[0]["train_mode"]:
        raise RuntimeError("a schedule-free optimizer steps in train mode only: call optimizer.train() before training")
    for group in groups:
        k, warmup = group["k"] + 1, group["warmup_steps"]
        rate = group["scheduled_lr"] = float(group["lr"]) * (min(k / warmup, 1.0) if warmup else 1.0)
        largest = group["lr_max"] = max(rate, group["lr_max"])
        group["weight_sum"] += k ** group["r"] * largest ** group["weight_lr_power"]
        group["k"] = k
    return {}


def _start(name: str, p: torch.Tensor, _: Group) -> torch.Tensor:
    return torch.clone(p, memory_format=torch.preserve_format) if name == "z" else torch.zeros_like(p)


def _step_scalars(group: Group, momentum: float) -> list[float]:
    """The share of z that y takes, and the rates of y and z."""
    weight = group["k"] ** group["r"] * group["lr_max"] ** group["weight_lr_power"]
    share = weight / group["weight_sum"] if group["weight_sum"] else 0.0
    rate = group["scheduled_lr"]
    return [share, rate * (momentum * (1 - share) - 1), -rate, float(group["weight_decay"])]


def _move(y: torch.Tensor, direction: torch.Tensor, z: torch.Tensor, scalars: Tensors) -> Tensors:
    share, rate, rate_of_z, decay = scalars
    direction = direction + y * decay
    return y + (z - y) * share + direction * rate, z + direction * rate_of_z


def _switches(_: Group) -> Switches:
    return ()


def _sgd_states(_: Switches, __: torch.Tensor) -> tuple[str, ...]:
    return ("z",)


def _sgd_scalars(_: Switches, group: Group, __: Numbers) -> list[float]:
    return _step_scalars(group, float(group["momentum"]))


def _sgd(_: Switches, p: torch.Tensor, g: torch.Tensor, states: Tensors, scalars: Tensors) -> Tensors:
    return _move(p, g, states[0], scalars)


def _adamw_states(_: Switches, __: torch.Tensor) -> tuple[str, ...]:
    return "z", "exp_avg_sq"


def _adamw_scalars(_: Switches, group: Group, __: Numbers) -> list[float]:
    beta1, beta2 = (float(beta) for beta in group["betas"])
    inverse_root = (1 - beta2 ** max(group["k"], 1)) ** -0.5
    return [beta2, 1 - beta2, inverse_root, float(group["eps"]), *_step_scalars(group, beta1)]


def _adamw(_: Switches, p: torch.Tensor, g: torch.Tensor, states: Tensors, scalars: Tensors) -> Tensors:
    beta2, share2, inverse_root, epsilon = scalars[:4]
    square = states[1] * beta2 + g * share2 * g
    return *_move(p, g / (square.sqrt() * inverse_root + epsilon), states[0], scalars[4:]), square


SGD_SCHEDULE_FREE = Rule(
    "schedule_free_sgd",
    _switches,
    _sgd_states,
    _sgd_scalars,
    _sgd,
    start=_start,
    begin=_begin,
    kept=_KEPT,
    arguments=arguments(
        lr=1.0, momentum=0.9, weight_decay=0, warmup_steps=0, r=0.0, weight_lr_power=2, foreach=True
    ),
)
ADAMW_SCHEDULE_FREE = Rule(
    "schedule_free_adamw",
    _switches,
    _adamw_states,
    _adamw_scalars,
    _adamw,
    start=_start,
    begin=_begin,
    kept=_KEPT,
    arguments=arguments(
        lr=0.0025,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        warmup_steps=0,
        r=0.0,
        weight_lr_power=2.0,
        foreach=True,
    ),
)
