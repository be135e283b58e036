"""A step of an optimizer that runs the compiled update.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import torch

from ortc._errors import CompileError
from ortc.torch._optimizers import Group, Known
from ortc.torch._recipes import Recipe
from ortc.torch._report import Report
from ortc.torch._works import Eager, Work, compute_loss, gather


class Compiled:
    """First base of the classes of optim.py, before the class that is compiled; `known` has the names of the compiler."""

    known: Known
    __dict__: dict[str, Any]
    state: dict[torch.Tensor, Any]
    param_groups: list[Group]

    def __init_subclass__(cls) -> None:
        if "known" in vars(cls):
            cls.__signature__ = cls.known.arguments or inspect.signature(cls.__mro__[2])  # type: ignore[attr-defined]

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
        loss = compute_loss(closure)
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
