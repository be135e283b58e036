#!/usr/bin/env python3
"""Writes scaler.npz, data with infinite gradients, and scaler.json, what torch.amp.GradScaler makes of 2,000 steps of it.

    python make-scaler.py

test/zoo/mlp-digits, run op by op as test/zoo/references.py does it, with SGD in float32, eight rows a step. Three of forty batches
have a pixel so bright that the loss is not finite. scaler.json has the scale and the number of skipped steps after every hundred
steps. Needs torch, onnx and numpy.
SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import pathlib
import sys

import numpy as np
import onnx
import torch

FOLDER = pathlib.Path(__file__).parent
ZOO = FOLDER.parent / "zoo"
sys.path.insert(0, str(ZOO))
import references  # noqa: E402

BATCHES, ROWS, STEPS = 40, 8, 2000
BRIGHT = (7, 19, 31)
OPTIMIZER = {"lr": 0.01, "momentum": 0.9}
SCALER = {"init_scale": 1024.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 10}


def main():
    data = dict(np.load(ZOO / "mlp-digits/data.npz"))
    data = {name: np.resize(value, (BATCHES * ROWS, *value.shape[1:])) for name, value in data.items()}
    for batch in BRIGHT:
        data["pixels"][batch * ROWS + 3, 5] = 3e38
    np.savez_compressed(FOLDER / "scaler.npz", **data)

    torch.set_num_threads(1)
    graph = references.Graph(onnx.load(ZOO / "mlp-digits/model.onnx"), torch.float32, False)
    tensors = {name: value.clone().requires_grad_() for name, value in graph.constants.items() if value.is_floating_point()}
    optimizer = torch.optim.SGD(tensors.values(), **OPTIMIZER)
    scaler = torch.amp.GradScaler("cpu", **SCALER)
    parts = {name: torch.from_numpy(value).split(ROWS) for name, value in data.items()}
    skipped, rows = 0, []
    for step in range(STEPS):
        output = graph({"pixels": parts["pixels"][step % BATCHES]}, tensors)["output"]
        loss = torch.nn.functional.cross_entropy(output, parts["label"][step % BATCHES].long())
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        skipped += not all(bool(tensor.grad.isfinite().all()) for tensor in tensors.values())
        scaler.step(optimizer)
        scaler.update()
        if (step + 1) % 100 == 0:
            rows.append([step + 1, scaler.get_scale(), skipped])
    assert all(bool(tensor.isfinite().all()) for tensor in tensors.values())
    print(rows)
    (FOLDER / "scaler.json").write_text(json.dumps({"steps, scale, skipped": rows}) + "\n")


if __name__ == "__main__":
    main()
