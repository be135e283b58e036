#!/usr/bin/env python3
"""Writes references.txt: the learning rates of torch.optim.lr_scheduler.ReduceLROnPlateau over some series.

usage: make_references.py     (needs torch; the same bytes every time)

A case is a line `case max|min RATE SPEC`, a line `values ...` (one number an evaluation) and a line `rates ...`.
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import pathlib

import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent
rng = np.random.default_rng(5)
NAMES = {"min": "min_lr", "epsilon": "eps"}
lines = ["# made by make_references.py"]


def write(mode, rate, values, **keys):
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=rate)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, mode=mode, **{NAMES.get(key, key): value for key, value in keys.items()})
    rates = []
    for value in values:
        scheduler.step(value)
        rates.append(optimizer.param_groups[0]["lr"])
    spec = ",".join(f"{key}={value!r}".replace("'", "") for key, value in keys.items())
    lines.append(f"case {mode} {rate!r} plateau{':' + spec if spec else ''}")
    lines.append("values " + " ".join(repr(float(v)) for v in values))
    lines.append("rates " + " ".join(repr(float(v)) for v in rates))


falling = 1 / (1 + np.arange(60)) + 0.05 * rng.random(60)
write("min", 0.1, falling)
write("min", 0.1, falling, factor=0.5, patience=2)
write("min", 0.1, falling, factor=0.5, patience=1, cooldown=3)
write("min", 0.1, falling, factor=0.3, patience=0, min=0.004)
write("max", 0.1, 1 - falling, factor=0.5, patience=2, threshold=0.01)
write("max", 0.1, 1 - falling, factor=0.5, patience=2, threshold=0.03, threshold_mode="abs")
write("min", 0.1, falling - 0.5, factor=0.7, patience=3, threshold=0.02, threshold_mode="abs", cooldown=1)
write("min", 1e-7, falling, factor=0.5, patience=0)
write("min", 1e-7, falling, factor=0.5, patience=0, epsilon=0.0)
values = falling.copy()
values[[0, 7, 8, 20]] = [np.nan, np.nan, np.inf, np.nan]
write("min", 0.1, values, factor=0.5, patience=1)

(HERE / "references.txt").write_text("\n".join(lines) + "\n")
