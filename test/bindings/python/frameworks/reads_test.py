"""Values that code reads beside its arguments, and scripts change between calls: numbers are PyTorch's in every call.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import os
import types
import unittest
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from modules import distance, use_own_cache
from torch import nn

import ortc.torch

TOLERANCE = 2e-5  # as in wrap_test
FACTOR = 1.0
TABLE = {"shift": 0.0}
PARTS = [1.0]
COUNT = 0
STEPS: list[int] = []
WEIGHT = torch.ones(4)
elsewhere: Any = types.ModuleType("elsewhere")
exec(compile("SLOPE = 1.0\ndef bend(x): return x * SLOPE", "elsewhere.py", "exec"), vars(elsewhere))


def setUpModule() -> None:
    use_own_cache()


class Config:
    power = 1

    def __init__(self) -> None:
        self.gain, self.counter = 1.0, 0


def with_default(x: torch.Tensor, options: dict[str, float] = {"by": 1.0}) -> torch.Tensor:  # noqa: B006
    return x * options["by"]


class Reading(nn.Module):
    scale = 1.0

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.layer, self.config = nn.Linear(4, 4), config
        self.hooks = [torch.tanh]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x) * FACTOR + TABLE["shift"] + sum(PARTS)
        y = elsewhere.bend(with_default(y)) * self.scale * self.config.gain * float(os.environ.get("ORTC_READS", "1"))
        return self.hooks[0](y) ** self.config.power * WEIGHT


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        global COUNT
        COUNT += 1
        return self.layer(x) * COUNT


class Growing(Counting):
    def forward(self, x: torch.Tensor, seen: list[int] = []) -> torch.Tensor:  # noqa: B006
        seen.append(1)
        return self.layer(x) * len(seen)


class Stepping(Counting):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) * float(len(STEPS))


def loss(result: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    return F.mse_loss(result, label) * FACTOR


class Settling(nn.Module):
    """Computes something once, `factor` times what it is from then on."""

    def __init__(self, config: Config, factor: float) -> None:
        super().__init__()
        self.layer, self.config, self.factor = nn.Linear(4, 4), config, factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x) * (self.factor if self.config.counter == 0 else 1.0)
        self.config.counter = 1
        return y


class ReadsTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)
        self.config = Config()
        self.x, self.label = torch.randn(3, 4), torch.randn(3, 4)

    def change(self, put: Callable[[], Any], undo: Callable[[], Any]) -> None:
        self.addCleanup(undo)
        put()

    def changes(self) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
        one, own = with_default.__defaults__, self.config
        assert one is not None

        def put_weight() -> None:
            WEIGHT.mul_(2.0)

        return {
            "a global": (lambda: globals().update(FACTOR=3.0), lambda: globals().update(FACTOR=1.0)),
            "an item": (lambda: TABLE.update(shift=0.5), lambda: TABLE.update(shift=0.0)),
            "a list": (lambda: PARTS.append(0.5), lambda: PARTS.pop()),
            "a default": (lambda: one[0].update(by=2.0), lambda: one[0].update(by=1.0)),
            "a global of another file": (lambda: setattr(elsewhere, "SLOPE", 2.0), lambda: setattr(elsewhere, "SLOPE", 1.0)),
            "a class attribute": (lambda: setattr(Reading, "scale", 2.0), lambda: setattr(Reading, "scale", 1.0)),
            "a field": (lambda: setattr(own, "gain", 2.0), lambda: setattr(own, "gain", 1.0)),
            "a class attribute of an object": (lambda: setattr(Config, "power", 2), lambda: setattr(Config, "power", 1)),
            "the environment": (lambda: os.environ.update(ORTC_READS="2"), lambda: os.environ.pop("ORTC_READS")),
            "a tensor": (put_weight, lambda: WEIGHT.mul_(0.5)),
        }

    def agree(self, eager: nn.Module, compiled: nn.Module, what: str) -> None:
        seen = []
        for module in (eager, compiled):
            module.zero_grad()
            result = module(self.x)
            result.square().sum().backward()
            seen.append((result.detach(), *(p.grad for p in module.parameters())))
        for i, (wanted, got) in enumerate(zip(*seen, strict=True)):
            self.assertLessEqual(distance(wanted, got), TOLERANCE, f"{what}: number {i}")

    def test_changes_between_calls(self) -> None:
        eager = Reading(self.config)
        compiled = copy.deepcopy(eager)
        compiled.config = self.config
        ortc.torch.compile_(compiled, wait=True, fallback="error")
        self.agree(eager, compiled, "before")
        for what, (put, undo) in self.changes().items():
            with self.subTest(what):
                before = eager(self.x)
                put()
                try:
                    self.assertGreater(distance(before.detach(), eager(self.x).detach()), 0.01)
                    self.agree(eager, compiled, what)
                finally:
                    undo()
                self.agree(eager, compiled, f"undone: {what}")
        # A change that is undone gives the kind that was compiled before.
        self.assertEqual(len(ortc.torch.report(compiled).failures), 0)

    def test_what_code_does_not_read(self) -> None:
        """A counter beside it makes no other kind."""
        compiled = ortc.torch.compile_(Reading(self.config), wait=True, fallback="error")
        kinds = set()
        for step in range(4):
            globals()["COUNT"] = step
            TABLE["unread"] = step
            compiled(self.x)
            kinds.add(compiled.forward.kind.number)
        del TABLE["unread"]
        self.assertEqual(len(kinds), 1)

    def test_the_fused_step(self) -> None:
        eager = Reading(self.config)
        compiled = copy.deepcopy(eager)
        compiled.config = self.config
        trainer = ortc.torch.Trainer(compiled, loss, torch.optim.SGD(compiled.parameters(), 0.1))
        optimizer = torch.optim.SGD(eager.parameters(), 0.1)
        self.addCleanup(globals().update, FACTOR=1.0)
        for factor in (1.0, 3.0, 1.0):
            globals()["FACTOR"] = factor
            for _ in range(2):
                optimizer.zero_grad()
                wanted = loss(eager(self.x), self.label)
                wanted.backward()
                optimizer.step()
                self.assertAlmostEqual(trainer.step(self.x, self.label) / float(wanted), 1.0, delta=1e-4)

    def test_forward_that_changes_it(self) -> None:
        for module, what in ((Counting(), "COUNT"), (Growing(), "a default of Growing.forward")):
            for wait in (True, False):
                globals()["COUNT"] = 0
                Growing.forward.__defaults__[0].clear()  # type: ignore[index]
                compiled = ortc.torch.compile_(copy.deepcopy(module), wait=wait)
                factors = []
                for _ in range(4):
                    factors.append(float((compiled(self.x) / compiled.layer(self.x)).mean()))
                for factor, wanted in zip(factors, (1, 2, 3, 4), strict=True):
                    self.assertAlmostEqual(factor, wanted, delta=1e-4)
                self.assertIn(f"forward changes {what}, which a compiled step does not", str(ortc.torch.report(compiled)))

    def test_what_is_computed_once(self) -> None:
        """A change that the first call makes, and no later one: compiled from the first on where it changes no number."""
        for factor, first in ((1.0, 3), (2.0, 2)):
            config = Config()
            eager, compiled = Settling(config, factor), ortc.torch.compile_(Settling(copy.deepcopy(config), factor), wait=True)
            compiled.load_state_dict(eager.state_dict())
            for _ in range(3):
                self.assertLessEqual(distance(eager(self.x).detach(), compiled(self.x).detach()), TOLERANCE)
            self.assertEqual(ortc.torch.report(compiled).compiled, first, str(ortc.torch.report(compiled)))

    def test_fields_that_others_read(self) -> None:
        """Times and counts that a library keeps in an object of the module's make no other kind."""
        config = Config()
        compiled = ortc.torch.compile_(Reading(config), wait=True)
        for _ in range(4):
            config.counter += 1
            compiled(self.x).sum().backward()
        report = ortc.torch.report(compiled)
        self.assertEqual((report.compiled, report.artifacts), (4, 1), str(report))

    def test_what_always_changes(self) -> None:
        self.addCleanup(STEPS.clear)
        compiled = ortc.torch.compile_(Stepping())
        for _ in range(80):
            STEPS.append(1)
            self.assertLessEqual(distance((compiled.layer(self.x) * len(STEPS)).detach(), compiled(self.x).detach()), TOLERANCE)
        reasons = str(ortc.torch.report(compiled))
        self.assertIn("STEPS, which its code reads, change from call to call", reasons)
        ortc.torch.restore_(compiled)


if __name__ == "__main__":
    unittest.main()
