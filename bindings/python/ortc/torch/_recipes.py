"""Optimizers that torch.optim has not.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Their arguments, groups and state are those of the packages lion-pytorch, timm, schedulefree and bitsandbytes, so that
checkpoints go both ways; none of these packages is needed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ortc.torch._optimizers import Group, Known, Numbers
from ortc.torch._works import Work, begin_counting, compute_loss

_BELOW_ONE = ("betas", "momentum", "dampening")


def _check(name: str, value: Any) -> None:
    for each in value if isinstance(value, (tuple, list)) else (value,):
        if isinstance(each, (bool, type(None))):
            continue
        if not 0 <= each or (name in _BELOW_ONE and each > 1):
            raise ValueError(f"Invalid {name}: {each}; it must be {'from 0 to 1' if name in _BELOW_ONE else 'at least 0'}")


class Recipe(torch.optim.Optimizer):
    """An optimizer that only the compiler has."""

    known: Known

    def __init__(self, params: Any, *arguments: Any, **options: Any) -> None:
        assert self.known.arguments is not None
        bound = self.known.arguments.bind(params, *arguments, **options)
        bound.apply_defaults()
        for name, value in self.known.only:
            if bound.arguments.pop(name) != value:
                raise ValueError(f"{type(self).__name__} takes no {name} but {value}; leave it out")
        defaults = {name: value for name, value in bound.arguments.items() if name != "params"}
        for name, value in defaults.items():
            _check(name, value)
        if defaults.get("nesterov") and (not defaults["momentum"] or defaults["dampening"]):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults | dict(self.known.kept))

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step. `closure`: computes loss and gradients anew, and gives the loss."""
        loss = compute_loss(closure)
        more = self.known.begin(self.param_groups)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if p.grad.layout is not torch.strided:
                    raise RuntimeError(f"{type(self).__name__} takes no sparse gradients")
                if p.numel():
                    self._step_copies(group | more, p, self.state[p])
        return loss

    def _step_copies(self, group: Group, p: torch.Tensor, own: dict[str, Any]) -> None:
        """The step of a tensor that compiled code does not take as it is: through dense copies on the processor."""
        dtype = torch.float64 if p.dtype == torch.float64 else torch.float32
        work = Work(self.known, group, _copy(p, dtype))
        work.add(_copy(p, dtype), _copy(p.grad, dtype), {})
        work.open()
        numbers: Numbers = (2.0 if own else 1.0,)
        if not own:
            own.update(begin_counting(self.known))
        for name, form in work.forms.items():
            if own.get(name) is None:
                own[name] = work.start(name, form, p).to(p.device, form.dtype if self.known.has_bytes else p.dtype)
        if self.known.counts:
            own["step"] += 1
            numbers = (float(own["step"]),)
        work.states = {name: [_copy(own[name], form.dtype)] for name, form in work.forms.items()}
        work.update.prepare(work)
        work.update.run(work, [numbers])
        for tensor, (result, *_) in zip((p, *(own[name] for name in work.states)), (work.parameters, *work.states.values())):
            tensor.copy_(result)


def _copy(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=dtype).copy_(tensor)


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


_BLOCK = 256
"""Values that share a magnitude."""


@functools.cache
def dynamic_map(is_signed: bool) -> torch.Tensor:
    """The values of codes, from the smallest to the largest, as checkpoints of bitsandbytes say it: 0, 1, and in each power of
    ten twice as many values as in the one below, evenly spaced."""
    values = [0.0, 1.0]
    for i in range(7):
        count = 2 ** (i if is_signed else i + 1)
        bounds = torch.linspace(0.1, 1, count + 1, dtype=torch.float32)
        means = (10.0 ** (i - 6) * ((bounds[:-1] + bounds[1:]) / 2)).tolist()
        values += [*means, *(-mean for mean in means if is_signed)]
    return torch.tensor(sorted(values), dtype=torch.float32)


_WRAPPED = "__bnb_optimizer_quant_state__"
"""Where bitsandbytes puts states of a parameter in a state_dict, so that nothing gathers or casts them."""


def _read_step(what: str, given: Any) -> float:
    step = float(given) if isinstance(given, (int, float)) or (isinstance(given, torch.Tensor) and given.numel() == 1) else -1.0
    if not 0 <= step < 2**53 or step != int(step):
        raise ValueError(f"{what} has step {given}, but must have a whole number from 0")
    return step


class InBytes(Recipe):
    """With averages in bytes. A state_dict is that of bitsandbytes: with the map of each average, and a whole number of
    steps."""

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        betas = param_group.get("betas", self.defaults["betas"])
        is_pair = isinstance(betas, (tuple, list)) and len(betas) == 2
        if not is_pair or not all(isinstance(each, (int, float)) and 0 <= each < 1 for each in betas):
            raise ValueError(f"Invalid betas: {betas}; they must be two numbers from 0 and below 1")
        super().add_param_group(param_group)

    def state_dict(self) -> dict[str, Any]:
        found = super().state_dict()
        for index, own in found["state"].items():
            own = dict(own)
            step = int(own.pop("step"))
            maps = {f"qmap{i}": dynamic_map(i == 1).clone() for i in (1, 2) if f"absmax{i}" in own}
            found["state"][index] = {"step": step, _WRAPPED: own | maps}
        return found

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Of this class or of bitsandbytes. Raises ValueError where it cannot go on from it, and changes nothing then."""
        own, saved = self.param_groups, state_dict["param_groups"]
        if [len(each["params"]) for each in own] != [len(each["params"]) for each in saved]:
            super().load_state_dict(state_dict)  # raises
        groups = [mine | group for mine, group in zip(own, saved, strict=True)]
        found = {
            p: self._read(index, p, group, state_dict["state"][index])
            for mine, group in zip(own, groups, strict=True)
            for index, p in zip(group["params"], mine["params"], strict=True)
            if index in state_dict["state"]
        }
        super().load_state_dict({**state_dict, "state": {}, "param_groups": groups})
        self.state.update(found)

    def _list_states(self, p: torch.Tensor, size: int) -> dict[str, tuple[torch.dtype, torch.Size]]:
        """Types and shapes of the states of a parameter; averages come first."""
        names = sorted(self.known.renamed.values(), reverse=True)
        if p.numel() < size:
            return {name: (torch.float32, p.shape) for name in names if name.startswith("state")}
        blocks = torch.Size([-(-p.numel() // _BLOCK)])
        return {name: (torch.uint8, p.shape) if name.startswith("state") else (torch.float32, blocks) for name in names}

    def _read(self, index: int, p: torch.Tensor, group: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter."""
        given = {key: value for key, value in given.items() if key != _WRAPPED} | given.get(_WRAPPED, {})
        what, size = f"the state of parameter {index}, of {p.numel()} values,", group["min_8bit_size"]
        own = {"step": torch.tensor(_read_step(what, given.get("step")))}
        if (p.numel() >= size) != ("absmax1" in given):
            kind = "bytes" if "absmax1" in given else "float32"
            raise ValueError(f"{what} is in {kind}, which min_8bit_size={size} of its group does not say; give another one")
        for name, (dtype, shape) in self._list_states(p, size).items():
            value = given.get(name)
            if not isinstance(value, torch.Tensor) or (value.shape, value.dtype) != (shape, dtype):
                got = f"{value.dtype} {list(value.shape)}" if isinstance(value, torch.Tensor) else value
                raise ValueError(f"{what} has {name} {got}, but must have {dtype} {list(shape)}")
            if name.startswith("absmax") and not ((value >= 0) & value.isfinite()).all():
                raise ValueError(f"{what} has {name} with NaN, infinities or values below 0, which are no magnitudes of an average")
            own[name] = value.to(p.device).contiguous().clone()
            codes = given.get(f"qmap{name[-1]}")
            if name.startswith("absmax") and (codes is None or not torch.equal(codes.cpu(), dynamic_map(name[-1] == "1"))):
                raise ValueError(f"{what} has a qmap{name[-1]} that is not the dynamic map of bitsandbytes, which is compiled")
        if "unorm_vec" in given:
            raise ValueError(f"{what} has unorm_vec, of max_unorm, which is not compiled")
        return own
