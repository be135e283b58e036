"""Exports model.onnx, and trains the same weights on the same data in PyTorch: curve.json. Needs torch, onnxscript and numpy; data.py has been run.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent))
import curves  # noqa: E402

BATCH, EPOCHS = 16, 20


class Detector(nn.Module):
    """Five convolutions and two heads for every cell of 8 x 8 pixels: logits of three classes, and four distances to edges."""

    def __init__(self):
        super().__init__()
        sizes = [(1, 16, 2), (16, 24, 2), (24, 24, 1), (24, 32, 2), (32, 32, 1)]
        self.body = nn.Sequential(*(layer for i, o, stride in sizes for layer in (nn.Conv2d(i, o, 3, stride, 1), nn.ReLU())))
        self.classes = nn.Conv2d(32, 3, 1)
        self.boxes = nn.Conv2d(32, 4, 1)
        nn.init.constant_(self.classes.bias, -4.0)  # shapes are rare: so the loss begins small

    def forward(self, pictures, objects):
        x = self.body(pictures)
        boxes = self.boxes(x)
        return self.classes(x), boxes, boxes * objects  # a box is learned where there is a shape


def build():
    torch.manual_seed(0)
    return Detector()


def focal(logits, labels):
    """The mean of torchvision.ops.sigmoid_focal_loss."""
    p, alpha, gamma = torch.sigmoid(logits), 0.25, 2
    entropy = F.binary_cross_entropy_with_logits(logits, labels, reduction="none")
    right = p * labels + (1 - p) * (1 - labels)
    return (entropy * (1 - right) ** gamma * (alpha * labels + (1 - alpha) * (1 - labels))).mean()


def train(dtype, units):
    model = build().to(dtype)
    curves.nudge(model, units)
    data = {name: torch.from_numpy(array).to(dtype) for name, array in np.load("train.npz").items()}
    test = {name: torch.from_numpy(array).to(dtype) for name, array in np.load("test.npz").items()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=7e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, curves.cosine(warmup=200, total=1280))
    found = {name: [] for name in ("loss", "loss.class", "loss.box", "eval_loss", "eval_loss.class", "eval_loss.box")}

    def losses_of(data, rows=slice(None)):
        classes, _, boxes = model(data["pictures"][rows], data["objects"][rows])
        one, two = focal(classes, data["label.class"][rows]), F.smooth_l1_loss(boxes, data["label.box"][rows], beta=0.1)
        return 100 * one + 50 * two, one, two

    for epoch in range(EPOCHS):
        for start in range(0, len(data["pictures"]), BATCH):
            optimizer.zero_grad()
            losses = losses_of(data, slice(start, start + BATCH))
            losses[0].backward()
            optimizer.step()
            schedule.step()
            for name, loss in zip(("loss", "loss.class", "loss.box"), losses):
                found[name].append(loss.item())
        with torch.no_grad():
            for name, loss in zip(("eval_loss", "eval_loss.class", "eval_loss.box"), losses_of(test)):
                found[name].append(loss.item())
    return found


if __name__ == "__main__":
    example = torch.zeros(BATCH, 1, 32, 32), torch.zeros(BATCH, 1, 4, 4)
    names = ["pictures", "objects"], ["classes", "boxes", "boxes_of_objects"]
    curves.export(build().eval(), example, FOLDER / "model.onnx", *names, pictures={0: "batch"}, objects={0: "batch"})
    curves.write(FOLDER / "curve.json", train)
