"""torch.compile(backend="ortc") against PyTorch itself: outputs, gradients, buffers; and graphs that are left as they are.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Both sides compute in float32, in other orders: 2e-5 of the largest number of a tensor is what the sums here may differ by.
"""

from __future__ import annotations

import copy
import importlib.metadata
import os
import pathlib
import subprocess
import sys
import tomllib
import unittest
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from modules import distance, total, use_own_cache

from ortc.torch import _dynamo

TOLERANCE = 2e-5


def setUpModule() -> None:
    use_own_cache()
    torch.set_num_threads(1)


class Net(nn.Module):
    """Running statistics, a weight in two places, a buffer, and a dictionary of results."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(4, 6, bias=False), nn.BatchNorm1d(6)
        self.second = nn.Linear(6, 6)
        self.register_buffer("mask", torch.tensor([1.0, 0.0, 1.0, 2.0, 1.0, 0.5]))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        y = self.norm(self.first(x))
        y = self.second(torch.tanh(self.second(y))) * self.mask
        return {"y": y, "positive": y > 0}


class Broken(nn.Module):
    """Its graph breaks where a number of a tensor is looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.first(x))
        if y.sum() > 1e6:
            return y
        return self.second(y)


class DynamoTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)
        torch._dynamo.reset()
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", "The .grad attribute of a Tensor that is not a leaf")  # dynamo's own
        self.addCleanup(warnings.resetwarnings)
        self.made: list[Any] = []

    def compile(self, model: nn.Module, fallback: str = "error", **options: Any) -> Any:
        def spy(source: Any, inputs: Any) -> Callable[..., Any]:
            made = _dynamo.backend(source, inputs, options={"wait": True, "fallback": fallback})
            self.made.append(made)
            return made

        return torch.compile(model, backend=spy, **options)

    def reports(self) -> list[tuple[int, dict[str, int]]]:
        """Of the graphs that were compiled: calls beside the first, and why others were not."""
        return [(each.report.compiled, dict(each.report.eager)) for each in self.made if isinstance(each, _dynamo._Compiled)]

    def check(self, model: nn.Module, run: Callable[[Any, Any], Any], steps: int = 4, **options: Any) -> None:
        """`run(model, step)` gives what both sides are compared in."""
        eager = copy.deepcopy(model)
        compiled = self.compile(model, **options)
        for step in range(steps):
            results = []
            for each in (eager, compiled):
                torch.manual_seed(step)
                each.zero_grad()
                results.append(torch.utils._pytree.tree_leaves(run(each, step)))
            for wanted, got in zip(*results, strict=True):
                self.same(wanted, got, f"output, step {step}")
            for (name, p), q in zip(eager.named_parameters(), model.parameters(), strict=True):
                self.same(p.grad, q.grad, f"gradient of {name}, step {step}")
            for (name, p), q in zip(eager.named_buffers(), model.buffers(), strict=True):
                self.same(p, q, f"{name}, step {step}")

    def same(self, wanted: Any, got: Any, what: str) -> None:
        self.assertEqual(wanted is None, got is None, what)
        if wanted is not None:
            self.assertEqual((wanted.shape, wanted.dtype), (got.shape, got.dtype), what)
            self.assertLessEqual(distance(wanted.detach().float(), got.detach().float()), TOLERANCE, what)

    @staticmethod
    def train(model: Any, step: int, rows: int = 5) -> Any:
        result = model(torch.randn(rows, 4))
        total(result["y"] if isinstance(result, dict) else result).backward()
        return result

    def test_plain(self) -> None:
        self.check(Net(), self.train)
        self.assertEqual(self.reports(), [(3, {})])

    def test_normalisation_without_weights(self) -> None:
        norm = nn.BatchNorm1d(6, affine=False, momentum=0.3)
        self.check(nn.Sequential(nn.Linear(4, 6, bias=False), norm, nn.Tanh(), nn.Linear(6, 2)), self.train)
        self.assertEqual(self.reports(), [(3, {})])

    def test_padding_row(self) -> None:
        def run(model: Any, step: int) -> Any:
            result = model(torch.tensor([[1, 0, 2], [0, step, 6]]))
            total(result).backward()
            return result

        model = nn.Sequential(nn.Embedding(7, 4, padding_idx=2), nn.Linear(4, 3))
        self.check(model, run)
        self.assertEqual(self.reports(), [(3, {})])
        self.assertFalse(model[0].weight.grad[2].any())

    def test_graph_break(self) -> None:
        self.check(Broken(), self.train)
        self.assertEqual(self.reports(), [(3, {}), (3, {})])

    def test_gradient_of_an_input(self) -> None:
        def run(model: Any, step: int) -> Any:
            x = torch.randn(5, 4, requires_grad=True)
            y = model(x)
            total(y).backward()
            return y, x.grad

        self.check(nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)), run)
        self.assertEqual(self.reports(), [(3, {})])

    def test_one_graph_for_several_modules(self) -> None:
        blocks = nn.ModuleList(nn.Sequential(nn.Linear(4, 4, bias=False), nn.BatchNorm1d(4), nn.Tanh()) for _ in range(3))
        source: list[Any] = []
        torch.compile(blocks[0], backend=lambda graph, inputs: source.append((graph, inputs)) or graph.forward)(torch.randn(5, 4))
        eager = copy.deepcopy(blocks)
        run = _dynamo.backend(*source[0], options={"wait": True, "fallback": "error"})
        for step in range(4):
            given = torch.randn(5, 4)
            x = y = torch.zeros(5, 4)
            for mine, theirs in zip(blocks, eager, strict=True):
                tensors = {id(value): value for value in (*mine.parameters(), *mine.buffers())}
                places = dict(zip(map(id, (*blocks[0].parameters(), *blocks[0].buffers())), tensors.values(), strict=True))
                y, x = y + run(*(places.get(id(each), given) for each in source[0][1]))[0], x + theirs(given)
            self.same(x, y, f"output, step {step}")
            blocks.zero_grad(), eager.zero_grad()
            total(x).backward(), total(y).backward()
            for (name, p), q in zip(eager.named_parameters(), blocks.parameters(), strict=True):
                self.same(p.grad, q.grad, f"gradient of {name}, step {step}")
            for (name, p), q in zip(eager.named_buffers(), blocks.buffers(), strict=True):
                self.same(p, q, f"{name}, step {step}")

    def test_shapes(self) -> None:
        run = lambda model, step: self.train(model, step, rows=5 + step % 2)  # noqa: E731
        self.check(nn.Sequential(nn.Linear(4, 3)), run, dynamic=False)
        self.assertEqual(self.reports(), [(1, {}), (1, {})])  # a graph for each
        self.made.clear()
        torch._dynamo.reset()
        with self.assertLogs("ortc.torch", "INFO") as log:
            self.check(nn.Sequential(nn.Linear(4, 3)), run, dynamic=True)
        self.assertIn("an input is a number that changes", log.output[0])
        self.assertEqual(self.reports(), [])

    def test_without_gradients_and_in_evaluation_mode(self) -> None:
        def run(model: Any, step: int) -> Any:
            if step % 2:
                return self.train(model, step)
            with torch.no_grad():
                return model(torch.randn(5, 4))

        self.check(Net(), run, steps=6, fallback="eager")
        self.assertEqual(self.reports(), [(0, {"gradients are disabled in training mode": 2}), (2, {})])
        self.check(Net().eval(), lambda model, step: model(torch.randn(5, 4)))

    def test_what_changes_its_inputs_is_left(self) -> None:
        class Changes(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = nn.Linear(4, 4)
                self.register_buffer("count", torch.zeros(4))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                self.count[:2] += 1
                view = self.count.view(2, 2)
                view.mul_(2)
                return self.layer(x) * self.count

        class Adds(Changes):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                self.count.view(2, 2).add_(3)
                return self.layer(x) * self.count

        class Counts(Changes):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                self.count.add_(1)
                return self.layer(x) * self.count

        class Statistics(Changes):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return F.batch_norm(self.layer(x) ** 3, self.count, self.count.clone().add(1), training=True)

        class Twice(Net):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.norm(torch.tanh(self.norm(self.first(x))))

        for module in (Changes(), Adds(), Counts(), Statistics(), Twice()):
            with self.subTest(module=type(module).__name__):
                self.made.clear()
                self.check(module, self.train)
                reasons = [each.reason for each in self.made if isinstance(each, _dynamo._Compiled)]
                self.assertIn(reasons, ([], ["it changes an input"]))

    def test_the_name_is_known(self) -> None:
        script = """
import sys, torch
{first}
import ortc.torch
assert ("torch._dynamo" in sys.modules) == bool({first!r}), "dynamo takes a second to import"
model = torch.nn.Linear(3, 2)
step = torch.compile(model, backend="ortc", options={{"wait": True, "threads": 1}})
for _ in range(3):
    step(torch.ones(2, 3)).sum().backward()
assert model.weight.grad.tolist() == [[6.0] * 3] * 2, model.weight.grad
assert "ortc" in torch._dynamo.list_backends()
"""
        for first in ("", "import torch._dynamo; torch._dynamo.list_backends()"):
            subprocess.run([sys.executable, "-c", script.format(first=first)], check=True, env=os.environ, timeout=300)

    def test_the_wheel_says_the_name(self) -> None:
        path = pathlib.Path(__file__).parents[4] / "bindings/python/pyproject.toml"
        said = tomllib.loads(path.read_text())["project"]["entry-points"]["torch_dynamo_backends"]
        own = importlib.metadata.distribution("ortc-backend").entry_points
        self.assertEqual(said, {each.name: each.value for each in own})
        self.assertIs(own["ortc"].load(), _dynamo.backend)


if __name__ == "__main__":
    unittest.main()
