"""Surroundings of calls: checkpoints, hooks of saved tensors, modes of PyTorch. Numbers are those of PyTorch in all of them, and the child
that compiles has none of them.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import copy
import faulthandler
import time
import unittest
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.utils.checkpoint as checkpoints
from modules import ConvNorm, Dropping, Mlp, distance, use_own_cache
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import ortc.torch

TOLERANCE = 2e-5  # as in wrap_test
MOST_S = 300


def setUpModule() -> None:
    use_own_cache()


class Seeing(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(function))
        return function(*args, **(kwargs or {}))


class Hearing(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


class Within(nn.Module):
    """Has a checkpoint of its own."""

    def __init__(self, **how: Any) -> None:
        super().__init__()
        self.first, self.second, self.how = nn.Linear(6, 6), nn.Linear(6, 6), how

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(checkpoints.checkpoint(self.first, x, **self.how)))


class Saving(Within):
    """Sets hooks of saved tensors."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autograd.graph.save_on_cpu():
            return self.second(torch.relu(self.first(x)))


def on_cpu(f: nn.Module, x: torch.Tensor) -> Any:
    with torch.autograd.graph.save_on_cpu():
        return f(x)


def through_numpy(f: nn.Module, x: torch.Tensor) -> Any:
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy().copy(), lambda a: torch.from_numpy(a)):
        return f(x)


WAYS: dict[str, Callable[[nn.Module, torch.Tensor], Any]] = {
    "checkpoint": lambda f, x: checkpoints.checkpoint(f, x, use_reentrant=False),
    "no early stop": lambda f, x: checkpoints.checkpoint(lambda y: f(y) * 2, x, use_reentrant=False, early_stop=False),
    "nested": lambda f, x: checkpoints.checkpoint(
        lambda y: checkpoints.checkpoint(f, torch.sin(y), use_reentrant=False), x, use_reentrant=False
    ),
    "twice": lambda f, x: checkpoints.checkpoint(lambda y: f(f(y)), x, use_reentrant=False),
    "reentrant": lambda f, x: checkpoints.checkpoint(f, x, use_reentrant=True),
    "save_on_cpu": on_cpu,
    "hooks": through_numpy,
}


class ModesTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)
        faulthandler.dump_traceback_later(MOST_S, exit=True)  # what waits for itself
        self.addCleanup(faulthandler.cancel_dump_traceback_later)

    def net(self) -> nn.Module:
        return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 6))

    def same(self, wanted: torch.Tensor | None, got: torch.Tensor | None, what: str) -> None:
        self.assertEqual(wanted is None, got is None, what)
        if wanted is not None and got is not None:
            self.assertEqual((wanted.shape, wanted.dtype), (got.shape, got.dtype), what)
            self.assertLessEqual(distance(wanted.detach(), got.detach()), TOLERANCE, what)

    def step(self, way: Callable[[nn.Module, torch.Tensor], Any], modules: tuple[nn.Module, nn.Module], given: bool = True) -> None:
        x = torch.randn(4, 6)
        seen = []
        for module in modules:
            module.zero_grad()
            own = x.clone().requires_grad_(given)
            result = way(module, own)
            result.square().sum().backward()
            seen.append((result, own.grad, *(p.grad for p in module.parameters())))
        for i, (wanted, got) in enumerate(zip(*seen, strict=True)):
            self.same(wanted, got, f"number {i}")

    def test_checkpoints_and_hooks(self) -> None:
        for name, way in WAYS.items():
            for wait in (True, False):
                with self.subTest(name, wait=wait):
                    eager = self.net()
                    compiled = ortc.torch.compile_(copy.deepcopy(eager), wait=wait)
                    report, end = ortc.torch.report(compiled), time.monotonic() + 120
                    while report.compiled < 4:
                        self.assertLess(time.monotonic(), end, str(report))
                        self.step(way, (eager, compiled))
                        if not wait:
                            time.sleep(0.05)
                    self.assertFalse(report.failures, str(report))

    def test_a_checkpoint_computes_again_as_it_has_computed(self) -> None:
        """By PyTorch what PyTorch has computed, though a step is compiled meanwhile: masks of dropout would be others."""
        compiled = ortc.torch.compile_(Dropping(), wait=False)
        x = torch.ones(3, 64)
        early = checkpoints.checkpoint(compiled, x, use_reentrant=False)
        report, end = ortc.torch.report(compiled), time.monotonic() + 120
        while not report.compiled:
            self.assertLess(time.monotonic(), end, str(report))
            compiled(x).sum().backward()
            time.sleep(0.05)
        late = checkpoints.checkpoint(compiled, x, use_reentrant=False)
        for result in (early, late):
            compiled.zero_grad()
            result.sum().backward()
            # The gradient of the bias after the dropout is of ones; the result is of the masks that the gradient must have.
            weight, bias = compiled.second.weight, compiled.second.bias
            self.assertTrue(torch.equal(bias.grad, torch.full((4,), 3.0)))
            masked = weight.grad[0]
            self.same((result - bias).sum(0).detach(), weight.detach() @ masked, "what was multiplied")
        ortc.torch.restore_(compiled)

    def test_checkpoints_within(self) -> None:
        for how in ({"use_reentrant": False}, {"use_reentrant": True}, {"use_reentrant": False, "preserve_rng_state": False}):
            for given in (True, False):
                with self.subTest(how, given=given), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of reentrant ones whose inputs have no gradient
                    eager = Within(**how)
                    compiled = ortc.torch.compile_(copy.deepcopy(eager), wait=True, fallback="error")
                    for _ in range(2):
                        self.step(lambda f, x: f(x), (eager, compiled), given)
        eager = Saving()
        self.step(lambda f, x: f(x), (eager, ortc.torch.compile_(copy.deepcopy(eager), wait=True, fallback="error")))

    def test_hooks_that_ask_for_gradients(self) -> None:
        """A reentrant checkpoint after a frozen table has gradients by such a hook only. Hooks that do more are not compiled."""

        def ask(module: nn.Module, args: Any, output: torch.Tensor) -> None:
            output.requires_grad_(True)

        def change(module: nn.Module, args: Any, output: torch.Tensor) -> None:
            output *= 2
            output.requires_grad_(True)

        class Frozen(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.table, self.within = nn.Embedding(5, 6).requires_grad_(False), Within(use_reentrant=True)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.within(self.table(x))

        eager = Frozen()
        compiled = ortc.torch.compile_(copy.deepcopy(eager), wait=True)
        x = torch.tensor([0, 3, 1, 4])
        reached: list[bool] = []
        for hook, calls in ((ask, 1), (None, 2), (change, 2), (ask, 3)):
            handles = [] if hook is None else [each.table.register_forward_hook(hook) for each in (eager, compiled)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for module in (eager, compiled):
                    module.zero_grad()
                    module(x).square().sum().backward()
            for (name, p), q in zip(eager.named_parameters(), compiled.named_parameters(), strict=True):
                self.same(p.grad, q[1].grad, f"{name} with {hook}")
            reached.append(eager.within.first.weight.grad is not None)
            self.assertEqual(ortc.torch.report(compiled).compiled, calls, str(ortc.torch.report(compiled)))
            for handle in handles:
                handle.remove()
        self.assertEqual(reached, [True, False, True, True])

    def test_statistics_that_a_checkpoint_moves_twice(self) -> None:
        eager = ConvNorm()
        compiled = ortc.torch.compile_(copy.deepcopy(eager), wait=True, fallback="error")
        for _ in range(2):
            x = torch.randn(4, 2, 7, 7)
            for module in (eager, compiled):
                checkpoints.checkpoint(module, x, use_reentrant=False).square().sum().backward()
        for (name, wanted), got in zip(eager.named_buffers(), compiled.buffers(), strict=True):
            self.same(wanted.float(), got.float(), name)

    def test_inference_mode(self) -> None:
        for wait in (True, False):
            module = nn.Sequential(ConvNorm(), nn.ReLU()).eval()
            x = torch.randn(4, 2, 7, 7)
            wanted = module(x).detach()
            compiled = ortc.torch.compile_(module, wait=wait)
            report, end = ortc.torch.report(compiled), time.monotonic() + 120
            while report.compiled < 2:
                self.assertLess(time.monotonic(), end, str(report))
                with torch.inference_mode():
                    own = x.clone()
                    result = compiled(own)
                self.assertTrue(result.is_inference())
                self.same(wanted, result, "evaluation")
                time.sleep(0.0 if wait else 0.05)
            self.assertFalse(report.failures, str(report))

    def test_what_the_child_does_not_have(self) -> None:
        """A child that has it compares with other numbers, or ends."""
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.addCleanup(torch.use_deterministic_algorithms, False)
        warnings.simplefilter("ignore")
        self.addCleanup(warnings.resetwarnings)

        def anomalous(f: nn.Module, x: torch.Tensor) -> Any:
            with torch.autograd.detect_anomaly():
                return f(x)

        def deterministic(f: nn.Module, x: torch.Tensor) -> Any:
            torch.use_deterministic_algorithms(True)
            try:
                return f(x)
            finally:
                torch.use_deterministic_algorithms(False)

        def on_device(f: nn.Module, x: torch.Tensor) -> Any:
            with torch.device("cpu"):
                return f(x)

        def without_hooks(f: nn.Module, x: torch.Tensor) -> Any:
            with torch.autograd.graph.disable_saved_tensors_hooks("none here"):
                return f(x)

        class Root(nn.Sequential):
            """Its gradient is infinite at zero: anomalies are where nobody asked for that gradient."""

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return super().forward(x) + (x * 0).abs().sqrt().detach()

        for way in (anomalous, deterministic, on_device, without_hooks):
            with self.subTest(way.__name__):
                eager = Root(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 6))
                compiled = ortc.torch.compile_(copy.deepcopy(eager), wait=True, fallback="error")
                self.step(way, (eager, compiled))

    def test_modes_that_see_operators(self) -> None:
        module = ortc.torch.compile_(Mlp(), wait=True)
        x = torch.randn(3, 6)
        module(x)
        with Seeing() as mode:
            module(x)
        self.assertIn("aten.tanh.default", mode.seen)
        with Hearing():
            module(x)
        with torch.device("meta"):
            self.assertEqual(module(x).device.type, "cpu")
        self.assertEqual(torch.func.jvp(lambda t: module(t), (x,), (x,))[0].shape, (3, 3))
        self.assertEqual(torch.vmap(module)(x[:, None]).shape, (3, 1, 3))
        reasons = str(ortc.torch.report(module))
        for text in ("a mode sees every operator (Seeing)", "a mode sees every function of PyTorch (Hearing)", "the default device is meta"):
            self.assertIn(text, reasons)
        self.assertIn("for forward-mode gradients", reasons)
        self.assertIn("within torch.func", reasons)

    def test_other_default_types(self) -> None:
        """Outputs of forward are of them."""

        class Makes(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = nn.Linear(6, 6)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.layer(x) + torch.ones(6)

        eager = Makes()
        compiled = ortc.torch.compile_(copy.deepcopy(eager), wait=True)
        x = torch.randn(3, 6)
        self.addCleanup(torch.set_default_dtype, torch.float32)
        for dtype in (torch.float32, torch.float64, torch.float32):
            torch.set_default_dtype(dtype)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.same(eager(x), compiled(x), str(dtype))


if __name__ == "__main__":
    unittest.main()
