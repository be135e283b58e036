"""ortc.torch.Trainer with optimizers of PyTorch and of other packages: losses and weights of a loop of PyTorch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Losses of ours and of PyTorch in float32 are compared with those of PyTorch in float64: ours may be off eight times what
PyTorch's are, or some roundings where that is nothing.
"""

from __future__ import annotations

import unittest
import unittest.mock
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
import torch.optim._muon
from torch import nn
from modules import Mlp, take_step, use_own_cache
from optim_table_test import CASES, IN_BYTES, find_theirs, newton_schulz

import ortc.torch
import ortc.torch.optim
from ortc.torch.optim import KNOWN

LEFT_OUT = ({"bias_correction": False},)
"""Cases whose settings have no flag."""


def setUpModule() -> None:
    use_own_cache()


def falling(optimizer: Any) -> Any:
    return torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.2, 4)


def cycle(optimizer: Any) -> Any:
    """Moves betas, too."""
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.05, total_steps=20)


def run(kind: str, make: Callable[[nn.Module], Any], schedule: Callable[[Any], Any], dtype: torch.dtype) -> list[float]:
    """Losses of a training, and the sums of what it gives; `make` gives the optimizers."""
    torch.manual_seed(0)
    model = Mlp().to(dtype)
    optimizers = make(model)
    schedules = [schedule(each) for each in optimizers]
    generator, losses = torch.Generator().manual_seed(1), []
    trainer = None
    if kind == "ortc":
        trainer = ortc.torch.Trainer(model, F.cross_entropy, optimizers[0] if len(optimizers) == 1 else optimizers)
    else:
        for each in optimizers:
            if hasattr(each, "train"):
                each.train()
    for _ in range(6):
        x = torch.randn(16, 6, generator=generator, dtype=torch.float64).to(dtype)
        y = torch.randint(3, (16,), generator=generator)
        losses.append(take_step(trainer, model, optimizers, F.cross_entropy, x, y))
        for each in schedules:
            each.step()
    for each in optimizers:
        if hasattr(each, "eval"):
            each.eval()
    return losses + [p.detach().double().abs().sum().item() for p in model.parameters()]


class FusedTest(unittest.TestCase):
    def setUp(self) -> None:
        # The scheduler does not see steps of the trainer.
        warnings.filterwarnings("ignore", "Detected call of `lr_scheduler.step", UserWarning)
        self.addCleanup(warnings.resetwarnings)
        exact = unittest.mock.patch.object(torch.optim._muon, "_zeropower_via_newtonschulz", newton_schulz)
        exact.start()
        self.addCleanup(exact.stop)

    def check(
        self,
        make: Callable[[nn.Module], Any],
        ours: Callable[[nn.Module], Any] | None = None,
        schedule: Callable[[Any], Any] = falling,
    ) -> None:
        exact, theirs = run("eager", make, schedule, torch.float64), run("eager", make, schedule, torch.float32)
        mine = run("ortc", ours or make, schedule, torch.float32)
        for i, (e, t, m) in enumerate(zip(exact, theirs, mine, strict=True)):
            self.assertLessEqual(abs(m - e), max(8 * abs(t - e), 20 * torch.finfo(torch.float32).eps * abs(e)), f"number {i}")

    def test_every_optimizer(self) -> None:
        for name, options in CASES:
            if any(key in options for each in LEFT_OUT for key in each):
                continue
            with self.subTest(name=name, options=options):
                theirs = find_theirs(name)

                def make(model: nn.Module, kind: Any = theirs, options: Any = options, name: str = name) -> list[Any]:
                    if name != "Muon":
                        return [kind(model.parameters(), **options)]
                    matrices = [p for p in model.parameters() if p.dim() == 2]
                    others = [p for p in model.parameters() if p.dim() != 2]
                    return [kind(matrices, **options), torch.optim.AdamW(others, lr=0.01)]

                self.check(make)

    def test_those_of_ortc(self) -> None:
        def make(model: nn.Module, kind: Any) -> list[Any]:
            return [kind(model.parameters(), lr=0.01, weight_decay=0.1)]

        self.check(lambda model: make(model, torch.optim.NAdam), lambda model: make(model, ortc.torch.optim.NAdam))

    def test_groups(self) -> None:
        def make(model: nn.Module) -> list[Any]:
            biases = [p for name, p in model.named_parameters() if name.endswith("bias")]
            weights = [p for name, p in model.named_parameters() if not name.endswith("bias")]
            return [
                torch.optim.AdamW(
                    [{"params": biases, "weight_decay": 0.0}, {"params": weights, "lr": 0.05, "betas": (0.5, 0.9)}], lr=0.01
                )
            ]

        self.check(make)
        self.check(lambda model: [torch.optim.SGD([{"params": [p], "lr": 0.01 * i} for i, p in enumerate(model.parameters(), 1)])])

    def test_hyper_parameters_that_change(self) -> None:
        class Momenta(torch.optim.lr_scheduler.LRScheduler):
            def get_lr(self) -> list[float]:
                for group in self.optimizer.param_groups:
                    group["momentum"] = 0.9 - 0.05 * self.last_epoch
                    group["weight_decay"] = 0.1 + 0.1 * self.last_epoch
                return [group["lr"] for group in self.optimizer.param_groups]

        def losses(kind: str) -> list[float]:
            torch.manual_seed(0)
            model = Mlp()
            groups = [{"params": [p], "lr": 0.01 * i} for i, p in enumerate(model.parameters(), 1)]
            optimizer = torch.optim.SGD(groups, momentum=0.9, weight_decay=0.1)
            momenta = Momenta(optimizer)
            trainer = ortc.torch.Trainer(model, F.cross_entropy, optimizer) if kind == "ortc" else None
            x, y, found = torch.randn(8, 6), torch.arange(8) % 3, []
            for _ in range(5):
                found.append(take_step(trainer, model, [optimizer], F.cross_entropy, x, y))
                momenta.step()
            return found

        for mine, theirs in zip(losses("ortc"), losses("eager"), strict=True):
            self.assertAlmostEqual(mine / theirs, 1.0, 5)

    def test_betas_that_change(self) -> None:
        for kind in (torch.optim.AdamW, torch.optim.Adamax, torch.optim.RAdam, torch.optim.NAdam):
            with self.subTest(kind.__name__):
                self.check(lambda model, kind=kind: [kind(model.parameters(), betas=(0.9, 0.99))], schedule=cycle)

    def test_a_beta_that_is_1(self) -> None:
        model, x, y = Mlp(), torch.randn(4, 6), torch.arange(4) % 3
        optimizer = torch.optim.Adam(model.parameters())
        trainer = ortc.torch.Trainer(model, F.cross_entropy, optimizer)
        trainer.step(x, y)
        before = [p.detach().clone() for p in model.parameters()]
        optimizer.param_groups[0]["betas"] = (1.0, 0.9)
        with self.assertRaisesRegex(ortc.ArgumentError, "beta1 of the optimizer is 1.0, and a step divides by 1 - beta1"):
            trainer.step(x, y)
        self.assertTrue(all(torch.equal(p, q) for p, q in zip(model.parameters(), before)))
        optimizer.param_groups[0]["betas"] = (0.8, 0.9)
        trainer.step(x, y)
        self.assertTrue(all(p.isfinite().all() for p in model.parameters()))

    def test_what_is_refused(self) -> None:
        model = Mlp()
        x, y = torch.randn(4, 6), torch.arange(4) % 3
        optimizer = torch.optim.AdamW(model.parameters())
        trainer = ortc.torch.Trainer(model, F.cross_entropy, optimizer)
        trainer.step(x, y)
        optimizer.param_groups[0]["amsgrad"] = True
        with self.assertRaisesRegex(ortc.CompileError, "amsgrad of the optimizer has changed since the trainer was made"):
            trainer.step(x, y)

        class Mine(torch.optim.Optimizer):
            def __init__(self, params: Any) -> None:
                super().__init__(params, {"lr": 0.1})

        def started(params: Any) -> Any:
            optimizer = ortc.torch.optim.Lamb(params)
            for p in model.parameters():
                p.grad = torch.ones_like(p)
            optimizer.step()
            return optimizer

        cases: list[tuple[Any, str]] = [
            (Mine(model.parameters()), "Mine is not compiled; SGD, Adam, AdamW, .* are"),
            (torch.optim.SGD(model.first.parameters()), "other parameters than those that the module trains"),
            (started(model.parameters()), "the state of Lamb is no state of a session: .* trainer.save.path. and trainer.load.path. keep it"),
            (ortc.torch.optim.Lamb(model.parameters(), caution=True), "caution=True of Lamb is not compiled"),
            (
                ortc.torch.optim.Lion8bit(model.parameters(), min_8bit_size=1),
                "min_8bit_size=1 of Lion8bit is not compiled by ortc.torch.Trainer; min_8bit_size=4096 is",
            ),
            ([torch.optim.SGD(model.parameters()), torch.optim.SGD(model.parameters())], "a parameter is in two groups"),
            (
                [ortc.torch.optim.Lamb(model.first.parameters()), torch.optim.SGD(model.second.parameters())],
                "max_grad_norm of one optimizer among several",
            ),
        ]
        for given, message in cases:
            with self.subTest(message), self.assertRaisesRegex(ortc.CompileError, message):
                ortc.torch.Trainer(model, F.cross_entropy, given)
        self.assertEqual({name for name, _ in CASES} | IN_BYTES, set(KNOWN))


if __name__ == "__main__":
    unittest.main()
