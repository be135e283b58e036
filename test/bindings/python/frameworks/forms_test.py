"""Forms of modules and of what they take and give, and the reasons of those that are left to PyTorch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import unittest
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from modules import distance, total, use_own_cache
from torch import nn

import ortc.torch
from ortc.torch._reasons import explain, explain_exception

TOLERANCE = 2e-5  # as in wrap_test


def setUpModule() -> None:
    use_own_cache()


Pair = collections.namedtuple("Pair", "logits hidden")


class Typed(NamedTuple):
    logits: torch.Tensor
    inner: Pair
    count: int = 3


@dataclasses.dataclass
class Loose:
    logits: torch.Tensor


class Gives(nn.Module):
    def __init__(self, make: Callable[..., Any]) -> None:
        super().__init__()
        self.first, self.second, self.make = nn.Linear(6, 6), nn.Linear(6, 3), make

    def forward(self, x: torch.Tensor) -> Any:
        h = torch.relu(self.first(x))
        return self.make(self.second(h), h)


class Takes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)

    def forward(self, batch: Pair) -> torch.Tensor:
        return self.first(batch.logits) * batch.hidden


class Keeps(nn.Module):
    """Changes itself where it is asked to, and once in its first call."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.seen, self.cache = nn.Linear(6, 6), None, None

    def forward(self, x: torch.Tensor, keep: bool = False) -> torch.Tensor:
        if self.cache is None:
            self.cache = torch.arange(6.0)
        y = self.first(x) + self.cache
        if keep:
            self.seen = y.detach()
        return y


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.encoder(x, mask)


class FormsTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)

    def same(self, wanted: Any, got: Any, what: str) -> None:
        self.assertEqual(wanted is None, got is None, what)
        if isinstance(wanted, torch.Tensor):
            self.assertEqual((wanted.shape, wanted.dtype), (got.shape, got.dtype), what)
            self.assertLessEqual(distance(wanted.detach(), got.detach()), TOLERANCE, what)
        else:
            self.assertEqual(wanted, got, what)

    def agree(self, eager: nn.Module, *args: Any) -> nn.Module:
        compiled = ortc.torch.compile_(copy.deepcopy(eager), wait=True, fallback="error")
        results = []
        for module in (eager, compiled):
            result = module(*args)
            total([each for each in pytree.tree_leaves(result) if isinstance(each, torch.Tensor) and each.requires_grad]).backward()
            results.append(result)
        self.assertEqual(type(results[0]), type(results[1]))
        for pair in zip(*map(pytree.tree_leaves, results), strict=True):
            self.same(*pair, "output")
        for wanted, (name, got) in zip(eager.parameters(), compiled.named_parameters(), strict=True):
            self.same(wanted.grad, got.grad, name)
        return compiled

    def test_namedtuples(self) -> None:
        Local = collections.namedtuple("Local", "logits hidden")
        makers = (Pair, lambda a, b: Typed(a, Pair(b, None)), Local, lambda a, b: {("x", 1): [a, Pair(b, b)]})
        for make in makers:
            self.agree(Gives(make), torch.randn(4, 6))
        self.agree(Gives(lambda a, b: torch.max(a, 1)), torch.randn(4, 6))
        self.agree(Takes(), Pair(torch.randn(4, 6), torch.randn(4, 6)))

    def test_containers_that_pytrees_do_not_know(self) -> None:
        module = ortc.torch.compile_(Gives(lambda a, b: Loose(a)), wait=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertIsInstance(module(torch.randn(4, 6)), Loose)
        self.assertRegex(str(ortc.torch.report(module)), "an output is a Loose, .* give a tuple, a dict or a namedtuple")

    def test_calls_that_change_the_module(self) -> None:
        """Are refused themselves; calls of other kinds are not."""
        for wait in (True, False):
            eager = Keeps()
            compiled = ortc.torch.compile_(copy.deepcopy(eager), wait=wait)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for keep in (False, False, True, False, True, True, True, False, False):
                    x = torch.randn(4, 6)
                    self.same(eager(x, keep=keep), compiled(x, keep=keep), "output")
                    self.same(eager.seen, compiled.seen, "what is kept")
            report = ortc.torch.report(compiled)
            self.assertIn("changes its attributes or buffers in forward", str(report))
            if wait:
                self.assertEqual(report.compiled, 4, str(report))

    def test_other_orders_of_memory(self) -> None:
        nets: list[tuple[nn.Module, torch.memory_format, tuple[int, ...]]] = [
            (nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2)), torch.channels_last, (2, 3, 6, 6)),
            (nn.Sequential(nn.Conv3d(2, 3, 2), nn.ReLU(), nn.Conv3d(3, 2, 2)), torch.channels_last_3d, (2, 2, 4, 4, 4)),
        ]
        for net, form, shape in nets:
            module = net.to(memory_format=form)
            self.assertFalse(module[0].weight.is_contiguous())
            compiled = self.agree(module, torch.randn(shape).to(memory_format=form))
            self.assertEqual(compiled[0].weight.stride(), module[0].weight.stride())
            self.assertEqual(compiled[0].weight.grad.stride(), module[0].weight.grad.stride())

    def test_masks_of_encoders(self) -> None:
        """PyTorch looks whether a mask is causal; a step must be right for every mask."""
        eager = Masked()
        compiled = ortc.torch.compile_(copy.deepcopy(eager), wait=True, fallback="error")
        causal = nn.Transformer.generate_square_subsequent_mask(5)
        other = causal.t().contiguous()
        for training in (True, False):
            for mask in (causal, other, torch.zeros(5, 5)):
                x = torch.randn(2, 5, 8)
                for module in (eager, compiled):
                    module.train(training)
                self.same(eager(x, mask), compiled(x, mask), "output")
                if not training:
                    with torch.no_grad():
                        self.same(eager(x, mask), compiled(x, mask), "prediction")

    def test_gradients_of_what_is_no_parameter(self) -> None:
        """They would be lost."""

        class Leaf(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.own = nn.Linear(6, 6), torch.randn(6, requires_grad=True)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.first(x) * self.own

        class Listed(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.layers = nn.Linear(6, 6), [nn.Linear(6, 6)]

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.layers[0](self.first(x))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            norm = nn.utils.weight_norm(nn.Linear(6, 6))
            for module, find, text in (
                (Leaf(), lambda m: m.own, "neither a parameter of the module nor an argument"),
                (Listed(), lambda m: m.layers[0].weight, "neither a parameter of the module nor an argument"),
                (norm, lambda m: m.weight_g, "torch.nn.utils.parametrizations"),
            ):
                ortc.torch.compile_(module, wait=True)
                module(torch.randn(4, 6)).sum().backward()
                self.assertIsNotNone(find(module).grad)
                self.assertIn(text, str(ortc.torch.report(module)))

    def test_losses(self) -> None:
        reals, labels = torch.randn(8, 4), torch.randint(4, (8,))
        truths = torch.randint(2, (8, 4)).float()
        signs = truths * 2 - 1
        cases: list[tuple[Callable[..., torch.Tensor], torch.Tensor]] = [
            (F.l1_loss, reals),
            (lambda o, t: F.binary_cross_entropy(o.sigmoid(), t), truths),
            (lambda o, t: F.binary_cross_entropy(torch.clamp(o, 0, 1), t), truths),
            (F.poisson_nll_loss, reals.abs()),
            (F.soft_margin_loss, signs),
            (F.hinge_embedding_loss, signs),
            (F.multi_margin_loss, labels),
            (lambda o, t: F.cosine_embedding_loss(o, t, torch.ones(8)), reals),
            (lambda o, t: F.triplet_margin_loss(o, t, t.flip(0)), reals),
            (lambda o, t: F.margin_ranking_loss(o, t, torch.ones(8, 4)), reals),
        ]
        for i, (loss, target) in enumerate(cases):
            found = []
            for kind in ("eager", "ortc"):
                torch.manual_seed(1)
                module = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4))
                optimizer = torch.optim.SGD(module.parameters(), 0.1)
                trainer = ortc.torch.Trainer(module, loss, optimizer) if kind == "ortc" else None
                x = torch.randn(8, 6)
                for _ in range(2):
                    if trainer:
                        value = trainer.step(x, target)
                    else:
                        optimizer.zero_grad()
                        result = loss(module(x), target)
                        result.backward()
                        optimizer.step()
                        value = result.item()
                found.append([value, *(p.detach().clone() for p in module.parameters())])
            self.assertAlmostEqual(found[0][0], found[1][0], 5, f"loss {i}")
            for wanted, got in zip(found[0][1:], found[1][1:], strict=True):
                self.same(wanted, got, f"loss {i}")

    def test_losses_that_are_not_compiled(self) -> None:
        module = nn.Linear(6, 4)
        trainer = ortc.torch.Trainer(
            module, lambda o, t: F.ctc_loss(o.log_softmax(-1)[:, None], t[None], torch.tensor([8]), torch.tensor([2])),
            torch.optim.SGD(module.parameters(), 0.1),
        )
        with self.assertRaisesRegex(ortc.CompileError, "ctc_loss is not compiled: let the module give what it takes"):
            trainer.step(torch.randn(8, 6), torch.tensor([1, 2]))


class ReasonsTest(unittest.TestCase):
    def test_reasons_speak_of_the_module(self) -> None:
        cases = {
            "--input-gradients 'input.1' is no input of floating point that the outputs depend on":
                "tensor 1 of its arguments has a gradient that the exported graph has not",
            "1 part of the model cannot be compiled:\n  STFT (since opset 17) '/m/block/0/STFT': its length is not constant":
                "1 of its operators cannot be compiled: STFT in 'block.0': its length is not constant",
            "2 parts of the model cannot be compiled:\n  Foo '/m/Foo': a\n  Bar '/m/model/head/Bar': b":
                "2 of its operators cannot be compiled: Foo: a Bar in 'head': b",
            "'m.model.head.bias' has 3 values, --memory-budget 10 is too small":
                "'head.bias' has 3 values, memory_budget= 10 is too small",
            "there is nothing to train: none of its 2 float initializers is trained ('m.w': x); change --train or --freeze":
                "none of its parameters is trained",
        }
        for text, wanted in cases.items():
            self.assertEqual(explain(text), wanted)
        unknown = torch.onnx.errors.UnsupportedOperatorError("aten::fft_rfft", 20, None)
        self.assertRegex(explain_exception(unknown), "^the module calls fft_rfft, for which PyTorch's exporter to ONNX has no rule")
        refused = torch.onnx.errors.OnnxExporterError("Unsupported: ONNX export of operator aten::foo, training mode.  [Caused by x\n x]")
        self.assertRegex(explain_exception(refused), "^the module calls foo, for which PyTorch's exporter to ONNX has no rule; .*$")


if __name__ == "__main__":
    unittest.main()
