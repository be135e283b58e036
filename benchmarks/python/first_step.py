#!/usr/bin/env python3
"""Times the first steps of a script in fresh processes: PyTorch eager, ortc.torch with an empty cache, and with the artifact there.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: build/train-step/torch/bin/python benchmarks/python/first_step.py [NAME ...] [--rounds 3] [--threads 1] [--limit 600]
                                                  [--models build/train-step/models] [--ortc build/bin/ortc] [--check]

NAME: models of benchmarks/train-step; forward, loss, backward, fused AdamW. A step of each kind of operator has brought
PyTorch's libraries in before. The three take turns:
    eager  the module as it is
    cold   ortc.torch.compile_(module), nothing in the cache: goes on eagerly while a child process compiles
    warm   the same with the cache that cold has left
Prints a markdown table of medians over the rounds, in ms: the first and the second step, the steps from the third to the first compiled
one, which one that was, seconds from the first step until then, and the steps after it. With --check, exit status 1 where the first
step of cold takes more than MOST_OF_EAGER times that of eager, or the first step of warm is not compiled.
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

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = SOURCE / "build"
MOST_OF_EAGER = 1.1
EAGER_STEPS, COMPILED_STEPS = 10, 10
KINDS = ("eager", "cold", "warm")


def train(kind, folder, threads, limit):
    """What one process does: times in ms, and the number of the first compiled step, or None."""
    sys.path[:0] = [str(BUILD / "python"), str(SOURCE / "benchmarks/train-step")]
    import models
    import torch
    import torch_worker

    torch.set_num_threads(threads)
    torch_worker.warm_up()
    recipe = json.loads((folder / "recipe.json").read_text())
    loss = models.LOSSES[recipe["flags"][recipe["flags"].index("--loss") + 1]]
    module, batches = torch_worker.load(folder, "contiguous")
    if kind != "eager":
        import ortc.torch

        ortc.torch.compile_(module)
    step = torch_worker.make_usual(module, loss, batches)
    times, first, begin = [], None, time.perf_counter()
    while len(times) < EAGER_STEPS if kind == "eager" else first is None or len(times) < first - 1 + COMPILED_STEPS:
        started = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - started))
        if kind != "eager" and first is None:
            report = ortc.torch.report(module)
            if report.compiled:
                first = len(times)
            elif report.failures or time.perf_counter() - begin > limit:
                break
    reason = str(report.eager) if kind != "eager" and first is None else ""
    print(json.dumps({"times": times, "first": first, "reason": reason}))


def start(args, name, kind, cache):
    env = {**os.environ, "ORTC_COMPILER": str(args.ortc), "ORTC_CACHE_DIR": str(cache)}
    command = [sys.executable, __file__, "--worker", kind, args.models / name, args.threads, args.limit]
    done = subprocess.run([str(part) for part in command], env=env, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def median(values):
    return statistics.median(values) if values else None


def summarise(runs):
    """Medians over the rounds of one kind."""
    firsts = [run["first"] for run in runs]
    before = [run["times"][2 : (run["first"] or len(run["times"]) + 1) - 1] for run in runs]
    after = [run["times"][run["first"] :] for run in runs if run["first"]]
    return {
        "step 1": median([run["times"][0] for run in runs]),
        "step 2": median([run["times"][1] for run in runs]),
        "before": median([ms for times in before for ms in times]),
        "first": None if None in firsts else int(median(firsts)),
        "until": median([sum(run["times"][: run["first"] - 1]) / 1e3 for run in runs if run["first"]]),
        "after": median([ms for times in after for ms in times]),
        "reason": next((run["reason"] for run in runs if run["reason"]), ""),
    }


def show(value):
    return "–" if value is None else f"{value:.4g}"


def measure(args, name):
    """By kind."""
    runs = {kind: [] for kind in KINDS}
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory() as cache:
            for kind in KINDS:
                runs[kind].append(start(args, name, kind, cache))
    return {kind: summarise(of_kind) for kind, of_kind in runs.items()}


def find_faults(name, found):
    if (reason := found["cold"]["reason"] or found["warm"]["reason"]) or found["cold"]["first"] is None:
        yield f"{name}: is not compiled: {reason}"
    elif found["warm"]["first"] != 1:
        yield f"{name}: with the artifact in the cache, the first compiled step is {found['warm']['first']}"
    share = found["cold"]["step 1"] / found["eager"]["step 1"]
    if share > MOST_OF_EAGER:
        yield f"{name}: the first step takes {share:.2f} of eager's time, at most {MOST_OF_EAGER} are allowed"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", default=["resnet8-cifar", "bert-mini"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit", type=float, default=600, help="seconds in which a step must be compiled")
    parser.add_argument("--models", type=pathlib.Path, default=BUILD / "train-step/models", help="as ../train-step/export.py makes them")
    parser.add_argument("--ortc", type=pathlib.Path, default=BUILD / "bin/ortc")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    columns = ["step 1", "step 2", "steps before", "first compiled", "s until then", "steps after", "step 1 / eager"]
    print("| model | kind | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 2))
    faults = []
    for name in args.names:
        found = measure(args, name)
        for kind, row in found.items():
            cells = [show(row[key]) for key in ("step 1", "step 2", "before", "first", "until", "after")]
            print("| " + " | ".join([name, kind, *cells, f"{row['step 1'] / found['eager']['step 1']:.2f}"]) + " |", flush=True)
        faults += find_faults(name, found)
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if args.check and faults else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        train(sys.argv[2], pathlib.Path(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
    else:
        sys.exit(main())
