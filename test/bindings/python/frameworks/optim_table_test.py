"""Every optimizer of ortc.torch.optim against the class whose arguments, groups and state it has: that of torch.optim, or of
lion-pytorch, timm and schedulefree, which are skipped where they are not there.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

The tolerance is that of optim_test.py.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import io
import os
import unittest
import unittest.mock
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.optim._muon
from torch import nn
from modules import distance, use_own_cache
from optional import need

import ortc.torch.optim
from ortc.torch import _update
from ortc.torch.optim import KNOWN

PACKAGES = {
    "Lion": "lion_pytorch",
    "Lamb": "timm.optim",
    "Lars": "timm.optim",
    "SGDScheduleFree": "schedulefree",
    "AdamWScheduleFree": "schedulefree",
}
NOT_COMPILED = {"use_triton", "decoupled_weight_decay"}
"""Arguments of lion-pytorch that are no keys of its groups."""

CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"momentum": 0.9, "dampening": 0.5, "maximize": True}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.01, "amsgrad": True, "maximize": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {"centered": True, "momentum": 0.5, "alpha": 0.9}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.3, "weight_decay": 0.1, "maximize": True}),
    ("Adadelta", {}),
    ("Adadelta", {"weight_decay": 0.1, "rho": 0.8, "maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"weight_decay": 0.1, "betas": (0.8, 0.9), "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "momentum_decay": 0.1, "maximize": True}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.01}),
    ("RAdam", {"weight_decay": 0.1, "betas": (0.5, 0.9), "maximize": True}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Adafactor", {}),
    ("Adafactor", {"weight_decay": 0.1, "eps": (1e-4, 1e-2), "d": 2.0, "maximize": True}),
    ("Muon", {}),
    ("Muon", {"lr": 0.1, "nesterov": False, "adjust_lr_fn": "match_rms_adamw", "ns_steps": 3}),
    ("Lion", {}),
    ("Lion", {"lr": 0.01, "weight_decay": 0.1, "betas": (0.8, 0.9)}),
    ("Lamb", {}),
    ("Lamb", {"weight_decay": 0.0, "always_adapt": True, "trust_clip": True, "max_grad_norm": None}),
    ("Lamb", {"weight_decay": 0.0, "grad_averaging": False, "bias_correction": False}),
    ("Lamb", {"weight_decay": 0.1, "grad_averaging": False}),
    ("Lars", {"lr": 0.1}),
    ("Lars", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}),
    ("Lars", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "always_adapt": True, "trust_clip": True}),
    ("SGDScheduleFree", {"lr": 0.1}),
    ("SGDScheduleFree", {"lr": 0.1, "weight_decay": 0.1, "warmup_steps": 3, "r": 0.5, "momentum": 0.7}),
    ("AdamWScheduleFree", {}),
    ("AdamWScheduleFree", {"lr": 0.1, "weight_decay": 0.1, "warmup_steps": 3, "weight_lr_power": 1.0}),
]
IN_BYTES = {"AdamW8bit", "Lion8bit"}
"""Of optim_bytes_test.py."""
FIRST = [next(case for case in reversed(CASES) if case[0] == name) for name in KNOWN if name not in IN_BYTES]
"""The case of each with most settings."""

SHAPES = [(), (1,), (17,), (3, 5, 7), (300, 7)]
MATRICES = [(1, 1), (7, 30), (40, 7), (16, 16)]


def setUpModule() -> None:
    use_own_cache()


def newton_schulz(x: torch.Tensor, coefficients: tuple[float, ...], steps: int, eps: float) -> torch.Tensor:
    """That of torch.optim.Muon in the type of the gradient; PyTorch rounds to bfloat16."""
    a, b, c = coefficients
    if x.shape[0] > x.shape[1]:
        return newton_schulz(x.T, coefficients, steps, eps).T
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


def find_theirs(name: str) -> Any:
    if name not in PACKAGES:
        return getattr(torch.optim, name)
    need(PACKAGES[name].split(".")[0])
    return getattr(importlib.import_module(PACKAGES[name]), name)


def parameters(name: str, dtype: torch.dtype = torch.float32) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    shapes = MATRICES if name == "Muon" else SHAPES
    return [nn.Parameter(torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)) for shape in shapes]


def train(optimizer: Any, params: list[nn.Parameter], steps: int = 8, first: int = 0) -> None:
    for step in range(first, first + steps):
        generator = torch.Generator().manual_seed(100 + step)
        for p in params:
            p.grad = torch.randn(p.shape, generator=generator, dtype=torch.float64).to(p.dtype)
        optimizer.step()


def begin(kind: Any, params: Any, **options: Any) -> Any:
    optimizer = kind(params, **options)
    if hasattr(optimizer, "train"):
        optimizer.train()
    return optimizer


def values_of(optimizer: Any, params: list[nn.Parameter]) -> list[torch.Tensor]:
    return [*params, *(value for p in params for _, value in sorted(optimizer.state[p].items()))]


class TableTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.set_num_threads(1)
        warnings.simplefilter("error", UserWarning)
        self.addCleanup(warnings.resetwarnings)
        exact = unittest.mock.patch.object(torch.optim._muon, "_zeropower_via_newtonschulz", newton_schulz)
        exact.start()
        self.addCleanup(exact.stop)

    def near(self, exact: list[Any], theirs: list[Any], mine: list[Any]) -> None:
        for i, (e, t, m) in enumerate(zip(exact, theirs, mine, strict=True)):
            allowed = max(8 * distance(e.detach(), t.detach()), 4 * torch.finfo(m.dtype).eps)
            self.assertLessEqual(distance(e.detach(), m.detach()), allowed, f"tensor {i} of shape {tuple(e.shape)}")

    def check(self, use: Callable[[Any, list[nn.Parameter]], None], name: str, options: dict[str, Any]) -> None:
        """The same use of three optimizers; ours runs compiled steps alone. States are compared, too."""
        results = []
        theirs = find_theirs(name)
        for kind, dtype in ((theirs, torch.float64), (theirs, torch.float32), (getattr(ortc.torch.optim, name), torch.float32)):
            params = parameters(name, dtype)
            optimizer = begin(kind, params, **options)
            use(optimizer, params)
            results.append(values_of(optimizer, params))
        self.near(*results)
        self.assertEqual(dict(optimizer.report.eager), {})
        self.assertGreater(optimizer.report.compiled, 0)

    def each(self, cases: list[tuple[str, dict[str, Any]]], do: Callable[[str, dict[str, Any]], None]) -> None:
        for name, options in cases:
            with self.subTest(name=name, options=options):
                do(name, options)

    def test_numbers(self) -> None:
        self.each(CASES, lambda name, options: self.check(train, name, options))

    def test_groups_schedules_and_missing_gradients(self) -> None:
        def use(optimizer: Any, params: list[nn.Parameter]) -> None:
            schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
            train(optimizer, params, 2)
            later = nn.Parameter(torch.linspace(-1, 1, 33, dtype=params[0].dtype).reshape(3, 11))
            optimizer.add_param_group({"params": [later], "lr": 0.05, "weight_decay": 0.0})
            optimizer.param_groups[-1]["initial_lr"] = 0.05
            schedule.base_lrs.append(0.05)
            if "train_mode" in optimizer.param_groups[-1]:
                optimizer.param_groups[-1]["train_mode"] = True
            params.append(later)
            for step in range(2, 5):
                generator = torch.Generator().manual_seed(step)
                for p in params:
                    p.grad = torch.randn(p.shape, generator=generator, dtype=torch.float64).to(p.dtype)
                params[step - 2].grad = None  # each one waits once, so that numbers of steps differ
                optimizer.step()
                schedule.step()

        self.each(FIRST, lambda name, options: self.check(use, name, options))

    def test_states_and_groups(self) -> None:
        def compare(name: str, options: dict[str, Any]) -> None:
            kinds, found = (find_theirs(name), getattr(ortc.torch.optim, name)), []
            for kind in kinds:
                params = parameters(name)
                optimizer = begin(kind, params, **options)
                train(optimizer, params, 2)
                found.append(optimizer.state_dict())
            wanted, got = found
            for group in wanted["param_groups"]:
                group.pop("max_lr_snapshot", None)  # of an argument that is not compiled
            self.assertEqual(wanted["param_groups"], got["param_groups"])
            for i, state in wanted["state"].items():
                self.assertEqual(set(state), set(got["state"][i]))
                for key, value in state.items():
                    self.assertEqual((value.dtype, value.shape), (got["state"][i][key].dtype, got["state"][i][key].shape))
            arguments = [
                {key: each.default for key, each in inspect.signature(kind).parameters.items() if key not in NOT_COMPILED}
                for kind in kinds
            ]
            self.assertEqual(*arguments)
            if name not in PACKAGES:
                self.assertTrue(issubclass(kinds[1], kinds[0]))

        self.each(CASES, compare)
        self.assertEqual(set(ortc.torch.optim.__all__), set(KNOWN))

    def test_checkpoints_go_both_ways(self) -> None:
        def compare(name: str, options: dict[str, Any]) -> None:
            kinds = {"ortc": getattr(ortc.torch.optim, name), "theirs": find_theirs(name)}
            for first, second in (("theirs", "ortc"), ("ortc", "theirs"), ("ortc", "ortc")):
                results = []
                for before, after, dtype in (
                    ("theirs", "theirs", torch.float64),
                    ("theirs", "theirs", torch.float32),
                    (first, second, torch.float32),
                ):
                    params = parameters(name, dtype)
                    optimizer = begin(kinds[before], params, **options)
                    train(optimizer, params, 3)
                    file = io.BytesIO()
                    torch.save(optimizer.state_dict(), file)
                    file.seek(0)
                    optimizer = kinds[after](params, lr=1.0)
                    optimizer.load_state_dict(torch.load(file))
                    train(optimizer, params, 3, first=3)
                    results.append(params)
                self.near(*results)

        self.each(FIRST, compare)

    def test_runs_and_threads_have_the_same_bits(self) -> None:
        def compare(name: str, options: dict[str, Any]) -> None:
            results = []
            for threads in (1, 1, 2):
                torch.set_num_threads(threads)
                params = parameters(name)
                optimizer = begin(getattr(ortc.torch.optim, name), params, **options)
                train(optimizer, params, 3)
                results.append(values_of(optimizer, params))
            for other in results[1:]:
                self.assertTrue(all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True)))

        self.each(FIRST, compare)

    def test_without_a_compiler(self) -> None:
        """A step is that of torch.optim; what that has not says what is missing, and changes nothing."""

        def compare(name: str, options: dict[str, Any]) -> None:
            results = []
            theirs = find_theirs(name)
            if name in PACKAGES:
                params = parameters(name)
                optimizer = begin(getattr(ortc.torch.optim, name), params, **options)
                with self.assertRaisesRegex(ortc.CompileError, f"{name}: the compiler cannot be run"):
                    train(optimizer, params)
                self.assertTrue(all(torch.equal(p, q) for p, q in zip(params, parameters(name), strict=True)))
                self.assertFalse(optimizer.state)
                return
            for kind, dtype in ((theirs, torch.float64), (theirs, torch.float32)):
                params = parameters(name, dtype)
                train(begin(kind, params, **options), params)
                results.append(params)
            params = parameters(name)
            optimizer = begin(getattr(ortc.torch.optim, name), params, **options)
            with self.assertWarnsRegex(UserWarning, f"{name} goes on without compiling"):
                train(optimizer, params)
            self.near(*results, params)
            self.assertEqual(dict(optimizer.report.eager), {"it could not be compiled": 8})

        def clear() -> None:
            _update.open_pieces.cache_clear()
            _update.open_whole.cache_clear()

        clear()
        self.addCleanup(clear)
        with unittest.mock.patch.dict(os.environ, ORTC_COMPILER="/nowhere/ortc"):
            self.each(FIRST, compare)

    def test_schedule_free_weights(self) -> None:
        for name in ("SGDScheduleFree", "AdamWScheduleFree"):
            with self.subTest(name=name):
                results = []
                theirs = find_theirs(name)
                kinds = ((theirs, torch.float64), (theirs, torch.float32), (getattr(ortc.torch.optim, name), torch.float32))
                for kind, dtype in kinds:
                    params = parameters(name, dtype)
                    optimizer = begin(kind, params, lr=0.1)
                    train(optimizer, params, 4)
                    optimizer.eval()
                    averages = [p.detach().clone() for p in params]
                    optimizer.eval()
                    optimizer.train()
                    train(optimizer, params, 2, first=4)
                    results.append([*averages, *params])
                self.near(*results)
                optimizer.eval()
                with self.assertRaisesRegex(RuntimeError, "call optimizer.train.. before training"):
                    optimizer.step()

    def test_tensors_that_go_through_copies(self) -> None:
        """Other types, and rows of a larger matrix: near the same step in float32, with states of their types. Optimizers of
        whole tensors copy rows by themselves."""
        for name in PACKAGES:
            theirs = find_theirs(name)
            for dtype, is_strided in ((torch.bfloat16, False), (torch.float32, True)):
                with self.subTest(name=name, dtype=dtype):
                    results = []
                    for kind, own in ((theirs, torch.float32), (getattr(ortc.torch.optim, name), dtype)):
                        values = torch.randn(30, 7, generator=torch.Generator().manual_seed(0)).to(dtype)
                        p = nn.Parameter(values.to(own) if own != dtype or not is_strided else values.repeat(1, 2)[:, :7])
                        optimizer = begin(kind, [p], lr=0.1)
                        for step in range(3):
                            p.grad = torch.randn(30, 7, generator=torch.Generator().manual_seed(step)).to(dtype).to(own)
                            optimizer.step()
                        results.append(p.detach().float())
                    self.assertEqual(optimizer.report.compiled, 3 if is_strided and KNOWN[name].is_whole else 0)
                    self.assertEqual({each.dtype for each in optimizer.state[p].values() if each.dim()} - {dtype}, set())
                    # Three roundings of values below 4 and of their states, or of float32 alone.
                    far = 8 * 4 * torch.finfo(dtype).eps
                    self.assertLess(float((results[0] - results[1]).abs().max()), far)

    def test_what_is_refused(self) -> None:
        params = [nn.Parameter(torch.ones(3))]
        for name, options, message in (
            ("Lion", {"lr": -1.0}, "Invalid lr: -1.0; it must be at least 0"),
            ("Lion", {"betas": (0.9, 1.5)}, "Invalid betas: 1.5; it must be from 0 to 1"),
            *(
                (name, {"betas": betas}, "Invalid betas: .*; (they|it) must be")
                for name in ("AdamW8bit", "Lion8bit")
                for betas in ((1.0, 0.9), (0.9, 1.0), (0.9,), (0.9, 0.9, 0.9), 0.9, None, (0.9, None), (-0.1, 0.9), (True, 0.9))
            ),
            ("Lars", {"nesterov": True}, "Nesterov momentum requires a momentum"),
            ("Muon", {}, "Muon only supports 2D parameters"),
            ("NAdam", {"capturable": True}, "capturable=True: a compiled step has no graph"),
        ):
            with self.subTest(name=name), self.assertRaisesRegex(ValueError, message):
                getattr(ortc.torch.optim, name)(params, **options)
        with self.assertRaisesRegex(ValueError, "Invalid betas: .0.9, 1.0.; they must be two numbers from 0 and below 1"):
            ortc.torch.optim.Lion8bit([{"params": params, "betas": (0.9, 1.0)}])
        params[0].grad = torch.ones(3)
        for name in ("AdamW", "Lamb", "AdamW8bit"):
            optimizer = getattr(ortc.torch.optim, name)(params)
            optimizer.param_groups[0]["betas"] = (1.0, 0.9)
            with self.assertRaisesRegex(ValueError, "Invalid betas: .1.0, 0.9. of .*; a step divides by 1 - beta"):
                optimizer.step()
            self.assertFalse(optimizer.state)
        with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'momentum'"):
            ortc.torch.optim.Lion(params, momentum=0.9)
        cautious = ortc.torch.optim.Lamb(params, caution=True)
        params[0].grad = torch.ones(3)
        with self.assertRaisesRegex(ValueError, "caution of Lamb is not compiled"):
            cautious.step()
        params[0].grad = torch.ones(3).to_sparse()
        lars = ortc.torch.optim.Lars(params)
        with self.assertRaisesRegex(RuntimeError, "Lars takes no sparse gradients"):
            lars.step()

    def test_states_in_bytes_that_cannot_be(self) -> None:
        """Of a checkpoint: refused, and nothing is changed."""
        params = [nn.Parameter(torch.ones(70, 100))]
        for name in ("AdamW8bit", "Lion8bit"):
            optimizer = getattr(ortc.torch.optim, name)(params)
            params[0].grad = torch.ones(70, 100)
            optimizer.step()
            averages = "__bnb_optimizer_quant_state__"
            for key, value, message in (
                ("step", -5, "has step -5, but must have a whole number from 0"),
                ("step", 1.5, "has step 1.5, but must have a whole number from 0"),
                ("step", float("nan"), "has step nan, but must"),
                ("step", None, "has step None, but must"),
                ("absmax1", float("nan"), "has absmax1 with NaN, infinities or values below 0"),
                ("absmax1", float("inf"), "has absmax1 with NaN, infinities or values below 0"),
                ("absmax1", -1.0, "has absmax1 with NaN, infinities or values below 0"),
            ):
                changed = copy.deepcopy(optimizer.state_dict())
                own = changed["state"][0]
                if key == "step":
                    own["step"] = value
                else:
                    own[averages][key][1] = value
                before = copy.deepcopy(optimizer.state_dict()["state"][0])
                with self.subTest(name=name, key=key, value=value), self.assertRaisesRegex(ValueError, message):
                    optimizer.load_state_dict(changed)
                after = optimizer.state_dict()["state"][0]
                self.assertEqual(after["step"], before["step"])
                self.assertTrue(torch.equal(after[averages]["absmax1"], before[averages]["absmax1"]))
            without = copy.deepcopy(optimizer.state_dict())
            del without["state"][0]["step"]
            with self.assertRaisesRegex(ValueError, "the state of parameter 0, of 7000 values, has step None"):
                optimizer.load_state_dict(without)
            optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))

    def test_equal_gradients_of_a_centered_rmsprop(self) -> None:
        """Rounding leaves a variance of less than 0 of them, whose root is NaN."""
        p = nn.Parameter(torch.ones(1000))
        optimizer = ortc.torch.optim.RMSprop([p], centered=True, alpha=0.5, eps=1e-3)
        for _ in range(40):
            p.grad = torch.linspace(0.1, 2, 1000)
            optimizer.step()
        self.assertTrue(p.isfinite().all())


if __name__ == "__main__":
    unittest.main()
