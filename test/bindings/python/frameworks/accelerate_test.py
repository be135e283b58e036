"""Loops with accelerate.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import pathlib
import tempfile
import unittest

import torch
import torch.nn.functional as F
from launch import run_processes
from modules import use_own_cache
from optional import need
from tolerance import distance, limit, nudge
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import ortc.torch

need("accelerate", "safetensors")
import accelerate
from safetensors.torch import load_file

STEPS = 16


def setUpModule() -> None:
    use_own_cache()
    torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.first, self.norm, self.drop, self.second = nn.Linear(6, 32), nn.LayerNorm(32), nn.Dropout(dropout), nn.Linear(32, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.drop(torch.tanh(self.norm(self.first(x)))))


class Run:
    """A script's objects. In several processes each has its part of every batch."""

    def __init__(
        self, compiled: bool, *, dropout: float = 0.0, dtype: torch.dtype = torch.float32, nudged: bool = False, mixed_precision: str = "no"
    ) -> None:
        self.accelerator = accelerate.Accelerator(
            cpu=True, gradient_accumulation_steps=2, mixed_precision=mixed_precision,
            dataloader_config=accelerate.utils.DataLoaderConfiguration(split_batches=True, use_seedable_sampler=True),
        )
        accelerate.utils.set_seed(0)
        self.net = Net(dropout).to(dtype)
        if nudged:
            nudge(self.net, 0)
        if compiled:
            ortc.torch.compile_(self.net, wait=True)
        x = torch.randn(64, 6).to(dtype)
        rows = TensorDataset(x, x[:, :3].argmax(1))
        optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-2)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
        self.model, self.optimizer, self.loader, self.schedule = self.accelerator.prepare(
            self.net, optimizer, DataLoader(rows, batch_size=8, shuffle=True), schedule
        )

    def train(self, first: int = 0, last: int = STEPS) -> torch.Tensor:
        """The losses of steps of the loader."""
        losses = []
        for step in range(first, last):
            if step % len(self.loader) == 0:
                self.loader.set_epoch(step // len(self.loader))
                batches = iter(self.loader)
            x, y = next(batches)
            with self.accelerator.accumulate(self.model):
                loss = F.cross_entropy(self.model(x), y)
                self.accelerator.backward(loss)
                if self.accelerator.sync_gradients:
                    self.accelerator.clip_grad_norm_(self.model.parameters(), 0.5)
                self.optimizer.step()
                self.schedule.step()
                self.optimizer.zero_grad()
            losses.append(float(self.accelerator.reduce(loss.detach(), "mean")))
        return torch.tensor(losses, dtype=torch.float64)


def train_in_process(folder: str) -> None:
    torch.set_num_threads(1)
    run = Run(True)
    assert run.accelerator.num_processes == 2 and isinstance(run.model, nn.parallel.DistributedDataParallel)
    losses = run.train()
    report = ortc.torch.report(run.net)
    assert report.compiled == STEPS and not report.eager, str(report)
    run.accelerator.save_state(f"{folder}/state")
    torch.save((losses, run.net.state_dict()), f"{folder}/{os.environ['RANK']}.pt")
    run.accelerator.end_training()


class AccelerateTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        accelerate.state.AcceleratorState._reset_state(True)  # one for each process, with its precision

    def test_loop(self) -> None:
        """One process and two."""
        runs = [Run(False, dtype=torch.float64), Run(False), Run(False, nudged=True), Run(True)]
        wanted, *eager, got = (each.train() for each in runs)
        report = ortc.torch.report(runs[-1].net)
        self.assertEqual((report.compiled, sum(report.eager.values()), report.artifacts), (STEPS, 0, 1), str(report))
        run_processes(2, train_in_process, self.folder)
        (both, weights), (_, others) = (torch.load(f"{self.folder}/{rank}.pt") for rank in range(2))
        for losses in (got, both):
            self.assertLessEqual(distance(wanted, losses), limit(wanted, eager))
        end, *eager_ends, got_end = (each.net.state_dict() for each in runs)
        for name, value in end.items():
            self.assertTrue(torch.equal(weights[name], others[name]), name)
            for each in (got_end, weights):
                self.assertLessEqual(distance(value, each[name]), limit(value, [run[name] for run in eager_ends]), name)
        self.assertEqual(list(load_file(f"{self.folder}/state/model.safetensors")), sorted(weights))

    def test_state(self) -> None:
        """Dropout draws on where the first run was, and bits are the same."""
        whole = Run(True, dropout=0.2)
        losses = [whole.train(0, 8)]
        whole.accelerator.save_state(f"{self.folder}/state")
        losses.append(whole.train(8, 16))
        later = Run(True, dropout=0.2)
        later.accelerator.load_state(f"{self.folder}/state")
        self.assertTrue(torch.equal(later.train(8, 16), losses[1]))
        for name, value in whole.net.state_dict().items():
            self.assertTrue(torch.equal(value, later.net.state_dict()[name]), name)
        eager = Run(False, dropout=0.2)
        eager.train(0, 8)
        eager.accelerator.save_state(f"{self.folder}/eager")
        saved = [load_file(pathlib.Path(self.folder, name, "model.safetensors")) for name in ("state", "eager")]
        self.assertEqual(*({name: value.shape for name, value in each.items()} for each in saved))

    def test_mixed_precision(self) -> None:
        """Compiled with it, no farther from float32 than twice PyTorch's, and without it."""
        runs = [Run(compiled, mixed_precision="bf16") for compiled in (False, True)]
        wanted, got = (each.train() for each in runs)
        plain = Run(False, mixed_precision="bf16")  # accelerate has one precision in a process
        plain.model = plain.accelerator.unwrap_model(plain.model, keep_fp32_wrapper=False)
        exact = plain.train()
        self.assertLessEqual(distance(got, exact), 2 * distance(wanted, exact))
        report = ortc.torch.report(runs[1].net)
        self.assertEqual((report.compiled, dict(report.eager)), (STEPS, {}))
        plain = runs[1].accelerator.unwrap_model(runs[1].model, keep_fp32_wrapper=False)
        self.assertIs(plain, runs[1].net)
        plain(torch.randn(8, 6)).sum().backward()
        self.assertEqual(ortc.torch.report(plain).compiled, STEPS + 1)


if __name__ == "__main__":
    unittest.main()
