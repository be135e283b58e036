#!/usr/bin/env python3
"""Measures what training takes of memory, the whole process, in ortc and in PyTorch eager: same models, batches and optimizer.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: measure.py [NAME ...] [--systems ortc stock eager] [--threads 1] [--ortc build/bin/ortc] [--limit 1200]
                  [--results FILE.jsonl] [--table] [--write docs/benchmarks/memory.md]

The models, and how each system trains them, are those of ../train-step; eight steps each, so that every batch had its turn.
    ortc     `ortc train --target native`, then `ortc run`
    stock    PyTorch eager, fused AdamW, in the environment as it is: what ortc is compared with
    eager    the same where it is fastest, which keeps freed memory (../train-step/systems.py)
For each the highest resident size of the process, and that before there is a model: of `ortc --version`, whose process has the
compiler's libraries in it, and of a Python that has imported torch and done one tiny step. `rest` is the peak without that
and without the state: parameters, their two moments, buffers. Nothing is timed: it does not matter what else runs.
Results are JSON lines in --results. Existing rows are not run again, except ortc's when it is another build.
Exit status 1 when a system failed, or when losses disagree.
"""

import argparse
import datetime
import json
import os
import pathlib
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TRAIN_STEP = HERE.parent / "train-step"
sys.path.insert(0, str(TRAIN_STEP))

import run as train_step
import table
import worker
from performance_set import NAMES
from systems import Failure, Ortc, Worker, digest, tuned

ROOT = HERE.parents[1]
STEPS = 8
SYSTEMS = {"ortc": "ortc", "stock": "eager", "eager": "eager, kept memory"}
GOAL = "stock"  # the system of the ratios


def wait_for_peak(process):
    """Waits for its end: its status and its peak resident size in MiB. The kernel's figure begins with what this process
    had when it started the other one, so where that is more, the largest counts that was seen every millisecond."""
    own, seen = worker.peak_mib(), 0.0
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            peak = usage.ru_maxrss / 1024
            return status, peak if peak > own + 1 else seen
        try:
            seen = max(seen, worker.peak_mib(process.pid))
        except (OSError, TypeError):  # it is ending and has no memory any more
            pass
        time.sleep(0.001)


class WatchedOrtc(Ortc):
    """ortc as train-step runs it."""

    def wait(self, process):
        return wait_for_peak(process)

    def measure(self):
        self.start()
        self.facts |= {"build": digest(self.ortc), "base_mib": self.call("--version")}
        self.facts["losses"] = [line["loss"] for line in self.steps(STEPS)][:5]
        manifest = json.loads((self.artifact / "manifest.json").read_text())
        entry = next(e for e in manifest["entries"] if e["role"] == "train")
        sizes = {"persistent": manifest["memory"]["persistent"], **entry["memory"]}
        self.facts |= {f"{key}_mib": round(sizes[key] / 2**20, 3) for key in ("persistent", "transient")}
        return self.facts


class Eager(Worker):
    def measure(self):
        self.start()
        self.await_ready()  # after five steps
        self.run(0)  # three more
        return self.facts


def make_system(args, name, threads, system, scratch):
    folder, cores = args.models / name, sorted(os.sched_getaffinity(0))[-threads:]
    work = scratch / f"{name}-{threads}-{system}"
    work.mkdir()
    if system == "ortc":
        return WatchedOrtc(system, args.ortc, folder, threads, cores, work, args.limit)
    command = [args.python_torch, TRAIN_STEP / "torch_worker.py", folder, "--threads", threads]
    command += ["--stock"] if system == "stock" else []
    env = {**os.environ} if system == "stock" else tuned(scratch)
    return Eager(system, "", command, cores, env, work / "log", args.limit)


def rest(line, state):
    """What a system takes beside its libraries and the state, in MiB."""
    return line["peak_mib"] - line["base_mib"] - state


def is_good(line):
    return bool(line) and "peak_mib" in line and "error" not in line


def mib(value):
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def compare(lines, system):
    """(peak, rest, ratio of the peaks, ratio of the rests) of ortc beside `system`; None for what is not known."""
    ortc, other = lines.get("ortc"), lines.get(system)
    if not is_good(ortc) or not is_good(other):
        return None
    ours, theirs = (rest(line, other["state_mib"]) for line in (ortc, other))
    return ortc["peak_mib"] / other["peak_mib"], ours / theirs if theirs > 0 else None


def markdown(machine, lines):
    groups, peaks, rests = {}, {}, {}
    for line in lines:
        groups.setdefault((line["name"], line["threads"]), {})[line["system"]] = line
    seen = [system for system in SYSTEMS if any(system in found for found in groups.values())]
    first, second = [], []
    for (name, threads), found in groups.items():
        cell = lambda system: table.memory_cell(found.get(system))
        state = found.get(GOAL, {}).get("state_mib")
        parts = lambda system: mib(rest(found[system], state)) if state is not None and is_good(found.get(system)) else "–"
        ratios = compare(found, GOAL) or (None, None)
        for ratio, kept in zip(ratios, (peaks, rests)):
            if ratio and ratio > 0:
                kept.setdefault(threads, []).append(ratio)
        plan = found.get("ortc", {})
        arena = plan.get("transient_mib")
        first.append([name, threads, *map(cell, seen), table.ratio_cell(ratios[0])])
        second.append(
            [name, threads, mib(state) if state is not None else "–", *map(parts, seen), table.ratio_cell(ratios[1])]
            + [mib(arena) if arena is not None else "–"]
        )
    for threads in sorted({threads for _, threads in groups}):
        mean = lambda kept: table.ratio_cell(table.geometric_mean(kept.get(threads, [])))
        first.append(["geometric mean", threads, *[""] * len(seen), mean(peaks)])
        second.append(["geometric mean", threads, "", *[""] * len(seen), mean(rests), ""])
    versions = sorted({line["version"] for line in lines if "version" in line})
    heads = [SYSTEMS[system] for system in seen]
    return "\n".join(
        [
            ", ".join([machine["machine"], machine["date"], *versions]) + ".",
            "",
            table.table(["model", "threads", *(f"{head}, peak MiB" for head in heads), "ortc / eager"], first),
            table.table(
                ["model", "threads", "state MiB", *(f"{head}, rest MiB" for head in heads), "ortc / eager"]
                + ["planned arena MiB"],
                second,
            ),
        ]
    )


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", default=NAMES, help=", ".join(NAMES))
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), default=["ortc", "stock"])
    parser.add_argument("--threads", type=int, nargs="+", metavar="N", default=[1])
    parser.add_argument("--limit", type=float, default=1200, help="seconds for a system to get ready")
    parser.add_argument("--ortc", type=pathlib.Path, default=ROOT / "build/bin/ortc")
    parser.add_argument("--python-torch", type=pathlib.Path, default=train_step.PLACE / "torch/bin/python", metavar="PYTHON")
    parser.add_argument("--models", type=pathlib.Path, default=train_step.PLACE / "models", help="as ../train-step/export.py makes them")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "build/memory/results.jsonl")
    parser.add_argument("--machine", help="how the table names this machine")
    parser.add_argument("--table", action="store_true", help="runs nothing: the tables of what is there")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE.md", help="puts them between two markers there")
    return parser, parser.parse_args()


def measure(args, results, name, threads, system, scratch):
    train_step.say(f"{name}, {threads} thread{'s' * (threads > 1)}, {system}")
    measured = make_system(args, name, threads, system, scratch)
    try:
        facts = measured.measure()
    except (Failure, OSError, ValueError, KeyError, StopIteration) as error:
        facts = {**measured.facts, "error": f"{error}" or type(error).__name__}
        train_step.say(f"  {facts['error']}")
    finally:
        measured.close()
    results.lines.append({"name": name, "threads": threads, "system": system, "variant": "", **facts})
    results.save()


def measure_all(parser, args, results):
    """Whether every model could be exported."""
    if unknown := set(args.names) - set(NAMES):
        parser.error(f"no such model: {', '.join(sorted(unknown))}")
    if "ortc" in args.systems:
        if not args.ortc.is_file():
            parser.error(f"{args.ortc} is not there: build it, or name it with --ortc")
        args.ortc = args.ortc.resolve()
        build = digest(args.ortc)
        results.lines = [line for line in results.lines if line.get("build", build) == build]
    complete = True
    with tempfile.TemporaryDirectory() as scratch:
        for name in args.names:
            try:
                train_step.export(args, name)
            except Failure as error:
                train_step.say(f"{name}: {error}")
                complete = False
                continue
            for threads in args.threads:
                for system in args.systems:
                    if not results.has(name, threads, system, ""):
                        measure(args, results, name, threads, system, pathlib.Path(scratch))
    return complete


def main():
    parser, args = parse()
    machine = {"machine": args.machine or train_step.describe_processor(), "date": datetime.date.today().isoformat()}
    results = train_step.Results(args.results, machine)
    complete = args.table or measure_all(parser, args, results)
    order = {name: place for place, name in enumerate(NAMES)}
    lines = table.judge(results.select(args.names, args.threads))  # who trains something else has no figures
    lines.sort(key=lambda line: (line["threads"], order[line["name"]]))
    text = markdown({**results.machine, **({"machine": args.machine} if args.machine else {})}, lines)
    print(text)
    if args.write:
        table.write(args.write, text, "memory")
    sys.exit(not complete or any("error" in line for line in lines))


if __name__ == "__main__":
    main()
