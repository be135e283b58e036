"""What is timed: ortc, and workers (see worker.py).

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Every system has start() and await_ready(), after which `facts` has its first losses, run(seconds), which gives step times in
ms, and close().
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time

import worker

HERE = pathlib.Path(__file__).resolve().parent
READY_SECONDS, TURN_SECONDS = 300, 60  # who takes longer to get ready, or longer than a turn and this, has failed
# No page faults in each step.
KEEP_MEMORY = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184:glibc.malloc.hugetlb=1"


class Failure(Exception):
    pass


def tuned(folder):
    """The environment in which PyTorch runs fastest: freed memory is kept; on AMD processors MKL takes its AVX-512 kernels.

    MKL gives other processors than Intel's its AVX2 kernels unless a preloaded function says otherwise, as PyTorch's
    packagers recommend: https://github.com/pytorch/builder/pull/1245
    """
    env = {**os.environ, "GLIBC_TUNABLES": KEEP_MEMORY}
    if "AuthenticAMD" in pathlib.Path("/proc/cpuinfo").read_text() and shutil.which("cc"):
        library = folder / "mkl.so"
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library],
            input=b"int mkl_serv_intel_cpu_true(void) { return 1; }",
            check=True,
        )
        env["LD_PRELOAD"] = str(library)
    return env


@contextlib.contextmanager
def pinned(cores):
    """What is started inside inherits `cores`."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def tail(path):
    return " ".join(path.read_text(errors="replace").split())[-300:]


class Worker:
    """A process that speaks worker.py's protocol."""

    def __init__(self, name, script, folder, threads, cores, env, work, *flags):
        self.name, self.facts, self.process = name, {}, None
        self.command = [
            sys.executable,
            HERE / script,
            folder,
            "--threads",
            str(threads),
            "--cores",
            ",".join(map(str, cores)),
            *flags,
        ]
        self.env, self.log = env, work / f"{name.replace(' ', '-')}.{threads}.log"

    def start(self):
        """Begins to get ready; await_ready() waits for the end of it."""
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=self.env
            )

    def answer(self, seconds):
        alarm = threading.Timer(seconds, self.process.kill)
        alarm.start()
        try:
            for line in self.process.stdout:
                if line.startswith("{"):
                    return json.loads(line)
        finally:
            alarm.cancel()
        raise Failure(tail(self.log) or f"exit {self.process.wait()}")

    def await_ready(self):
        self.facts |= self.answer(READY_SECONDS)

    def run(self, seconds):
        try:
            self.process.stdin.write(f"{seconds}\n")
            self.process.stdin.flush()
        except OSError:
            raise Failure(tail(self.log) or "the process ended") from None
        turn = self.answer(seconds + TURN_SECONDS)
        self.facts["peak_mib"] = turn["peak_mib"]
        return turn["ms"]

    def close(self):
        if self.process:
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()


class Ortc:
    """`ortc train` once; every turn is a process of `ortc run`, whose step times its metrics give."""

    def __init__(self, ortc, folder, threads, cores, work):
        self.name, self.facts, self.pace = "ortc", {}, 1.0
        self.ortc, self.folder, self.threads, self.cores = ortc, folder, threads, cores
        self.artifact, self.metrics, self.log = (
            work / f"artifact.{threads}",
            work / f"metrics.{threads}.jsonl",
            work / f"ortc.{threads}.log",
        )

    def start(self):
        recipe = json.loads((self.folder / "recipe.json").read_text())
        started = time.perf_counter()
        self.call(
            "train",
            self.folder / "model.onnx",
            "-o",
            self.artifact,
            *recipe["flags"],
            "--optimizer",
            recipe["optimizers"]["adamw"],
            "--target",
            "native",
            "--quiet",
        )
        self.facts["compile_s"] = round(time.perf_counter() - started, 2)

    def await_ready(self):
        """The first five losses. The tool has the compiler in it: what that takes is told apart."""
        self.facts["base_mib"] = self.call("--version")
        lines = self.steps(5)
        self.facts["losses"], self.pace = [line["loss"] for line in lines], min(line["ms"] for line in lines)

    def steps(self, count):
        with pinned(self.cores):
            peak = self.call(
                "run",
                self.artifact,
                "--data",
                self.folder / "data.npz",
                "--steps",
                count,
                "--no-shuffle",
                "--threads",
                self.threads,
                "--metrics",
                self.metrics,
                "--quiet",
            )
        self.facts["peak_mib"] = max(peak, self.facts.get("peak_mib", 0))
        with open(self.metrics) as metrics:
            return [line for line in map(json.loads, metrics) if "loss" in line]

    def run(self, seconds):
        times = [line["ms"] for line in self.steps(max(20, int(1e3 * seconds / max(self.pace, 1e-3))))]
        skip, warm = 0, 0.0
        while warm < worker.WARM * sum(times) and skip < len(times) - 3:
            warm += times[skip]
            skip += 1
        return times[skip:]

    def call(self, *arguments):
        """Runs it; returns its peak resident size in MiB (this process's own at least, which is a fraction)."""
        with open(self.log, "w") as log:
            process = subprocess.Popen([str(part) for part in (self.ortc, *arguments)], stdout=log, stderr=log)
            alarm = threading.Timer(READY_SECONDS, process.kill)
            alarm.start()
            _, status, usage = os.wait4(process.pid, 0)
            alarm.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise Failure(tail(self.log) or f"exit {process.returncode}")
        return round(usage.ru_maxrss / 1024, 1)

    def close(self):
        pass
