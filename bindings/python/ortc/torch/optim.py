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

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import torch

from ortc._errors import CompileError
from ortc.torch._optimizers import KNOWN, Group, Known
from ortc.torch._recipes import InBytes, Recipe, ScheduleFree
from ortc.torch._report import Report
from ortc.torch._works import Eager, Work, gather

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


class _Compiled:
    """What the classes below put before those that they compile."""

    known: Known
    __dict__: dict[str, Any]
    state: dict[torch.Tensor, Any]
    param_groups: list[Group]

    def __init_subclass__(cls) -> None:
        if cls.__name__ in KNOWN and cls.__module__ == __name__:
            base = cls.__mro__[2]
            cls.known = KNOWN[cls.__name__]
            cls.__signature__ = cls.known.arguments or inspect.signature(base)  # type: ignore[attr-defined]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        for name in ("capturable", "differentiable"):
            if options.get(name):
                kind = type(self).__name__
                raise ValueError(f"{name}=True: a compiled step has no graph; leave it out, or take torch.optim.{kind}")
        options.pop("fused", None)  # it demands of PyTorch what a compiled step does not need; groups have None
        super().__init__(*arguments, **options)

    @property
    def report(self) -> Report:
        """How many steps were compiled, and why the others were not."""
        report: Report | None = self.__dict__.get("_report")
        if report is None:
            report = self.__dict__["_report"] = Report()
        return report

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step. `closure`: computes loss and gradients anew, and gives the loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        try:
            if self.report.failures:
                raise Eager("it could not be compiled")
            groups = [dict(group) for group in self.param_groups]
            more = self.known.begin(groups)
            works = [work for group in groups for work in gather(self.known, group | more, self.state)]
            for work in works:
                self._open(work)
        except Eager as why:
            self.report.eager[str(why)] += 1
            inspect.unwrap(super().step)(self)  # type: ignore[misc]  # hooks of a step have run already
            return loss
        for group, after in zip(self.param_groups, groups):
            group.update(after)
        for work in works:
            work.step(self.state)
            torch.autograd.graph.increment_version(work.parameters)
        self.report.compiled += 1
        return loss

    def _open(self, work: Work) -> None:
        try:
            work.open()
        except (Eager, ValueError):
            raise
        except Exception as error:
            text = str(error) if isinstance(error, CompileError) else f"{type(error).__name__}: {error}"
            if isinstance(self, Recipe):
                raise CompileError(f"{type(self).__name__}: {text}") from error
            self.report.failures.append(text)
            warnings.warn(f"ortc.torch.optim: {type(self).__name__} goes on without compiling: {text}", stacklevel=5)
            raise Eager("it could not be compiled") from None


# The table: a class has the arguments, groups and state of the one behind _Compiled, and the optimizer of its name in KNOWN.


class SGD(_Compiled, torch.optim.SGD):
    """torch.optim.SGD with a compiled step."""


class Adam(_Compiled, torch.optim.Adam):
    """torch.optim.Adam with a compiled step."""


class AdamW(_Compiled, torch.optim.AdamW):
    """torch.optim.AdamW with a compiled step."""


class RMSprop(_Compiled, torch.optim.RMSprop):
    """torch.optim.RMSprop with a compiled step."""


class Adagrad(_Compiled, torch.optim.Adagrad):
    """torch.optim.Adagrad with a compiled step."""


class Adadelta(_Compiled, torch.optim.Adadelta):
    """torch.optim.Adadelta with a compiled step."""


class Adamax(_Compiled, torch.optim.Adamax):
    """torch.optim.Adamax with a compiled step."""


class NAdam(_Compiled, torch.optim.NAdam):
    """torch.optim.NAdam with a compiled step."""


class RAdam(_Compiled, torch.optim.RAdam):
    """torch.optim.RAdam with a compiled step."""


class Adafactor(_Compiled, torch.optim.Adafactor):
    """torch.optim.Adafactor with a compiled step."""


class Muon(_Compiled, torch.optim.Muon):
    """torch.optim.Muon with a compiled step, whose products are in the type of the parameter and not in bfloat16."""


class Lion(_Compiled, Recipe):
    """Lion as lion-pytorch has it, with a compiled step."""


class Lamb(_Compiled, Recipe):
    """Lamb as timm has it, with a compiled step."""


class Lars(_Compiled, Recipe):
    """Lars as timm has it, with a compiled step."""


class SGDScheduleFree(_Compiled, ScheduleFree):
    """SGDScheduleFree of the package schedulefree, with a compiled step."""


class AdamWScheduleFree(_Compiled, ScheduleFree):
    """AdamWScheduleFree of the package schedulefree, with a compiled step."""


class AdamW8bit(_Compiled, InBytes):
    """AdamW8bit of bitsandbytes with a compiled step. Codes are the nearest ones, as those of its kernels for GPUs are; its code
    for processors takes neighbours of some. Norms are as others: tensors below min_8bit_size values are float32."""


class Lion8bit(_Compiled, InBytes):
    """Lion8bit of bitsandbytes with a compiled step. Codes are as those of AdamW8bit."""
