"""ortc.torch against PyTorch itself: outputs, every gradient, buffers; and what users do to modules.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Distances are relative to the largest number of a tensor. Both sides compute in float32, in other orders: 2e-5 is what the
sums here may differ by.
"""

from __future__ import annotations

import copy
import os
import pickle
import time
import unittest
import unittest.mock
import warnings
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import nn
from modules import (
    Attention, Batch, Branching, ConvNorm, Dropping, FromBatch, Lstm, Masked, Mlp, Nested, Scaled, Tied, Two,
    distance, resident_pages, total, use_own_cache, widen,
)

import ortc.torch

TOLERANCE = 2e-5


def setUpModule() -> None:
    use_own_cache()


class TorchTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)
        warnings.simplefilter("error", UserWarning)
        self.addCleanup(warnings.resetwarnings)

    def pair(self, module: nn.Module, **options: Any) -> tuple[nn.Module, nn.Module]:
        eager = copy.deepcopy(module)
        return ortc.torch.compile_(module, wait=True, fallback="error", **options), eager

    def same(
        self, wanted: torch.Tensor | None, got: torch.Tensor | None, what: str, exact: torch.Tensor | None = None
    ) -> None:
        """`exact`: in float64; then both may be so far from it as eight times what PyTorch is."""
        self.assertEqual(wanted is None, got is None, what)
        if wanted is None or got is None:
            return
        self.assertEqual((wanted.shape, wanted.dtype), (got.shape, got.dtype), what)
        if exact is None:
            self.assertLessEqual(distance(wanted.detach(), got.detach()), TOLERANCE, what)
        else:
            allowed = max(TOLERANCE, 8 * distance(exact.detach(), wanted.detach()))
            self.assertLessEqual(distance(exact.detach(), got.detach()), allowed, what)

    def agree(self, compiled: nn.Module, eager: nn.Module, args: tuple[Any, ...], steps: int = 3, **kwargs: Any) -> None:
        """Steps of both from the same weights, and everything that can be seen of them."""
        double = copy.deepcopy(eager).double()
        modules = (compiled, eager, double)
        optimizers = [torch.optim.SGD([p for p in m.parameters() if p.requires_grad], lr=0.05) for m in modules]
        for step in range(steps):
            results = []
            for module, optimizer in zip(modules, optimizers, strict=True):
                optimizer.zero_grad()
                given = pytree.tree_map(widen, (args, kwargs)) if module is double else (args, kwargs)
                result = module(*given[0], **given[1])
                total(result).backward()
                results.append(result)
            self.assertEqual(pytree.tree_structure(results[0]), pytree.tree_structure(results[1]))
            for i, (got, wanted, exact) in enumerate(zip(*map(pytree.tree_leaves, results), strict=True)):
                if isinstance(wanted, torch.Tensor):
                    self.same(wanted, got, f"output {i} of step {step}", exact)
                else:
                    self.assertEqual(got, wanted)
            for (name, got), wanted, exact in zip(compiled.named_parameters(), eager.parameters(), double.parameters(), strict=True):
                self.same(wanted.grad, got.grad, f"gradient of {name} in step {step}", exact.grad)
            for optimizer in optimizers:
                optimizer.step()
        for (name, got), wanted, exact in zip(
            compiled.state_dict().items(), eager.state_dict().values(), double.state_dict().values(), strict=True
        ):
            self.same(wanted.float(), got.float(), name, exact)
        report = ortc.torch.report(compiled)
        self.assertEqual((report.compiled, dict(report.eager)), (steps, {}), str(report))

    def test_networks(self) -> None:
        cases: list[tuple[nn.Module, tuple[Any, ...]]] = [
            (Mlp(), (torch.randn(5, 6),)),
            (ConvNorm(), (torch.randn(4, 2, 7, 7),)),
            (Tied(), (torch.randint(11, (3, 4)),)),
            (Lstm(), (torch.randn(2, 6, 3),)),
            (nn.Embedding(7, 4, padding_idx=2), (torch.tensor([[1, 2, 2], [3, 6, 2]]),)),
            (Attention(), (torch.randn(2, 5, 8),)),
            (Two(), (torch.randn(5, 4),)),
            (Masked(), (torch.randn(5, 4),)),
            (nn.Sequential(nn.Conv1d(2, 3, 3, padding=1), nn.GELU(), nn.Flatten(), nn.Linear(15, 2)), (torch.randn(3, 2, 5),)),
            (nn.Sequential(nn.Linear(4, 4), nn.GroupNorm(2, 4), nn.SiLU(), nn.LogSoftmax(-1)), (torch.randn(3, 4),)),
            (nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (torch.randn(2, 5, 8),)),
        ]
        for module, args in cases:
            with self.subTest(type(module).__name__):
                self.agree(*self.pair(module), args)

    def test_nested_outputs_and_keywords(self) -> None:
        self.agree(*self.pair(Nested()), (torch.randn(3, 4),), scale=0.5, other=torch.randn(3, 4))
        self.agree(*self.pair(Nested()), (torch.randn(3, 4),))

    def test_dataclasses(self) -> None:
        self.agree(*self.pair(FromBatch()), (Batch(torch.randn(4, 3), 0.5),))

    def test_gradients_that_are_rounding(self) -> None:
        """That of a bias in front of a normalisation is zero in theory."""
        module = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(100, 3))
        ortc.torch.compile_(module, wait=True, fallback="error")
        total(module(torch.randn(16, 2, 7, 7))).backward()
        self.assertEqual(ortc.torch.report(module).compiled, 1)

    def test_frozen_in_front_of_the_loss(self) -> None:
        compiled, eager = self.pair(Mlp())
        for module in (compiled, eager):  # the backward step reads the input and this weight, in an order of its own
            module.second.requires_grad_(False)
        self.agree(compiled, eager, (torch.randn(5, 6),))

    def test_frozen_and_later_trained(self) -> None:
        compiled, eager = self.pair(Mlp())
        for module in (compiled, eager):
            module.first.weight.requires_grad_(False)
        x = torch.randn(5, 6)
        self.agree(compiled, eager, (x,))
        with torch.no_grad():
            for module in (compiled, eager):
                module.first.weight.mul_(1.5)  # what is not trained may change all the same
        for module in (compiled, eager):
            total(module(x)).backward()
        self.same(eager.second.weight.grad, compiled.second.weight.grad, "behind a frozen weight")
        for module in (compiled, eager):
            module.first.weight.requires_grad_(True)
            module.zero_grad()
            total(module(x)).backward()
        self.same(eager.first.weight.grad, compiled.first.weight.grad, "trained again")
        self.assertEqual(ortc.torch.report(compiled).artifacts, 2)

    def test_gradients_of_inputs(self) -> None:
        compiled, eager = self.pair(Mlp())
        x = torch.randn(5, 6)
        gradients = []
        for module in (compiled, eager):
            given = x.clone().requires_grad_()
            total(module(given * 2)).backward()
            gradients.append(given.grad)
        self.same(gradients[1], gradients[0], "input")

    def test_two_forwards_before_a_backward(self) -> None:
        compiled, eager = self.pair(Mlp())
        x, y = torch.randn(5, 6), torch.randn(5, 6)
        for module in (compiled, eager):
            first, second = module(x), module(y)
            (total(second) + 3 * total(first)).backward()
        for (name, got), wanted in zip(compiled.named_parameters(), eager.parameters(), strict=True):
            self.same(wanted.grad, got.grad, name)

    def test_gradients_add_up(self) -> None:
        for to_none in (True, False):
            compiled, eager = self.pair(Mlp())
            for _ in range(2):
                for module in (compiled, eager):
                    module.zero_grad(set_to_none=to_none)
                    for scale in (1.0, 2.0, 3.0):
                        total(module(torch.full((5, 6), scale))).backward()
                for (name, got), wanted in zip(compiled.named_parameters(), eager.parameters(), strict=True):
                    self.same(wanted.grad, got.grad, name)

    def test_kept_gradients_stay(self) -> None:
        compiled, _ = self.pair(Mlp())
        x = torch.randn(5, 6)
        total(compiled(x)).backward()
        kept = compiled.first.weight.grad
        before = kept.clone()
        for _ in range(4):
            compiled.zero_grad()
            total(compiled(x * 3)).backward()
        self.assertTrue(torch.equal(kept, before))

    def test_outputs_without_gradient(self) -> None:
        compiled, eager = Two(), None
        eager = copy.deepcopy(compiled)
        ortc.torch.compile_(compiled)
        x = torch.randn(5, 4)
        end = time.time() + 120
        while ortc.torch.report(compiled).compiled < 3:
            self.assertLess(time.time(), end, str(ortc.torch.report(compiled)))
            for module in (compiled, eager):
                module.zero_grad()
                module(x)[0].square().sum().backward()
            for (name, got), wanted in zip(compiled.named_parameters(), eager.parameters(), strict=True):
                self.same(wanted.grad, got.grad, name)
            time.sleep(0.01)

    def test_dropout_follows_the_seed(self) -> None:
        compiled, _ = self.pair(Dropping())
        x = torch.ones(3, 64)
        results = []
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            results.append((compiled(x).detach(), compiled(x).detach()))
        self.assertTrue(torch.equal(results[0][0], results[1][0]))
        self.assertFalse(torch.equal(results[0][0], results[0][1]))
        self.assertFalse(torch.equal(results[0][0], results[2][0]))
        compiled.zero_grad()
        compiled(x).sum().backward()
        share = float((compiled.first.weight.grad.abs().sum(1) == 0).float().mean())
        self.assertLess(abs(share - 0.5**3), 0.08)  # units that all three rows have dropped

    def test_numbers_that_change(self) -> None:
        compiled, eager = self.pair(Scaled())
        x = torch.randn(2, 3)
        for count in range(1, 9):
            for module in (compiled, eager):
                module.zero_grad()
                module(x, count).backward()
            self.same(eager.layer.weight.grad, compiled.layer.weight.grad, str(count))
        self.assertEqual(ortc.torch.report(compiled).artifacts, 2)

    def test_scaled_losses(self) -> None:
        compiled, eager = self.pair(Mlp())
        for module in (compiled, eager):
            scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
            optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
            scaler.scale(total(module(torch.ones(5, 6)))).backward()
            scaler.step(optimizer)
            scaler.update()
        for (name, got), wanted in zip(compiled.named_parameters(), eager.parameters(), strict=True):
            self.same(wanted, got, name)

    def test_copies_and_files(self) -> None:
        compiled, eager = self.pair(Mlp())
        x = torch.randn(5, 6)
        total(compiled(x)).backward()
        twin = copy.deepcopy(compiled)
        loaded = pickle.loads(pickle.dumps(compiled))
        for each in (twin, loaded):
            self.assertIs(type(each), Mlp)
            self.assertEqual(list(each.state_dict()), list(eager.state_dict()))
            with torch.no_grad():
                each.first.weight.add_(1.0)
            each.zero_grad()
            total(each(x)).backward()
            self.assertEqual(ortc.torch.report(each).compiled, 1)
        self.assertFalse(torch.equal(twin.first.weight, compiled.first.weight))
        ortc.torch.restore_(compiled)
        self.assertNotIn("forward", compiled.__dict__)
        self.same(eager(x), compiled(x), "restored")

    def test_shallow_copies(self) -> None:
        """They have the forward of the module, and parameters of their own later; so have replicas of DataParallel."""
        compiled, _ = self.pair(Mlp())
        x = torch.randn(5, 6)
        for hooks in (False, True):
            other = copy.copy(compiled)
            other._modules = dict(other._modules)
            other.first = nn.Linear(6, 8)
            if hooks:
                other.register_forward_hook(lambda module, given, result: None)
            wanted = type(other).forward(other, x)
            self.assertGreater(distance(compiled(x).detach(), wanted.detach()), 0.01)
            self.same(wanted, other(x), "another layer")
        self.assertEqual(sum(ortc.torch.report(compiled).eager.values()), 2)

    def test_moved_memory(self) -> None:
        compiled, eager = self.pair(Mlp())
        x = torch.randn(5, 6)
        for factor in (2.0, 0.5):
            for module in (compiled, eager):
                module.first.weight.data = module.first.weight.data * factor
                module.second.bias = nn.Parameter(module.second.bias.detach() + factor)
                module.zero_grad()
                total(module(x)).backward()
            for (name, got), wanted in zip(compiled.named_parameters(), eager.parameters(), strict=True):
                self.same(wanted.grad, got.grad, name)

    def test_changed_buffers(self) -> None:
        compiled, eager = self.pair(Masked())
        x = torch.randn(5, 4)
        for _ in range(2):
            for module in (compiled, eager):
                module.mask.neg_()
            self.same(eager(x), compiled(x), "mask")

    def test_changed_attributes(self) -> None:
        compiled, eager = self.pair(nn.Sequential(nn.Linear(6, 6), nn.LeakyReLU(0.1)))
        x = torch.randn(5, 6)
        for slope in (0.1, 0.5, 0.1):
            for module in (compiled, eager):
                module[1].negative_slope = slope
            self.same(eager(x), compiled(x), str(slope))
        self.assertEqual(ortc.torch.report(compiled).artifacts, 2)

    def test_values_in_dictionaries(self) -> None:
        class Net(Mlp):
            def __init__(self) -> None:
                super().__init__()
                self.scales = {"default": 2.0}

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return super().forward(x) * self.scales["default"]

        compiled, eager = self.pair(Net())
        x = torch.randn(5, 6)
        for scale in (2.0, 3.0):
            for module in (compiled, eager):
                module.scales["default"] = scale
            self.same(eager(x), compiled(x), str(scale))

    def test_attributes_that_always_change(self) -> None:
        """Are no compilation for each call, for ever."""
        module = ortc.torch.compile_(Mlp())
        for i in range(100):
            module.count = i
            module(torch.ones(2, 6))
        self.assertLessEqual(len(module.__dict__["forward"].entries), 8)
        self.assertRegex(str(ortc.torch.report(module)), "34 eager: the module has been 64 different ones")

    def test_modules_that_change_themselves(self) -> None:
        class Counting(Mlp):
            calls = 0

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                self.calls += 1
                return super().forward(x) * self.calls

        for wait in (False, True):
            module = Counting()
            ortc.torch.compile_(module, wait=wait)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for _ in range(4):
                    module(torch.ones(1, 6))
            self.assertEqual(module.calls, 4)
            self.assertIn("changes its attributes", str(ortc.torch.report(module)))

    def test_hooks(self) -> None:
        compiled, _ = self.pair(Mlp())
        seen: list[str] = []
        compiled.register_forward_hook(lambda *_: seen.append("forward"))
        compiled.register_full_backward_hook(lambda *_: seen.append("backward"))
        compiled.first.weight.register_hook(lambda gradient: gradient * 2)
        total(compiled(torch.ones(5, 6, requires_grad=True))).backward()
        self.assertEqual(seen, ["forward", "backward"])

    def test_modes(self) -> None:
        """Training mode and evaluation mode, each with gradients and without."""
        compiled, eager = self.pair(ConvNorm())
        x = torch.randn(4, 2, 7, 7)
        for turn in range(2):
            for module in (compiled, eager):
                module.train()
                total(module(x)).backward()
            for module in (compiled, eager):
                module.eval()
            self.same(eager(x), compiled(x), f"evaluation {turn}")  # with the statistics of now
            for module in (compiled, eager):
                module.zero_grad()
                total(module(x)).backward()
            for name, parameter in eager.named_parameters():
                self.same(parameter.grad, compiled.get_parameter(name).grad, f"{name} in evaluation mode")
            with torch.no_grad():
                result = compiled(x)
                self.assertFalse(result.requires_grad)
                self.same(eager(x), result, f"prediction {turn}")
                for module in (compiled, eager):
                    for parameter in module.parameters():
                        parameter.mul_(0.5)
                self.same(eager(x), compiled(x), f"prediction of other weights {turn}")
        self.assertEqual(ortc.torch.report(compiled).artifacts, 3)
        self.assertFalse(ortc.torch.report(compiled).eager)
        ortc.torch.compile_(compiled, wait=True)
        for module in (compiled, eager):
            module.train()
        with torch.no_grad():
            self.same(eager(x), compiled(x), "without gradients")
        self.same(eager.norm.running_var, compiled.norm.running_var, "statistics")
        self.assertEqual(set(ortc.torch.report(compiled).eager), {"gradients are disabled in training mode"})

    def test_what_is_refused(self) -> None:
        module = ortc.torch.compile_(Branching(), wait=True)
        x = torch.randn(3)
        with self.assertWarnsRegex(UserWarning, "looks at numbers of a tensor"):
            result = module(x)
        self.same(module.layer(x) if x.sum() > 0 else -module.layer(x), result, "goes on")
        module(x)  # said once
        strict = ortc.torch.compile_(Branching(), wait=True, fallback="error")
        with self.assertRaisesRegex(ortc.CompileError, "looks at numbers of a tensor"):
            warnings.simplefilter("ignore")
            strict(x)

    def test_what_graphs_cannot_say(self) -> None:
        """Each would be other numbers in silence."""

        class Clipped(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
                return x.clone()

            @staticmethod
            def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
                return gradient.clamp(-1, 1)

        cases: list[tuple[Any, str]] = [
            (lambda m, y: y + y.clone().detach_(), "cuts gradients off"),
            (lambda m, y: Clipped.apply(y), "a gradient of its own"),
            (lambda m, y: y if torch.equal(y, y) else -y, "looks at numbers"),
            (lambda m, y: y + torch.empty_like(y).normal_(0.0, 0.1), "the export gives output 0 as"),
            (lambda m, y: torch.atan(y), "other numbers than the module"),
        ]
        rules = ortc.torch._symbolics._rules()  # one of them is wrong now
        wrong = unittest.mock.patch.object(ortc.torch._symbolics, "_rules", lambda: {**rules, "atan": lambda g, x: g.op("Sin", g.op("Add", x, x))})
        wrong.start()
        self.addCleanup(wrong.stop)
        for tail, text in cases:

            class Net(Mlp):
                def forward(self, x: torch.Tensor, tail: Any = tail) -> torch.Tensor:
                    return tail(self, super().forward(x))

            module = ortc.torch.compile_(Net(), wait=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                total(module(torch.randn(5, 6))).backward()
            report = ortc.torch.report(module)
            self.assertEqual(report.compiled, 0, text)
            self.assertIn(text, str(report))

    def test_replaced_parameters(self) -> None:
        compiled, eager = self.pair(Mlp())
        x = torch.randn(5, 6)
        ortc.torch.compile_(compiled, wait=True)
        self.same(eager(x), compiled(x), "before")
        for module in (compiled, eager):
            weight = module.first.weight.detach()
            module.first.weight = nn.Parameter(weight.t().contiguous().t())  # other strides
        self.same(eager(x), compiled(x), "strides")
        self.assertEqual(ortc.torch.report(compiled).compiled, 2)
        for module in (compiled, eager):
            module.first = nn.Linear(6, 8)
        eager.load_state_dict(compiled.state_dict())
        self.same(eager(x), compiled(x), "another module")
        for module in (compiled, eager):
            module.first.bias = None
        self.same(eager(x), compiled(x), "no bias")

    def test_frozen_tied_weights(self) -> None:
        compiled, eager = self.pair(Tied())
        tokens = torch.randint(11, (3, 4))
        for module in (compiled, eager):
            module.extra = nn.Parameter(torch.ones(11))
            module.embed.weight.requires_grad_(False)
            module.__class__ = type("Scaled", (Tied,), {"forward": lambda self, t: Tied.forward(self, t) * self.extra})
        for factor in (1.0, 2.0):
            with torch.no_grad():
                for module in (compiled, eager):
                    module.embed.weight.mul_(factor)
            self.same(eager(tokens), compiled(tokens), str(factor))

    def test_losses_that_alternate(self) -> None:
        compiled, eager = Two(), None
        eager = copy.deepcopy(compiled)
        ortc.torch.compile_(compiled)
        x = torch.randn(5, 4)
        for step in range(60):
            for module in (compiled, eager):
                module.zero_grad()
                (module(x)[step % 2]).square().sum().backward()
            for (name, got), wanted in zip(compiled.named_parameters(), eager.parameters(), strict=True):
                self.same(wanted.grad, got.grad, name)
            time.sleep(0.02)

    def test_misuse(self) -> None:
        compiled, _ = self.pair(Mlp())
        x = torch.randn(5, 6)
        loss = total(compiled(x))
        with torch.no_grad():
            compiled.first.weight.add_(1.0)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            loss.backward()

    def test_shapes(self) -> None:
        compiled, eager = self.pair(Mlp())
        with self.assertWarnsRegex(UserWarning, "have come in 4 shapes"):
            for rows in range(1, 5):
                self.same(eager(torch.ones(rows, 6)), compiled(torch.ones(rows, 6)), str(rows))

    def test_many_forwards_without_backward(self) -> None:
        compiled, _ = self.pair(Mlp())
        x = torch.randn(5, 6)
        for _ in range(200):
            compiled(x)
        before = resident_pages()
        for _ in range(10000):
            compiled(x)
        self.assertLess(resident_pages() - before, 1000)

    def test_threads_are_those_of_pytorch(self) -> None:
        torch.set_num_threads(2)
        self.addCleanup(torch.set_num_threads, 1)
        x = torch.randn(64, 2, 32, 32)
        module = ConvNorm()
        total(module(x)).backward()  # starts them
        self.pair(Mlp(), threads=1)[0](torch.randn(5, 6))  # starting the compiler ends those of numpy
        before = len(os.listdir("/proc/self/task"))
        ortc.torch.compile_(module, wait=True, fallback="error")
        total(module(x)).backward()
        self.assertEqual(len(os.listdir("/proc/self/task")), before)

    def test_forked_children(self) -> None:
        compiled = ortc.torch.compile_(ConvNorm(), wait=True, fallback="error", threads=2)
        x = torch.randn(64, 2, 32, 32)
        total(compiled(x)).backward()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                torch.set_num_threads(1)
                compiled.zero_grad()
                total(compiled(x)).backward()
                status = 0 if all(p.grad is not None for p in compiled.parameters()) else 1
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_same_bits(self) -> None:
        results = []
        for threads in (1, 2, 2):
            torch.manual_seed(3)
            module = ortc.torch.compile_(ConvNorm(), wait=True, fallback="error", threads=threads)
            total(module(torch.randn(4, 2, 7, 7))).backward()
            results.append([p.grad for p in module.parameters()])
        for other in results[1:]:
            for a, b in zip(results[0], other, strict=True):
                self.assertTrue(torch.equal(a, b))


if __name__ == "__main__":
    unittest.main()
