"""Optimizers that look at whole tensors: definitions of torch.optim (Adafactor, Muon) and of timm (Lamb, Lars).

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math

import torch

from ortc.torch._rules.rule import Group, Groups, Numbers, Rule, Switches, Tensors, arguments, sign_of


def _norm(x: torch.Tensor) -> torch.Tensor:
    return (x * x).sum().sqrt()


def _guard(ratio: torch.Tensor, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """1 where a norm is 0."""
    return torch.where((one > 0) & (other > 0), ratio, torch.ones_like(ratio))


# ---- Lamb.


def _begin_lamb(groups: Groups) -> dict[str, float]:
    for group in groups:
        for key in ("caution", "decoupled_decay", "corrected_weight_decay"):
            if group[key]:
                raise ValueError(f"{key} of Lamb is not compiled; take timm.optim.Lamb for it")
    for group in groups:
        group["step"] = group.get("step", torch.zeros(())) + 1
    limit = groups[0]["max_grad_norm"]
    gradients = [p.grad for group in groups for p in group["params"] if p.grad is not None]
    if limit is None or not gradients:
        return {"clip": 1.0}
    return {"clip": 1 / max(1.0, float(torch.stack(torch._foreach_norm(gradients)).norm()) / limit)}


def _lamb_switches(group: Group) -> Switches:
    decays = bool(group["weight_decay"])
    return decays, decays or bool(group["always_adapt"]), bool(group["trust_clip"])


def _lamb_states(_: Switches, __: torch.Tensor) -> tuple[str, ...]:
    return "exp_avg", "exp_avg_sq"


def _lamb_scalars(_: Switches, group: Group, __: Numbers) -> list[float]:
    beta1, beta2 = (float(beta) for beta in group["betas"])
    age, corrects = float(group["step"]), bool(group["bias_correction"])
    inverse1 = 1 / (1 - beta1**age) if corrects else 1.0
    inverse_root2 = (1 - beta2**age) ** -0.5 if corrects else 1.0
    share = 1 - beta1 if group["grad_averaging"] else 1.0
    corrections = [inverse1, inverse_root2, float(group["eps"])]
    return [group["clip"], beta1, share, beta2, 1 - beta2, *corrections, -float(group["lr"]), float(group["weight_decay"])]


def _lamb(switches: Switches, p: torch.Tensor, g: torch.Tensor, states: Tensors, scalars: Tensors) -> Tensors:
    decays, adapts, clips = switches
    clip, beta1, share, beta2, share2, inverse1, inverse_root2, epsilon, rate, decay = scalars
    g = g * clip
    average, square = states[0] * beta1 + g * share, states[1] * beta2 + g * share2 * g
    direction = average * inverse1 / (square.sqrt() * inverse_root2 + epsilon)
    if decays:
        direction = direction + p * decay
    if adapts:
        of_parameter, of_direction = _norm(p), _norm(direction)
        ratio = _guard(of_parameter / of_direction, of_parameter, of_direction)
        rate = rate * (torch.minimum(ratio, torch.ones_like(ratio)) if clips else ratio)
    return p + direction * rate, average, square


# ---- Lars.


def _lars_switches(group: Group) -> Switches:
    adapts = bool(group["weight_decay"] or group["always_adapt"])
    return bool(group["momentum"]), bool(group["nesterov"]), adapts, bool(group["trust_clip"])


def _lars_states(switches: Switches, _: torch.Tensor) -> tuple[str, ...]:
    return ("momentum_buffer",) if switches[0] else ()


def _lars_scalars(_: Switches, group: Group, numbers: Numbers) -> list[float]:
    share = 1.0 if numbers[0] == 1 else 1 - float(group["dampening"])  # the first gradient is taken whole
    ratio = [float(group["weight_decay"]), float(group["trust_coeff"]), float(group["eps"])]
    return [float(group["lr"]), *ratio, float(group["momentum"]), share]


def _lars(switches: Switches, p: torch.Tensor, g: torch.Tensor, states: Tensors, scalars: Tensors) -> Tensors:
    has_momentum, nesterov, adapts, clips = switches
    lr, decay, coefficient, epsilon, momentum, share = scalars
    if adapts:
        of_parameter, of_gradient = _norm(p), _norm(g)
        ratio = coefficient * of_parameter / (of_gradient + of_parameter * decay + epsilon)
        ratio = _guard(ratio, of_parameter, of_gradient)
        ratio = torch.minimum(ratio / lr, torch.ones_like(ratio)) if clips else ratio
        g = (g + p * decay) * ratio
    if not has_momentum:
        return (p - g * lr,)
    buffer = states[0] * momentum + g * share
    return p - (g + buffer * momentum if nesterov else buffer) * lr, buffer


# ---- Adafactor.


def _adafactor_switches(group: Group) -> Switches:
    return bool(group["weight_decay"]), group["eps"][0] is None


def _adafactor_states(_: Switches, p: torch.Tensor) -> tuple[str, ...]:
    return ("row_var", "col_var") if p.dim() > 1 else ("variance",)


def _start_adafactor(name: str, p: torch.Tensor, _: Group) -> torch.Tensor:
    shape = list(p.shape)
    if name != "variance":
        shape[-1 if name == "row_var" else -2] = 1
    return p.new_zeros(shape)


def _adafactor_scalars(_: Switches, group: Group, numbers: Numbers) -> list[float]:
    lr, age = float(group["lr"]), numbers[0]
    epsilon1, epsilon2 = group["eps"]
    weight, rate = age ** float(group["beta2_decay"]), min(lr, age**-0.5)
    keep = 1 - lr * float(group["weight_decay"])
    return [sign_of(group), weight, rate, keep, float(epsilon1 or 0), float(epsilon2), float(group["d"])]


def _adafactor(switches: Switches, p: torch.Tensor, g: torch.Tensor, states: Tensors, scalars: Tensors) -> Tensors:
    decays, is_default = switches
    sign, weight, rate, keep, epsilon1, epsilon2, limit = scalars
    if is_default:
        epsilon1 = torch.full_like(epsilon2, torch.finfo(p.dtype).eps)
    g, root = g * sign, math.sqrt(p.numel())
    alpha = torch.maximum(epsilon2, _norm(p) / root) * rate
    if decays:
        p = p * keep
    square = g * g
    if p.dim() > 1:
        rows = states[0] + (square.mean(-1, keepdim=True) - states[0]) * weight
        columns = states[1] + (square.mean(-2, keepdim=True) - states[1]) * weight
        variance = rows * columns / torch.maximum(rows.mean(-2, keepdim=True), epsilon1)
        kept: Tensors = (rows, columns)
    else:
        variance = states[0] + (square - states[0]) * weight
        kept = (variance,)
    direction = g / torch.maximum(variance, epsilon1 * epsilon1).sqrt()
    excess = _norm(direction) / (limit * root)
    return p - direction * (alpha / torch.maximum(excess, torch.ones_like(excess))), *kept


# ---- Muon.


def _muon_switches(group: Group) -> Switches:
    return bool(group["nesterov"]), int(group["ns_steps"]), group["adjust_lr_fn"] or "original"


def _muon_states(_: Switches, __: torch.Tensor) -> tuple[str, ...]:
    return ("momentum_buffer",)


def _muon_scalars(_: Switches, group: Group, __: Numbers) -> list[float]:
    lr, momentum = float(group["lr"]), float(group["momentum"])
    keep = 1 - lr * float(group["weight_decay"])
    return [momentum, 1 - momentum, keep, lr, float(group["eps"]), *(float(each) for each in group["ns_coefficients"])]


def _orthogonalize(x: torch.Tensor, epsilon: torch.Tensor, coefficients: Tensors, steps: int) -> torch.Tensor:
    """Newton-Schulz in the parameter's type; torch.optim.Muon rounds to bfloat16, whose sums depend on the library."""
    a, b, c = coefficients
    is_tall = x.shape[0] > x.shape[1]
    x = x / torch.maximum(_norm(x), epsilon)
    for _ in range(steps):
        gram = x.t() @ x if is_tall else x @ x.t()
        factor = gram * b + (gram @ gram) * c
        x = x * a + (x @ factor if is_tall else factor @ x)
    return x


def _muon(switches: Switches, p: torch.Tensor, g: torch.Tensor, states: Tensors, scalars: Tensors) -> Tensors:
    nesterov, steps, adjust = switches
    momentum, share, keep, lr, epsilon, *coefficients = scalars
    rows, columns = p.shape
    adjustments = {
        "original": math.sqrt(max(1.0, rows / columns)),
        "match_rms_adamw": 0.2 * math.sqrt(max(rows, columns)),
        "spectral_unclamped": math.sqrt(rows / columns),
    }
    buffer = states[0] + (g - states[0]) * share
    direction = g + (buffer - g) * momentum if nesterov else buffer
    direction = _orthogonalize(direction, epsilon, tuple(coefficients), steps)
    return p * keep - direction * (lr * adjustments[adjust]), buffer


LAMB = Rule(
    "lamb",
    _lamb_switches,
    _lamb_states,
    _lamb_scalars,
    _lamb,
    begin=_begin_lamb,
    is_whole=True,
    arguments=arguments(
        lr=1e-3,
        bias_correction=True,
        betas=(0.9, 0.999),
        eps=1e-6,
        weight_decay=0.01,
        grad_averaging=True,
        max_grad_norm=1.0,
        trust_clip=False,
        always_adapt=False,
        caution=False,
        decoupled_decay=False,
        corrected_weight_decay=False,
        foreach=None,
    ),
)
LARS = Rule(
    "lars",
    _lars_switches,
    _lars_states,
    _lars_scalars,
    _lars,
    is_whole=True,
    arguments=arguments(
        lr=1.0,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        trust_coeff=0.001,
        eps=1e-8,
        trust_clip=False,
        always_adapt=False,
        foreach=None,
    ),
)
ADAFACTOR = Rule(
    "adafactor",
    _adafactor_switches,
    _adafactor_states,
    _adafactor_scalars,
    _adafactor,
    counts=True,
    start=_start_adafactor,
    is_whole=True,
)
MUON = Rule("muon", _muon_switches, _muon_states, _muon_scalars, _muon, is_whole=True)
