"""Optimizers with a compiled step: the classes of torch.optim and of other packages, with their arguments, groups and state.

    optimizer = ortc.torch.optim.AdamW(model.parameters(), lr=1e-3)

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

A step is one call for all tensors of a group, in the memory of parameters and state, on as many threads as
torch.set_num_threads says; where an optimizer looks at whole tensors (a norm, a product), it is one call for each. Results
have the same bits for every number of threads. What the compiled step does not take (other types, other devices, sparse
gradients) is a step of PyTorch's own, as a whole: both go on from the same state. An optimizer that PyTorch has not takes
such tensors through copies.
"""

from __future__ import annotations

from typing import Any

import torch

from ortc.torch._compiled import Compiled
from ortc.torch._optimizers import Groups, Known, list_arguments
from ortc.torch._recipes import InBytes, Recipe, ScheduleFree

__all__ = [
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "AdamW8bit",
    "AdamWScheduleFree",
    "Adamax",
    "Lamb",
    "Lars",
    "Lion",
    "Lion8bit",
    "Muon",
    "NAdam",
    "RAdam",
    "RMSprop",
    "SGDScheduleFree",
]


# ---- Numbers that packages count in groups and states.


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


def _begin_schedule_free(groups: Groups) -> dict[str, float]:
    if not groups[0]["train_mode"]:
        raise RuntimeError("a schedule-free optimizer steps in train mode only: call optimizer.train() before training")
    for group in groups:
        k, warmup = group["k"] + 1, group["warmup_steps"]
        rate = group["scheduled_lr"] = float(group["lr"]) * (min(k / warmup, 1.0) if warmup else 1.0)
        largest = group["lr_max"] = max(rate, group["lr_max"])
        group["weight_sum"] += k ** group["r"] * largest ** group["weight_lr_power"]
        group["k"] = k
    return {}


# ---- The table: a class has the arguments, groups and state of its last base or, of a Recipe, of the package that it names.

_IN_BYTES = {
    "exp_avg": "state1",
    "exp_avg_sq": "state2",
    "exp_avg_absmax": "absmax1",
    "exp_avg_sq_absmax": "absmax2",
}
_ONLY_OF_BYTES = (("args", None), ("is_paged", False))


def _schedule_free(flag: str, **defaults: Any) -> Known:
    return Known(
        flag,
        optional=("weight_decay", "warmup_steps", "r"),
        decouples=True,
        counts=False,
        counter="k",
        begin=_begin_schedule_free,
        starts={"z": "parameter"},
        kept=(("k", 0), ("train_mode", False), ("weight_sum", 0.0), ("lr_max", -1.0), ("scheduled_lr", 0.0)),
        arguments=list_arguments(**defaults),
    )


_MOMENTS = ("exp_avg", "exp_avg_sq")
_ADAM = Known("adam", compiled=("amsgrad",), states=(*_MOMENTS, "max_exp_avg_sq"))


class SGD(Compiled, torch.optim.SGD):
    """torch.optim.SGD with a compiled step."""

    known = Known(
        "sgd", ("weight_decay", "momentum", "dampening"), ("nesterov",), states=("momentum_buffer",), counts=False
    )


class Adam(Compiled, torch.optim.Adam):
    """torch.optim.Adam with a compiled step."""

    known = _ADAM


class AdamW(Compiled, torch.optim.AdamW):
    """torch.optim.AdamW with a compiled step."""

    known = _ADAM


class RMSprop(Compiled, torch.optim.RMSprop):
    """torch.optim.RMSprop with a compiled step."""

    known = Known(
        "rmsprop", ("weight_decay", "momentum"), ("centered",), states=("square_avg", "momentum_buffer", "grad_avg")
    )


class Adagrad(Compiled, torch.optim.Adagrad):
    """torch.optim.Adagrad with a compiled step."""

    known = Known(
        "adagrad", ("weight_decay", "lr_decay"), states=("sum",), starts={"sum": "initial_accumulator_value"}
    )


class Adadelta(Compiled, torch.optim.Adadelta):
    """torch.optim.Adadelta with a compiled step."""

    known = Known("adadelta", states=("square_avg", "acc_delta"))


class Adamax(Compiled, torch.optim.Adamax):
    """torch.optim.Adamax with a compiled step."""

    known = Known("adamax", states=("exp_avg", "exp_inf"))


class NAdam(Compiled, torch.optim.NAdam):
    """torch.optim.NAdam with a compiled step."""

    known = Known(
        "nadam",
        compiled=("decoupled_weight_decay",),
        states=_MOMENTS,
        products=("mu_product",),
    )


class RAdam(Compiled, torch.optim.RAdam):
    """torch.optim.RAdam with a compiled step."""

    known = Known("radam", compiled=("decoupled_weight_decay",), states=_MOMENTS)


class Adafactor(Compiled, torch.optim.Adafactor):
    """torch.optim.Adafactor with a compiled step."""

    known = Known(
        "adafactor",
        ("weight_decay", "epsilon1"),
        states=("row_var", "col_var", "variance"),
        decouples=True,
        is_whole=True,
    )


class Muon(Compiled, torch.optim.Muon):
    """torch.optim.Muon with a compiled step, whose products are in the type of the parameter and not in bfloat16."""

    known = Known(
        "muon",
        compiled=("nesterov", "ns_steps", "adjust_lr_fn"),
        states=("momentum_buffer",),
        decouples=True,
        counts=False,
        is_whole=True,
    )


class Lion(Compiled, Recipe):
    """Lion as lion-pytorch has it, with a compiled step."""

    known = Known(
        "lion",
        states=("exp_avg",),
        decouples=True,
        counts=False,
        arguments=list_arguments(lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0),
    )


class Lamb(Compiled, Recipe):
    """Lamb as timm has it, with a compiled step."""

    known = Known(
        "lamb",
        compiled=("trust_clip", "always_adapt", "grad_averaging"),
        counts=False,
        counter="step",
        begin=_begin_lamb,
        is_whole=True,
        arguments=list_arguments(
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


class Lars(Compiled, Recipe):
    """Lars as timm has it, with a compiled step."""

    known = Known(
        "lars",
        ("weight_decay", "momentum", "dampening"),
        ("nesterov", "trust_clip", "always_adapt"),
        states=("momentum_buffer",),
        counts=False,
        is_whole=True,
        arguments=list_arguments(
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


class SGDScheduleFree(Compiled, ScheduleFree):
    """SGDScheduleFree of the package schedulefree, with a compiled step."""

    known = _schedule_free(
        "schedule_free_sgd",
        lr=1.0,
        momentum=0.9,
        weight_decay=0,
        warmup_steps=0,
        r=0.0,
        weight_lr_power=2,
        foreach=True,
    )


class AdamWScheduleFree(Compiled, ScheduleFree):
    """AdamWScheduleFree of the package schedulefree, with a compiled step."""

    known = _schedule_free(
        "schedule_free_adamw",
        lr=0.0025,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        warmup_steps=0,
        r=0.0,
        weight_lr_power=2.0,
        foreach=True,
    )


class AdamW8bit(Compiled, InBytes):
    """AdamW8bit of bitsandbytes with a compiled step. Codes are the nearest ones, as those of its kernels for GPUs are; its code
    for processors takes neighbours of some. Norms are as others: tensors below min_8bit_size values are float32."""

    known = Known(
        "adamw8bit",
        decouples=True,
        has_bytes=True,
        renamed=_IN_BYTES,
        kept=(("alpha", 0.0), ("t_alpha", None), ("t_beta3", None)),
        only=(*_ONLY_OF_BYTES, ("amsgrad", False), ("optim_bits", 32)),
        arguments=list_arguments(
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


class Lion8bit(Compiled, InBytes):
    """Lion8bit of bitsandbytes with a compiled step. Codes are as those of AdamW8bit."""

    known = Known(
        "lion8bit",
        decouples=True,
        has_bytes=True,
        renamed={name: key for name, key in _IN_BYTES.items() if not name.startswith("exp_avg_sq")},
        kept=(("eps", 0.0),),
        only=_ONLY_OF_BYTES,
        arguments=list_arguments(lr=1e-4, betas=(0.9, 0.99), weight_decay=0, args=None, min_8bit_size=4096, is_paged=False),
    )


KNOWN: dict[str, Known] = {each.__name__: each.known for each in Compiled.__subclasses__()}
"""By the names of the classes."""
