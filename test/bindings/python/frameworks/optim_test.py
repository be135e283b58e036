"""ortc.torch.optim against torch.optim: numbers, states, what scripts do to optimizers.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Both compute a step in some ten operations, in other orders, so both are off what float64 gives by a few roundings in every
step. What ours may be off is eight times what PyTorch's own is, or four roundings where that is nothing.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import io
import os
import pickle
import unittest
import unittest.mock
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from modules import distance, use_own_cache

import ortc
import ortc.torch.optim
from ortc.torch import _update

# Below, at and above a piece; more than one piece; more than what one thread takes alone.
SHAPES = [(), (1,), (15,), (16,), (17,), (3, 5, 7), (300, 7), (70001,)]

CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-4, "weight_decay": 0.1, "maximize": True}),
    ("AdamW", {}),
    ("AdamW", {"lr": torch.tensor(0.01), "weight_decay": 0.3, "amsgrad": True}),
]


def setUpModule() -> None:
    use_own_cache()


def parameters(dtype: torch.dtype = torch.float32, shapes: list[Any] = SHAPES) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)) for shape in shapes]


def give_gradients(params: list[nn.Parameter], step: int) -> None:
    generator = torch.Generator().manual_seed(100 + step)
    for p in params:
        p.grad = torch.randn(p.shape, generator=generator, dtype=torch.float64).to(p.dtype)


def train(optimizer: torch.optim.Optimizer, params: list[nn.Parameter], steps: int = 5, first: int = 0) -> None:
    for step in range(first, first + steps):
        give_gradients(params, step)
        optimizer.step()


def both(name: str, **options: Any) -> tuple[Any, list[nn.Parameter], Any, list[nn.Parameter]]:
    mine, theirs = parameters(), parameters()
    return getattr(ortc.torch.optim, name)(mine, **options), mine, getattr(torch.optim, name)(theirs, **options), theirs


class OptimTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.set_num_threads(1)
        warnings.simplefilter("error", UserWarning)
        self.addCleanup(warnings.resetwarnings)

    def near(self, exact: list[Any], theirs: list[Any], mine: list[Any]) -> None:
        for i, (e, t, m) in enumerate(zip(exact, theirs, mine, strict=True)):
            allowed = max(8 * distance(e.detach(), t.detach()), 4 * torch.finfo(m.dtype).eps)
            self.assertLessEqual(distance(e.detach(), m.detach()), allowed, f"tensor {i} of shape {tuple(e.shape)}")

    def same(self, wanted: list[Any], got: list[Any]) -> None:
        for i, (w, g) in enumerate(zip(wanted, got, strict=True)):
            self.assertTrue(torch.equal(w, g), f"tensor {i} of shape {tuple(w.shape)}: {distance(w.detach(), g.detach())}")

    def check(self, use: Callable[[Any, list[nn.Parameter]], None], name: str, **options: Any) -> None:
        """The same use of three optimizers; ours runs compiled steps alone. States are compared, too."""
        results = []
        for module, dtype in ((torch.optim, torch.float64), (torch.optim, torch.float32), (ortc.torch.optim, torch.float32)):
            params = parameters(dtype)
            optimizer = getattr(module, name)(params, **options)
            use(optimizer, params)
            states = [optimizer.state[p] for p in params if p in optimizer.state]
            results.append([*params, *(value for state in states for _, value in sorted(state.items()))])
        self.near(*results)
        self.assertEqual(dict(optimizer.report.eager), {})
        self.assertGreater(optimizer.report.compiled, 0)

    def test_numbers(self) -> None:
        for name, options in CASES:
            with self.subTest(name=name, options=options):
                self.check(train, name, **options)

    def test_float64(self) -> None:
        for name, options in CASES[1:6:4]:
            mine, theirs = parameters(torch.float64), parameters(torch.float64)
            train(getattr(ortc.torch.optim, name)(mine, **options), mine)
            train(getattr(torch.optim, name)(theirs, **options), theirs)
            for m, t in zip(mine, theirs, strict=True):  # five steps of ten roundings
                self.assertLessEqual(distance(t.detach(), m.detach()), 50 * torch.finfo(torch.float64).eps)

    def test_groups_and_missing_gradients(self) -> None:
        def use(optimizer: Any, params: list[nn.Parameter]) -> None:
            train(optimizer, params, 2)
            later = nn.Parameter(torch.ones(33, dtype=params[0].dtype))
            optimizer.add_param_group({"params": [later], "lr": 0.5, "betas": (0.5, 0.6), "weight_decay": 0.0})
            params.append(later)
            for step in range(2, 6):
                give_gradients(params, step)
                params[step].grad = None  # each one waits once, so that numbers of steps differ
                optimizer.step()

        self.check(use, "AdamW", lr=0.01, weight_decay=0.1)

    def test_schedules_closures_and_scaled_gradients(self) -> None:
        def use(optimizer: Any, params: list[nn.Parameter]) -> None:
            scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=10)  # moves betas, too
            scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
            for step in range(6):
                optimizer.zero_grad()
                total = sum(((p * p).sum() + p.sum() for p in params), torch.zeros(()))
                if step == 3:
                    total = total * float("inf")  # is left out, and halves the scale
                scaler.scale(total).backward()
                scaler.step(optimizer)
                scaler.update()
                scheduler.step()
            self.assertEqual(scaler.get_scale(), 4.0)

            def closure() -> torch.Tensor:
                optimizer.zero_grad()
                loss = sum(((p - 1).square().sum() for p in params), torch.zeros(()))
                loss.backward()
                return loss

            self.assertGreater(optimizer.step(closure).item(), 0.0)

        self.check(use, "Adam", lr=0.01)

    def test_checkpoints_go_both_ways(self) -> None:
        for name, options in (("AdamW", {"lr": 0.01}), ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5})):
            for sources in (("torch", "ortc"), ("ortc", "torch"), ("ortc", "ortc")):
                results = []
                for first, second in ((sources[0], sources[1]), ("torch", "torch"), ("double", "double")):
                    kinds = {"torch": torch.optim, "double": torch.optim, "ortc": ortc.torch.optim}
                    params = parameters(torch.float64 if first == "double" else torch.float32)
                    before = getattr(kinds[first], name)(params, **options)
                    train(before, params, 3)
                    file = io.BytesIO()
                    torch.save(before.state_dict(), file)
                    file.seek(0)
                    after = getattr(kinds[second], name)(params, lr=1.0)
                    after.load_state_dict(torch.load(file))
                    train(after, params, 3, first=3)
                    results.append(params)
                self.near(results[2], results[1], results[0])

    def test_state_is_that_of_pytorch(self) -> None:
        for name, options in CASES:
            ours, mine, own, theirs = both(name, **options)
            train(ours, mine, 1), train(own, theirs, 1)
            wanted, got = own.state_dict(), ours.state_dict()
            self.assertEqual(wanted["param_groups"], got["param_groups"])
            for i, state in wanted["state"].items():
                self.assertEqual(set(state), set(got["state"][i]))
                for key, value in state.items():
                    self.assertEqual((value.dtype, value.shape), (got["state"][i][key].dtype, got["state"][i][key].shape))

    def test_threads_have_the_same_bits(self) -> None:
        results = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            params = parameters()
            train(ortc.torch.optim.AdamW(params), params)
            results.append(params)
        self.same(results[0], results[1])
        self.same(results[0], results[2])

    def test_is_in_place(self) -> None:
        params = parameters()
        optimizer = ortc.torch.optim.AdamW(params)
        train(optimizer, params, 1)
        tensors = [*params, *(value for p in params for value in optimizer.state[p].values())]
        places, versions = [each.data_ptr() for each in tensors], [p._version for p in params]
        train(optimizer, params, 2, first=1)
        self.assertEqual(places, [each.data_ptr() for each in tensors])
        self.assertEqual([version + 2 for version in versions], [p._version for p in params])
        x = torch.ones(3, requires_grad=True)
        p = nn.Parameter(torch.ones(3))
        loss = (x * p).sum()
        p.grad = torch.ones(3)
        ortc.torch.optim.SGD([p], lr=1.0).step()
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            loss.backward()

    def test_layouts(self) -> None:
        base = torch.randn(4, 6, 5, 3).contiguous(memory_format=torch.channels_last)
        gradients = torch.randn(4, 6, 5, 3), torch.ones(1).expand(4, 6, 5, 3), torch._neg_view(base.clone())
        for gradient in gradients:
            mine, theirs = nn.Parameter(base.clone()), nn.Parameter(base.clone())
            mine.grad, theirs.grad = gradient, gradient.clone()
            ours, own = ortc.torch.optim.AdamW([mine], lr=0.1), torch.optim.AdamW([theirs], lr=0.1)
            for _ in range(3):
                ours.step(), own.step()
            self.assertEqual(ours.report.compiled, 3)
            self.assertEqual(mine.stride(), base.stride())
            self.assertEqual(ours.state[mine]["exp_avg"].stride(), base.stride())
            self.assertLessEqual(distance(theirs.detach(), mine.detach()), 8 * torch.finfo(torch.float32).eps)

    def test_what_is_not_compiled_is_a_step_of_pytorch(self) -> None:
        def sparse(p: nn.Parameter) -> None:
            p.grad = p.grad.to_sparse()  # type: ignore[union-attr]

        def strided(p: nn.Parameter) -> None:
            p.data = torch.randn(7, 300).t()[:, ::2].expand(300, 4)
            p.grad = torch.ones(300, 4)

        cases: list[tuple[str, Callable[[nn.Parameter], Any]]] = [
            ("a parameter is torch.bfloat16", lambda p: p.data.bfloat16()),
            ("a gradient is torch.sparse_coo", sparse),
            ("must be dense and float32", strided),
        ]
        for reason, change in cases:
            results = []
            for module in (torch.optim, ortc.torch.optim):
                torch.manual_seed(0)
                params = parameters(shapes=[(5,), (300, 7)])
                optimizer = module.SGD(params, lr=0.1, momentum=0.9, dampening=0.5)
                for step in range(3):
                    give_gradients(params, step)
                    if step == 0:
                        changed = change(params[1])
                        if changed is not None:
                            params[1].data, params[1].grad = changed, params[1].grad.to(changed.dtype)  # type: ignore
                    else:
                        params[1].grad = torch.ones_like(params[1]).to_sparse() if "sparse" in reason else torch.ones_like(params[1])
                    optimizer.step()
                results.append(params)
            self.same(*results)  # the state of one that was never compiled is PyTorch's
            self.assertEqual(optimizer.report.compiled, 0)
            self.assertIn(reason, str(optimizer.report))

    def test_settings_that_change(self) -> None:
        """A momentum that comes later, an old checkpoint's empty buffer, AMSGrad switched on: PyTorch's rules hold."""

        def use(optimizer: Any, params: list[nn.Parameter]) -> None:
            train(optimizer, params, 2)
            optimizer.param_groups[0]["momentum"] = 0.9
            train(optimizer, params, 2, first=2)
            optimizer.param_groups[0].update(momentum=0.5, nesterov=True, weight_decay=0.1)
            train(optimizer, params, 2, first=4)

        self.check(use, "SGD", lr=0.1)
        params = parameters(shapes=[(20,)])
        optimizer = ortc.torch.optim.SGD(params, lr=0.1, momentum=0.9)
        optimizer.state[params[0]]["momentum_buffer"] = None
        train(optimizer, params, 2)
        self.assertEqual((optimizer.report.compiled, sum(optimizer.report.eager.values())), (1, 1))
        adam = ortc.torch.optim.Adam(params)
        train(adam, params, 1)
        adam.param_groups[0]["amsgrad"] = True
        with self.assertRaisesRegex(KeyError, "max_exp_avg_sq"):
            adam.step()

    def test_a_parameter_that_is_there_twice(self) -> None:
        results = []
        for module in (torch.optim, ortc.torch.optim):
            params = parameters(shapes=[(20,)])
            with self.assertWarnsRegex(UserWarning, "duplicate parameters"):
                optimizer = module.SGD([*params, *params], lr=0.1, momentum=0.9)
            train(optimizer, params, 2)
            results.append(params)
        self.same(*results)
        self.assertEqual(dict(optimizer.report.eager), {"a parameter is in a group twice": 2})

    def test_formulas_that_cannot_be_in_place_are_refused(self) -> None:
        """One that reads the other end of a vector, which is no optimizer of the compiler."""
        onnx = importlib.import_module("onnx")
        names = {name: onnx.helper.make_tensor_value_info(name, 1, ["n"]) for name in ("parameter", "gradient", "parameter.new")}
        rate = onnx.helper.make_tensor_value_info("lr", 11, [])
        bounds = {"start": -1, "end": -(1 << 31), "axis": 0, "step": -1}
        nodes = [
            onnx.helper.make_node("Slice", ["parameter", *bounds], ["reversed"]),
            onnx.helper.make_node("Cast", ["lr"], ["rate"], to=1),
            onnx.helper.make_node("Mul", ["gradient", "rate"], ["direction"]),
            onnx.helper.make_node("Add", ["reversed", "direction"], ["parameter.new"]),
        ]
        constants = [onnx.helper.make_tensor(name, 7, [1], [value]) for name, value in bounds.items()]
        inputs, outputs = [names["parameter"], names["gradient"], rate], [names["parameter.new"]]
        graph = onnx.helper.make_graph(nodes, "reversed", inputs, outputs, constants)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
        artifact = ortc.compile(model, bindings={"n2048": {"n": 2048}, "n1024": {"n": 1024}}, loss="none", target="native")
        with self.assertRaisesRegex(ortc.CompileError, "2048 elements gives other numbers in place: parameter.new"):
            _update._verify(Path(artifact.path))

    def test_states_of_other_shapes_are_an_error(self) -> None:
        params = parameters(shapes=[(40,)])
        optimizer = ortc.torch.optim.AdamW(params)
        train(optimizer, params, 1)
        optimizer.state[params[0]]["exp_avg"] = torch.zeros(2)
        with self.assertRaisesRegex(RuntimeError, "size of tensor"):
            optimizer.step()

    def test_hooks_run_once(self) -> None:
        for dtype in (torch.float32, torch.bfloat16):  # compiled, and not
            params = parameters(dtype, [(3,)])
            torch.optim.AdamW(parameters()).step()  # the class of PyTorch has its hooks now
            optimizer = ortc.torch.optim.AdamW(params)
            calls: list[str] = []
            optimizer.register_step_pre_hook(lambda *_: calls.append("before"))
            optimizer.register_step_post_hook(lambda *_: calls.append("after"))
            train(optimizer, params, 1)
            self.assertEqual(calls, ["before", "after"])

    def test_copies_and_arguments(self) -> None:
        params = parameters(shapes=[(20,)])
        optimizer = ortc.torch.optim.AdamW(params, 0.01, (0.8, 0.9), foreach=False, fused=True)
        train(optimizer, params, 2)
        self.assertIsNone(optimizer.param_groups[0]["fused"])
        self.assertEqual(str(optimizer.report), "2 calls: 2 compiled, 0 eager")
        self.assertIsInstance(optimizer, torch.optim.AdamW)
        self.assertEqual(inspect.signature(ortc.torch.optim.AdamW), inspect.signature(torch.optim.AdamW))
        for make in (copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))):
            other, its = make((optimizer, params))
            train(other, its, 2, first=2)
            self.assertEqual(other.report.compiled, 2)
            again = copy.deepcopy(params)
            fresh = ortc.torch.optim.AdamW(again)
            fresh.load_state_dict(optimizer.state_dict())
            train(fresh, again, 2, first=2)
            self.same(its, again)
        for name in ("capturable", "differentiable"):
            with self.assertRaisesRegex(ValueError, f"{name}=True: a compiled step has no graph"):
                ortc.torch.optim.Adam(params, **{name: True})
        with self.assertRaisesRegex(ValueError, "Invalid learning rate"):
            ortc.torch.optim.SGD(params, lr=-1.0)

    def test_a_nan_of_averages_in_bytes_is_seen(self) -> None:
        """A block is NaN from then on, compiled or not; below 4,096 values it is the one value. Others go on."""
        for name in ("AdamW8bit", "Lion8bit"):
            for value in (float("nan"), float("inf")):
                for shape, size in (((70, 100), 256), *([((7, 100), 1)] if value != value else [])):
                    plain = parameters(shapes=[shape])
                    for params, is_compiled in ((plain, True), (parameters(shapes=[shape]), False)):
                        optimizer = getattr(ortc.torch.optim, name)(params, lr=0.01)
                        for step in range(3):
                            give_gradients(params, step)
                            params[0].grad[3, 5] = value if step == 0 else params[0].grad[3, 5]
                            if not is_compiled:
                                optimizer.report.failures = ["refused"]
                            before = params[0].detach().clone()
                            optimizer.step()
                        self.assertEqual(bool(optimizer.report.compiled), is_compiled)
                        is_nan = params[0].isnan().reshape(-1)
                        self.assertEqual(int(is_nan.sum()), size)
                        self.assertTrue(is_nan[305 // size * size : (305 // size + 1) * size].all())
                        self.assertTrue((params[0] != before).all())

    def test_artifacts(self) -> None:
        _update.open_pieces.cache_clear()
        params, theirs = parameters(), parameters()
        train(torch.optim.Adam(theirs), theirs, 2)
        _update.open_pieces.cache_clear()
        train(ortc.torch.optim.Adam(params), params, 1)  # compiles, or has been
        _update.open_pieces.cache_clear()
        with unittest.mock.patch.object(_update, "run_compiler", side_effect=AssertionError("compiled again")):
            optimizer = ortc.torch.optim.Adam(params)
            train(optimizer, params, 1)
            self.assertEqual(optimizer.report.compiled, 1)
        _update.open_pieces.cache_clear()
        with unittest.mock.patch.dict(os.environ, ORTC_COMPILER="/nowhere/ortc"):
            params = parameters()
            optimizer = ortc.torch.optim.Adam(params)
            with self.assertWarnsRegex(UserWarning, "Adam goes on without compiling: the compiler cannot be run"):
                train(optimizer, params, 2)
            self.same(params, theirs)
            self.assertEqual(dict(optimizer.report.eager), {"it could not be compiled": 2})
        _update.open_pieces.cache_clear()


if __name__ == "__main__":
    unittest.main()
