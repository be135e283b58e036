"""What users change between calls, and what modules read besides arguments: a compiled step that overlooks it has other numbers.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import unittest
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from modules import Mlp, distance, take_step, use_own_cache
from torch import nn

import ortc.torch

TOLERANCE = 2e-5  # as in wrap_test


def setUpModule() -> None:
    use_own_cache()


class Reading(nn.Module):
    """Reads what it has in many ways."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)
        self.register_buffer("mask", torch.ones(6))
        self.act = torch.relu
        self.listed = [torch.ones(6)]
        self.nested = [[2.0], {"scale": 1.0}]
        self.a, self.b = None, 2.0
        object.__setattr__(self, "teacher", nn.Linear(6, 6).requires_grad_(False))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            taught = self.teacher(x)
        y = self.act(self.first(x)) * self.mask + self.second(x) * self.listed[0]
        return y * self.nested[0][0] + self.nested[1]["scale"] * (3.0 if self.a is None else 4.0) * (self.b or 1.0) + taught


def retie(m: Any, i: int) -> None:
    m.second.weight = m.first.weight if i % 2 else nn.Parameter(torch.full((6, 6), 0.1))


CHANGES: list[Callable[[Any, int], None]] = [
    lambda m, i: setattr(m, "mask", torch.full((6,), float(i))),
    lambda m, i: setattr(m, "act", torch.tanh if i % 2 else torch.relu),
    lambda m, i: m.listed[0].mul_(1.5),
    lambda m, i: m.nested[0].__setitem__(0, float(i)),
    lambda m, i: m.nested[1].__setitem__("scale", float(i)),
    lambda m, i: (setattr(m, "a", 2.0 if i % 2 else None), setattr(m, "b", None if i % 2 else 2.0)),
    lambda m, i: m.teacher.weight.mul_(1.5),
    retie,
]


class ChangesTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)

    def test_what_a_module_reads(self) -> None:
        for number, change in enumerate(CHANGES):
            with self.subTest(number):
                compiled = Reading()
                eager = copy.deepcopy(compiled)
                object.__setattr__(eager, "teacher", copy.deepcopy(compiled.teacher))
                ortc.torch.compile_(compiled, wait=True, fallback="error")
                x = torch.randn(4, 6)
                for i in range(4):
                    for module in (compiled, eager):
                        with torch.no_grad():
                            change(module, i)
                    self.assertLess(distance(eager(x), compiled(x)), TOLERANCE, f"call {i}")

    def test_the_fused_step(self) -> None:
        for change in CHANGES[:3]:
            losses = []
            for kind in ("ortc", "eager"):
                torch.manual_seed(0)
                module = Reading()
                optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
                trainer = ortc.torch.Trainer(module, F.mse_loss, optimizer) if kind == "ortc" else None
                x, y = torch.randn(4, 6), torch.randn(4, 6)
                for i in range(3):
                    change(module, i)
                    losses.append(take_step(trainer, module, [optimizer], F.mse_loss, x, y))
            for got, wanted in zip(losses[:3], losses[3:], strict=True):
                self.assertAlmostEqual(got / wanted, 1.0, places=4)

    def test_wrapped_modules(self) -> None:
        for wrapper in (nn.DataParallel, lambda module: nn.Sequential(nn.DataParallel(module))):
            module = ortc.torch.compile_(wrapper(Mlp()), wait=True)
            module(torch.randn(3, 6))
            self.assertIn("compile_ comes before a module is wrapped", str(ortc.torch.report(module)))

    def test_inputs_that_are_changed(self) -> None:
        for training in (True, False):
            module = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(6, 3)).train(training)
            ortc.torch.compile_(module, wait=True)
            x = -torch.ones(2, 6)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module(x)
            self.assertTrue(torch.equal(x, torch.zeros(2, 6)))
            self.assertIn("changes argument 0 in place", str(ortc.torch.report(module)))

    def test_special_calls(self) -> None:
        module = ortc.torch.compile_(nn.Sequential(nn.Linear(6, 6), nn.ReLU()), wait=True)
        x = torch.randn(4, 6)
        module(x)
        seen: list[str] = []
        handle = nn.modules.module.register_module_forward_hook(lambda m, *_: seen.append(type(m).__name__))
        module(x)
        handle.remove()
        self.assertEqual(seen, ["Linear", "ReLU", "Sequential"])
        self.assertEqual(torch.vmap(module)(x[:, None]).shape, (4, 1, 6))
        with torch.device("meta"):
            self.assertEqual(module(x).device.type, "cpu")


class RulesTest(unittest.TestCase):
    """Of operators, at numbers where a careless rule fails; steps are compiled with harmless ones."""

    def check(self, function: Callable[..., torch.Tensor], harmless: Any, *others: Any) -> None:
        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.scale = nn.Parameter(torch.ones(()))

            def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
                return function(self.scale, *tensors)

        compiled, eager = Net(), Net()
        ortc.torch.compile_(compiled, wait=True, fallback="error")
        for tensors in (harmless, *others):
            found = []
            for module in (compiled, eager):
                module.zero_grad()
                result = module(*tensors)
                result.sum().backward()
                found.append((result.detach(), module.scale.grad))
            for got, wanted in zip(*found, strict=True):
                self.assertLess(distance(wanted, got), TOLERANCE, tensors)

    def test_losses_of_logits(self) -> None:
        far = torch.tensor([-100.0, -20.0, 0.0, 10.0, 20.0, 100.0])
        label = torch.tensor([0.0, 1.0, 0.5, 0.0, 0.5, 1.0])
        self.check(lambda s, x, y: F.binary_cross_entropy_with_logits(s * x, y), (far / 100, label), (far, label))
        self.check(
            lambda s, x, y: F.binary_cross_entropy_with_logits(s * x, y, pos_weight=torch.full((6,), 3.0), reduction="sum"),
            (far / 100, label), (far, label),
        )
        self.check(lambda s, x: F.logsigmoid(s * x), (far / 100,), (far,))

    def test_division(self) -> None:
        numbers = torch.tensor([-7, -6, -1, 0, 1, 5])
        self.check(lambda s, n: s * (n // 3), (numbers.abs(),), (numbers,))
        self.check(lambda s, n: s + n // 3.0, (numbers.abs() + 0.5,), (numbers + 0.5,))

    def test_hidden_rows(self) -> None:
        q = torch.randn(1, 2, 3, 4)
        seen, hidden = torch.zeros(3, 3), torch.zeros(3, 3)
        hidden[1] = -torch.inf
        hidden[2, 0] = -torch.inf
        self.check(lambda s, q, m: F.scaled_dot_product_attention(s * q, q, q, attn_mask=m), (q, seen), (q, hidden))

    def test_negated_views(self) -> None:
        x = torch.randn(3, 2)
        self.check(lambda s, x: s * x, (x,), (torch._neg_view(x),))


if __name__ == "__main__":
    unittest.main()
