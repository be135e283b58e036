"""Optimizers that torch.optim has not, from the table of rules.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Their arguments, groups and state are those of the packages lion-pytorch, timm, schedulefree and bitsandbytes, so that
checkpoints go both ways; none of these packages is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ortc.torch._rules.blocks import dynamic_map
from ortc.torch._rules.rule import Rule, scalars_of

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
        for name, value in self.rule.only:
            if bound.arguments.pop(name) != value:
                raise ValueError(f"{type(self).__name__} takes no {name} but {value}; leave it out")
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
                    own.update({"step": torch.zeros(())} if rule.counts else {})
                    own.update({name: rule.start(name, p, group) for name in names})
                if rule.counts:
                    own["step"] += 1
                    age = float(own["step"])
                dtype = torch.promote_types(p.dtype, torch.float32)
                numbers = [torch.tensor(x, dtype=dtype) for x in scalars_of(rule, switches, group | more, (age,))]
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

    def _read(self, index: int, p: torch.Tensor, group: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter."""
        given = {key: value for key, value in given.items() if key != _WRAPPED} | given.get(_WRAPPED, {})
        what, size = f"the state of parameter {index}, of {p.numel()} values,", group["min_8bit_size"]
        names = self.rule.states(self.rule.switches(group), p)
        own = {"step": torch.tensor(_read_step(what, given.get("step")))}
        if (p.numel() >= size) != ("absmax1" in given):
            kind = "bytes" if "absmax1" in given else "float32"
            raise ValueError(f"{what} is in {kind}, which min_8bit_size={size} of its group does not say; give another one")
        for name in names:
            wanted, value = self.rule.start(name, torch.empty_like(p, device="meta"), group), given.get(name)
            if not isinstance(value, torch.Tensor) or (value.shape, value.dtype) != (wanted.shape, wanted.dtype):
                got = f"{value.dtype} {list(value.shape)}" if isinstance(value, torch.Tensor) else value
                raise ValueError(f"{what} has {name} {got}, but must have {wanted.dtype} {list(wanted.shape)}")
            if name.startswith("absmax") and not ((value >= 0) & value.isfinite()).all():
                raise ValueError(f"{what} has {name} with NaN, infinities or values below 0, which are no magnitudes of an average")
            own[name] = value.to(p.device).contiguous().clone()
            codes = given.get(f"qmap{name[-1]}")
            if name.startswith("absmax") and (codes is None or not torch.equal(codes.cpu(), dynamic_map(name[-1] == "1"))):
                raise ValueError(f"{what} has a qmap{name[-1]} that is not the dynamic map of bitsandbytes, which is compiled")
        if "unorm_vec" in given:
            raise ValueError(f"{what} has unorm_vec, of max_unorm, which is not compiled")
        return own
