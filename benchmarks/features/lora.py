#!/usr/bin/env python3
"""Times a step that trains adapters only: --lora, with --base too, beside full training and beside the PEFT library, in turns on the same cores.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: lora.py [NAME ...] [--threads 1] [--rank 8] [--seconds 5] [--rounds 5] [--ortc build/bin/ortc]

NAME: models of benchmarks/train-step with attention, whose environments these are (its `setup` first, and `pip install peft` in the one of
PyTorch). Adapters are on the product that gives queries, keys and values. PyTorch is eager with fused AdamW. Prints a markdown table:
medians in ms, transient memory by the plan, the artifact's size. Exit status 1 when a system failed.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "train-step"))
from systems import HERE as STEPS  # noqa: E402
from systems import Failure, Ortc, TooSlow, Worker, tuned  # noqa: E402

ROOT = HERE.parents[1]
PLACE = ROOT / "build/train-step"
LAYER, ALPHA = "qkv", 16


def serve(folder, threads, rank):
    """The worker with PEFT (worker.py)."""
    import json

    import models
    import peft
    import torch
    import torch_worker
    import worker

    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    recipe = json.loads((folder / "recipe.json").read_text())
    loss = models.LOSSES[recipe["flags"][recipe["flags"].index("--loss") + 1]]
    module, batches = torch_worker.load(folder, "contiguous")
    module = peft.get_peft_model(module, peft.LoraConfig(r=rank, lora_alpha=ALPHA, lora_dropout=0.0, target_modules=[LAYER]))
    worker.serve(torch_worker.make_usual(module, loss, batches, compiled=False, narrow=False), version=f"PEFT {peft.__version__}")


def make_systems(args, name, threads, scratch):
    folder, cores, systems = args.models / name, sorted(os.sched_getaffinity(0))[-threads:], {}
    lora = ["--lora", rf".*{LAYER}\.weight:rank={args.rank},alpha={ALPHA}"]
    for label, flags in {"full": [], "lora": lora, "int8": [*lora, "--base", "int8"], "int4": [*lora, "--base", "int4"]}.items():
        work = scratch / f"{name}-{threads}-{label}"
        work.mkdir()
        systems[label] = Ortc("ortc", args.ortc, folder, threads, cores, work, args.limit, flags)
    command = [args.python, __file__, "--worker", folder, "--threads", threads, "--rank", args.rank]
    systems["peft"] = Worker("torch", "peft", command, cores, tuned(scratch), work / "log-peft", args.limit)
    return systems


def measure(args, name, threads, scratch):
    systems = make_systems(args, name, threads, scratch)
    times, mib = {label: [] for label in systems}, {}
    try:
        for label, system in systems.items():
            system.start()
            system.await_ready()
            if label != "peft":
                mib[label] = (system.facts["transient"] / 2**20, (system.artifact / "model.ortc").stat().st_size / 2**20)
        for _ in range(args.rounds):
            for label, system in systems.items():
                times[label] += system.run(args.seconds / args.rounds)
    finally:
        for system in systems.values():
            system.close()
    return {label: statistics.median(values) for label, values in times.items()}, mib


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", default=["bert-mini", "bert-base"])
    parser.add_argument("--threads", type=int, nargs="+", default=[1], metavar="N")
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=5.0, help="of every system on every model")
    parser.add_argument("--rounds", type=int, default=5, help="turns into which the seconds are cut")
    parser.add_argument("--limit", type=float, default=1200, help="seconds in which a system must be ready")
    parser.add_argument("--ortc", type=pathlib.Path, default=ROOT / "build/bin/ortc")
    parser.add_argument("--python", type=pathlib.Path, default=PLACE / "torch/bin/python", help="with PyTorch and PEFT")
    parser.add_argument("--models", type=pathlib.Path, default=PLACE / "models", help="exported models; what is missing is made")
    parser.add_argument("--worker", type=pathlib.Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        serve(args.worker, args.threads[0], args.rank)
        return
    args.ortc, complete = args.ortc.resolve(), True
    print("| model | threads | full | lora | lora / full | int8 | int4 | PEFT | PEFT / lora | memory full, lora, int4 | file full, lora, int4 |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for name in args.names:
            if not (args.models / name / "recipe.json").is_file():
                subprocess.run([args.python, STEPS / "export.py", args.models, name], check=True, stdout=subprocess.DEVNULL)
            for threads in args.threads:
                try:
                    ms, mib = measure(args, name, threads, pathlib.Path(scratch))
                except (Failure, TooSlow, OSError) as error:
                    print(f"{name}, {threads} threads: {error}", file=sys.stderr)
                    complete = False
                    continue
                figures = [f"{ms['full']:.4g}", f"{ms['lora']:.4g}", f"{ms['lora'] / ms['full']:.2f}", f"{ms['int8']:.4g}", f"{ms['int4']:.4g}"]
                figures += [f"{ms['peft']:.4g}", f"{ms['peft'] / ms['lora']:.2f}"]
                figures += [", ".join(f"{mib[label][i]:.0f} MiB" for label in ("full", "lora", "int4")) for i in (0, 1)]
                print(f"| {name} | {threads} | " + " | ".join(figures) + " |", flush=True)
    sys.exit(not complete)


if __name__ == "__main__":
    main()
