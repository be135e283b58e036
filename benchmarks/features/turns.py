"""What the benchmarks of features share: systems that take turns on the same cores, models by name, a table.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Models, data and Python environments are those of benchmarks/train-step (its `setup` first).
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
from performance_set import CONVOLUTIONAL  # noqa: E402
from systems import HERE as STEPS  # noqa: E402
from systems import Failure, Ortc, TooSlow, Worker, tuned  # noqa: E402

ROOT = HERE.parents[1]
PLACE = ROOT / "build/train-step"


def parser(doc, names):
    """Of the options that all have; `names` are the models by default."""
    result = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("names", nargs="*", metavar="NAME", default=names, help=", ".join(names))
    result.add_argument("--threads", type=int, nargs="+", default=[1], metavar="N")
    result.add_argument("--seconds", type=float, default=5.0, help="of every system on every model")
    result.add_argument("--rounds", type=int, default=5, help="turns into which the seconds are cut")
    result.add_argument("--limit", type=float, default=1200, help="seconds in which a system must be ready")
    result.add_argument("--ortc", type=pathlib.Path, default=ROOT / "build/bin/ortc")
    result.add_argument("--python", type=pathlib.Path, default=PLACE / "torch/bin/python", help="with PyTorch")
    result.add_argument("--models", type=pathlib.Path, default=PLACE / "models", help="exported models; what is missing is made")
    return result


class Bench:
    """One model on so many threads; systems are added by label."""

    def __init__(self, args, name, threads, scratch):
        self.args, self.name, self.threads, self.scratch = args, name, threads, scratch
        self.folder, self.cores, self.systems = args.models / name, sorted(os.sched_getaffinity(0))[-threads:], {}
        if not (self.folder / "recipe.json").is_file():
            subprocess.run([args.python, STEPS / "export.py", args.models, name], check=True, stdout=subprocess.DEVNULL)

    def add_ortc(self, label, flags=()):
        work = self.scratch / f"{self.name}-{self.threads}-{len(self.systems)}"
        work.mkdir()
        self.systems[label] = Ortc("ortc", self.args.ortc, self.folder, self.threads, self.cores, work, self.args.limit, flags)

    def add_worker(self, label, *command):
        log = self.scratch / f"log-{len(self.systems)}"
        self.systems[label] = Worker("torch", label, [self.args.python, *command], self.cores, tuned(self.scratch), log, self.args.limit)

    def add_torch(self, label, *options):
        """PyTorch eager with fused AdamW where it is fastest; convolutional models in both layouts: the label, and one with an asterisk."""
        for mark, layout in [("", "contiguous"), ("*", "channels_last")][: 2 if self.name in CONVOLUTIONAL else 1]:
            self.add_worker(label + mark, STEPS / "torch_worker.py", self.folder, "--threads", self.threads, "--layout", layout, *options)

    def measure(self):
        """Medians in ms by label, of both layouts the faster."""
        times = {label: [] for label in self.systems}
        try:
            for system in self.systems.values():
                system.start()
                system.await_ready()
            self.files = {label: (s.artifact / "model.ortc").stat().st_size for label, s in self.systems.items() if s.system == "ortc"}
            for _ in range(self.args.rounds):
                for label, system in self.systems.items():
                    times[label] += system.run(self.args.seconds / self.args.rounds)
        finally:
            for system in self.systems.values():
                system.close()
        medians = {label: statistics.median(values) for label, values in times.items()}
        return {label: min(ms, medians.get(label + "*", ms)) for label, ms in medians.items() if not label.endswith("*")}

    def transient(self, label):
        """Transient memory by the plan, in bytes."""
        return self.systems[label].facts["transient"]

    def losses_apart(self):
        """The largest distance of first losses between the systems."""
        losses = [system.facts["losses"][0] for system in self.systems.values()]
        return max(losses) - min(losses)


def tabulate(args, columns, row):
    """Prints a table: a line for each model and number of threads, whose cells `row(bench)` gives. Returns whether no system failed."""
    args.ortc, complete = args.ortc.resolve(), True
    print("| " + " | ".join(["model", "threads", *columns]) + " |")
    print("|" + "---|" * (len(columns) + 2))
    for name in args.names:
        for threads in args.threads:
            with tempfile.TemporaryDirectory() as scratch:
                try:
                    cells = row(Bench(args, name, threads, pathlib.Path(scratch)))
                    print("| " + " | ".join([name, str(threads), *cells]) + " |", flush=True)
                except (Failure, TooSlow, OSError) as error:
                    print(f"{name}, {threads} threads: {error}", file=sys.stderr)
                    complete = False
    return complete
