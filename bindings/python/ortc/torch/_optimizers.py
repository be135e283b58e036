"""The map of ortc.torch.optim: what its classes call the settings and states of the compiler's optimizers.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Formulas are the compiler's (compiler/passes/train/optimizers). Settings have the compiler's names except those below.
Numbers are inputs of a step, so that schedules compile nothing; numbers of which a zero compiles nothing, switches and
words decide what is compiled. Numbers that parameters share in a step, such as bias corrections, follow from what
checkpoints count.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import torch

Group = dict[str, Any]
"""Of Optimizer.param_groups."""
Groups = list[Group]
Numbers = tuple[float, ...]
"""The number of this step of a parameter, and what `factors` have made. Without counting, the number is 1 in
the first step and 2 afterwards."""

RENAMED = {"betas": ("beta1", "beta2"), "eps": ("epsilon",), "ns_coefficients": ("ns_a", "ns_b", "ns_c")}
"""Settings of several numbers, and those that the compiler calls otherwise."""
PAIR_OF_EPSILONS = ("epsilon1", "epsilon2")
_PLACES = {name: (key, i) for key, names in RENAMED.items() for i, name in enumerate(names) if len(names) > 1}
_PLACES |= {name: ("eps", i) for i, name in enumerate(PAIR_OF_EPSILONS)}
_CORRECTIONS = {"bias_correction1": 0, "bias_correction2": 1}


def _begin_nothing(_groups: Groups) -> dict[str, float]:
    return {}


@dataclass(frozen=True, eq=False)  # a key of caches, in every step
class Known:
    """An optimizer."""

    flag: str
    """Its name in `ortc train --optimizer`."""
    optional: tuple[str, ...] = ("weight_decay",)
    """Settings of which a zero compiles nothing."""
    compiled: tuple[str, ...] = ()
    """Switches, words and whole numbers, which are compiled in."""
    states: tuple[str, ...] = ()
    """Those that sessions of `ortc.torch.Trainer` have by the names of checkpoints, where settings or shapes need them."""
    decouples: bool = False
    """Whether weight decay is no part of the gradient: then it is an input even where it is 0."""
    counts: bool = True
    """Whether there is a state `step` of each parameter."""
    counter: str = ""
    """Where a group counts for all of its parameters: the key."""
    factors: tuple[tuple[str, Callable[[Group, float], float]], ...] = ()
    """States of one number, 1 at first, and what a step with its number multiplies each by."""
    begin: Callable[[Groups], dict[str, float]] = _begin_nothing
    """Before every step: moves what the groups count, and gives what scalars find in a group beside its own."""
    is_whole: bool = False
    """The formula looks at all of a tensor (a norm, a product), so that each shape is a compilation."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """States that checkpoints call otherwise than the compiler."""
    starts: Mapping[str, str] = field(default_factory=dict)
    """States that do not begin with zeros: "parameter", or the key of the group that says with what."""
    has_bytes: bool = False
    """States are bytes of tensors of `min_8bit_size` elements and more, float32 of others."""
    arguments: inspect.Signature | None = None
    """Those that make one that torch.optim has not, with the defaults; all are keys of its groups."""
    kept: tuple[tuple[str, Any], ...] = ()
    """Keys of its groups that are no arguments."""
    only: tuple[tuple[str, Any], ...] = ()
    """Arguments that are no keys of its groups, and the only values that they may have."""

    def flag_of(self, group: Group) -> str:
        return self._name(self._decouples(group))

    def _name(self, decouples: bool) -> str:
        return "adamw" if self.flag == "adam" and decouples else self.flag

    def _decouples(self, group: Group) -> bool:
        return self.decouples or bool(group.get("decoupled_weight_decay"))

    def choices(self, group: Group) -> tuple[Any, ...]:
        """The settings that decide which operations there are."""
        decouples = self._decouples(group)
        return decouples, *[group[key] for key in self.compiled], *[_is_there(group, key, decouples) for key in self.optional]

    def spec(self, choices: tuple[Any, ...]) -> str:
        """For `ortc update --optimizer`. Only whether a number is 0 matters."""
        decouples, *rest = choices
        given = [(key, value) for key, value in zip((*self.compiled, *self.optional), rest, strict=True) if value is not None]
        return f"{self._name(decouples)}:" + ",".join(f"{key}={int(value) if isinstance(value, bool) else value}" for key, value in given)

    def scalars(self, names: tuple[str, ...], group: Group, numbers: Numbers) -> list[float]:
        """Inputs of a step. Raises ValueError where it divides by a bias correction of 0."""
        steps = float(group[self.counter]) if self.counter else numbers[0]
        return [read(group, steps, numbers) for read in _readers(self, names)]


_Reader = Callable[[Group, float, Numbers], float]


@cache
def _readers(known: Known, names: tuple[str, ...]) -> list[_Reader]:
    return [_find_reader(known, name) for name in names]


def _find_reader(known: Known, name: str) -> _Reader:
    """Reads an input of that name, of a group after so many steps."""
    factors = [factor for factor, _ in known.factors]
    if name == "gradient_scale":
        return lambda group, steps, numbers: (-1.0 if group.get("maximize") else 1.0) * group.get("clip", 1.0)
    if name == "updates":
        return lambda group, steps, numbers: steps
    if name in _CORRECTIONS:
        return partial(_correct, known.flag, _CORRECTIONS[name])
    if name in factors:
        place = 1 + factors.index(name)
        return lambda group, steps, numbers: numbers[place]
    if name in _PLACES:
        key, i = _PLACES[name]
        return lambda group, steps, numbers: float(group[key][i])
    key = "eps" if name == "epsilon" else name
    return lambda group, steps, numbers: float(group[key])


def _correct(flag: str, i: int, group: Group, steps: float, _: Numbers) -> float:
    if not group.get("bias_correction", True):
        return 1.0
    correction: float = 1 - float(group["betas"][i]) ** steps
    if not correction:
        raise ValueError(f"Invalid betas: {group['betas']} of {flag}; a step divides by 1 - beta^n, so that each must be below 1")
    return correction


def _is_there(group: Group, key: str, decouples: bool) -> bool:
    if key == "epsilon1":
        return group["eps"][0] is not None
    return bool(group[key]) or (decouples and key == "weight_decay")


def settings_of(group: Group, keys: list[str]) -> dict[str, Any]:
    """Settings of a group as those of `ortc train`."""
    found: dict[str, Any] = {}
    for key in keys:
        value = group[key]
        names = RENAMED.get(key, (key,))
        if key == "eps" and isinstance(value, (tuple, list)):
            names = PAIR_OF_EPSILONS
        values = value if isinstance(value, (tuple, list)) else (value,)
        for name, each in zip(names, values, strict=True):
            if isinstance(each, torch.Tensor):
                each = each.item()
            if each is not None:
                found[name] = int(each) if isinstance(each, bool) else each
    return found


def _arguments(**defaults: Any) -> inspect.Signature:
    """A signature of parameters and these, in order."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature(
        [
            inspect.Parameter("params", kind),
            *(inspect.Parameter(name, kind, default=value) for name, value in defaults.items()),
        ]
    )


# ---- Numbers that packages count in groups and states.


def _momentum_of_nadam(group: Group, age: float) -> float:
    return float(group["betas"][0] * (1.0 - 0.5 * (0.96 ** (age * float(group["momentum_decay"])))))


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


# ---- The map.

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
        arguments=_arguments(**defaults),
    )


_MOMENTS = ("exp_avg", "exp_avg_sq")
_ADAM = Known("adam", compiled=("amsgrad",), states=(*_MOMENTS, "max_exp_avg_sq"))
KNOWN: dict[str, Known] = {
    "SGD": Known(
        "sgd", ("weight_decay", "momentum", "dampening"), ("nesterov",), states=("momentum_buffer",), counts=False
    ),
    "Adam": _ADAM,
    "AdamW": _ADAM,
    "RMSprop": Known(
        "rmsprop", ("weight_decay", "momentum"), ("centered",), states=("square_avg", "momentum_buffer", "grad_avg")
    ),
    "Adagrad": Known(
        "adagrad", ("weight_decay", "lr_decay"), states=("sum",), starts={"sum": "initial_accumulator_value"}
    ),
    "Adadelta": Known("adadelta", states=("square_avg", "acc_delta")),
    "Adamax": Known("adamax", states=("exp_avg", "exp_inf")),
    "NAdam": Known(
        "nadam",
        compiled=("decoupled_weight_decay",),
        states=_MOMENTS,
        factors=(("mu_product", _momentum_of_nadam),),
    ),
    "RAdam": Known("radam", compiled=("decoupled_weight_decay",), states=_MOMENTS),
    "Adafactor": Known(
        "adafactor",
        ("weight_decay", "epsilon1"),
        states=("row_var", "col_var", "variance"),
        decouples=True,
        is_whole=True,
    ),
    "Muon": Known(
        "muon",
        compiled=("nesterov", "ns_steps", "adjust_lr_fn"),
        states=("momentum_buffer",),
        decouples=True,
        counts=False,
        is_whole=True,
    ),
    "Lion": Known(
        "lion",
        states=("exp_avg",),
        decouples=True,
        counts=False,
        arguments=_arguments(lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0),
    ),
    "Lamb": Known(
        "lamb",
        compiled=("trust_clip", "always_adapt", "grad_averaging"),
        counts=False,
        counter="step",
        begin=_begin_lamb,
        is_whole=True,
        arguments=_arguments(
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
    ),
    "Lars": Known(
        "lars",
        ("weight_decay", "momentum", "dampening"),
        ("nesterov", "trust_clip", "always_adapt"),
        states=("momentum_buffer",),
        counts=False,
        is_whole=True,
        arguments=_arguments(
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
    ),
    "SGDScheduleFree": _schedule_free(
        "schedule_free_sgd",
        lr=1.0,
        momentum=0.9,
        weight_decay=0,
        warmup_steps=0,
        r=0.0,
        weight_lr_power=2,
        foreach=True,
    ),
    "AdamWScheduleFree": _schedule_free(
        "schedule_free_adamw",
        lr=0.0025,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        warmup_steps=0,
        r=0.0,
        weight_lr_power=2.0,
        foreach=True,
    ),
    "AdamW8bit": Known(
        "adamw8bit",
        decouples=True,
        has_bytes=True,
        renamed=_IN_BYTES,
        kept=(("alpha", 0.0), ("t_alpha", None), ("t_beta3", None)),
        only=(*_ONLY_OF_BYTES, ("amsgrad", False), ("optim_bits", 32)),
        arguments=_arguments(
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
    ),
    "Lion8bit": Known(
        "lion8bit",
        decouples=True,
        has_bytes=True,
        renamed={name: key for name, key in _IN_BYTES.items() if not name.startswith("exp_avg_sq")},
        kept=(("eps", 0.0),),
        only=_ONLY_OF_BYTES,
        arguments=_arguments(lr=1e-4, betas=(0.9, 0.99), weight_decay=0, args=None, min_8bit_size=4096, is_paged=False),
    ),
}
"""By the name of the class, whose arguments, groups and state are those of torch.optim or, where that has none, of
lion-pytorch (Lion), timm (Lamb, Lars), schedulefree and bitsandbytes (those of 8 bits)."""
