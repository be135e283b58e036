"""An entry of the cache is compared with the module once in a process: what a key does not say ends there.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import os
import tempfile
import time
import unittest
import unittest.mock
from typing import Any

import torch
import torch.nn.functional as F
from modules import ConvNorm, Mlp, distance, total
from torch import nn

import ortc
import ortc.torch
from ortc.torch import _key, _kinds
from ortc.torch._watch import Watch

SLOPE = 1.0
KEEPS = True


class Bent(nn.Module):
    """Reads globals: one for its numbers, one for its gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(self.first(x)) * SLOPE
        return self.second(h if KEEPS else h.detach())


def bent_loss(output: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    return F.smooth_l1_loss(output, label, beta=SLOPE)


def set_globals(slope: float, keeps: bool = True) -> None:
    globals().update(SLOPE=slope, KEEPS=keeps)


class ComparisonTest(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(place.cleanup)
        # As if keys said nothing of what code reads.
        for patch in (
            unittest.mock.patch.dict(os.environ, ORTC_CACHE_DIR=place.name),
            unittest.mock.patch.object(_kinds, "describe", lambda module: _key.Description("", Watch().finish((), (), {}), True)),
        ):
            patch.start()
            self.addCleanup(patch.stop)
        self.addCleanup(set_globals, 1.0)
        torch.manual_seed(0)

    def check(self, model: nn.Module, x: torch.Tensor) -> None:
        """Outputs and gradients of a module that is compiled are PyTorch's."""
        eager = copy.deepcopy(model)
        ortc.torch.restore_(eager)
        model.zero_grad()
        results = [each(x) for each in (eager, model)]
        self.assertLess(distance(*results), 1e-5)
        for each in results:
            total(each).backward()
        for (name, p), q in zip(eager.named_parameters(), model.parameters(), strict=True):
            self.assertLess(distance(*(torch.zeros(1) if each.grad is None else each.grad for each in (p, q))), 1e-4, name)

    def test_compile(self) -> None:
        """Entries of other numbers, and of other gradients only."""
        x = torch.randn(4, 6)
        for slope, keeps in ((1.0, True), (0.5, True), (1.0, False), (1.0, True)):
            set_globals(slope, keeps)
            with self.subTest(slope=slope, keeps=keeps):
                model = ortc.torch.compile_(Bent(), wait=True)
                for _ in range(2):
                    self.check(model, x)
                report = ortc.torch.report(model)
                self.assertEqual(report.compiled, 2)
                self.assertEqual(len(report.failures), (slope, keeps) != (1.0, True))
                if report.failures:
                    self.assertRegex(report.failures[0], "the cache has was made of something else.*gives other numbers than the module")

    def test_without_waiting(self) -> None:
        """The first call is compiled where the cache is right; where it is not, calls go on meanwhile."""
        x = torch.randn(4, 6)
        ortc.torch.compile_(model := Bent(), wait=True)
        self.check(model, x)
        self.check(again := ortc.torch.compile_(Bent()), x)
        self.assertEqual(ortc.torch.report(again).compiled, 1)
        set_globals(0.5)
        other = ortc.torch.compile_(Bent())
        for _ in range(600):
            self.check(other, x)
            if ortc.torch.report(other).compiled:
                break
            time.sleep(0.1)
        self.assertGreater(sum(ortc.torch.report(other).eager.values()), 0)
        self.assertEqual(ortc.torch.report(other).compiled, 1)

    def test_evaluation_and_statistics(self) -> None:
        """A comparison leaves the module as it is: running statistics, random numbers, gradients."""
        x = torch.randn(4, 2, 7, 7)
        for _ in range(2):
            torch.manual_seed(1)
            model, eager = ConvNorm(), ConvNorm()
            eager.load_state_dict(model.state_dict())
            ortc.torch.compile_(model, wait=True, fallback="error")
            state = torch.get_rng_state()
            for each in (model, eager):
                each.train()
                total(each(x)).backward()
                each.eval()
                with torch.no_grad():
                    each(x)
            self.assertTrue(torch.equal(state, torch.get_rng_state()))
            for (name, wanted), got in zip(eager.state_dict().items(), model.state_dict().values(), strict=True):
                self.assertLess(distance(wanted.float(), got.float()), 1e-5, name)
            self.assertEqual(ortc.torch.report(model).failures, [])

    def test_fused_steps(self) -> None:
        x, y = torch.randn(8, 6), torch.randn(8, 3) * 3
        for slope, keeps in ((1.0, True), (0.5, True), (1.0, False), (1.0, True)):
            set_globals(slope, keeps)
            with self.subTest(slope=slope, keeps=keeps):
                model = Bent()
                eager = copy.deepcopy(model)
                mine, other = (torch.optim.AdamW(each.parameters(), lr=1e-2) for each in (model, eager))
                trainer = ortc.torch.Trainer(model, bent_loss, mine)
                for _ in range(3):
                    other.zero_grad()
                    wanted = bent_loss(eager(x), y)
                    wanted.backward()
                    other.step()
                    self.assertAlmostEqual(trainer.step(x, y), wanted.item(), places=5)
                self.assertEqual(len(trainer.failures), (slope, keeps) != (1.0, True))

    def test_fused_steps_of_other_rates(self) -> None:
        """Rates are no part of a key, and a comparison has those of now."""
        x, y = torch.randn(8, 6), torch.arange(8) % 3
        for kind, rate in ((torch.optim.SGD, 1e-2), (torch.optim.SGD, 0.0), (torch.optim.SGD, 0.5)) + 2 * ((torch.optim.Adagrad, 0.1),):
            model = Mlp()
            optimizer = kind(model.parameters(), lr=1e-2)
            trainer: Any = ortc.torch.Trainer(model, F.cross_entropy, optimizer)
            optimizer.param_groups[0]["lr"] = rate
            trainer.step(x, y)
            self.assertEqual(trainer.failures, [])


if __name__ == "__main__":
    unittest.main()
