"""One script for ONNX Runtime Training and for ortc.compat.ort_training: losses, weights, learning rates and orders of samples.

    python ort_training_reference.py onnxruntime.training > ort_training_reference.json

has made the file beside it, with onnxruntime-training-cpu 1.19.2, onnx 1.17.0 and PyTorch 2.15.0 in Python 3.11.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

SOURCE = Path(__file__).resolve().parents[4]
NAMES = ["0.weight", "0.bias", "2.weight", "2.bias"]
STEPS = 20


class Lengths:
    def __init__(self) -> None:
        self.lengths = (np.random.default_rng(3).permutation(53) + 1).tolist()

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, i: int) -> list[int]:
        return [0] * self.lengths[i]


class Info:
    def __init__(self, config: Any, step: int) -> None:
        self.optimizer_config = config
        self.optimization_step = step


def train(package: Any, optimizer: Any, trained: list[str], frozen: list[str], every: int, sizes: tuple[int, ...]) -> dict[str, Any]:
    """Steps on digits in batches of these sizes, `every` of them for an update, in the working folder."""
    import onnx

    with np.load(SOURCE / "test/data/digits/train.npz") as data:
        arrays = [data[name] for name in data.files]
    pixels = next(each for each in arrays if each.ndim > 1).reshape(-1, 64).astype(np.float32)
    label = next(each for each in arrays if each.ndim == 1).astype(np.int64)
    loss = package.artifacts.LossType.CrossEntropyLoss
    model = onnx.load(str(SOURCE / "test/zoo/mlp-digits/model.onnx"))
    package.artifacts.generate_artifacts(model, requires_grad=trained, frozen_params=frozen, loss=loss, optimizer=optimizer)
    state = package.api.CheckpointState.load_checkpoint("checkpoint")
    module = package.api.Module("training_model.onnx", state, "eval_model.onnx")
    update = package.api.Optimizer("optimizer_model.onnx", module)
    losses = []
    for step in range(STEPS):
        module.train()
        for k in range(every):
            at = step * 32 + k
            rows = slice(at, at + sizes[step % len(sizes)])
            losses.append(float(module(pixels[rows], label[rows])))
        gradient = state.parameters["2.bias"].grad.tolist()
        update.step()
        module.lazy_reset_grad()
    package.api.CheckpointState.save_checkpoint(state, "saved", include_optimizer_state=True)
    module.eval()
    evaluated = float(module(pixels[:32], label[:32]))
    other = package.api.CheckpointState.load_checkpoint("saved")
    resumed = package.api.Module("training_model.onnx", other, "eval_model.onnx")
    update = package.api.Optimizer("optimizer_model.onnx", resumed)
    resumed(pixels[:32], label[:32])
    update.step()
    return {
        "losses": losses,
        "gradient": gradient,
        "evaluated": evaluated,
        "parameters": [name for name, _ in state.parameters],
        "requires_grad": [each.requires_grad for _, each in state.parameters],
        "inputs": module.train().input_names(),
        "sizes": [module.get_parameters_size(), module.get_parameters_size(False)],
        "buffer": module.get_contiguous_parameters(False).numpy()[::97].tolist(),
        "resumed": other.parameters["2.bias"].data.tolist(),
    }


def run(root: str) -> dict[str, Any]:
    package = importlib.import_module(root)
    for part in ("api", "artifacts", "optim", "utils.data"):
        importlib.import_module(f"{root}.{part}")
    kinds = package.artifacts.OptimType
    cases = {
        "adamw": (kinds.AdamW, NAMES, [], 1, (32,)),
        "sgd": (kinds.SGD, NAMES, [], 1, (32,)),
        "frozen": (kinds.AdamW, NAMES[2:], NAMES[:2], 2, (32,)),
        "shapes": (kinds.AdamW, NAMES, [], 1, (32, 7)),
    }
    result: dict[str, Any] = {}
    for name, case in cases.items():
        with TemporaryDirectory() as folder, contextlib.chdir(folder):
            result[name] = train(package, *case)
    optim = package.optim
    schedules = [
        optim.ConstantWarmupLRScheduler(40, 0.25),
        optim.CosineWarmupLRScheduler(40, 1.5, 0.25),
        optim.LinearWarmupLRScheduler(40, 0.25),
        optim.PolyWarmupLRScheduler(40, 0.01, 2.0, 0.25),
    ]
    config = optim.SGDConfig(lr=0.4)
    result["rates"] = [[each.get_lr(Info(config, step))[0] for step in range(0, 60, 3)] for each in schedules]
    result["samples"] = []
    for options in ({}, {"shuffle": False}, {"group_size": 10}, {"drop_last": True}, {"seed": 5}):
        for rank in range(3):
            sampler = package.utils.data.LoadBalancingDistributedSampler(Lengths(), len, 3, rank, **options)
            sampler.set_epoch(2)
            result["samples"].append([int(i) for i in sampler])
    return result


if __name__ == "__main__":
    with open(os.dup(1), "w") as out:  # the package writes into the standard output
        os.dup2(2, 1)
        json.dump(run(sys.argv[1]), out, indent=1)
        out.write("\n")
