"""Models and the Trainer of transformers.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import os
import pathlib
import tempfile
import unittest
from typing import Any

import torch
from launch import run_processes
from modules import use_own_cache
from optional import need
from tolerance import distance, limit, nudge

import ortc.torch

need("transformers", "safetensors")
import language_models as lm
from safetensors import safe_open


def setUpModule() -> None:
    use_own_cache()
    torch.set_num_threads(1)


STEPS = 12


def models() -> dict[str, Any]:
    """By name: what makes a model, and its rows."""
    return {"bert": (lm.bert, lm.questions()), "gpt2": (lm.gpt2, lm.stories())}


def shapes(path: pathlib.Path) -> dict[str, list[int]]:
    """Keys of a file of weights, with shapes."""
    with safe_open(path, "pt") as file:
        return {name: file.get_slice(name).get_shape() for name in file.keys()}


def train_in_process(folder: str) -> None:
    """What each of several processes does: its part of the batches, compiled."""
    torch.set_num_threads(1)
    for name, (make, rows) in models().items():
        model = make()
        ortc.torch.compile_(model, wait=True)
        trainer = lm.make_trainer(model, rows, folder, max_steps=STEPS, gradient_accumulation_steps=2)
        trainer.train()
        report = ortc.torch.report(model)
        assert report.compiled == 2 * STEPS and not report.eager and report.artifacts == 1, str(report)
        torch.save((lm.losses(trainer), model.state_dict()), f"{folder}/{name}.{os.environ['RANK']}.pt")


class ModelTest(unittest.TestCase):
    """Loops of one's own."""

    def check(self, model: Any, row: dict[str, torch.Tensor]) -> None:
        eager = copy.deepcopy(model)
        ortc.torch.compile_(model, wait=True, fallback="error")
        batch = {name: torch.stack([value, value.flip(0) if value.dim() else value]) for name, value in row.items()}
        optimizers = [torch.optim.AdamW(each.parameters(), lr=1e-3) for each in (model, eager)]
        for _ in range(5):
            losses = []
            for each, optimizer in zip((model, eager), optimizers, strict=True):
                optimizer.zero_grad()
                result = each(**batch)
                result.loss.backward()
                optimizer.step()
                losses.append(result.loss.item())
                kind = type(result)
            self.assertAlmostEqual(losses[0], losses[1], places=4)
            self.assertIs(type(model(**batch)), kind)
        with tempfile.TemporaryDirectory() as folder:
            for name, each in (("ortc", model), ("eager", eager)):
                each.save_pretrained(f"{folder}/{name}")
            saved = [
                {name: value.shape for name, value in type(eager).from_pretrained(f"{folder}/{name}").state_dict().items()}
                for name in ("ortc", "eager")
            ]
            self.assertEqual(saved[0], saved[1])

    def test_bert(self) -> None:
        self.check(lm.bert(), lm.questions(1)[0])

    def test_gpt2(self) -> None:
        self.check(lm.gpt2(), lm.stories(1)[0])


class TrainerTest(unittest.TestCase):
    def test_curves(self) -> None:
        """One process and two, against PyTorch. The number of labels, which the Trainer hands on to GPT-2, is another in each step,
        and no compilation."""
        with tempfile.TemporaryDirectory() as folder:
            run_processes(2, train_in_process, folder)
            for name, (make, rows) in models().items():
                wanted = lm.train(make().double(), rows, max_steps=STEPS)
                eager = [lm.train(each, rows, max_steps=STEPS) for each in (make(), nudge(make(), 0))]
                model = make()
                ortc.torch.compile_(model, wait=True)
                alone = lm.train(model, rows, max_steps=STEPS)
                report = ortc.torch.report(model)
                self.assertEqual((report.compiled, sum(report.eager.values()), report.artifacts), (4 * STEPS, 0, 1), str(report))
                (both, weights), (_, others) = (torch.load(f"{folder}/{name}.{rank}.pt") for rank in range(2))
                for key, value in weights.items():
                    self.assertTrue(torch.equal(value, others[key]), key)
                for losses in (alone, both):
                    self.assertLessEqual(distance(wanted, losses), limit(wanted, eager), name)

    def test_checkpoints_with_dropout(self) -> None:
        """A run that goes on from its middle ends with the same bits; files have the names, keys and shapes of PyTorch's."""
        rows = lm.stories()
        arguments = dict(max_steps=12, save_strategy="steps", save_steps=6, eval_strategy="steps", eval_steps=4)
        with tempfile.TemporaryDirectory() as folder:
            states, curves, saved = [], [], []
            middle = f"{folder}/whole/checkpoint-6"
            for name, seed, start in (("whole", 0, None), ("later", 0, middle), ("again", 0, None), ("other", 1, None)):
                model = lm.gpt2(dropout=0.1)
                ortc.torch.compile_(model, wait=True)
                trainer = lm.make_trainer(model, rows, f"{folder}/{name}", seed=seed, **arguments)
                trainer.train(resume_from_checkpoint=start)
                states.append(model.state_dict())
                curves.append(lm.losses(trainer))
                report = ortc.torch.report(model)
                self.assertGreater(report.compiled, 24 if start else 48, str(report))
                self.assertFalse(report.eager, str(report))  # evaluations are compiled, too
            for key, value in states[0].items():
                self.assertTrue(torch.equal(value, states[1][key]), key)
                self.assertTrue(torch.equal(value, states[2][key]), key)
            self.assertTrue(torch.equal(curves[0], curves[1]))
            self.assertFalse(torch.equal(curves[0], curves[3]))
            lm.make_trainer(lm.gpt2(dropout=0.1), rows, f"{folder}/eager", **arguments).train()
            for name in ("whole", "eager"):
                path = pathlib.Path(folder, name, "checkpoint-6")
                optimizer = torch.load(path / "optimizer.pt")
                moments = {i: {key: each.shape for key, each in state.items()} for i, state in optimizer["state"].items()}
                groups = [sorted(group) for group in optimizer["param_groups"]]
                saved.append((sorted(each.name for each in path.iterdir()), shapes(path / "model.safetensors"), moments, groups))
            self.assertEqual(saved[0], saved[1])

    def test_gradient_checkpointing(self) -> None:
        """Transformers lets embeddings have gradients by a hook then."""
        rows = lm.stories()
        arguments = dict(gradient_checkpointing=True, max_steps=3)
        wanted, *eager = (lm.train(each, rows, **arguments) for each in (lm.gpt2().double(), lm.gpt2(), nudge(lm.gpt2(), 0)))
        model = lm.gpt2()
        ortc.torch.compile_(model, wait=True)
        self.assertLessEqual(distance(wanted, lm.train(model, rows, **arguments)), limit(wanted, eager))
        report = ortc.torch.report(model)
        self.assertEqual((report.compiled, dict(report.eager)), (12, {}), str(report))

    def test_bfloat16(self) -> None:
        """No farther from float32 than twice what PyTorch's autocast is."""
        rows = lm.stories()
        exact, wanted = (lm.train(lm.gpt2(), rows, max_steps=3, bf16=narrow) for narrow in (False, True))
        model = lm.gpt2()
        ortc.torch.compile_(model, wait=True, fallback="error")
        got = lm.train(model, rows, max_steps=3, bf16=True)
        self.assertLessEqual(distance(got, exact), 2 * distance(wanted, exact))
        self.assertGreater(distance(got, exact), 0)


if __name__ == "__main__":
    unittest.main()
