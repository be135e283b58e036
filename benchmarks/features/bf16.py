#!/usr/bin/env python3
"""Times a training step with narrow products: --precision bf16 beside float32 and beside torch.autocast, in turns on the same cores.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: bf16.py [NAME ...] [--threads 1] [--seconds 5] [--rounds 5] [--ortc build/bin/ortc]

The models, their data and the Python environments are those of benchmarks/train-step (its `setup` first). PyTorch is eager with fused
AdamW in the environment where it is fastest, convolutional models in both layouts; the faster counts. Prints a markdown table:
medians in ms, the ratios that count, and transient memory by the plan. Exit status 1 when a system failed.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "train-step"))
from performance_set import CONVOLUTIONAL, NAMES  # noqa: E402
from systems import HERE as STEPS  # noqa: E402
from systems import Failure, Ortc, TooSlow, Worker, tuned  # noqa: E402

ROOT = HERE.parents[1]
PLACE = ROOT / "build/train-step"


def make_systems(args, name, threads, scratch):
    folder, cores, systems = args.models / name, sorted(os.sched_getaffinity(0))[-threads:], {}
    for precision in ("f32", "bf16"):
        work = scratch / f"{name}-{threads}-{precision}"
        work.mkdir()
        systems[f"ortc {precision}"] = Ortc("ortc", args.ortc, folder, threads, cores, work, args.limit, ["--precision", precision])
        for layout in ["contiguous", "channels_last"] if name in CONVOLUTIONAL else ["contiguous"]:
            narrow = ["--autocast", "bf16"] if precision == "bf16" else []
            command = [args.python, STEPS / "torch_worker.py", folder, "--threads", threads, "--layout", layout, *narrow]
            systems[f"torch {precision} {layout}"] = Worker(
                "torch", layout, command, cores, tuned(scratch), work / f"log-{layout}", args.limit
            )
    return systems


def measure(args, name, threads, scratch):
    """Medians in ms of the four, and the transient memory of ortc's two."""
    systems = make_systems(args, name, threads, scratch)
    times = {label: [] for label in systems}
    try:
        for system in systems.values():
            system.start()
            system.await_ready()
        for _ in range(args.rounds):
            for label, system in systems.items():
                times[label] += system.run(args.seconds / args.rounds)
    finally:
        for system in systems.values():
            system.close()
    fastest = {}
    for label, values in times.items():
        key = " ".join(label.split()[:2])
        fastest[key] = min(fastest.get(key, math.inf), statistics.median(values))
    memory = {precision: systems[f"ortc {precision}"].facts["transient"] for precision in ("f32", "bf16")}
    return fastest, memory


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", default=NAMES, help=", ".join(NAMES))
    parser.add_argument("--threads", type=int, nargs="+", default=[1], metavar="N")
    parser.add_argument("--seconds", type=float, default=5.0, help="of every system on every model")
    parser.add_argument("--rounds", type=int, default=5, help="turns into which the seconds are cut")
    parser.add_argument("--limit", type=float, default=1200, help="seconds in which a system must be ready")
    parser.add_argument("--ortc", type=pathlib.Path, default=ROOT / "build/bin/ortc")
    parser.add_argument("--python", type=pathlib.Path, default=PLACE / "torch/bin/python", help="with PyTorch")
    parser.add_argument("--models", type=pathlib.Path, default=PLACE / "models", help="exported models; what is missing is made")
    return parser.parse_args()


def main():
    args = parse()
    args.ortc, complete, ratios = args.ortc.resolve(), True, []
    print("| model | threads | ortc f32 | ortc bf16 | torch f32 | torch autocast | f32 / bf16 | autocast / bf16 | memory |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for name in args.names:
            if not (args.models / name / "recipe.json").is_file():
                subprocess.run([args.python, STEPS / "export.py", args.models, name], check=True, stdout=subprocess.DEVNULL)
            for threads in args.threads:
                try:
                    ms, memory = measure(args, name, threads, pathlib.Path(scratch))
                except (Failure, TooSlow, OSError) as error:
                    print(f"{name}, {threads} threads: {error}", file=sys.stderr)
                    complete = False
                    continue
                ours, peers = ms["ortc f32"] / ms["ortc bf16"], ms["torch bf16"] / ms["ortc bf16"]
                ratios.append((ours, peers))
                cells = [f"{ms[key]:.4g}" for key in ("ortc f32", "ortc bf16", "torch f32", "torch bf16")]
                cells += [f"{ours:.2f}", f"{peers:.2f}", f"{memory['bf16'] / memory['f32']:.2f}"]
                print(f"| {name} | {threads} | " + " | ".join(cells) + " |", flush=True)
    if ratios:
        means = [math.exp(statistics.fmean(math.log(pair[i]) for pair in ratios)) for i in (0, 1)]
        print(f"\nGeometric means: {means[0]:.2f} of ortc's own f32, {means[1]:.2f} of torch.autocast.")
    sys.exit(not complete)


if __name__ == "__main__":
    main()
