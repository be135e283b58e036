#!/usr/bin/env python3
"""Times one training step of the zoo's entries in ortc and in PyTorch, on the same cores in the same run.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: run.py [ENTRY ...] [--ortc build/bin/ortc] [--threads 1 2] [--seconds 1] [--json FILE]
              [--write docs/benchmarks.md]
       run.py --from FILE [--write docs/benchmarks.md]

All systems start from the weights of the ONNX file and train on its data with AdamW; their first five losses must agree.
Each is a process of its own, pinned to as many cores as it has threads; they take turns, a fraction of --seconds at a time,
until everyone has had all of it. The median step counts.
PyTorch: eager (convolutional nets: both layouts, the faster counts) and torch.compile of forward and loss (convolutional
nets: channels_last), with fused AdamW, in the environment where it is fastest (systems.tuned); and eager in the environment
as it is.
Prints JSON lines (or writes them to --json) and, at the end, a markdown table. Exit status 1 when losses disagree or a system
failed.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import sys
import tempfile
from importlib.metadata import version

import table
from systems import Failure, Ortc, Worker, tuned

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENTRIES = [
    "mlp-digits",
    "lenet",
    "resnet-tiny",
    "mobilenetv2-tiny",
    "vit-tiny-slim",
    "mlp-mixer-tiny",
    "unet",
    "autoencoder-conv",
    "bert-tiny",
    "gpt2-tiny",
    "dlrm-tiny",
    "siren",
]
CONVOLUTIONAL = {"lenet", "resnet-tiny", "mobilenetv2-tiny", "unet", "autoencoder-conv"}


def describe(args):
    model = next(
        (line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
        "unknown processor",
    )
    return {
        "machine": args.machine or f"{len(os.sched_getaffinity(0))} cores of {model}",
        "date": datetime.date.today().isoformat(),
        "torch": version("torch"),
        "seconds": args.seconds,
        "rounds": args.rounds,
    }


def make_systems(args, entry, threads, cores, work, scratch):
    """ortc first; its losses are what the others are compared with."""
    folder = args.zoo / entry
    fast = {**tuned(scratch), "TORCHINDUCTOR_CACHE_DIR": str(scratch / f"inductor-{threads}")}
    worker = lambda name, env, *flags: Worker(name, "torch_worker.py", folder, threads, cores, env, work, *flags)
    systems = [Ortc(args.ortc, folder, threads, cores, work), worker("torch stock", os.environ, "--stock")]
    layouts = ["contiguous", "channels_last"] if entry in CONVOLUTIONAL else ["contiguous"]
    variants = [("eager", layout) for layout in layouts] + ([("compile", layouts[-1])] if args.compile else [])
    return systems + [
        worker(f"torch {mode} {layout}", fast, "--mode", mode, "--layout", layout) for mode, layout in variants
    ]


def attempt(system, action):
    """Does it; a failure stays with the system."""
    try:
        if "error" not in system.facts:
            return action()
    except (Failure, OSError, ValueError) as error:
        system.facts["error"] = f"failed: {error}"
    return None


def get_ready(systems):
    """Compilers run alone, so that their time counts; the rest gets ready side by side."""
    alone = [[s] for s in systems if s.name == "ortc" or s.name.startswith("torch compile")]
    together = [s for s in systems if [s] not in alone]
    for group in together, *alone:
        for system in group:
            attempt(system, system.start)
        for system in group:
            attempt(system, system.await_ready)


def measure(args, entry, threads, cores, work, scratch):
    """One JSON object for every system."""
    systems = make_systems(args, entry, threads, cores, work, scratch)
    times = {system.name: [] for system in systems}
    try:
        get_ready(systems)
        for _ in range(args.rounds):
            for system in systems:
                times[system.name] += attempt(system, lambda: system.run(args.seconds / args.rounds)) or []
    finally:
        for system in systems:
            system.close()
    wanted = systems[0].facts.get("losses")
    for system in systems:
        line = {"entry": entry, "threads": threads, "system": system.name, **system.facts}
        wrong = table.disagreement(line["losses"], wanted) if wanted and "losses" in line else None
        if wrong:
            line.setdefault("error", wrong)
        if times[system.name] and "error" not in line:
            line |= {
                "median_ms": round(statistics.median(times[system.name]), 5),
                "min_ms": round(min(times[system.name]), 5),
                "steps": len(times[system.name]),
            }
        yield line


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("entries", nargs="*", metavar="ENTRY", default=ENTRIES)
    parser.add_argument("--ortc", type=pathlib.Path, default=ROOT / "build/bin/ortc")
    parser.add_argument("--zoo", type=pathlib.Path, default=ROOT / "test/zoo")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=1.0, help="of every system on every entry")
    parser.add_argument("--rounds", type=int, default=4, help="turns into which the seconds are cut")
    parser.add_argument(
        "--no-compile", dest="compile", action="store_false", help="leaves torch.compile out: most of the run's time"
    )
    parser.add_argument("--json", type=pathlib.Path, help="JSON lines go to this file instead of standard output")
    parser.add_argument("--machine", help="how the table names this machine")
    parser.add_argument(
        "--from",
        dest="earlier",
        type=pathlib.Path,
        metavar="FILE",
        help="runs nothing: the table of what --json wrote (of the given entries and threads)",
    )
    parser.add_argument(
        "--write",
        type=pathlib.Path,
        metavar="FILE.md",
        help="also puts the table between the two markers in this document",
    )
    return parser, parser.parse_args()


def run(parser, args):
    """Every entry with every number of threads; the JSON lines."""
    cores = sorted(os.sched_getaffinity(0))
    if max(args.threads) > len(cores):
        parser.error(f"{max(args.threads)} threads need as many cores; this process may use {len(cores)}")
    unknown = set(args.entries) - set(ENTRIES)
    if unknown:
        parser.error(f"no such entry: {', '.join(sorted(unknown))}")
    if not args.ortc.is_file():
        parser.error(f"{args.ortc} is not there: build it, or name it with --ortc")
    args.ortc = args.ortc.resolve()

    lines = [describe(args)]
    out = open(args.json, "w") if args.json else sys.stdout
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        print(json.dumps(lines[0]), file=out, flush=True)
        for entry in args.entries:
            (work := scratch / entry).mkdir()
            for threads in args.threads:
                for line in measure(args, entry, threads, cores[-threads:], work, scratch):
                    lines.append(line)
                    print(json.dumps(line), file=out, flush=True)
    return lines


def main():
    parser, args = parse()
    if args.earlier:
        machine, *lines = [json.loads(line) for line in args.earlier.read_text().splitlines()]
        lines = [machine] + [
            line for line in lines if line["entry"] in args.entries and line["threads"] in args.threads
        ]
        machine["machine"] = args.machine or machine["machine"]
    else:
        lines = run(parser, args)
    text = table.markdown(lines)
    print(text)
    if args.write:
        table.write(args.write, text)
    sys.exit(any("error" in line for line in lines))


if __name__ == "__main__":
    main()
