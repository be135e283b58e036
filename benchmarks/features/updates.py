#!/usr/bin/env python3
"""Times every optimizer's update of bert-base's weights: beside their bounds, fused AdamW of PyTorch and bitsandbytes' AdamW8bit.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: updates.py [NAME ...] [--rounds 5] [--layers 12] [--vocabulary 30522] [--ortc build/bin/ortc] [--python PYTHON]

PYTHON has torch, numpy, onnx and bitsandbytes. The model has the tensors of bert-base and a sum of squares for each, so that every step
has whole gradients; forward and backward are not timed. Systems are processes on one core with one thread that take turns, times are
medians of processor time, and no figure of ortc has Python in it (benchmarks/python/steps.c). A copy is the fastest that `ortc run
--profile` knows, of 512 MiB, measured in each turn: what an update has to read and to write at that rate is its bound.

An elementwise update reads the gradient once, and reads and writes the parameter and each state once: 12 bytes a value, and twice its
state. Others need more than one pass, as a norm is known only when all of a tensor was read; each pass counts at the rate of memory, also
of tensors that a cache might keep:
  lamb       reads parameter, gradient and both averages, writes the averages (24); reads parameter and averages again, writes the parameter
             (16), the direction being cheaper to compute than to keep
  lars       reads parameter and gradient for their norms (8); then an update of sgd with momentum (20)
  adafactor  reads gradient and parameter for means and a norm (8), the gradient for the norm of the direction (4), then both again, and
             writes the parameter (12); averages of rows and columns are nothing beside
  muon       reads gradient and momentum, writes momentum and direction (16), and at the end reads direction and parameter, writes the
             parameter (12), as many as adamw, which updates embeddings and vectors there as its users have it. Between them are five
             Newton-Schulz steps of three products, of which a matrix of m rows and n columns, m <= n, needs 4 m m n + 2 m m m operations
             a step: that a product with itself is symmetric saves nothing. They are bound by the rate of a product of PyTorch,
             3072 x 768 by 768 x 768, measured in each turn, and the bound is the sum of both.

Prints a markdown table. Exit status 1 where an update takes more than 1 / 0.8 of its bound (LEAST has those that are known to), adamw more
than PyTorch's, or adamw8bit more than a third of bitsandbytes'.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BYTE = 1 + 4 / 256  # a value of a state in bytes, with the largest of 256
# Bytes of state a value.
STATES = {"sgd": 0, "sgd:momentum=0.9": 4, "adam": 8, "adamw": 8, "adamw8bit": 2 * BYTE, "rmsprop": 4, "adagrad": 4, "adadelta": 8,
          "adamax": 8, "nadam": 8, "radam": 8, "lion": 4, "lion8bit": BYTE, "schedule_free_sgd": 4, "schedule_free_adamw": 8}
# Bytes that are read and written a value.
MOVED = {**{name: 12 + 2 * state for name, state in STATES.items()}, "lamb": 40, "lars:momentum=0.9,weight_decay=1e-4": 28, "adafactor": 24, "muon": 28}
GROUPS = {"muon": ".*(bias|norm.weight|words|positions|types):optimizer=adamw"}
PRODUCT = 3072, 768, 768
COPY, LEAST_SHARE, LEAST_TORCH, LEAST_BYTES = 512 << 20, 0.8, 1.0, 3.0
# Of adamw8bit, which is bound by instructions (decision 0053), and of adafactor, which writes its direction and reads it twice.
LEAST = {"adamw8bit": 0.4, "adafactor": 0.55}
COPY_RATE = """#include "support/Machine.h"
extern "C" double copy_rate(unsigned long bytes) { static ortc::CopyTimer timer(bytes); return timer.measure(bytes); }"""


def shapes_of(layers, vocabulary, width=768, inner=3072, positions=512):
    norm = lambda name: {f"{name}.norm.weight": (width,), f"{name}.norm.bias": (width,)}
    linear = lambda name, rows, columns: {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}
    shapes = {"words": (vocabulary, width), "positions": (positions, width), "types": (2, width), **norm("embeddings")}
    for i in range(layers):
        for part in ("query", "key", "value", "attention.output"):
            shapes.update(linear(f"{i}.{part}", width, width))
        shapes.update({**norm(f"{i}.attention"), **linear(f"{i}.inner", inner, width), **linear(f"{i}.output", width, inner), **norm(f"{i}.output")})
    return {**shapes, **linear("pooler", width, width)}


def newton_schulz(shapes):
    """Operations of muon's products."""
    count = 0
    for name, shape in shapes.items():
        if not re.fullmatch(GROUPS["muon"].split(":")[0], name):
            m, n = sorted(shape)
            count += 5 * (4 * m * m * n + 2 * m**3)
    return count


def export(path, shapes):
    """y = sum over tensors of x sum(w w), whose gradients are 2 x w."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(0)
    nodes, weights = [], []
    for i, (name, shape) in enumerate(shapes.items()):
        weights.append(numpy_helper.from_array(random.standard_normal(shape, dtype=np.float32) * np.float32(0.02), name))
        nodes += [helper.make_node("Mul", [name, name], [f"square{i}"]), helper.make_node("ReduceSum", [f"square{i}"], [f"sum{i}"], keepdims=0)]
    nodes += [helper.make_node("Sum", [f"sum{i}" for i in range(len(shapes))], ["sum"]), helper.make_node("Mul", ["sum", "x"], ["y"])]
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [])
    graph = helper.make_graph(nodes, "weights", [value("x")], [value("y")], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(path), save_as_external_data=True, location=path.name + ".data")


def start_ortc(artifact, scratch):
    sys.path.insert(0, str(ROOT / "benchmarks/python"))
    from host import Host

    host = Host(artifact, scratch)

    def update():
        host.time_roles("fb")
        return host.time_roles("u")

    return update


def start_optimizer(make, shapes):
    import time

    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    weights = [torch.nn.Parameter(torch.randn(shape) * 0.02) for shape in shapes.values()]
    for weight in weights:
        weight.grad = weight.detach() * 0.1
    optimizer = make(weights)

    def update():
        begin = time.thread_time()
        optimizer.step()
        return time.thread_time() - begin

    return update


def start_torch(shapes):
    import torch

    return start_optimizer(lambda weights: torch.optim.AdamW(weights, fused=True), shapes)


def start_bytes(shapes):
    import bitsandbytes

    return start_optimizer(bitsandbytes.optim.AdamW8bit, shapes)


def start_product():
    """Seconds an operation."""
    import time

    import torch

    torch.set_num_threads(1)
    rows, inner, columns = PRODUCT
    lhs, rhs, count = torch.randn(rows, inner), torch.randn(inner, columns), 10

    def turn():
        begin = time.thread_time()
        for _ in range(count):
            torch.mm(lhs, rhs)
        return (time.thread_time() - begin) / (2 * rows * inner * columns * count)

    return turn


def start_copy(scratch):
    import ctypes

    source, library = pathlib.Path(scratch, "copy.cpp"), f"{scratch}/copy.so"
    source.write_text(COPY_RATE)
    subprocess.run(["c++", "-std=c++20", "-O2", "-shared", "-fPIC", f"-I{ROOT}", f"-I{ROOT}/runtime/include", source,
                    ROOT / "support/Machine.cpp", "-o", library], check=True)
    rate = ctypes.CDLL(library).copy_rate
    rate.restype, rate.argtypes = ctypes.c_double, [ctypes.c_ulong]
    return lambda: 1 / rate(COPY)  # seconds a byte


def work(update):
    """A turn for every line of the input; the first ones touch memory."""
    for _ in range(2):
        update()
    for _ in sys.stdin:
        print(update(), flush=True)


class Worker:
    def __init__(self, args, *what):
        core = sorted(os.sched_getaffinity(0))[-1]
        command = ["taskset", "-c", core, args.python, __file__, "--layers", args.layers, "--vocabulary", args.vocabulary, "--worker", *what]
        self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.times = []

    def turn(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.times.append(float(self.process.stdout.readline()))

    def median(self):
        return statistics.median(self.times)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measure(args, name, peers, model, scratch):
    artifact = scratch / name.replace(":", "-")
    subprocess.run([args.ortc, "train", model, "-o", artifact, "--cotangents", "y", "--optimizer", name, "--target", "native", "--max-workers", "1",
                    "--quiet", *(["--group", GROUPS[name]] if name in GROUPS else [])], check=True)
    own = Worker(args, "ortc", artifact, scratch)
    for worker in peers.values():
        worker.times.clear()
    for _ in range(args.rounds):
        for worker in (*peers.values(), own):
            worker.turn()
    own.close()
    subprocess.run(["rm", "-r", artifact], check=True)
    return own.median()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(MOVED), metavar="NAME", help=", ".join(MOVED))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--vocabulary", type=int, default=30522)
    parser.add_argument("--ortc", type=pathlib.Path, default=ROOT / "build/bin/ortc")
    parser.add_argument("--python", type=pathlib.Path, default=ROOT / "build/train-step/torch/bin/python")
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    shapes = shapes_of(args.layers, args.vocabulary)
    if args.worker:
        kind, *rest = args.worker
        if kind == "export":
            return export(pathlib.Path(*rest), shapes)
        start = {"ortc": lambda: start_ortc(*rest), "copy": lambda: start_copy(*rest), "product": start_product, "torch": lambda: start_torch(shapes),
                 "bitsandbytes": lambda: start_bytes(shapes)}
        return work(start[kind]())
    if unknown := set(args.names) - set(MOVED):
        sys.exit(f"nothing is known of {', '.join(sorted(unknown))}; there are {', '.join(MOVED)}")
    count, good = sum(rows * columns for rows, *more in shapes.values() for columns in (more or [1])), True
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        model = scratch / "model.onnx"
        subprocess.run([args.python, __file__, "--layers", str(args.layers), "--vocabulary", str(args.vocabulary), "--worker", "export", model], check=True)
        peers = {"copy": Worker(args, "copy", scratch), "product": Worker(args, "product"), "torch": Worker(args, "torch"), "bitsandbytes": Worker(args, "bitsandbytes")}
        print(f"{count:,} values\n\n| update | bytes a value | bound, ms | ortc, ms | bound / ortc | fused AdamW / ortc | AdamW8bit / ortc |\n|---|---|---|---|---|---|---|")
        for name in args.names:
            own = measure(args, name, peers, model, scratch)
            moved = MOVED[name]
            bound, torch, byte = count * moved * peers["copy"].median(), peers["torch"].median(), peers["bitsandbytes"].median()
            if name == "muon":
                bound += newton_schulz(shapes) * peers["product"].median()
            share = bound / own
            print(f"| {name} | {moved:.4g} | {bound * 1e3:.1f} | {own * 1e3:.1f} | {share:.2f} | {torch / own:.2f} | {byte / own:.2f} |", flush=True)
            good &= share >= LEAST.get(name, LEAST_SHARE)
            good &= name != "adamw" or torch / own >= LEAST_TORCH
            good &= name != "adamw8bit" or byte / own >= LEAST_BYTES
        for worker in peers.values():
            worker.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
