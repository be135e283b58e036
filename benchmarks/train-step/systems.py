"""What is timed: ortc, and workers (see worker.py).

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Every system has start() and await_ready(), after which `facts` has its first losses, run(seconds), which gives step times in
ms, and close(). Its processes stay on the cores that it is given, compilation included.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

import worker

HERE = pathlib.Path(__file__).resolve().parent
TURN_SECONDS = 120  # who needs longer than a turn and this has failed
REASON_LENGTH = 300  # of a failure, in characters
# No page faults in each step.
KEEP_MEMORY = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184:glibc.malloc.hugetlb=1"


class Failure(Exception):
    pass


class TooSlow(Failure):
    """Not ready in time."""


# Where a run is held to AVX2: ortc's target, and what PyTorch with oneDNN, MKL and torch.compile, and XLA, read. ONNX
# Runtime's kernels ask the processor and nobody else: it stays as it is.
HELD_TARGET = {None: "native", "avx2": "x86-64-v3"}
HELD = {
    None: {},
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
    },
}


def tuned(folder):
    """The environment in which the other systems run fastest: freed memory is kept; MKL takes AVX-512 on AMD processors.

    MKL gives other processors than Intel's its AVX2 kernels unless a preloaded function says otherwise, as PyTorch's
    packagers recommend: https://github.com/pytorch/builder/pull/1245
    """
    env = {**os.environ, "GLIBC_TUNABLES": KEEP_MEMORY}
    if "AuthenticAMD" in pathlib.Path("/proc/cpuinfo").read_text() and shutil.which("cc"):
        library = folder / "mkl.so"
        if not library.exists():
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


def find_reason(log):
    """The end of a log's last line that speaks of an error; without one, of all of it."""
    errors = [line for line in log.splitlines() if "error" in line.lower()]
    reason = " ".join((errors[-1] if errors else log).split())
    while len(reason) > REASON_LENGTH and " " in reason:
        reason = reason.partition(" ")[2]
    return reason


def end(process):
    """Ends the process and what it started: it leads a group of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


class Alarm:
    """Ends `process` when it takes longer than `seconds`, and says that it did."""

    def __init__(self, process, seconds):
        self.process, self.rang = process, False
        self.timer = threading.Timer(seconds, self.ring)

    def ring(self):
        self.rang = True
        end(self.process)

    def __enter__(self):
        self.timer.start()
        return self

    def __exit__(self, *_):
        self.timer.cancel()


class Worker:
    """A process that speaks worker.py's protocol."""

    def __init__(self, system, variant, command, cores, env, log, limit):
        self.system, self.variant, self.facts, self.process = system, variant, {}, None
        self.command, self.cores, self.env, self.log, self.limit = command, cores, env, log, limit

    def start(self):
        """Begins to get ready; await_ready() waits for the end of it."""
        with open(self.log, "w") as log, pinned(self.cores):
            self.process = subprocess.Popen(
                [str(part) for part in self.command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self.env,
                start_new_session=True,
            )

    def answer(self, seconds):
        with Alarm(self.process, seconds) as alarm:
            for line in self.process.stdout:
                if line.startswith("{"):
                    return json.loads(line)
        if alarm.rang:
            raise TooSlow(f"more than {seconds:g} s")
        raise Failure(find_reason(self.log.read_text(errors="replace")) or f"exit {self.process.wait()}")

    def await_ready(self):
        self.facts |= self.answer(self.limit)

    def run(self, seconds):
        try:
            self.process.stdin.write(f"{seconds}\n")
            self.process.stdin.flush()
        except OSError:
            raise Failure(find_reason(self.log.read_text(errors="replace")) or "the process ended") from None
        turn = self.answer(seconds + TURN_SECONDS)
        self.facts["peak_mib"] = turn["peak_mib"]
        return turn["ms"]

    def close(self):
        if self.process:
            end(self.process)
            self.process.wait()
            with contextlib.suppress(OSError):
                self.process.stdin.close()
            self.process.stdout.close()


class Ortc:
    """`ortc train` once, with what --tune measures where that is asked for; every turn is a process of `ortc run`, whose step
    times its metrics give."""

    variant = ""

    def __init__(self, system, ortc, folder, threads, cores, work, limit, flags=(), target="native"):
        self.system, self.target, self.facts, self.pace = system, target, {}, 1.0
        self.flags = [*flags, *(["--tune", "--tune-cache", work / "tune.json"] if system == "tuned" else [])]
        self.ortc, self.folder, self.threads, self.cores, self.limit = ortc, folder, threads, cores, limit
        self.artifact, self.metrics, self.log, self.report = (
            work / name for name in ("artifact", "metrics.jsonl", "ortc.log", "report.json")
        )

    def start(self):
        recipe = json.loads((self.folder / "recipe.json").read_text())
        options = [*recipe["flags"], "--optimizer", recipe["optimizer"], "--target", self.target, "--report", self.report]
        options += self.flags
        if self.threads > 2:
            options += ["--max-workers", self.threads]
        started = time.perf_counter()
        self.call("train", self.folder / "model.onnx", "-o", self.artifact, *options, "--quiet")
        self.facts["compile_s"] = round(time.perf_counter() - started, 2)
        entry = next(e for e in json.loads(self.report.read_text())["entries"] if e["name"].startswith("train/"))
        self.facts |= {key: entry[key] for key in ("flops", "bytes_read", "bytes_written", "transient") if key in entry}

    def await_ready(self):
        """The first five losses. The tool contains the compiler, whose time is separate."""
        self.facts["build"] = digest(self.ortc)
        self.facts["base_mib"] = self.call("--version")
        lines = self.steps(5)
        self.facts["losses"], self.pace = [line["loss"] for line in lines], min(line["ms"] for line in lines)

    def steps(self, count):
        options = ["--steps", count, "--no-shuffle", "--threads", self.threads, "--metrics", self.metrics, "--quiet"]
        peak = self.call("run", self.artifact, "--data", self.folder / "data.npz", *options)
        self.facts["peak_mib"] = max(peak, self.facts.get("peak_mib", 0))
        with open(self.metrics) as metrics:
            return [line for line in map(json.loads, metrics) if "loss" in line]

    def run(self, seconds):
        times = [line["ms"] for line in self.steps(max(5, int(1e3 * seconds / max(self.pace, 1e-3))))]
        skip, warm = 0, 0.0
        while warm < worker.WARM * sum(times) and skip < len(times) - 3:
            warm += times[skip]
            skip += 1
        return times[skip:]

    def call(self, *arguments):
        """Runs it; returns its peak resident size in MiB (this process's own at least, which is a fraction)."""
        command = [str(part) for part in (self.ortc, *arguments)]
        with open(self.log, "w") as log, pinned(self.cores):
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        with Alarm(process, self.limit) as alarm:
            try:
                status, peak = self.wait(process)
            except BaseException:
                end(process)
                raise
        process.returncode = os.waitstatus_to_exitcode(status)
        if alarm.rang:
            raise TooSlow(f"more than {self.limit:g} s")
        if process.returncode:
            raise Failure(find_reason(self.log.read_text(errors="replace")) or f"exit {process.returncode}")
        return round(peak, 1)

    def wait(self, process):
        """Its status and its peak resident size in MiB, once it has ended."""
        _, status, usage = os.wait4(process.pid, 0)
        return status, usage.ru_maxrss / 1024

    def close(self):
        shutil.rmtree(self.artifact, ignore_errors=True)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def measure_machine(program, cores):
    """What these cores do at most, all at once, or nothing without the program that measures it."""
    try:
        with pinned(cores):
            return json.loads(subprocess.check_output([program, str(len(cores))], text=True))
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
