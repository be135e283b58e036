"""What modules do, one small net for each thing, against PyTorch itself: outputs, every gradient, buffers.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Distances are those of wrap_test.py.
"""

from __future__ import annotations

import copy
import unittest
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from modules import ConvNorm, Mlp, Two, distance, total, use_own_cache, widen
from torch import nn
from torch.nn.utils import parametrizations, parametrize

import ortc.torch

TOLERANCE = 2e-5


def setUpModule() -> None:
    use_own_cache()
    torch.set_num_threads(1)


class Of(nn.Module):
    """Parts, and what is done with them. Functions are attributes, and so are part of what is compiled."""

    def __init__(self, function: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            if isinstance(part, torch.Tensor) and not isinstance(part, nn.Parameter):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(self, *args, **kwargs)


def linear(rows: int = 6, columns: int = 6) -> nn.Linear:
    return nn.Linear(rows, columns)


class Case(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)
        warnings.simplefilter("error", UserWarning)
        self.addCleanup(warnings.resetwarnings)

    def same(self, exact: Any, wanted: Any, got: Any, what: str) -> None:
        """Both may be so far from `exact`, which is in float64, as eight times what PyTorch is."""
        self.assertEqual(wanted is None, got is None, what)
        if wanted is None:
            return
        self.assertEqual((wanted.shape, wanted.dtype), (got.shape, got.dtype), what)
        if not wanted.is_floating_point():
            self.assertTrue(torch.equal(wanted, got), what)
            return
        allowed = max(TOLERANCE, 8 * distance(exact.detach(), wanted.detach()))
        self.assertLessEqual(distance(exact.detach(), got.detach()), allowed, what)

    def agree(self, module: nn.Module, *args: Any, steps: int = 2, given: bool = False, **kwargs: Any) -> nn.Module:
        """Steps of the module compiled, as it is, and in float64. `given`: inputs have gradients, too. Gives the compiled one."""
        eager, exact, compiled = copy.deepcopy(module), copy.deepcopy(module).double(), module
        ortc.torch.compile_(compiled, wait=True, fallback="error")
        modules = (exact, eager, compiled)
        optimizers = [torch.optim.SGD(each.parameters(), lr=0.05) for each in modules]
        for step in range(steps):
            seen = []
            for each, optimizer in zip(modules, optimizers, strict=True):
                optimizer.zero_grad()
                values = pytree.tree_map(widen, (args, kwargs)) if each is exact else (args, kwargs)
                values = pytree.tree_map_only(torch.Tensor, lambda t: t.detach(), values)
                inputs = [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]
                for leaf in inputs:
                    leaf.requires_grad_(given)
                result = each(*values[0], **values[1])
                total(pytree.tree_map_only(torch.Tensor, lambda t: t if t.requires_grad else t.float() * 0, result)).backward()
                seen.append((result, {name: parameter.grad for name, parameter in each.named_parameters()}, [leaf.grad for leaf in inputs]))
            (outputs, gradients, froms) = zip(*seen, strict=True)
            self.assertEqual(pytree.tree_structure(outputs[2]), pytree.tree_structure(outputs[1]))
            for i, leaves in enumerate(zip(*map(pytree.tree_leaves, outputs), strict=True)):
                if isinstance(leaves[1], torch.Tensor):
                    self.assertEqual(leaves[1].requires_grad, leaves[2].requires_grad)
                    self.same(*leaves, f"output {i} of step {step}")
                else:
                    self.assertEqual(leaves[1], leaves[2])
            for name in gradients[0]:
                self.same(*(each[name] for each in gradients), f"gradient of {name} in step {step}")
            for i, each in enumerate(zip(*froms, strict=True)):
                self.same(*each, f"gradient of input {i} in step {step}")
            for optimizer in optimizers:
                optimizer.step()
        for name in eager.state_dict():
            self.same(*(each.state_dict()[name] for each in modules), name)
        report = ortc.torch.report(compiled)
        self.assertEqual((report.compiled, dict(report.eager)), (steps, {}), str(report))
        return compiled


class LayersTest(Case):
    def test_norms(self) -> None:
        x = torch.randn(4, 6, 5)
        self.agree(Of(lambda m, x: m.norm(m.conv(x)), conv=nn.Conv1d(6, 4, 3), norm=nn.BatchNorm1d(4)), x, steps=3)
        self.agree(Of(lambda m, x: m.norm(m.first(x)), first=linear(5, 5), norm=nn.RMSNorm(5, eps=1e-5)), x)
        self.agree(Of(lambda m, x: m.norm(m.first(x)), first=linear(5, 5), norm=nn.LayerNorm((6, 5), bias=False)), x)
        self.agree(Of(lambda m, x: m.norm(m.first(x)), first=linear(5, 5), norm=nn.GroupNorm(3, 6)), x)
        self.agree(Of(lambda m, x: m.norm(m.first(x)), first=linear(5, 5), norm=nn.InstanceNorm1d(6, affine=True)), x)

    def test_batch_norm_behind_a_bias(self) -> None:
        """The gradient of the bias is zero except for rounding, which is no difference."""
        self.agree(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), linear(64, 3)), torch.randn(3, 3, 6, 6))

    def test_batch_norm_buffers(self) -> None:
        compiled = self.agree(ConvNorm(), torch.randn(2, 2, 4, 4), steps=4)
        self.assertEqual(int(compiled.norm.num_batches_tracked), 4)

    def test_recurrent(self) -> None:
        x = torch.randn(2, 5, 3)
        self.agree(Of(lambda m, x: m.gru(x)[0][:, -1], gru=nn.GRU(3, 4, 2, batch_first=True)), x)
        self.agree(Of(lambda m, x: m.lstm(x), lstm=nn.LSTM(3, 4, bidirectional=True)), x)
        self.agree(Of(lambda m, x, h: m.rnn(x, h)[1], rnn=nn.RNN(3, 4, batch_first=True)), x, torch.randn(1, 2, 4), given=True)

    def test_convolutions(self) -> None:
        x = torch.randn(2, 4, 7, 7)
        self.agree(nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1), x)
        self.agree(nn.Conv2d(4, 8, 3, dilation=2, groups=2, padding="same"), x)

    def test_attention(self) -> None:
        x = torch.randn(2, 5, 8)
        hidden = torch.tensor([[False] * 5, [False, False, False, True, True]])
        attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.agree(Of(lambda m, x, p: m.a(x, x, x, key_padding_mask=p), a=attention), x, hidden)
        layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, norm_first=True, batch_first=True, activation="gelu")
        self.agree(Of(lambda m, x, p: m.layer(x, src_key_padding_mask=p), layer=layer), x, hidden)

    def test_attention_of_rows_that_see_nothing(self) -> None:
        mask = torch.rand(2, 1, 5, 5) > 0.5
        mask[1, 0, 3] = False

        def attend(m: Any, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            q, k, v = (each.unflatten(-1, (2, 4)).transpose(1, 2) for each in m.qkv(x).chunk(3, -1))
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

        self.agree(Of(attend, qkv=linear(8, 24)), torch.randn(2, 5, 8), mask)

    def test_attention_of_groups(self) -> None:
        def attend(m: Any, x: torch.Tensor) -> torch.Tensor:
            q, k, v = (part(x).unflatten(-1, (-1, 4)).transpose(1, 2) for part in (m.q, m.k, m.v))
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3, enable_gqa=True)

        self.agree(Of(attend, q=linear(8, 16), k=linear(8, 8), v=linear(8, 8)), torch.randn(2, 5, 8))

    def test_dropout_of_attention(self) -> None:
        module = Of(lambda m, x: F.scaled_dot_product_attention(m.q(x), m.q(x), x, dropout_p=0.5), q=linear(8, 8))
        ortc.torch.compile_(module, wait=True, fallback="error")
        x = torch.randn(2, 5, 8)
        self.assertFalse(torch.equal(module(x), module(x)))

    def test_parametrized(self) -> None:
        self.agree(nn.Sequential(parametrizations.weight_norm(linear(6, 8)), nn.Tanh(), linear(8, 2)), torch.randn(3, 6))

        class Symmetric(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x.triu() + x.triu(1).transpose(-1, -2)

        layer = linear()
        parametrize.register_parametrization(layer, "weight", Symmetric())
        self.agree(layer, torch.randn(3, 6))

    def test_padding_rows(self) -> None:
        tokens = torch.tensor([[1, 2, 2], [3, 6, 2]])

        def tied(m: Any, tokens: torch.Tensor) -> torch.Tensor:
            return F.linear(m.table(tokens), m.table.weight)

        compiled = self.agree(Of(tied, table=nn.Embedding(7, 4, padding_idx=2)), tokens)
        self.assertGreater(float(compiled.table.weight.grad[2].abs().sum()), 0)  # of the head, not of the row
        self.agree(Of(lambda m, t: F.embedding(t, m.w, padding_idx=-1), w=nn.Parameter(torch.randn(7, 4))), tokens)
        compiled = self.agree(nn.Embedding(7, 4, padding_idx=2), tokens)
        self.assertEqual(float(compiled.weight.grad[2].abs().sum()), 0)


class OperatorsTest(Case):
    def test_operators(self) -> None:
        x, table = torch.randn(3, 6), torch.tensor([[0, 2, 2], [1, 1, 0], [5, 3, 0]])
        cases: dict[str, Callable[[Any, torch.Tensor], Any]] = {
            "einsum": lambda m, x: torch.einsum("bi,bj->ij", m.first(x), x),
            "index": lambda m, x: m.first(x)[torch.tensor([2, 0, 2, 2])],
            "index of two": lambda m, x: m.first(x)[torch.tensor([2, 0, 2]), torch.tensor([1, 1, 5])],
            "gather": lambda m, x: m.first(x).gather(1, m.table),
            "scatter": lambda m, x: torch.zeros_like(x).scatter_add(1, m.table, m.first(x)[:, :3]),
            "index_add": lambda m, x: m.first(x).index_add(0, torch.tensor([1, 1, 0]), x, alpha=2.0),
            "take_along_dim": lambda m, x: torch.take_along_dim(m.first(x), m.table, 1),
            "cumsum": lambda m, x: m.first(x).cumsum(1),
            "sort": lambda m, x: m.first(x).sort(1)[0],
            "topk": lambda m, x: m.first(x).topk(2, 1)[0],
            "interpolate": lambda m, x: F.interpolate(m.first(x)[None, None], scale_factor=2, mode="bilinear", align_corners=False),
            "nearest": lambda m, x: F.interpolate(m.first(x)[None], size=9, mode="nearest"),
            "tril": lambda m, x: m.first(x).tril() + x.triu(1),
            "tril_indices": lambda m, x: m.first(x)[torch.tril_indices(3, 3)[0], torch.tril_indices(3, 3)[1]],
            "smooth_l1": lambda m, x: F.smooth_l1_loss(m.first(x), x, beta=0.7),
            "huber": lambda m, x: F.huber_loss(m.first(x), x, delta=0.3, reduction="sum"),
            "unfold": lambda m, x: m.first(x).unfold(1, 3, 2),
            "logsumexp": lambda m, x: torch.logsumexp(m.first(x), 1),
            "cdist": lambda m, x: torch.cdist(m.first(x), x),
            "normalize": lambda m, x: F.normalize(m.first(x), dim=-1),
            "cosine": lambda m, x: F.cosine_similarity(m.first(x), x),
            "roll": lambda m, x: m.first(x).roll((1, 2), (0, 1)),
            "repeat": lambda m, x: m.first(x).repeat(2, 1).repeat_interleave(2, dim=1),
            "var": lambda m, x: m.first(x).var(1) + m.first(x).std(1, unbiased=False),
            "std_mean": lambda m, x: torch.std_mean(m.first(x), 1)[0] * torch.std_mean(x)[1],
            "std of equals": lambda m, x: (0 * m.first(x) + 1).std(1) + m.first(x).sum(1),
            "cosine of zeros": lambda m, x: F.cosine_similarity(0 * m.first(x), x) + m.first(x).sum(1),
            "prod": lambda m, x: m.first(x).prod(1),
            "amax": lambda m, x: m.first(x).amax(1) - x.amin(1),
            "where": lambda m, x: torch.where(m.first(x) > 0, m.first(x), 0.1 * x),
            "masked_fill": lambda m, x: m.first(x).masked_fill(x > 0.5, -1.0),
            "clamp": lambda m, x: m.first(x).clamp(-0.2, 0.3),
            "addmm": lambda m, x: torch.addmm(x, x, m.first.weight, beta=0.5, alpha=2.0),
            "baddbmm": lambda m, x: torch.baddbmm(x[None], x[None], m.first.weight[None]),
            "softplus": lambda m, x: F.softplus(m.first(x), beta=3.0, threshold=1.0),
            "glu": lambda m, x: F.glu(m.first(x)),
            "activations": lambda m, x: F.mish(m.first(x)) + F.hardswish(x) + F.selu(m.first(x)) + F.gelu(x, approximate="tanh"),
            "cross_entropy": lambda m, x: F.cross_entropy(m.first(x), m.table[0], ignore_index=2),
            "weights": lambda m, x: F.cross_entropy(m.first(x), m.table[0], x[1].exp()),
            "smoothed": lambda m, x: F.cross_entropy(m.first(x), m.table[0], x[1].exp(), ignore_index=2, label_smoothing=0.1),
            "smoothed pixels": lambda m, x: F.cross_entropy(m.first(x)[None], m.table[:1, :1].expand(1, 6), label_smoothing=0.1),
            "soft labels": lambda m, x: F.cross_entropy(m.first(x), x.softmax(-1), label_smoothing=0.1),
            "soft pixels": lambda m, x: F.cross_entropy(m.first(x)[None], x[None].softmax(1), x[0, :3].exp()),
            "bce": lambda m, x: F.binary_cross_entropy_with_logits(m.first(x), (x > 0).float(), pos_weight=x[0].exp()),
            "kl_div": lambda m, x: F.kl_div(m.first(x).log_softmax(-1), x.softmax(-1), reduction="batchmean"),
            "nll": lambda m, x: F.nll_loss(m.first(x).log_softmax(-1), m.table[1], ignore_index=0),
        }
        for name, function in cases.items():
            with self.subTest(name):
                torch.manual_seed(1)
                self.agree(Of(function, first=linear(), table=table), x, steps=1)


class InputsTest(Case):
    def test_strides(self) -> None:
        self.agree(linear(), torch.randn(6, 3).t(), given=True)
        self.agree(linear(), torch.randn(3, 12)[:, ::2])
        self.agree(Of(lambda m, x: m.first(x), first=linear(1, 6)), torch.ones(1, 1).expand(3, 1))

    def test_integers(self) -> None:
        number = torch.randint(5, (3,))
        module = Of(lambda m, x, n, is_on: m.first(x) * n[:, None] + is_on.float()[:, None], first=linear())
        self.agree(module, torch.randn(3, 6), number, number > 2)

    def test_gradients(self) -> None:
        module = Of(lambda m, x, y: {"sum": m.first(x) * y, "other": y.exp()}, first=linear())
        self.agree(module, torch.randn(3, 6), y=torch.randn(3, 6), given=True)

    def test_numbers_are_no_compilations(self) -> None:
        module = Of(lambda m, x, rate: m.first(x) * rate, first=linear())
        eager = copy.deepcopy(module)
        ortc.torch.compile_(module, wait=True, fallback="error")
        x = torch.randn(3, 6)
        for step in range(6):
            rate = 0.5**step
            self.same(eager(x, rate).double(), eager(x, rate), module(x, rate), str(rate))
        self.assertEqual(ortc.torch.report(module).artifacts, 2)


class OutputsTest(Case):
    def test_views_and_inputs(self) -> None:
        x = torch.randn(3, 6)
        self.agree(Of(lambda m, x: (m.first(x), x), first=linear()), x)
        self.agree(Of(lambda m, x: (m.first(x), x[:, 1:3], x.t()), first=linear()), x, given=True)
        self.agree(Of(lambda m, x: [h := m.first(x), h, h.view(-1)], first=linear()), x)
        self.agree(Of(lambda m, x: (m.first(x), m.first.bias), first=linear()), x)

    def test_nothing_and_plain_values(self) -> None:
        self.agree(Of(lambda m, x: {"y": (m.first(x), None, [3, "text"]), "none": None}, first=linear()), torch.randn(3, 6))

    def test_without_gradients(self) -> None:
        self.agree(Of(lambda m, x: (m.first(x), m.first(x).argmax(-1), m.first(x) > 0, x.sum()), first=linear()), torch.randn(3, 6))

    def test_without_cotangents(self) -> None:
        module = Two()
        eager = copy.deepcopy(module)
        ortc.torch.compile_(module, wait=True, fallback="error")
        x = torch.randn(3, 4)
        for each in (module, eager):
            each(x)[1].square().sum().backward()
        self.assertIsNone(module.left.weight.grad)
        self.same(eager.right.weight.grad.double(), eager.right.weight.grad, module.right.weight.grad, "right")


class CutsTest(Case):
    def test_cut_gradients(self) -> None:
        def frozen_trunk(m: Any, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                h = torch.relu(m.first(x))
            return m.second(h)

        def shifted(m: Any, x: torch.Tensor) -> torch.Tensor:
            y = m.first(x)
            with torch.no_grad():
                shift = y.mean() + y.max()
            return m.second(y - shift)

        def straight_through(m: Any, x: torch.Tensor) -> torch.Tensor:
            y = m.first(x)
            return m.second(y + (y.round() - y).detach())

        cases: list[Callable[[Any, torch.Tensor], Any]] = [
            frozen_trunk,
            shifted,
            straight_through,
            lambda m, x: m.second(m.first(x) * m.first(x).detach()),
            lambda m, x: m.second(m.first(x) * m.first(x).data),
            lambda m, x: (m.second(m.first(x)), m.first(x).detach()),
            lambda m, x: m.second(m.first(x)) * torch.zeros_like(x, requires_grad=False),
        ]
        for function in cases:
            self.agree(Of(function, first=linear(), second=linear()), torch.randn(3, 6))

    def test_numbers_of_every_size_pass(self) -> None:
        x = torch.tensor([0.0, 1.0, -3.7, 1e-12, -1e-22, 1.5e7, 1.7e7, -3e9, 1e30, -3.4e38, float("inf"), -float("inf"), 2.0**24 - 1])
        module = Of(lambda m, x: ((x * m.one).detach(), m.one * 2), one=nn.Parameter(torch.ones(1)))
        ortc.torch.compile_(module, wait=True, fallback="error")
        self.assertTrue(torch.equal(module(x)[0], x))

    def test_constants_may_be_looked_at(self) -> None:
        def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
            widths = torch.tensor([2, 4])
            limit = torch.linspace(0, 1, x.shape[1])
            parts = m.first(x).split(widths.tolist(), -1)
            return parts[0].sum() * 2 + parts[1].sum() if limit[1] < 0.5 and m.table.sum() == 3 else parts[1].sum()

        self.agree(Of(forward, first=linear(), table=torch.ones(3)), torch.randn(3, 6))

    def test_views_of_what_was_written(self) -> None:
        """A constant that data is written into is no constant, nor is what shares its memory."""

        def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
            table = torch.zeros(3, 6)
            row = table[0]
            table[:] = x
            return m.first(x) if row.sum() > 0 else -m.first(x)

        module = ortc.torch.compile_(Of(forward, first=linear()), wait=True, fallback="error")
        with self.assertRaisesRegex(ortc.CompileError, "looks at numbers"):
            warnings.simplefilter("ignore")
            module(torch.randn(3, 6))

    def test_changes_in_place(self) -> None:
        def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
            h = m.first(x)
            h += 1
            h.mul_(x).clamp_(min=-0.5)
            h = torch.tanh_(h) * 1
            rows = torch.zeros(3, 6)
            rows[:, :3] = h[:, 3:]
            rows[1] = 2.0
            return m.second(F.relu(h, inplace=True) + rows)

        self.agree(Of(forward, first=linear(), second=linear()), torch.randn(3, 6))


class TrainingTest(Case):
    def test_moved_into_one_buffer(self) -> None:
        """As distributed engines do."""
        module = Mlp()
        eager = copy.deepcopy(module)
        ortc.torch.compile_(module, wait=True, fallback="error")
        x = torch.randn(5, 6)
        total(module(x)).backward()
        parameters = list(module.parameters())
        flat = torch.cat([each.detach().reshape(-1) for each in parameters])
        at = 0
        for each in parameters:
            each.data = flat[at : at + each.numel()].view_as(each)
            at += each.numel()
        flat.mul_(1.5)
        with torch.no_grad():
            for each in eager.parameters():
                each.mul_(1.5)
        for each in (module, eager):
            each.zero_grad()
            total(each(x)).backward()
        for (name, got), wanted in zip(module.named_parameters(), eager.parameters(), strict=True):
            self.same(wanted.grad.double(), wanted.grad, got.grad, name)
        self.assertEqual(ortc.torch.report(module).artifacts, 1)

    def test_masks_of_dropout(self) -> None:
        """As often as PyTorch's, scaled like them, the same forward and backward, of `torch.manual_seed`."""
        module = Of(lambda m, x: m.drop(x * m.one), drop=nn.Dropout(0.3), one=nn.Parameter(torch.ones(100, 100)))
        ortc.torch.compile_(module, wait=True, fallback="error")
        results = []
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            module.zero_grad()
            result = module(torch.ones(100, 100))
            result.sum().backward()
            self.assertTrue(torch.equal(module.one.grad, result))
            results.append(result.detach())
        self.assertTrue(torch.equal(results[0], results[1]))
        self.assertFalse(torch.equal(results[0], results[2]))
        self.assertTrue(torch.allclose(results[0].unique(), torch.tensor([0.0, 1 / 0.7])))
        self.assertLess(abs(float((results[0] == 0).float().mean()) - 0.3), 4 * (0.3 * 0.7 / 10000) ** 0.5)

    def test_masks_of_other_dropouts(self) -> None:
        """The two values that PyTorch's have, as often, and alike in a channel; the gradient is of the same mask."""
        for drop in (nn.Dropout1d(0.3), nn.AlphaDropout(0.3), nn.FeatureAlphaDropout(0.3), nn.AlphaDropout(0.3, inplace=True)):
            with self.subTest(str(drop)):
                torch.manual_seed(0)
                wanted = drop(torch.full((100, 100, 2), 2.0)).unique()
                module = Of(lambda m, x: m.drop(x * m.one), drop=drop, one=nn.Parameter(torch.full((100, 100, 2), 2.0)))
                ortc.torch.compile_(module, wait=True, fallback="error")
                result = module(torch.ones(100, 100, 2))
                result.sum().backward()
                values = result.detach().unique()
                self.assertTrue(torch.allclose(values, wanted, rtol=1e-6), f"{values} {wanted}")
                kept = result.detach() == values.max()
                slopes = module.one.grad.unique()
                self.assertEqual(len(slopes), 2)
                self.assertTrue(torch.equal(kept, module.one.grad == slopes.max()))
                self.assertEqual(float(slopes.min()), 0.0)
                rows = kept[:, :, 0]
                self.assertEqual(torch.equal(kept, rows[:, :, None].expand_as(kept)), not isinstance(drop, nn.AlphaDropout))
                self.assertLess(abs(float(rows.double().mean()) - 0.7), 4 * (0.3 * 0.7 / 10000) ** 0.5)  # deviations of a binomial mean
                module.eval()
                self.assertTrue(torch.equal(module(torch.ones(100, 100, 2)), module.one))

    def test_gradient_scaler_skips(self) -> None:
        """A step with infinite gradients is skipped, and the scale halves."""
        module = ortc.torch.compile_(Mlp(), wait=True, fallback="error")
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        before = module.first.weight.detach().clone()
        scaler.scale(total(module(torch.full((5, 6), 1.0))) * 3e38).backward()
        scaler.step(optimizer)
        scaler.update()
        self.assertEqual(scaler.get_scale(), 1.0)
        self.assertTrue(torch.equal(before, module.first.weight))


class RefusedTest(Case):
    def refuse(self, module: nn.Module, text: str, *args: Any) -> None:
        """The reason is right, and so are the numbers all the same."""
        eager = copy.deepcopy(module)
        strict = ortc.torch.compile_(copy.deepcopy(module), wait=True, fallback="error")
        ortc.torch.compile_(module, wait=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.assertRaisesRegex(ortc.CompileError, text):
                strict(*args)
            for each in (module, eager):
                total(pytree.tree_map_only(torch.Tensor, lambda t: t.abs() if t.is_complex() else t, each(*args))).backward()
        for (name, got), wanted in zip(module.named_parameters(), eager.named_parameters(), strict=True):
            self.assertTrue(wanted[1].grad is None or torch.equal(got.grad, wanted[1].grad), name)
        self.assertEqual(ortc.torch.report(module).compiled, 0)

    def test_shapes_of_data(self) -> None:
        x = torch.randn(3, 6)
        self.refuse(Of(lambda m, x: m.first(x)[x > 0], first=linear()), r"numbers of a tensor \(__getitem__\)", x)
        self.refuse(Of(lambda m, x: m.first(x)[: x.argmax()], first=linear()), r"numbers of a tensor \(__getitem__\)", x)
        self.refuse(Of(lambda m, x: torch.masked_select(m.first(x), x > 0), first=linear()), "numbers of a tensor", x)

    def test_control_flow_on_parameters(self) -> None:
        module = Of(lambda m, x: m.first(x) if m.first.bias[0] > 0 else x + m.first.bias, first=linear())
        self.refuse(module, "numbers of a tensor", torch.randn(3, 6))

    def test_what_the_tracer_loses(self) -> None:
        """It is a constant of the graph, which the comparison finds since it is made with other numbers."""

        def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
            return m.first(x) + torch.from_dlpack(torch.utils.dlpack.to_dlpack(m.first(x).detach()))

        self.refuse(Of(forward, first=linear()), "other numbers than the module: output 0", torch.randn(3, 6))

    def test_complex(self) -> None:
        self.refuse(Of(lambda m, x: m.first(x.real), first=linear()), "complex64", torch.randn(3, 6, dtype=torch.complex64))
        self.refuse(Of(lambda m, x: torch.fft.rfft(m.first(x)), first=linear()), "complex|fft", torch.randn(3, 6))

    def test_sparse(self) -> None:
        self.refuse(Of(lambda m, x: torch.sparse.mm(x, m.first.weight), first=linear()), "sparse", torch.eye(6).to_sparse())

    def test_other_devices(self) -> None:
        module = ortc.torch.compile_(linear().to("meta"), wait=True)
        self.assertEqual(module(torch.randn(3, 6, device="meta")).device.type, "meta")
        self.assertRegex(str(ortc.torch.report(module)), "meta")

    def test_double_precision(self) -> None:
        self.refuse(linear().double(), "float32", torch.randn(3, 6, dtype=torch.float64))

    def test_gradients_without_gradients_in_place(self) -> None:
        def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
            h = m.first(x)
            with torch.no_grad():
                h.add_(1)
            return h

        self.refuse(Of(forward, first=linear()), "changes in place", torch.randn(3, 6))


if __name__ == "__main__":
    unittest.main()
