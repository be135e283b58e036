"""Exports student.onnx and teacher.onnx, which it trains first, and trains the student on the same data in PyTorch: curve.json.

Needs torch, onnxscript and numpy; data.py has been run.

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

BATCH, EPOCHS, TEMPERATURE, WEIGHT = 32, 20, 2.0, 0.8


def build_teacher():
    torch.manual_seed(0)
    body = nn.Conv2d(1, 16, 3, 1, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 32, 3, 2, 1), nn.ReLU()
    return nn.Sequential(*body, nn.Flatten(), nn.Linear(288, 64), nn.ReLU(), nn.Linear(64, 10))


def build_student():
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(1, 12, 5, 2, 2), nn.ReLU(), nn.Conv2d(12, 16, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))


def load(path, dtype):
    arrays = np.load(path)
    return torch.from_numpy(arrays["pictures"]).to(dtype), torch.from_numpy(arrays["label"])


def batches(count, epochs):
    return [slice(start, start + BATCH) for _ in range(epochs) for start in range(0, count, BATCH)]


def train_teacher():
    teacher, (pictures, labels) = build_teacher(), load("teacher.npz", torch.float32)
    optimizer = torch.optim.Adam(teacher.parameters(), lr=2e-3)
    for rows in batches(len(labels), 12):
        optimizer.zero_grad()
        F.cross_entropy(teacher(pictures[rows]), labels[rows]).backward()
        optimizer.step()
    pictures, labels = load("test.npz", torch.float32)
    print(f"teacher: accuracy {(teacher(pictures).argmax(1) == labels).float().mean():.4f}")
    return teacher.eval()


def train(teacher, dtype, units):
    student, teacher = build_student().to(dtype), teacher.to(dtype)
    curves.nudge(student, units)
    optimizer = torch.optim.AdamW(student.parameters(), lr=3e-3)
    found = {name: [] for name in ("loss", "loss.label", "loss.teacher", "eval_loss.label")}
    pictures, labels = load("train.npz", dtype)
    for step, rows in enumerate(batches(len(labels), EPOCHS), 1):
        optimizer.zero_grad()
        logits = student(pictures[rows])
        with torch.no_grad():
            soft = torch.softmax(teacher(pictures[rows]) / TEMPERATURE, 1)
        one = F.cross_entropy(logits, labels[rows])
        two = TEMPERATURE**2 * F.kl_div(torch.log_softmax(logits / TEMPERATURE, 1), soft, reduction="batchmean")
        loss = (1 - WEIGHT) * one + WEIGHT * two
        loss.backward()
        optimizer.step()
        for name, value in zip(found, (loss, one, two)):
            found[name].append(value.item())
        if step % (len(labels) // BATCH) == 0:
            test, right = load("test.npz", dtype)
            with torch.no_grad():
                found["eval_loss.label"].append(F.cross_entropy(student(test), right).item())
    return found


if __name__ == "__main__":
    example, batch = (torch.zeros(BATCH, 1, 12, 12),), {"pictures": {0: "batch"}}
    teacher = train_teacher()
    curves.export(build_student().eval(), example, FOLDER / "student.onnx", ["pictures"], ["logits"], **batch)
    curves.export(teacher, example, FOLDER / "teacher.onnx", ["pictures"], ["logits"], **batch)
    curves.write(FOLDER / "curve.json", lambda dtype, units: train(teacher, dtype, units))
