#!/usr/bin/env python3
"""Writes parameters.json: how far losses move when weights are stored in bfloat16.

    python make-parameters.py

Runs of make-curves.py, 300 steps with AdamW in float32, whose weights are rounded to bfloat16 after every step. Per entry `f32`, the
losses without rounding, and the mean distances from them of four runs: `nearest`, from weights that are off by nothing, one, two and
four units in the last place, and `stochastic`, with four seeds. Needs torch, onnx and numpy.
SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import importlib
import json

import numpy as np
import torch

curves = importlib.import_module("make-curves")

ENTRIES = ("mlp-digits", "resnet-tiny", "gpt2-tiny")


def nearest(value):
    return value.bfloat16().float()


def stochastic(random):
    """Rounds up with the probability of the distance from the number below."""

    def store(value):
        bits = value.view(torch.int32)
        drawn = torch.randint(0, 1 << 16, value.shape, generator=random, dtype=torch.int32)
        return ((bits + drawn) & -(1 << 16)).view(torch.float32).clone()

    return store


def main():
    torch.set_num_threads(1)
    lines = []
    for name in ENTRIES:
        folder = curves.ZOO / name
        wide = curves.curve(folder)

        def apart(losses):
            return float(f"{np.abs(np.array(losses) - wide).mean():.3g}")

        values = {
            "f32": wide,
            "nearest": [apart(curves.curve(folder, nudge=nudge, store=nearest)) for nudge in curves.references.NUDGES],
            "stochastic": [apart(curves.curve(folder, store=stochastic(torch.Generator().manual_seed(seed)))) for seed in range(4)],
        }
        print(f"{name}: {wide[0]:.4f} to {wide[-1]:.4f}, nearest {values['nearest']}, stochastic {values['stochastic']}", flush=True)
        lines.append(f' "{name}": {json.dumps(values)}')
    (curves.FOLDER / "parameters.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
