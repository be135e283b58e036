"""AdamW8bit and Lion8bit of ortc.torch.optim and of the fused step against those of bitsandbytes, without which they are
skipped.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Codes are those of bitsandbytes' generic formula, which is also that of its kernels for GPUs: it takes the place of its
code for processors here, which looks shares up in a grid. Roundings of float32 before may still give a neighbour where a
share is in the middle of two entries, and what follows from it.
"""

from __future__ import annotations

import inspect
import io
import unittest
import unittest.mock
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from modules import take_step, use_own_cache
from optional import need

import ortc
import ortc.torch.optim
from ortc.torch import _recipes

need("bitsandbytes")
import bitsandbytes
import bitsandbytes.backends.cpu.ops as of_processors

NAMES = ("AdamW8bit", "Lion8bit")
WRAPPED = "__bnb_optimizer_quant_state__"
SHAPES = [(40, 250), (4096,), (64, 65), (3, 5, 7, 41), (300,), (), (4095,)]
"""Whole blocks, parts of blocks, and whole averages."""
FEW = 1e-3
"""The share of codes that may be neighbours after some steps."""
STEP = 8 * 2.0**-24
"""Roundings of a value in a step, of which there are at most eight, relative to it."""


def setUpModule() -> None:
    use_own_cache()


def quantize(values: torch.Tensor, code: torch.Tensor, absmax: torch.Tensor, out: torch.Tensor, size: int) -> None:
    """The nearest entry in float64, the lower one of two."""
    flat = values.reshape(-1).float()
    rows = F.pad(flat, (0, -flat.numel() % size)).reshape(-1, size)
    largest = rows.abs().amax(1)
    shares = (rows * torch.where(largest > 0, 1 / largest, 0).unsqueeze(1)).double().reshape(-1)
    entries = code.double()
    out.copy_(torch.bucketize(shares, (entries[1:] + entries[:-1]) / 2)[: flat.numel()].reshape(values.shape))
    absmax.copy_(largest)


def nearest() -> Any:
    return unittest.mock.patch.object(of_processors, "_quant_blockwise_fp32_direct", quantize)


def theirs(name: str) -> Any:
    return getattr(bitsandbytes.optim, name)


def ours(name: str) -> Any:
    return getattr(ortc.torch.optim, name)


def parameters(dtype: torch.dtype = torch.float32) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(shape, generator=generator).to(dtype)) for shape in SHAPES]


def grouped(kind: Any, params: list[nn.Parameter]) -> Any:
    """Two groups, of which one has settings of its own."""
    return kind([{"params": params[:2]}, {"params": params[2:], "lr": 0.02, "betas": (0.7, 0.9), "weight_decay": 0.1}], lr=0.01)


def train(optimizer: Any, params: list[nn.Parameter], steps: int = 6, first: int = 0) -> None:
    """Gradients of many powers of ten; rates change, and each parameter waits once."""
    for step in range(first, first + steps):
        generator = torch.Generator().manual_seed(100 + step)
        for p in params:
            values = torch.randn(p.shape, generator=generator) * torch.exp(2 * torch.randn(p.shape, generator=generator))
            p.grad = values.to(p.dtype)
        params[step % len(params)].grad = None
        optimizer.step()
        for group in optimizer.param_groups:
            group["lr"] *= 0.9


def states_of(optimizer: Any) -> dict[str, torch.Tensor]:
    return {
        f"{i}.{key}": value
        for i, own in optimizer.state_dict()["state"].items()
        for key, value in (own[WRAPPED] | {"step": torch.tensor(own["step"])}).items()
    }


def through_a_file(state_dict: Any) -> Any:
    file = io.BytesIO()
    torch.save(state_dict, file)
    file.seek(0)
    return torch.load(file)


class BytesTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.set_num_threads(1)
        warnings.simplefilter("error", UserWarning)
        self.addCleanup(warnings.resetwarnings)

    def near(self, wanted: Any, got: Any, few: float = FEW) -> None:
        """States, and what follows from them."""
        (first, params), (second, others) = wanted, got
        a, b = states_of(first), states_of(second)
        self.assertEqual(list(a.keys() ^ b.keys()), [])
        for key, value in a.items():
            self.assertEqual((key, value.dtype, value.shape), (key, b[key].dtype, b[key].shape))
            if value.dtype == torch.uint8:
                differing = float((value != b[key]).float().mean())
                self.assertLessEqual(differing, few, key)
            else:
                # Largest magnitudes follow codes, whose entries are up to 0.9 / 64 of the largest apart; a part of it stays.
                largest = float(value.abs().max()) or 1.0
                self.assertLessEqual(float((value - b[key]).abs().max()), (0.01 if few else 0.0) * largest, key)
        for i, (p, q) in enumerate(zip(params, others, strict=True)):
            far = (p - q).abs() > (12 * STEP if few else 0.0) * p.abs().clamp(min=1.0)  # 12 steps, or the same bits
            self.assertLessEqual(float(far.float().mean()), few, f"parameter {i}")

    def test_numbers(self) -> None:
        for name in NAMES:
            with self.subTest(name=name), nearest():
                results = []
                for kind in (theirs(name), ours(name)):
                    params = parameters()
                    optimizer = grouped(kind, params)
                    train(optimizer, params, 12)
                    results.append((optimizer, params))
                self.assertEqual(dict(optimizer.report.eager), {})
                self.near(*results)

    def test_one_step_beside_their_code_for_processors(self) -> None:
        """From one state. Its grid of 2^-15 gives neighbours near middles, and others for shares below 2^-12, where
        entries are closer to each other than its lines."""
        for name in NAMES:
            with self.subTest(name=name):
                results, start = [], None
                for kind in (theirs(name), ours(name)):
                    params = parameters()
                    optimizer = grouped(kind, params)
                    if start is None:
                        train(optimizer, params, 7)
                        start = through_a_file((optimizer.state_dict(), params))
                    else:
                        params = [nn.Parameter(p.detach().clone()) for p in start[1]]
                        optimizer = grouped(kind, params)
                        optimizer.load_state_dict(start[0])
                    for p in params:
                        p.grad = torch.randn(p.shape, generator=torch.Generator().manual_seed(p.numel()))
                    optimizer.step()
                    results.append((optimizer, params))
                for p, q in zip(results[0][1], results[1][1], strict=True):
                    self.assertLess(float((p.detach() - q.detach()).abs().max()), STEP * max(1.0, float(p.detach().abs().max())))
                wanted, got = (states_of(optimizer) for optimizer, _ in results)
                for key, codes in wanted.items():
                    if codes.dtype != torch.uint8:
                        continue
                    entries = _recipes.dynamic_map(key.endswith("1"))
                    steps = (codes.int() - got[key].int()).abs()
                    largest = torch.maximum(entries[codes.long()].abs(), entries[got[key].long()].abs())
                    self.assertTrue(((steps <= 1) | (largest < 2**-12)).all(), key)
                    # The grid has 230 lines between two of these entries, or more.
                    self.assertLess(float((steps > 0)[largest > 0.1].float().mean()), 0.01, key)

    def test_maps(self) -> None:
        for is_signed in (True, False):
            self.assertTrue(torch.equal(_recipes.dynamic_map(is_signed), bitsandbytes.functional.create_dynamic_map(is_signed)))

    def test_codes_are_the_nearest(self) -> None:
        """At each middle between two entries, beside it, and everywhere. An average whose factor is 0 is the gradient, or its
        square."""
        for name, key, is_signed in (("Lion8bit", "1", True), ("AdamW8bit", "2", False)):
            entries = bitsandbytes.functional.create_dynamic_map(is_signed)
            middles = (entries[1:] + entries[:-1]) / 2
            wide = torch.exp(-20 * torch.rand(100000, generator=torch.Generator().manual_seed(0)))
            values = torch.cat([entries, middles, *(torch.nextafter(middles, torch.tensor(to)) for to in (2.0, -2.0)), wide])
            values = torch.cat([values, -wide]) if is_signed else values.sqrt()
            rows = torch.ones(-(-values.numel() // 255), 256)  # the largest is 1, so that shares are the values
            rows[:, 1:] = F.pad(values, (0, -values.numel() % 255)).reshape(-1, 255)
            p = nn.Parameter(torch.zeros_like(rows))
            optimizer = ours(name)([p], betas=(0.0, 0.0))
            p.grad = rows
            optimizer.step()
            self.assertEqual(optimizer.report.compiled, 1)
            averages = rows if is_signed else rows * rows
            wanted, absmax = torch.empty(averages.shape, dtype=torch.uint8), torch.empty(len(averages))
            quantize(averages, entries, absmax, wanted, 256)
            self.assertTrue(torch.equal(optimizer.state[p][f"state{key}"], wanted))
            self.assertTrue(torch.equal(optimizer.state[p][f"absmax{key}"], absmax))

    def test_blocks_without_a_number(self) -> None:
        """Zeros, infinities and NaN are seen, and the other blocks go on."""
        for name in NAMES:
            with self.subTest(name=name), nearest():
                found = []
                for kind in (theirs(name), ours(name)):
                    p = nn.Parameter(torch.ones(4 * 1024))
                    optimizer = kind([p])
                    p.grad = torch.linspace(-1, 1, 4096)
                    p.grad[:256], p.grad[300], p.grad[600] = 0, torch.inf, torch.nan
                    optimizer.step()
                    found.append({**states_of(optimizer), "parameter": p.detach()})
                self.assertEqual(optimizer.report.compiled, 1)
                wanted, got = found
                self.assertEqual(wanted.keys(), got.keys())
                for key, value in wanted.items():  # of numbers below 1.01, which may be rounded once or twice more
                    if key.endswith("step"):
                        continue
                    places = slice(3, None) if "absmax" in key or "qmap" in key else slice(768, None)
                    few = 0 if value.dtype == torch.uint8 else 2**-22
                    self.assertTrue(torch.allclose(value[places], got[key][places], rtol=0, atol=few), key)
                self.assertTrue((got["0.state1"][:256] == 127).all())
                self.assertTrue(got["parameter"][:256].isfinite().all())
                self.assertEqual((~got["0.absmax1"].isfinite()).nonzero().flatten().tolist(), [1, 2])

    def test_states_and_groups(self) -> None:
        for name in NAMES:
            with self.subTest(name=name):
                found = []
                for kind in (theirs(name), ours(name)):
                    params = parameters()
                    optimizer = grouped(kind, params)
                    train(optimizer, params, 8)
                    found.append(optimizer.state_dict())
                wanted, got = found
                for group in got["param_groups"]:
                    self.assertEqual(group.pop("min_8bit_size"), 4096)  # an attribute there
                self.assertEqual(wanted["param_groups"], got["param_groups"])
                self.assertEqual(wanted["state"].keys(), got["state"].keys())
                for i, own in wanted["state"].items():
                    self.assertEqual((type(own["step"]), own["step"]), (int, got["state"][i]["step"]))
                    self.assertEqual(own[WRAPPED].keys(), got["state"][i][WRAPPED].keys())
                signatures = [inspect.signature(kind).parameters for kind in (theirs(name), ours(name))]
                self.assertEqual(*([(key, each.default) for key, each in of.items()] for of in signatures))

    def test_checkpoints_go_both_ways(self) -> None:
        for name in NAMES:
            kinds = {"ortc": ours(name), "theirs": theirs(name)}
            for first, second in (("theirs", "ortc"), ("ortc", "theirs"), ("ortc", "ortc")):
                with self.subTest(name=name, first=first, second=second), nearest():
                    results = []
                    for before, after in ((first, first), (first, second)):
                        params = parameters()
                        optimizer = grouped(kinds[before], params)
                        train(optimizer, params, 5)
                        saved = through_a_file(optimizer.state_dict())
                        optimizer = kinds[after]([{"params": params[:2]}, {"params": params[2:]}], lr=1.0)
                        optimizer.load_state_dict(saved)
                        if (before, after) == (first, second):
                            for key, value in states_of(optimizer).items():
                                index, _, key = key.partition(".")
                                own = saved["state"][int(index)]
                                self.assertTrue(torch.equal(value, torch.as_tensor((own | own[WRAPPED])[key])), key)
                        train(optimizer, params, 5, first=5)
                        results.append((optimizer, params))
                    self.near(*results, few=0.0 if first == second else FEW)

    def test_without_the_wrapping_of_states(self) -> None:
        """As versions before it have written them, and as FSDP gathers them."""
        params = parameters()
        optimizer = grouped(ours("AdamW8bit"), params)
        train(optimizer, params, 3)
        saved = optimizer.state_dict()
        wanted = states_of(optimizer)
        saved["state"] = {i: {"step": own["step"]} | own[WRAPPED] for i, own in saved["state"].items()}
        another = grouped(ours("AdamW8bit"), params)
        another.load_state_dict(saved)
        got = states_of(another)
        self.assertTrue(all(torch.equal(value, got[key]) for key, value in wanted.items()))

    def test_runs_and_threads_have_the_same_bits(self) -> None:
        for name in NAMES:
            with self.subTest(name=name):
                results = []
                for threads in (1, 1, 2):
                    torch.set_num_threads(threads)
                    params = [nn.Parameter(torch.linspace(-1, 1, 70001)), *parameters()]
                    optimizer = grouped(ours(name), params)
                    train(optimizer, params, 3)
                    results.append([*params, *states_of(optimizer).values()])
                for other in results[1:]:
                    self.assertTrue(all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True)))

    def test_types_and_layouts(self) -> None:
        """Arithmetic is in float32; bfloat16 and other orders of axes are steps of PyTorch, with the same states."""
        for name in NAMES:
            results: dict[Any, Any] = {}
            for dtype in (torch.float32, torch.float64, torch.bfloat16):
                with self.subTest(name=name, dtype=dtype), nearest():
                    for kind in (theirs(name), ours(name)):
                        params = parameters(dtype)
                        optimizer = grouped(kind, params)
                        train(optimizer, params, 3)
                        results[dtype, kind] = optimizer, params
                    self.assertEqual(optimizer.report.compiled, 0 if dtype == torch.bfloat16 else 3)
                    # Gradients of 8 bits put more shares into the middle of two entries.
                    few = 3 * FEW if dtype == torch.bfloat16 else FEW
                    self.near(results[dtype, theirs(name)], results[dtype, ours(name)], few)
            image = [nn.Parameter(torch.randn(16, 8, 8, 8).to(memory_format=order)) for order in (torch.contiguous_format, torch.channels_last)]
            image[1].data.copy_(image[0].data)
            found = []
            for p in image:
                optimizer = ours(name)([p])
                for step in range(3):
                    p.grad = torch.randn(p.shape, generator=torch.Generator().manual_seed(step))
                    optimizer.step()
                found.append((optimizer, [p]))
            self.assertIn("in order of rows", next(iter(optimizer.report.eager)))
            self.near(*found)

    def test_min_8bit_size_of_a_group(self) -> None:
        params = [nn.Parameter(torch.ones(5000)), nn.Parameter(torch.ones(5000))]
        optimizer = ours("Lion8bit")([{"params": params[:1]}, {"params": params[1:], "min_8bit_size": 1 << 40}])
        for p in params:
            p.grad = torch.linspace(-1, 1, 5000)
        optimizer.step()
        self.assertEqual(dict(optimizer.report.eager), {})
        states = states_of(optimizer)
        self.assertEqual((states["0.state1"].dtype, states["1.state1"].dtype), (torch.uint8, torch.float32))
        another = ours("Lion8bit")([{"params": params[:1]}, {"params": params[1:]}])
        another.load_state_dict(optimizer.state_dict())
        self.assertTrue(torch.equal(another.state[params[1]]["state1"], states["1.state1"]))

    def test_parameters_of_one_value(self) -> None:
        """And of none: the largest magnitude of the block has the shape of the parameter, and is no state of its values."""
        for name in NAMES:
            for shapes in ([(1,), (600,)], [(600,), (1,)], [(1,)], [(0,), (600,)]):
                with self.subTest(name=name, shapes=shapes), nearest():
                    results = []
                    for kind in (theirs(name), ours(name)):
                        generator = torch.Generator().manual_seed(0)
                        params = [nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]
                        optimizer = kind([p for p in params if p.numel() or kind is ours(name)])
                        if kind is theirs(name):
                            optimizer.args.min_8bit_size = 1
                        else:
                            for group in optimizer.param_groups:
                                group["min_8bit_size"] = 0 if (0,) in shapes else 1
                        for p in params:
                            p.grad = torch.randn(p.shape, generator=generator)
                        optimizer.step()
                        results.append((optimizer, params))
                    self.assertEqual((dict(optimizer.report.eager), optimizer.report.compiled), ({}, 1))
                    for p, q in zip(results[0][1], results[1][1], strict=True):
                        self.assertTrue(torch.allclose(p, q, rtol=0, atol=1e-6))  # some roundings of values below 4

    def test_what_is_refused(self) -> None:
        params = [nn.Parameter(torch.ones(5000)), nn.Parameter(torch.ones(30))]
        for options, message in (
            ({"amsgrad": True}, "AdamW8bit takes no amsgrad but False; leave it out"),
            ({"optim_bits": 8}, "AdamW8bit takes no optim_bits but 32"),
            ({"is_paged": True}, "AdamW8bit takes no is_paged but False"),
            ({"lr": -1.0}, "Invalid lr: -1.0"),
        ):
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                ortc.torch.optim.AdamW8bit(params, **options)

        def states(kind: Any = bitsandbytes.optim.AdamW8bit, **options: Any) -> Any:
            optimizer = kind(params, **options)
            for p in params:
                p.grad = torch.ones_like(p)
            optimizer.step()
            return optimizer.state_dict()

        def other_map() -> Any:
            found = states()
            found["state"][0][WRAPPED]["qmap2"] = torch.linspace(0, 1, 256)
            return found

        def other_shape() -> Any:
            found = states()
            found["state"][0][WRAPPED]["absmax1"] = torch.zeros(3)
            return found

        cases: list[tuple[Callable[[], Any], str]] = [
            (lambda: states(min_8bit_size=10), "parameter 1, of 30 values, is in bytes, which min_8bit_size=4096 of its group"),
            (lambda: states(bitsandbytes.optim.AdamW32bit), "parameter 0, of 5000 values, is in float32, which min_8bit_size=4096"),
            (lambda: states(bitsandbytes.optim.Lion8bit), "parameter 0, of 5000 values, has state2 None, but must have torch.uint8"),
            (other_map, "has a qmap2 that is not the dynamic map of bitsandbytes"),
            (other_shape, r"has absmax1 torch.float32 \[3\], but must have torch.float32 \[20\]"),
            (lambda: grouped(bitsandbytes.optim.AdamW8bit, [*params, params[1]][:2]).state_dict(), "different number of parameter groups"),
        ]
        for make, message in cases:
            optimizer = ortc.torch.optim.AdamW8bit(params)
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                optimizer.load_state_dict(make())
            self.assertEqual(len(optimizer.state), 0)


class Wide(nn.Module):
    """With weights of both kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(40, 130), nn.Linear(130, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))  # type: ignore[no-any-return]


class FusedBytesTest(unittest.TestCase):
    def losses(self, make: Callable[[nn.Module], Any], is_fused: bool) -> list[float]:
        torch.manual_seed(0)
        model = Wide()
        optimizer, found = make(model), []
        trainer = ortc.torch.Trainer(model, F.cross_entropy, optimizer) if is_fused else None
        generator = torch.Generator().manual_seed(1)
        for _ in range(12):
            x, y = torch.randn(16, 40, generator=generator), torch.randint(3, (16,), generator=generator)
            found.append(take_step(trainer, model, [optimizer], F.cross_entropy, x, y))
        if trainer:
            codes = [name for name in trainer.session.artifact.tensors if name.endswith("absmax")]
            self.assertEqual(len(codes), 1 if "Lion" in type(optimizer).__name__ else 2)
        return found

    def test_losses(self) -> None:
        for name in NAMES:

            def plain(model: nn.Module, kind: Any) -> Any:
                return kind(model.parameters(), lr=0.002, weight_decay=0.1)

            def in_groups(model: nn.Module, kind: Any) -> Any:
                return kind(
                    [{"params": model.first.parameters(), "lr": 0.001, "betas": (0.8, 0.9)}, {"params": model.second.parameters()}],
                    lr=0.002,
                )

            for make in (plain, in_groups):
                with self.subTest(name=name, make=make.__name__), nearest():
                    wanted = self.losses(lambda model: make(model, theirs(name)), False)
                    for kind in (theirs(name), ours(name)):
                        for mine, their in zip(self.losses(lambda model: make(model, kind), True), wanted, strict=True):
                            # A neighbour moves one of 5,723 weights by 0.9 / 64 of the rate, 3e-5: other roundings are less.
                            self.assertLess(abs(mine - their), 1e-5 * abs(their))

    def test_what_is_refused(self) -> None:
        model = Wide()
        for optimizer in (
            bitsandbytes.optim.AdamW8bit(model.parameters(), min_8bit_size=100),
            ortc.torch.optim.AdamW8bit(model.parameters(), min_8bit_size=100),
        ):
            with self.assertRaisesRegex(ortc.CompileError, "min_8bit_size=100 of AdamW8bit is not compiled"):
                ortc.torch.Trainer(model, F.cross_entropy, optimizer)


if __name__ == "__main__":
    unittest.main()
