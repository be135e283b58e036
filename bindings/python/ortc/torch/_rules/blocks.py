"""Optimizers whose averages are bytes: definitions, arguments and state of bitsandbytes (arXiv:2110.02861).

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

A block is 256 values in order of rows: its largest magnitude as float32, and for each value the code of the entry of a
map that is nearest to its share of that, the lower one of two. Averages of tensors of fewer values than `min_8bit_size`
are float32. Arithmetic is in float32, whatever the parameter is. docs/decisions/0053-states-in-bytes.md has the reasons.
"""

from __future__ import annotations

import functools

import numpy as np
import torch

from ortc.torch._rules.rule import Group, Numbers, Rule, Switches, Tensors, arguments

BLOCK = 256
_TENS = tuple(10.0**i for i in range(-6, 1))
_ZERO = 127
"""The code of 0 where values have signs."""
_ONLY = (("args", None), ("is_paged", False))


@functools.cache
def dynamic_map(is_signed: bool) -> torch.Tensor:
    """What codes stand for, from the smallest to the largest: 0, 1, and in each power of ten twice as many values as in the
    one below, evenly spaced."""
    values = [0.0, 1.0]
    for power, ten in zip(_counts(is_signed), _TENS, strict=True):
        bounds = torch.linspace(0.1, 1, power + 1, dtype=torch.float32)
        means = (ten * ((bounds[:-1] + bounds[1:]) / 2)).tolist()
        values += [*means, *(-mean for mean in means if is_signed)]
    return torch.tensor(sorted(values), dtype=torch.float32)


def _counts(is_signed: bool) -> list[int]:
    return [2 ** (i if is_signed else i + 1) for i in range(len(_TENS))]


@functools.cache
def _limits(is_signed: bool) -> torch.Tensor:
    """For each code of a magnitude the largest float32 that has no higher one; with signs then those below zero, where the
    middle between two belongs to the larger magnitude."""
    magnitudes = [value for value in dynamic_map(is_signed).double().tolist() if value >= 0]
    above, below = [], []
    for low, high in zip(magnitudes, magnitudes[1:]):
        middle = (low + high) / 2
        last = np.float32(middle)
        last = np.nextafter(last, np.float32(0)) if float(last) > middle else last
        above.append(float(last))
        below.append(float(np.nextafter(last, np.float32(0)) if float(last) == middle else last))
    return torch.tensor([*above, *below] if is_signed else [*above, 2.0], dtype=torch.float32)


def _decode(codes: torch.Tensor, largest: torch.Tensor, is_signed: bool) -> torch.Tensor:
    return dynamic_map(is_signed)[codes.to(torch.int64)] * largest.unsqueeze(1)


def _encode(rows: torch.Tensor, is_signed: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes and largest magnitudes. A power of ten is evenly spaced: a product and a sum give a code that is right or one too
    small wherever rounding takes them, and the limits decide."""
    largest = rows.abs().amax(1, keepdim=True)
    one, zero = torch.ones_like(largest), torch.zeros_like(largest)
    share = rows * torch.where(largest > 0, one / largest, zero)
    magnitude = share.abs()
    magnitude = torch.minimum(torch.where(magnitude > 0, magnitude, zero), one)  # NaN is 0: codes are in range
    first, counts = 1, _counts(is_signed)
    slopes, starts = [], []
    for count, ten in zip(counts, _TENS, strict=True):
        slopes.append(count / (0.9 * ten))
        starts.append(first - count / 9 - 0.5)
        first += count
    power = torch.zeros_like(magnitude, dtype=torch.int64)
    for ten in _TENS[:-1]:
        power = power + (magnitude >= ten).to(torch.int64)
    code = torch.floor(magnitude * torch.tensor(slopes)[power] + torch.tensor(starts)[power]).to(torch.int64)
    if not is_signed:
        return (code + (magnitude > _limits(is_signed)[code]).to(torch.int64)).to(torch.uint8), largest.squeeze(1)
    is_negative = share < 0
    place = torch.where(is_negative, code + (_ZERO + 1), code)
    code = code + (magnitude > _limits(is_signed)[place]).to(torch.int64)
    negative = torch.maximum(_ZERO - code, torch.zeros_like(code))  # there is no -1
    return torch.where(is_negative, negative, _ZERO + code).to(torch.uint8), largest.squeeze(1)


def _cut(tensor: torch.Tensor) -> torch.Tensor:
    """Blocks as rows, of which the last one ends in zeros."""
    flat = tensor.reshape(-1)
    rest = -tensor.numel() % BLOCK
    return (torch.nn.functional.pad(flat, (0, rest)) if rest else flat).reshape(-1, BLOCK)


def _join(rows: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    flat = rows.reshape(-1)
    return flat if like.dim() == 1 and not like.numel() % BLOCK else flat[: like.numel()].reshape(like.shape)


def _start(name: str, p: torch.Tensor, group: Group) -> torch.Tensor:
    if name.startswith("absmax"):
        return torch.zeros(-(-p.numel() // BLOCK), dtype=torch.float32, device=p.device)
    dtype = torch.uint8 if p.numel() >= group["min_8bit_size"] else torch.float32
    return torch.zeros(p.shape, dtype=dtype, device=p.device)


def _switches(group: Group) -> Switches:
    return (int(group["min_8bit_size"]),)


# ---- AdamW.


def _adamw_states(switches: Switches, p: torch.Tensor) -> tuple[str, ...]:
    return ("state1", "state2", "absmax1", "absmax2") if p.numel() >= switches[0] else ("state1", "state2")


def _adamw_scalars(_: Switches, group: Group, numbers: Numbers) -> list[float]:
    age, lr = numbers[0], float(group["lr"])
    beta1, beta2 = (float(beta) for beta in group["betas"])
    inverse_root, rate = (1 - beta2**age) ** -0.5, -lr / (1 - beta1**age)
    keep = 1 - lr * float(group["weight_decay"])
    return [keep, beta1, 1 - beta1, beta2, 1 - beta2, inverse_root, float(group["eps"]), rate]


def _adamw_step(p: torch.Tensor, g: torch.Tensor, averages: Tensors, scalars: Tensors) -> Tensors:
    keep, beta1, share1, beta2, share2, inverse_root, epsilon, rate = scalars
    average, square = averages[0] * beta1 + g * share1, averages[1] * beta2 + g * share2 * g
    return p * keep + average * rate / (square.sqrt() * inverse_root + epsilon), average, square


def _adamw(_: Switches, p: torch.Tensor, g: torch.Tensor, states: Tensors, scalars: Tensors) -> Tensors:
    kind, numbers = p.dtype, tuple(each.float() for each in scalars)
    if len(states) == 2:
        new, average, square = _adamw_step(p.float(), g.float(), states, numbers)
        return new.to(kind), average, square
    codes1, codes2, largest1, largest2 = states
    averages = (_decode(_cut(codes1), largest1, True), _decode(_cut(codes2), largest2, False))
    new, average, square = _adamw_step(_cut(p.float()), _cut(g.float()), averages, numbers)
    (new1, largest1), (new2, largest2) = _encode(average, True), _encode(square, False)
    return _join(new, p).to(kind), _join(new1, p), _join(new2, p), largest1, largest2


# ---- Lion.


def _lion_states(switches: Switches, p: torch.Tensor) -> tuple[str, ...]:
    return ("state1", "absmax1") if p.numel() >= switches[0] else ("state1",)


def _lion_scalars(_: Switches, group: Group, __: Numbers) -> list[float]:
    lr = float(group["lr"])
    beta1, beta2 = (float(beta) for beta in group["betas"])
    return [1 - lr * float(group["weight_decay"]), beta1, 1 - beta1, beta2, 1 - beta2, -lr]


def _lion_step(p: torch.Tensor, g: torch.Tensor, average: torch.Tensor, scalars: Tensors) -> Tensors:
    keep, beta1, share1, beta2, share2, rate = scalars
    update = average * beta1 + g * share1
    sign = torch.where(update == update, torch.sign(update), update)  # torch.sign has 0 for NaN: nothing would be seen
    return p * keep + sign * rate, average * beta2 + g * share2


def _lion(_: Switches, p: torch.Tensor, g: torch.Tensor, states: Tensors, scalars: Tensors) -> Tensors:
    kind, numbers = p.dtype, tuple(each.float() for each in scalars)
    if len(states) == 1:
        new, average = _lion_step(p.float(), g.float(), states[0], numbers)
        return new.to(kind), average
    new, average = _lion_step(_cut(p.float()), _cut(g.float()), _decode(_cut(states[0]), states[1], True), numbers)
    codes, largest = _encode(average, True)
    return _join(new, p).to(kind), _join(codes, p), largest


ADAMW8BIT = Rule(
    "adamw8bit",
    _switches,
    _adamw_states,
    _adamw_scalars,
    _adamw,
    counts=True,
    start=_start,
    block=BLOCK,
    of_blocks=("absmax1", "absmax2"),
    kept=(("alpha", 0.0), ("t_alpha", None), ("t_beta3", None)),
    only=(*_ONLY, ("amsgrad", False), ("optim_bits", 32)),
    arguments=arguments(
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=1e-2,
        amsgrad=False,
        optim_bits=32,
        args=None,
        min_8bit_size=4096,
        is_paged=False,
    ),
)
LION8BIT = Rule(
    "lion8bit",
    _switches,
    _lion_states,
    _lion_scalars,
    _lion,
    counts=True,
    start=_start,
    block=BLOCK,
    of_blocks=("absmax1",),
    kept=(("eps", 0.0),),
    only=_ONLY,
    arguments=arguments(lr=1e-4, betas=(0.9, 0.99), weight_decay=0, args=None, min_8bit_size=4096, is_paged=False),
)
