"""Exports model.onnx, and trains the same weights on the same data in PyTorch: curve.json. Needs torch, onnxscript and numpy; data.py has been run.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import pathlib
import sys

import numpy as np
import torch
from torch import nn

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent))
import curves  # noqa: E402

BATCH, EPOCHS = 16, 20


class Speech(nn.Module):
    """Two convolutions over time, a recurrent layer, and the logarithms of the probabilities of seven syllables and a blank."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(20, 32, 5, padding=2)
        self.second = nn.Conv1d(32, 32, 5, padding=2)
        self.recurrent = nn.GRU(32, 48)
        self.classes = nn.Linear(48, 8)

    def forward(self, features):
        x = torch.relu(self.second(torch.relu(self.first(features))))
        x, _ = self.recurrent(x.permute(2, 0, 1))  # [frames, samples, channels], as CTC has them
        return torch.log_softmax(self.classes(x), 2)


def build():
    torch.manual_seed(0)
    return Speech()


def train(dtype, units):
    model = build().to(dtype)
    curves.nudge(model, units)
    train, test = np.load("train.npz"), np.load("test.npz")
    criterion = nn.CTCLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, curves.cosine(warmup=16, total=640))
    losses, evaluations = [], []

    def loss_of(data, rows):
        of = lambda name: torch.from_numpy(data[name][rows])
        return criterion(model(of("features").to(dtype)), of("label"), of("input_lengths"), of("target_lengths"))

    data = {name: train[name] for name in train}
    for epoch in range(EPOCHS):
        for start in range(0, len(data["label"]), BATCH):
            optimizer.zero_grad()
            loss = loss_of(data, slice(start, start + BATCH))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        with torch.no_grad():
            evaluations.append(loss_of({name: test[name] for name in test}, slice(None)).item())
    return {"loss": losses, "eval_loss": evaluations}


if __name__ == "__main__":
    example = (torch.zeros(BATCH, 20, 48),)
    curves.export(build().eval(), example, FOLDER / "model.onnx", ["features"], ["log_probabilities"], features={0: "batch"})
    curves.write(FOLDER / "curve.json", train)
