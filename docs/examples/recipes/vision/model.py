"""Exports model.onnx, trained on digits, with a new head for letters, and trains it further in PyTorch: curve.json.

Needs torch, onnxscript and numpy; data.py has been run.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import copy
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent))
import curves  # noqa: E402

BATCH, EPOCHS, PATIENCE = 31, 60, 3


def block(inputs, outputs, stride):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


class Vision(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = block(1, 16, 1)
        self.backbone = nn.Sequential(block(16, 24, 2), block(24, 32, 2))
        self.head = nn.Linear(32 * 16, classes)

    def forward(self, pictures):
        return self.head(self.backbone(self.stem(pictures)).flatten(1))


def load(path, dtype):
    arrays = np.load(path)
    return torch.from_numpy(arrays["pictures"]).to(dtype), torch.from_numpy(arrays["label"])


def pretrain():
    torch.manual_seed(0)
    model, (pictures, labels) = Vision(10), load("pretrain.npz", torch.float32)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for start in [start for _ in range(5) for start in range(0, len(labels), 50)]:
        optimizer.zero_grad()
        F.cross_entropy(model(pictures[start : start + 50]), labels[start : start + 50]).backward()
        optimizer.step()
    model.head = nn.Linear(32 * 16, 5)
    return model


def groups_of(model, lr, decay):
    """AdamW's groups: the stem is frozen, the backbone learns at a tenth of the rate, and biases and norms do not decay."""
    for name, parameter in model.named_parameters():
        if not name.startswith("stem"):
            yield {"params": [parameter], "lr": lr * (1 if name.startswith("head") else 0.1), "weight_decay": decay if parameter.dim() > 1 else 0}


def train(pretrained, dtype, units):
    model = copy.deepcopy(pretrained).to(dtype)
    curves.nudge(model, units)
    (pictures, labels), (valid, right) = load("train.npz", dtype), load("valid.npz", dtype)
    weight = torch.from_numpy(np.load("class_weight.npy")).to(dtype)
    optimizer = torch.optim.AdamW(groups_of(model, 2e-3, 0.05))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, curves.cosine(warmup=16, total=EPOCHS * len(labels) // BATCH))
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.95))
    losses, evaluations, since = [], [], 0
    while len(evaluations) < EPOCHS and since < PATIENCE:
        model.train()
        for start in range(0, len(labels), BATCH):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(pictures[start : start + BATCH]), labels[start : start + BATCH], weight)
            loss.backward()
            optimizer.step()
            schedule.step()
            average.update_parameters(model)
            losses.append(loss.item())
        average.eval()
        with torch.no_grad():
            evaluations.append(F.cross_entropy(average(valid), right, weight).item())
        since = 0 if evaluations[-1] == min(evaluations) else since + 1
    with torch.no_grad():
        print(f"stopped after {len(evaluations)} epochs; accuracy {(average(valid).argmax(1) == right).double().mean():.4f}")
    return {"loss": losses, "eval_loss": evaluations}


if __name__ == "__main__":
    model = pretrain()
    curves.export(model.eval(), (torch.zeros(BATCH, 1, 16, 16),), FOLDER / "model.onnx", ["pictures"], ["logits"], pictures={0: "batch"})
    curves.write(FOLDER / "curve.json", lambda dtype, units: train(model, dtype, units))
