"""The Trainer of Lightning.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import logging
import pathlib
import tempfile
import unittest
import warnings
from typing import Any

import torch
import torch.nn.functional as F
from modules import use_own_cache
from optional import need
from tolerance import distance, limit, nudge
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import ortc.torch

need("lightning")
import lightning

STEPS = 12


def setUpModule() -> None:
    use_own_cache()
    torch.set_num_threads(1)
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(1, 8, 3, bias=False), nn.LayerNorm(36), nn.Linear(8 * 36, 4)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.norm(self.conv(pixels).flatten(2))).flatten(1))


class Classifier(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        lightning.seed_everything(0, verbose=False)
        self.net = Net()

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.net(pixels)

    def loss(self, batch: Any) -> torch.Tensor:
        return F.cross_entropy(self(batch[0]), batch[1])

    def training_step(self, batch: Any, number: int) -> torch.Tensor:
        loss = self.loss(batch)
        self.log("loss", loss, sync_dist=True)
        return loss

    def validation_step(self, batch: Any, number: int) -> None:
        self.log("validation", self.loss(batch), sync_dist=True)

    def train_dataloader(self) -> Any:
        """The same batches in one process and in parts."""
        count = self.trainer.world_size
        pixels = torch.randn(48, 1, 8, 8, generator=torch.Generator().manual_seed(1))[self.global_rank :: count]
        return DataLoader(TensorDataset(pixels, pixels.flatten(1)[:, :4].argmax(1)), 8 // count)

    val_dataloader = train_dataloader

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.7)]


class Record(lightning.Callback):
    """Losses and weights of each process, for the one that started it."""

    def __init__(self, compiled: nn.Module | None) -> None:
        self.compiled = compiled
        self.losses: list[float] = []

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        self.losses.append(float(trainer.callback_metrics["loss"]))

    def on_train_end(self, trainer: Any, model: Any) -> None:
        if self.compiled is not None:
            report = ortc.torch.report(self.compiled)
            assert report.compiled > len(self.losses) and report.artifacts == 2 and not report.eager, str(report)  # validation, too
        path = f"{trainer.default_root_dir}/{trainer.global_rank}.pt"
        torch.save((torch.tensor(self.losses, dtype=torch.float64), model.net.state_dict()), path)


def train(
    model: Any, folder: pathlib.Path, compiled: nn.Module | None = None, processes: int = 1, start: pathlib.Path | None = None
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The losses of batches, two of which make a step, and the weights at the end. `compiled`: the model, or its part."""
    if compiled is not None:
        ortc.torch.compile_(compiled, wait=True)
    files = lightning.pytorch.callbacks.ModelCheckpoint(folder, "{step}", every_n_train_steps=STEPS // 2, save_top_k=-1)
    trainer = lightning.Trainer(
        max_steps=STEPS, accelerator="cpu", devices=processes, strategy="ddp_fork" if processes > 1 else "auto",
        precision="64-true" if model.net.head.weight.dtype == torch.float64 else "32-true", use_distributed_sampler=False,
        accumulate_grad_batches=2, gradient_clip_val=0.5, default_root_dir=folder,
        logger=False, enable_progress_bar=False, enable_model_summary=False,
        callbacks=[files, Record(compiled)],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few workers, few batches
        trainer.fit(model, ckpt_path=start)
    (losses, weights), *others = (torch.load(folder / f"{rank}.pt") for rank in range(processes))
    assert all(torch.equal(value, each[name]) for name, value in weights.items() for _, each in others)
    return losses, weights


class LightningTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_runs(self) -> None:
        """The module within, and the LightningModule itself; one process and two."""
        done = {"double": train(Classifier().double(), self.folder / "double"), "eager": train(Classifier(), self.folder / "eager")}
        done["nudged"] = train(nudge(Classifier(), 0), self.folder / "nudged")
        for name, processes in (("within", 1), ("itself", 1), ("two", 2)):
            model = Classifier()
            done[name] = train(model, self.folder / name, model if name == "itself" else model.net, processes)
        losses, weights = done["double"]
        most = limit(losses, [done["eager"][0], done["nudged"][0]])
        for name in ("within", "itself", "two"):
            got_losses, got = done[name]
            self.assertLessEqual(distance(losses, got_losses), most, name)
            for key, value in weights.items():
                off = limit(value, [done["eager"][1][key], done["nudged"][1][key]])
                self.assertLessEqual(distance(value, got[key]), off, f"{key}, {name}")
        saved = []
        for name in ("eager", "within", "itself", "two"):
            checkpoint = torch.load(self.folder / name / f"step={STEPS}.ckpt", weights_only=False)
            saved.append((sorted(checkpoint), {key: each.shape for key, each in checkpoint["state_dict"].items()}))
        self.assertEqual(saved, saved[:1] * 4)

    def test_resume(self) -> None:
        """A run that goes on from its middle ends with the same bits."""
        ends = []
        for name, start in (("whole", None), ("later", self.folder / "whole" / f"step={STEPS // 2}.ckpt")):
            model = Classifier()
            losses, weights = train(model, self.folder / name, model.net, start=start)
            ends.append((losses[-STEPS:], weights))
        self.assertTrue(torch.equal(ends[0][0], ends[1][0]))
        for key, value in ends[0][1].items():
            self.assertTrue(torch.equal(value, ends[1][1][key]), key)


if __name__ == "__main__":
    unittest.main()
