"""Gradients that are zeros, and those that are not there: as PyTorch has them, since optimizers do something else with each.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import unittest
from collections.abc import Callable
from typing import Any

import torch
from modules import distance, take_step, use_own_cache
from torch import nn

import ortc.torch
from ortc.torch import _dynamo

TOLERANCE = 2e-5  # as in wrap_test
ROWS, COLUMNS = 3, 4


def setUpModule() -> None:
    use_own_cache()


class Of(nn.Module):
    """A function of an input and of a parameter, and a scale that has a gradient in any case."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.w, self.scale = nn.Parameter(torch.randn(ROWS, COLUMNS)), nn.Parameter(torch.ones(()))
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x, self.w) * self.scale


class Gate(nn.Module):
    """Half of it has gradients of zeros: of a rounded gate, and of a row of padding; `loose` has none."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 2)
        self.gate, self.loose = nn.Parameter(torch.rand(6)), nn.Parameter(torch.rand(6))
        self.table = nn.Embedding(3, 6, padding_idx=0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.table(torch.zeros(len(x), dtype=torch.long))
        return self.second(self.first(x) * torch.round(self.gate) + self.loose.detach() + rows)


class Sorts(nn.Module):
    """Hands out two things, of which the second depends only on `other`."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.other = nn.Linear(4, 4), nn.Parameter(torch.rand(4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.first(x), torch.sign(self.other)


def everywhere() -> torch.Tensor:
    return torch.ones(ROWS, COLUMNS, dtype=torch.bool)


CASES: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "sign": lambda x, w: torch.sign(w) + x,
    "round": lambda x, w: torch.round(w) * x,
    "floor": lambda x, w: torch.floor(x) + w,
    "where": lambda x, w: torch.where(everywhere(), x, w),
    "where of an input": lambda x, w: torch.where(everywhere(), w, x),
    "masked": lambda x, w: x.masked_fill(everywhere(), 0.0) + w,
    "no diagonal": lambda x, w: torch.tril(w, -5) + x,
    "empty slice": lambda x, w: torch.cat([w[:0], x]),
    "empty slice of an input": lambda x, w: torch.cat([x[2:2], w]),
    "both": lambda x, w: torch.sign(x) + torch.ceil(w),
    "detached": lambda x, w: w.detach() + x,
    "compared": lambda x, w: (w > 0).float() + x,
    "shape alone": lambda x, w: torch.zeros_like(w) + x,
    "times zero": lambda x, w: w * 0 + x,
    "unused": lambda x, w: x * 2,
    "integers": lambda x, w: w.long().float() + x,
}


def steps(make: Callable[[list[nn.Parameter]], Any], run: str, module: nn.Module) -> dict[str, torch.Tensor]:
    """The parameters after a training. `run`: how steps are taken."""
    module = copy.deepcopy(module)
    optimizer = make(list(module.parameters()))
    trainer = called = None
    if run == "trainer":
        trainer = ortc.torch.Trainer(module, lambda y, t: (y - t).square().mean(), optimizer)
    elif run == "compile_":
        called = ortc.torch.compile_(module, wait=True, fallback="error")
    elif run == "torch.compile":
        torch._dynamo.reset()
        called = torch.compile(module, backend=lambda *given: _dynamo.backend(*given, options={"wait": True, "fallback": "error"}))
    generator = torch.Generator().manual_seed(1)
    for _ in range(5):
        x, y = torch.randn(4, 6, generator=generator), torch.randn(4, 2, generator=generator)
        take_step(trainer, module if called is None else called, [optimizer], lambda y, t: (y - t).square().mean(), x, y)
    return {name: each.detach().clone() for name, each in module.named_parameters()}


class ZerosTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)

    def same(self, wanted: torch.Tensor | None, got: torch.Tensor | None, what: str) -> None:
        self.assertEqual(wanted is None, got is None, f"{what}: {got} where PyTorch has {wanted}")
        if wanted is not None and got is not None:
            self.assertEqual((wanted.shape, wanted.dtype), (got.shape, got.dtype), what)
            self.assertLessEqual(distance(wanted.detach(), got.detach()), TOLERANCE, what)

    def test_functions(self) -> None:
        for name, function in CASES.items():
            with self.subTest(name):
                eager = Of(function)
                compiled = ortc.torch.compile_(copy.deepcopy(eager), wait=True, fallback="error")
                x = torch.randn(ROWS, COLUMNS)
                for step in range(2):  # the second time in memory of the first
                    given = [x.clone().requires_grad_() for _ in range(2)]
                    for module, each in zip((eager, compiled), given, strict=True):
                        module.zero_grad()
                        module(each).sum().backward()
                    self.same(given[0].grad, given[1].grad, f"input in step {step}")
                    for parameter, (key, got) in zip(eager.parameters(), compiled.named_parameters(), strict=True):
                        self.same(parameter.grad, got.grad, f"{key} in step {step}")

    def test_optimizers(self) -> None:
        makers: dict[str, Callable[[list[nn.Parameter]], Any]] = {
            "decay": lambda p: torch.optim.AdamW(p, 0.1, weight_decay=0.5),
            "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.1),
        }
        module = Gate()
        for what, make in makers.items():
            wanted = steps(make, "eager", module)
            self.assertFalse(torch.equal(wanted["gate"], module.gate))
            self.assertTrue(torch.equal(wanted["loose"], module.loose))
            for run in ("compile_", "torch.compile", "trainer"):
                with self.subTest(optimizer=what, run=run):
                    for name, each in steps(make, run, module).items():
                        self.same(wanted[name], each, name)

    def test_weights_without_a_gradient_may_change_between_fused_steps(self) -> None:
        """They are no constants of the step."""
        losses = []
        for run in ("eager", "trainer"):
            torch.manual_seed(0)
            module, loss = Gate(), lambda y, t: (y - t).square().mean()
            optimizer = torch.optim.SGD(module.parameters(), 0.1)
            trainer = ortc.torch.Trainer(module, loss, optimizer) if run == "trainer" else None
            x, y = torch.randn(4, 6), torch.randn(4, 2)
            for step in range(3):
                with torch.no_grad():
                    module.loose.fill_(float(step))
                losses.append(take_step(trainer, module, [optimizer], loss, x, y))
        for wanted, got in zip(losses[:3], losses[3:], strict=True):
            self.assertAlmostEqual(got / wanted, 1.0, places=4)

    def test_outputs_one_by_one(self) -> None:
        """A parameter has a gradient of zeros where the output that depends on it has one, and none otherwise."""
        eager = Sorts()
        compiled = ortc.torch.compile_(copy.deepcopy(eager), wait=True, fallback="error")
        x = torch.randn(3, 4)
        for used in ((0,), (0, 1), (1,), (0,)):
            for module in (eager, compiled):
                module.zero_grad()
                results = module(x)
                sum((results[i].sum() for i in used), torch.zeros(())).backward()
            for parameter, (key, got) in zip(eager.parameters(), compiled.named_parameters(), strict=True):
                self.same(parameter.grad, got.grad, f"{key} of outputs {used}")

    def test_gradients_of_inputs_alone(self) -> None:
        for training in (True, False):
            eager = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 1)).requires_grad_(False).train(training)
            compiled = ortc.torch.compile_(copy.deepcopy(eager), wait=True, fallback="error")
            for _ in range(2):
                x = torch.randn(5, 4)
                given = [x.clone().requires_grad_() for _ in range(2)]
                results = [module(each) for module, each in zip((eager, compiled), given, strict=True)]
                for each in results:
                    each.square().sum().backward()
                self.same(results[0], results[1], "output")
                self.same(given[0].grad, given[1].grad, "input")
                for (name, wanted), got in zip(eager.state_dict().items(), compiled.state_dict().values(), strict=True):
                    self.same(wanted.float(), got.float(), name)
                with torch.no_grad():  # an attack, or a generator, may go on with other weights
                    for module in (eager, compiled):
                        module[0].weight.mul_(1.5)


if __name__ == "__main__":
    unittest.main()
