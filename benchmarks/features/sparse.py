#!/usr/bin/env python3
"""Times training steps of a recommender whose tables are sparse: --sparse beside PyTorch with SparseAdam, in turns on the same core.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: sparse.py [--rows 10000 1000000] [--batch 2048] [--rounds 3] [--ortc build/bin/ortc] [--python PYTHON]

DLRM with 26 tables of width 64: the first has each of ROWS rows in turn, the others 10,000. Adam for the networks, SparseAdam for the
tables; ortc: `--optimizer adam --sparse`. Rows are drawn at random, other ones in each of 8 batches. PYTHON has torch and onnx
(benchmarks/train-step/setup). Prints a markdown table: medians in ms, and how far losses are apart.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLES, OTHER_ROWS, WIDTH, BATCHES, STEPS, LR = 26, 10_000, 64, 8, 24, 1e-3


def make_model(rows):
    import torch
    from torch import nn

    def mlp(*sizes):
        layers = []
        for i, o in zip(sizes, sizes[1:]):
            layers += [nn.Linear(i, o), nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    class Dlrm(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList(nn.Embedding(n, WIDTH, sparse=True) for n in [rows] + [OTHER_ROWS] * (TABLES - 1))
            self.bottom = nn.Sequential(mlp(13, 512, 256, WIDTH), nn.ReLU())
            self.top = mlp(TABLES * (TABLES + 1) // 2 + WIDTH, 512, 256, 1)
            n = TABLES + 1
            self.register_buffer("pairs", torch.tensor([i * n + j for i in range(n) for j in range(i)]), persistent=False)
            for table in self.tables:
                nn.init.uniform_(table.weight, -0.05, 0.05)

        def forward(self, dense, index):
            x = self.bottom(dense)
            z = torch.stack([x, *(table(index[:, i]) for i, table in enumerate(self.tables))], 1)
            z = torch.bmm(z, z.transpose(1, 2)).flatten(1).index_select(1, self.pairs)
            return self.top(torch.cat([x, z], 1))

    torch.manual_seed(0)
    return Dlrm()


def make_data(rows, batch):
    import numpy as np

    rng, n = np.random.default_rng(1), BATCHES * batch
    limits = [rows] + [OTHER_ROWS] * (TABLES - 1)
    return {"dense": rng.standard_normal((n, 13), dtype=np.float32), "index": np.stack([rng.integers(0, k, n) for k in limits], 1),
            "label": rng.integers(0, 2, (n, 1)).astype(np.float32)}


def export(folder, rows, batch):
    import numpy as np
    import torch

    model, data = make_model(rows), make_data(rows, batch)
    np.savez(folder / "data.npz", **data)
    example = tuple(torch.from_numpy(data[key][:batch]) for key in ("dense", "index"))
    torch.onnx.export(model, example, str(folder / "model.onnx"), dynamo=False, opset_version=17, input_names=["dense", "index"],
                      output_names=["output"])


def step_torch(rows, batch):
    """Prints losses and milliseconds of steps as JSON."""
    import torch

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    model, data = make_model(rows), {k: torch.from_numpy(v) for k, v in make_data(rows, batch).items()}
    tables = [t.weight for t in model.tables]
    rest = [*model.bottom.parameters(), *model.top.parameters()]
    optimizers = [torch.optim.SparseAdam(tables, lr=LR), torch.optim.Adam(rest, lr=LR, fused=True)]
    losses, times = [], []
    for step in range(STEPS):
        part = slice(step % BATCHES * batch, (step % BATCHES + 1) * batch)
        begin = time.perf_counter()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(data["dense"][part], data["index"][part]), data["label"][part])
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        times.append((time.perf_counter() - begin) * 1e3)
    print(json.dumps({"loss": losses, "ms": times[BATCHES:]}))


class Case:
    def __init__(self, args, rows, scratch):
        self.args, self.rows, self.folder = args, rows, scratch / str(rows)
        self.folder.mkdir()
        self.worker("export")
        flags = ["--loss", "bce_with_logits", "--optimizer", f"adam:lr={LR}", "--sparse", r"tables\..*", "--target", "native", "--max-workers", "1"]
        self.ortc("train", self.folder / "model.onnx", "-o", self.folder / "artifact", *flags)
        self.times, self.losses = {"ortc": [], "torch": []}, {}

    def command(self, *command):
        core = sorted(os.sched_getaffinity(0))[-1]
        return subprocess.run([str(c) for c in ["taskset", "-c", core, *command]], check=True, capture_output=True, text=True)

    def ortc(self, *arguments):
        return self.command(self.args.ortc, *arguments)

    def worker(self, what):
        command = [self.args.python, __file__, "--worker", what, "--folder", self.folder, "--rows", self.rows, "--batch", self.args.batch]
        return self.command(*command).stdout

    def turn(self):
        metrics = self.folder / "run.jsonl"
        self.ortc("run", self.folder / "artifact", "--data", self.folder / "data.npz", "--no-shuffle", "--steps", STEPS, "--metrics",
                  metrics, "--quiet")
        steps = [json.loads(line) for line in metrics.read_text().splitlines()]
        steps = [step for step in steps if "loss" in step]
        torch = json.loads(self.worker("torch"))
        self.times["ortc"] += [step["ms"] for step in steps[BATCHES:]]
        self.times["torch"] += torch["ms"]
        self.losses = {"ortc": [step["loss"] for step in steps], "torch": torch["loss"]}

    def row(self):
        ms = {key: statistics.median(values) for key, values in self.times.items()}
        apart = max(abs(a - b) for a, b in zip(self.losses["ortc"], self.losses["torch"]))
        return f"| {self.rows:,} | {ms['ortc']:.1f} | {ms['torch']:.1f} | {ms['torch'] / ms['ortc']:.2f} | {apart:.1e} |", ms["ortc"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ortc", type=pathlib.Path, default=ROOT / "build/bin/ortc")
    parser.add_argument("--python", type=pathlib.Path, default=ROOT / "build/train-step/torch/bin/python")
    parser.add_argument("--worker", choices=["export", "torch"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return export(args.folder, args.rows[0], args.batch) if args.worker == "export" else step_torch(args.rows[0], args.batch)
    with tempfile.TemporaryDirectory() as scratch:
        cases = [Case(args, rows, pathlib.Path(scratch)) for rows in args.rows]
        for _ in range(args.rounds):
            for case in cases:
                case.turn()
        print("| rows of the first table | ortc, ms | PyTorch, ms | PyTorch / ortc | losses apart, at most |\n|---|---|---|---|---|")
        for case in cases:
            print(case.row()[0])
        first, last = cases[0].row()[1], cases[-1].row()[1]
        print(f"\n{args.rows[-1]:,} rows take {last / first:.2f} times as long as {args.rows[0]:,}.")


if __name__ == "__main__":
    sys.exit(main())
