"""Backward steps that a compiled step does not have: they are computed again by PyTorch, with its numbers, and calls of the kind run eagerly
from then on.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import unittest
from collections.abc import Callable
from typing import Any

import torch
from modules import ConvNorm, Dropping, Mlp, Two, distance, use_own_cache
from torch import nn

import ortc.torch

TOLERANCE = 2e-5  # as in wrap_test
BATCHES = "gradients are taken in batches (torch.vmap, is_grads_batched=True)"
SECOND = "gradients of its gradients are taken (create_graph=True)"
SEVERAL = "backward goes through one forward several times (retain_graph=True)"


def setUpModule() -> None:
    use_own_cache()


def twice(f: nn.Module, x: torch.Tensor) -> list[Any]:
    result = f(x)
    result.square().sum().backward(retain_graph=True)
    first = [x.grad.clone()]
    result.sin().sum().backward()
    return [*first, result]


def each_output(f: nn.Module, x: torch.Tensor) -> list[Any]:
    left, right = f(x)
    left.square().sum().backward(retain_graph=True)
    right.square().sum().backward()
    return [left, right]


def penalty(f: nn.Module, x: torch.Tensor) -> list[Any]:
    """The gradient penalty of a critic, as WGAN-GP has it."""
    (gradient,) = torch.autograd.grad(f(x * 2).sum(), x, create_graph=True)
    ((gradient.norm(dim=1) - 1) ** 2).mean().backward()
    return [gradient]


def batched(f: nn.Module, x: torch.Tensor) -> list[Any]:
    result = f(x)
    seeds = torch.eye(result.numel())[:2].reshape(2, *result.shape)
    return list(torch.autograd.grad(result, [x, *f.parameters()], seeds, is_grads_batched=True))


def hessian(f: nn.Module, x: torch.Tensor) -> list[Any]:
    return [torch.autograd.functional.hessian(lambda t: f(t).square().sum(), x.detach())]


WAYS: dict[str, tuple[Callable[[nn.Module, torch.Tensor], list[Any]], nn.Module, tuple[int, ...], str]] = {
    "a second backward": (twice, Mlp(), (3, 6), SEVERAL),
    "a second output": (each_output, Two(), (3, 4), SEVERAL),
    "a gradient penalty": (penalty, Mlp(), (3, 6), SECOND),
    "batches of gradients": (batched, Mlp(), (3, 6), BATCHES),
    "a jacobian": (lambda f, x: [torch.autograd.functional.jacobian(f, x.detach())], Mlp(), (2, 6), SEVERAL),
    "a jacobian in batches": (lambda f, x: [torch.autograd.functional.jacobian(f, x.detach(), vectorize=True)], Mlp(), (2, 6), BATCHES),
    "a hessian": (hessian, Mlp(), (2, 6), SECOND),
    "running statistics": (twice, ConvNorm(), (2, 2, 7, 7), SEVERAL),
}


class AgainTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)

    def same(self, wanted: torch.Tensor | None, got: torch.Tensor | None, what: str) -> None:
        self.assertEqual(wanted is None, got is None, what)
        if wanted is not None and got is not None:
            self.assertEqual(wanted.shape, got.shape, what)
            self.assertLessEqual(distance(wanted.detach(), got.detach()), TOLERANCE, what)

    def test_numbers(self) -> None:
        for name, (way, module, shape, reason) in WAYS.items():
            with self.subTest(name):
                eager = copy.deepcopy(module)
                compiled = ortc.torch.compile_(copy.deepcopy(module), wait=True)
                for step in range(3):
                    x, seen = torch.randn(shape), []
                    for each in (eager, compiled):
                        each.zero_grad()
                        own = x.clone().requires_grad_()
                        found = way(each, own)
                        seen.append([*found, own.grad, *(p.grad for p in each.parameters()), *(b.float() for b in each.buffers())])
                    for i, (wanted, got) in enumerate(zip(*seen, strict=True)):
                        self.same(wanted, got, f"step {step}, number {i}")
                report = ortc.torch.report(compiled)
                self.assertIn(reason, report.eager)
                self.assertGreater(report.compiled, 0)

    def test_autocast(self) -> None:
        eager, x = Mlp(), torch.randn(3, 6)
        compiled = ortc.torch.compile_(copy.deepcopy(eager), wait=True)
        seen = []
        for each in (eager, compiled):
            with torch.autocast("cpu", torch.bfloat16):
                result = each(x)
            result.float().sum().backward(retain_graph=True)
            each.zero_grad()
            result.float().square().sum().backward()
            seen.append([p.grad for p in each.parameters()])
        for wanted, got in zip(*seen, strict=True):
            self.assertTrue(torch.equal(wanted, got))  # computed by the same operators

    def test_what_was_freed(self) -> None:
        compiled = ortc.torch.compile_(Mlp(), wait=True)
        result = compiled(torch.randn(3, 6))
        result.backward(torch.ones_like(result))
        with self.assertRaisesRegex(RuntimeError, "a second time"):
            result.backward(torch.ones_like(result))

    def test_what_has_changed(self) -> None:
        """Gradients would be those of something else."""

        def change_input(module: nn.Module, x: torch.Tensor) -> None:
            with torch.no_grad():
                x.mul_(2)

        def change_module(module: nn.Module, x: torch.Tensor) -> None:
            module.eval()

        for change, text in ((change_input, "modified by an inplace operation"), (change_module, "Mlp was changed between forward and backward")):
            compiled, x = ortc.torch.compile_(Mlp(), wait=True), torch.randn(3, 6)
            result = compiled(x)
            result.sum().backward(retain_graph=True)
            change(compiled, x)
            with self.assertRaisesRegex(RuntimeError, text):
                result.sum().backward()

    def test_random_numbers(self) -> None:
        """Others would be drawn: the step is an error, and the next one is PyTorch's."""
        compiled, x = ortc.torch.compile_(Dropping(), wait=True), torch.randn(3, 64)
        for step in range(2):
            result = compiled(x)
            result.sum().backward(retain_graph=True)
            if step == 0:
                with self.assertRaisesRegex(RuntimeError, "would draw other random numbers; the next steps will do: repeat this one"):
                    result.sum().backward()
            else:
                result.sum().backward()
        self.assertEqual(ortc.torch.report(compiled).eager[SEVERAL], 1)


if __name__ == "__main__":
    unittest.main()
