#!/usr/bin/env python3
"""Times one training step of the performance set in ortc and in other systems, on the same cores in the same run.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: run.py [NAME ...] [--systems ortc tuned ortc-torch ortc-trainer stock eager compile whole ort jax] [--threads 1 2]
              [--seconds 5] [--rounds 5] [--ortc build/bin/ortc] [--ortc-package build/python] [--ortc-cache FOLDER]
              [--cores 0 1] [--limit 1200] [--inductor-cache FOLDER] [--results FILE.jsonl] [--hold avx2]
              [--again SYSTEM ...] [--table] [--write docs/benchmarks/train-step.md]

All systems start from the same weights and train on the same data with AdamW; their first five losses must agree.
Each is a process of its own, pinned to as many cores as it has threads, the last of --cores; they take turns, a fraction of
--seconds at a time, until everyone has had all of it. The median step counts, and the table has the worst turn beside it.
Where memory does not hold all systems of a model, they come in groups, and ortc takes turns with each group.
    tuned    ortc train --tune, which measures how kernels are best cut; the ratios are those of ortc without
    ortc-torch, ortc-trainer
             PyTorch's loop with ortc.torch.compile_(module) and fused AdamW; ortc.torch.Trainer, which compiles the whole
             step. Both in the environment of eager
    stock    PyTorch eager, fused AdamW, in the environment as it is
    eager    the same in the environment where it is fastest (systems.tuned), both layouts of convolutional models
    compile  torch.compile of forward and loss, fused AdamW, tuned, both layouts
    whole    the step as one graph, torch.compile with max_autotune, tuned, both layouts
    ort      ONNX Runtime Training, tuned
    jax      JAX, the step under one jit, tuned, two vector widths, for the models that jax_models.py has
torch.compile takes minutes for most models; with --inductor-cache a run finds what an earlier one has generated, and
tells no compile times of torch.compile; --ortc-cache is the same for ortc-torch and ortc-trainer.
With --hold avx2 no system uses AVX-512 but ONNX Runtime, whose kernels nothing holds. ortc-torch and ortc-trainer compile
for the machine that they are on, and are left out.
A system that is not ready after --limit seconds is out, as is one that fails; the others go on.
Results are JSON lines in --results, each with the commit, and the time when its systems began to take turns. What is there
is not run again (--again SYSTEM: it is, for the given names and threads), so an interrupted run goes on where it was. At the
end: markdown tables, in which a time is marked that was not taken in turns with ortc; with --table nothing else.
Exit status 1 when losses disagree or ortc failed.
"""

import argparse
import datetime
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

import table
from performance_set import CONVOLUTIONAL, IN_JAX, NAMES
from systems import HELD, HELD_TARGET, HERE, Failure, Ortc, TooSlow, Worker, digest, find_reason, measure_machine, tuned

ROOT = HERE.parents[1]
PLACE = ROOT / "build/train-step"
# Resident GiB of a system, at most: its libraries, and parameters, gradients, two moments, temporaries of the optimizer and
# activations as multiples of the weights. From PyTorch with kept memory, which takes most.
LIBRARIES_GIB, COPIES_OF_WEIGHTS = 1.5, 12


def describe_processor():
    return next(
        (line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
        "unknown processor",
    )


def describe(args):
    held = f", held to {args.hold}" if args.hold else ""
    return {
        "machine": (args.machine or f"{len(args.cores)} cores of {describe_processor()}") + held,
        "date": datetime.date.today().isoformat(),
        "seconds": args.seconds,
        "rounds": args.rounds,
    }


class Results:
    """The file of JSON lines: first the machine, then one line for every system."""

    def __init__(self, path, machine):
        self.path, self.machine, self.lines = path, machine, []
        if path.exists():
            read = []
            for text in path.read_text().splitlines():
                try:
                    read.append(json.loads(text))
                except ValueError:  # the end of an interrupted run
                    break
            if read:
                self.machine, *self.lines = read

    def save(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text("".join(json.dumps(line) + "\n" for line in (self.machine, *self.lines)))
        new.replace(self.path)

    def has(self, name, threads, system, variant):
        return any(
            (line["name"], line["threads"], line["system"], line["variant"]) == (name, threads, system, variant)
            for line in self.lines
        )

    def select(self, names, threads):
        return [line for line in self.lines if line["name"] in names and line["threads"] in threads]


def list_variants(system, name, hold):
    if system in ("eager", "compile", "whole"):
        return ["contiguous", "channels_last"] if name in CONVOLUTIONAL else ["contiguous"]
    if system in table.FROM_PYTHON:
        return [] if hold else [""]
    if system == "jax":
        wide = "avx512f" in pathlib.Path("/proc/cpuinfo").read_text()
        return [] if name not in IN_JAX else ["256", "512"] if wide and not hold else ["256"]
    return [""]


def make_system(args, name, threads, system, variant, scratch):
    folder, cores = args.models / name, args.cores[-threads:]
    work = scratch / f"{name}-{threads}-{system}-{variant}"
    work.mkdir(exist_ok=True)
    if system in table.TOOL:
        return Ortc(system, args.ortc, folder, threads, cores, work, args.limit, target=HELD_TARGET[args.hold])
    env = {**(os.environ if system == "stock" else tuned(scratch)), **HELD[args.hold]}
    # One process compiles on one core, and no earlier run has done it already unless --inductor-cache says so.
    kept = (args.inductor_cache or scratch) / f"{name}-{threads}-{system}-{variant}" / "inductor"
    env |= {"TORCHINDUCTOR_CACHE_DIR": str(kept), "TORCHINDUCTOR_COMPILE_THREADS": str(threads)}
    if system == "jax":
        # XLA makes as many threads as it sees cores; on one it does better without a pool.
        env["XLA_FLAGS"] = f"{env.get('XLA_FLAGS', '')} " + (
            f"--xla_cpu_prefer_vector_width={variant} --xla_cpu_multi_thread_eigen={str(threads > 1).lower()}"
        )
        command = [args.python_jax, HERE / "jax_worker.py", folder]
    elif system == "ort":
        command = [args.python_ort, HERE / "ort_worker.py", folder, "--threads", threads]
    else:
        flags = ["--stock"] if system == "stock" else ["--mode", system]
        flags += ["--layout", variant] if variant else []
        command = [args.python_torch, HERE / "torch_worker.py", folder, "--threads", threads, *flags]
    worker = Worker(system, variant, command, cores, env, work / "log", args.limit)
    if system in table.FROM_PYTHON:
        kept = (args.ortc_cache or scratch) / f"{name}-{threads}-{system}" / "ortc"
        env |= {"PYTHONPATH": str(args.ortc_package), "ORTC_COMPILER": str(args.ortc), "ORTC_CACHE_DIR": str(kept)}
        worker.facts["build"] = digest(args.ortc)
    return worker


def attempt(system, action):
    """Does it; a failure stays with the system."""
    try:
        if "error" not in system.facts:
            return action()
    except TooSlow as error:
        system.facts |= {"error": str(error), "too_slow": True}
    except (Failure, OSError, ValueError, KeyError, StopIteration) as error:
        system.facts["error"] = f"{error}" or type(error).__name__
    return None


def say(text):
    print(f"{datetime.datetime.now():%H:%M:%S} {text}", file=sys.stderr, flush=True)


def get_ready(system):
    """One after the other: a compiler has all cores, so that the time counts."""
    say(f"  {system.system} {system.variant}".rstrip())
    attempt(system, system.start)
    attempt(system, system.await_ready)
    if "error" in system.facts:
        system.close()
        say(f"    {system.facts['error']}")


def fit_together(folder):
    """How many systems of this model memory holds at a time."""
    with open("/proc/meminfo") as meminfo:
        free = next(int(line.split()[1]) for line in meminfo if line.startswith("MemAvailable")) / 2**20
    weights = (folder / "weights.npz").stat().st_size / 2**30
    return max(1, int(0.9 * free / (LIBRARIES_GIB + COPIES_OF_WEIGHTS * weights)))


def describe_commit():
    """What is checked out, with a plus where files differ from it; None where git does not say."""
    try:
        git = lambda *words: subprocess.check_output(["git", "-C", ROOT, *words], text=True, stderr=subprocess.DEVNULL)
        changed = git("status", "--porcelain", "--untracked-files=no").strip()
        return git("rev-parse", "--short=9", "HEAD").strip() + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None


def finish(args, results, name, threads, system, turns, taken):
    """`turns`: step times of each turn that the system had, by the turn's number."""
    times = [time for turn in turns.values() for time in turn]
    line = {"name": name, "threads": threads, "system": system.system, "variant": system.variant, **taken, **system.facts}
    if args.inductor_cache and system.system in ("compile", "whole") or args.ortc_cache and system.system in table.FROM_PYTHON:
        line.pop("compile_s", None)  # an earlier run may have done it
    if times and "error" not in line:
        line |= {
            "median_ms": round(statistics.median(times), 5),
            "min_ms": round(min(times), 5),
            "steps": len(times),
            "turns_ms": {str(turn): round(statistics.median(part), 5) for turn, part in turns.items() if part},
        }
        say(f"  {system.system} {system.variant}: {line['median_ms']} ms")
    results.lines.append(line)
    results.save()


def measure(args, results, name, threads, scratch):
    """Runs what the results do not have yet."""
    wanted = [(system, variant) for system in args.systems for variant in list_variants(system, name, args.hold)]
    wanted = [pair for pair in wanted if not results.has(name, threads, *pair)]
    if not wanted:
        return
    say(f"{name}, {threads} thread{'s' * (threads > 1)}")
    taken = {"commit": describe_commit(), "taken": datetime.datetime.now().isoformat(timespec="seconds")}
    ortc = [make_system(args, name, threads, *pair, scratch) for pair in wanted if pair[0] in table.TOOL]
    others = [make_system(args, name, threads, *pair, scratch) for pair in wanted if pair[0] not in table.TOOL]
    size = fit_together(args.models / name)
    times, turn = {system: {} for system in ortc + others}, 0
    try:
        for system in ortc:
            get_ready(system)
        for start in range(0, max(1, len(others)), size):
            group = others[start : start + size]
            for system in group:
                get_ready(system)
            for _ in range(args.rounds):
                peaks = measure_machine(args.peaks, args.cores[-threads:]) if ortc else {}
                for key, rate in peaks.items():
                    ortc[0].facts[key] = max(rate, ortc[0].facts.get(key, 0))
                for system in ortc + group:
                    times[system][turn] = attempt(system, lambda: system.run(args.seconds / args.rounds)) or []
                turn += 1
            for system in group:
                system.close()
                finish(args, results, name, threads, system, times[system], taken)
        for system in ortc:
            finish(args, results, name, threads, system, times[system], taken)
    finally:
        for system in ortc + others:
            system.close()


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    number = {"type": int, "nargs": "+", "metavar": "N"}
    parser.add_argument("names", nargs="*", metavar="NAME", default=NAMES, help=", ".join(NAMES))
    parser.add_argument("--systems", nargs="+", choices=list(table.SYSTEMS), default=list(table.SYSTEMS))
    parser.add_argument("--threads", **number, default=[1, 2])
    parser.add_argument("--cores", **number, default=sorted(os.sched_getaffinity(0)), help="this run may use")
    parser.add_argument("--seconds", type=float, default=5.0, help="of every system on every model")
    parser.add_argument("--rounds", type=int, default=5, help="turns into which the seconds are cut")
    parser.add_argument("--limit", type=float, default=1200, help="seconds in which a system must be ready")
    parser.add_argument("--hold", choices=[held for held in HELD if held], help="instructions beyond which no system goes")
    parser.add_argument("--inductor-cache", type=pathlib.Path, help="where torch.compile keeps its graphs; default: nowhere")
    parser.add_argument("--ortc", type=pathlib.Path, default=ROOT / "build/bin/ortc")
    parser.add_argument("--ortc-package", type=pathlib.Path, default=ROOT / "build/python", help="folder of the Python package")
    parser.add_argument("--ortc-cache", type=pathlib.Path, help="where ortc.torch keeps artifacts; default: nowhere")
    parser.add_argument("--peaks", type=pathlib.Path, help="ortc-bench-machine; default: beside ortc")
    for system in "torch", "ort", "jax":
        parser.add_argument(
            f"--python-{system}",
            type=pathlib.Path,
            default=PLACE / system / "bin/python",
            metavar="PYTHON",
            help="default: as `setup` made it",
        )
    parser.add_argument(
        "--models",
        type=pathlib.Path,
        default=PLACE / "models",
        help="folder of exported models; what is missing is made",
    )
    parser.add_argument("--results", type=pathlib.Path, default=PLACE / "results.jsonl")
    parser.add_argument("--again", nargs="+", choices=list(table.SYSTEMS), default=[], metavar="SYSTEM")
    parser.add_argument("--machine", help="how the table names this machine")
    parser.add_argument("--table", action="store_true", help="runs nothing: the tables of what is there")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE.md", help="puts them between two markers there")
    return parser, parser.parse_args()


def export(args, name):
    """The model is there after this, or a failure says why not."""
    if not (args.models / name / "recipe.json").is_file():
        say(f"exporting {name}")
        made = subprocess.run(
            [args.python_torch, HERE / "export.py", args.models, name], capture_output=True, text=True
        )
        if made.returncode:
            raise Failure(f"cannot export {name}: {find_reason(made.stderr)}")


def run(parser, args, results):
    if max(args.threads) > len(args.cores):
        parser.error(f"{max(args.threads)} threads need as many cores; this run may use {len(args.cores)}")
    if unknown := set(args.names) - set(NAMES):
        parser.error(f"no such model: {', '.join(sorted(unknown))}")
    own = set(table.OWN) & set(args.systems)
    if own and not args.ortc.is_file():
        parser.error(f"{args.ortc} is not there: build it, or name it with --ortc")
    if set(table.FROM_PYTHON) & set(args.systems) and not (args.ortc_package / "ortc").is_dir():
        parser.error(f"{args.ortc_package} has no package 'ortc': build it, or name the folder with --ortc-package")
    args.ortc, args.peaks = args.ortc.resolve(), args.peaks or args.ortc.parent / "ortc-bench-machine"
    os.sched_setaffinity(0, args.cores)
    dropped = [line for line in results.select(args.names, args.threads) if line["system"] in args.again]
    results.lines = [line for line in results.lines if line not in dropped]
    builds = {line["build"] for line in results.lines if "build" in line}
    if own and builds - {digest(args.ortc)}:
        parser.error(f"{args.results} has results of another ortc: take another file, or --again {' '.join(table.OWN)}")
    complete = True
    with tempfile.TemporaryDirectory() as scratch:
        for name in args.names:
            try:
                export(args, name)
                for threads in args.threads:
                    measure(args, results, name, threads, pathlib.Path(scratch))
            except (Failure, OSError) as error:
                say(f"{name}: {error}")
                complete = False
    return complete


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that workers end with this process
    parser, args = parse()
    results = Results(args.results, describe(args))
    complete = args.table or run(parser, args, results)
    lines = table.judge(results.select(args.names, args.threads))
    order = {name: place for place, name in enumerate(NAMES)}
    lines.sort(key=lambda line: (line["threads"], order[line["name"]]))
    text = table.markdown({**results.machine, **({"machine": args.machine} if args.machine else {})}, lines)
    print(text)
    if args.write:
        table.write(args.write, text)
    sys.exit(not complete or any(line.get("wrong") or "error" in line and line["system"] in table.OWN for line in lines))


if __name__ == "__main__":
    main()
