"""Trainings that stop and go on: states of the fused step's optimizer in PyTorch's checkpoints, and checkpoints before a first step.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import tempfile
import unittest
import unittest.mock
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
import torch.optim._muon
from modules import distance, take_step, use_own_cache
from optim_table_test import CASES, find_theirs, newton_schulz
from torch import nn

import ortc
import ortc.torch
import ortc.torch.optim

KEPT_OTHERWISE = ("Lamb", "SGDScheduleFree", "AdamWScheduleFree")
"""In their packages: a session has them otherwise."""
generator = torch.Generator().manual_seed(1)
X = torch.randn(12, 16, 6, generator=generator, dtype=torch.float64)
Y = torch.randint(4, (12, 16), generator=generator)


def setUpModule() -> None:
    use_own_cache()


def make_model(dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4)).to(dtype)


def make_optimizers(name: str, options: Any, model: nn.Module) -> list[Any]:
    """One for matrices and one for the rest, where it is Muon; else one of two groups."""
    parameters = list(model.parameters())
    matrices = [p for p in parameters if p.dim() == 2]
    if name == "Muon":
        return [find_theirs(name)(matrices, **options), torch.optim.AdamW([p for p in parameters if p.dim() != 2], lr=0.01)]
    return [find_theirs(name)([{"params": matrices}, {"params": [p for p in parameters if p.dim() != 2]}], **options)]


def train(steps: range, model: nn.Module, optimizers: list[Any], trainer: Any = None) -> None:
    for i in steps:
        x = X[i].to(next(model.parameters()).dtype)
        take_step(trainer, model, optimizers, F.cross_entropy, x, Y[i])


def make_trainer(model: nn.Module, optimizers: list[Any]) -> Any:
    return ortc.torch.Trainer(model, F.cross_entropy, optimizers if len(optimizers) > 1 else optimizers[0])


def flatten(optimizers: list[Any]) -> dict[str, torch.Tensor]:
    found = {}
    for i, each in enumerate(optimizers):
        for number, own in each.state_dict()["state"].items():
            found |= {f"{i}.{number}.{name}": value.clone() for name, value in own.items() if isinstance(value, torch.Tensor)}
    return found


class ResumeTest(unittest.TestCase):
    def setUp(self) -> None:
        exact = unittest.mock.patch.object(torch.optim._muon, "_zeropower_via_newtonschulz", newton_schulz)
        exact.start()
        self.addCleanup(exact.stop)
        warnings.filterwarnings("ignore", "Detected call of `lr_scheduler.step", UserWarning)
        self.addCleanup(warnings.resetwarnings)
        self.folder = Path(tempfile.mkdtemp())

    def near(self, exact: Any, theirs: Any, mine: Any, what: str) -> None:
        """Within eight times the distance of PyTorch's own float32, or some roundings."""
        size = max(float(exact.abs().max()), 1e-3)
        off, other = (float((exact.double() - each.double()).abs().max()) / size for each in (mine, theirs))
        self.assertLessEqual(off, max(8 * other, 1e-5), what)

    def test_states_of_optimizers(self) -> None:
        """state_dict is that of a loop of PyTorch; each goes on from the other's."""
        for name, options in CASES:
            if name in KEPT_OTHERWISE or any(key in options for key in ("grad_averaging", "bias_correction")):
                continue
            with self.subTest(name=name, options=options):
                runs = []
                for dtype in (torch.float64, torch.float32):
                    model = make_model(dtype)
                    optimizers = make_optimizers(name, options, model)
                    train(range(5), model, optimizers)
                    runs.append((flatten(optimizers), copy.deepcopy((model.state_dict(), [each.state_dict() for each in optimizers]))))
                    train(range(5, 9), model, optimizers)
                    runs[-1] += (copy.deepcopy(model.state_dict()),)
                model = make_model()
                optimizers = make_optimizers(name, options, model)
                train(range(5), model, optimizers, make_trainer(model, optimizers))
                mine = flatten(optimizers)
                self.assertEqual(mine.keys(), runs[0][0].keys())
                for key, each in mine.items():
                    self.near(runs[0][0][key], runs[1][0][key], each, f"{key} after 5 steps")
                kept = copy.deepcopy((model.state_dict(), [each.state_dict() for each in optimizers]))
                for case in ("before the trainer", "after the trainer", "after a step", "in PyTorch"):
                    model = make_model()
                    optimizers = make_optimizers(name, options, model)
                    trainer = None
                    if case in ("after the trainer", "after a step"):
                        trainer = make_trainer(model, optimizers)
                    if case == "after a step":
                        train(range(9, 10), model, optimizers, trainer)
                    model.load_state_dict(kept[0])
                    for each, state in zip(optimizers, kept[1], strict=True):
                        each.load_state_dict(state)
                    if case == "before the trainer":
                        trainer = make_trainer(model, optimizers)
                    train(range(5, 9), model, optimizers, trainer)
                    for key, each in model.state_dict().items():
                        if key not in ("0.bias", "1.running_mean"):  # only rounding moves them
                            self.near(runs[0][2][key], runs[1][2][key], each, f"{key}, {case}")

    def test_checkpoints(self) -> None:
        """Checkpoints of a trainer, before the first step and after one; parameters are there at once."""
        path = self.folder / "t.safetensors"
        for make in (lambda p: torch.optim.AdamW(p, lr=1e-2), lambda p: ortc.torch.optim.Lamb(p, lr=1e-2)):
            model = make_model()
            trainer = ortc.torch.Trainer(model, F.cross_entropy, make(model.parameters()))
            with self.assertRaisesRegex(ortc.ShapeError, "the first step makes the session; load.path. .* takes a checkpoint before that"):
                trainer.session
            train(range(5), model, [], trainer)
            trainer.save(path)
            before = copy.deepcopy(model.state_dict())
            train(range(5, 9), model, [], trainer)
            for is_late in (False, True):
                again = make_model()
                optimizer = make(again.parameters())
                other = ortc.torch.Trainer(again, F.cross_entropy, optimizer)
                if is_late:
                    train(range(9, 10), again, [], other)
                other.load(path)
                for key, each in again.state_dict().items():
                    if key != "1.num_batches_tracked":
                        self.assertTrue(torch.equal(each, before[key]), key)
                if not is_late:
                    with self.assertRaisesRegex(ortc.CompileError, "in the checkpoint that the trainer has loaded, until the first step"):
                        optimizer.state_dict()
                train(range(5, 9), again, [], other)
                for key, each in again.state_dict().items():
                    if key != "1.num_batches_tracked":
                        self.assertTrue(torch.equal(each, model.state_dict()[key]), key)

    def test_rates_after_loading(self) -> None:
        """A scheduler that goes on sets the rate of groups that load_state_dict has put there."""
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        trainer = ortc.torch.Trainer(model, F.cross_entropy, optimizer)
        train(range(1), model, [], trainer)
        optimizer.load_state_dict(optimizer.state_dict())
        optimizer.param_groups[0]["lr"] = 0.0
        before = copy.deepcopy(model.state_dict())
        train(range(1, 2), model, [], trainer)
        self.assertTrue(torch.equal(model.state_dict()["3.weight"], before["3.weight"]))

    def test_what_is_refused(self) -> None:
        model = make_model()
        optimizer: Any = ortc.torch.optim.Lamb(model.parameters())
        trainer = ortc.torch.Trainer(model, F.cross_entropy, optimizer)
        optimizer.state_dict()  # of no step
        train(range(1), model, [], trainer)
        with self.assertRaisesRegex(ortc.CompileError, "the state of Lamb is no state of a session: .*trainer.save"):
            optimizer.state_dict()
        model = make_model()
        optimizer = torch.optim.AdamW(model.parameters())
        train(range(2), model, [optimizer])
        optimizer.state[model[0].weight]["step"] += 1
        trainer = ortc.torch.Trainer(model, F.cross_entropy, optimizer)
        with self.assertRaisesRegex(ortc.CompileError, "parameters have taken 2, 3 steps, and a session counts one number"):
            train(range(1), model, [], trainer)
        (self.folder / "other.safetensors").write_bytes(b"something else")
        for path, error in (("none", OSError), ("other.safetensors", ortc.FormatError)):
            with self.subTest(path), self.assertRaises(error):
                ortc.torch.Trainer(make_model(), F.cross_entropy, "sgd:lr=0.1").load(self.folder / path)
        self.assertGreater(distance(torch.ones(2), torch.zeros(2)), 0)


if __name__ == "__main__":
    unittest.main()
