"""One system's process: it gets ready, then trains on demand for the requested seconds.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

A worker prints one JSON line when it is ready. Then every line on its standard input is a number of seconds; it answers
each with one JSON line of step times. Between them it sleeps, so that systems take turns on the same cores. Any system with
a `step` function can be a worker.
"""

import ctypes
import json
import re
import sys
import time

WARM = 0.1  # share of every turn that is not counted: caches and clock


def peak_mib(process="self"):
    """Highest resident size of a process, of this one since reset_peak."""
    with open(f"/proc/{process}/status") as status:
        return round(int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) / 1024, 1)


def reset_peak():
    """The peak starts again at what is resident now; returns that."""
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as references:
        references.write("5")
    return peak_mib()


def say(facts):
    print(json.dumps(facts), flush=True)


def serve(step, compile_s=None, lazy=False, **facts):
    """step() finishes its work before it returns the loss. lazy: the first step is part of the compilation."""
    started = time.perf_counter()
    losses = [float(step())]
    first_step_s = time.perf_counter() - started
    if compile_s is not None:
        facts["compile_s"] = round(compile_s + lazy * first_step_s, 3)
    losses += [float(step()) for _ in range(4)]
    say({**facts, "losses": losses})
    for line in sys.stdin:
        seconds, times, clock = float(line), [], time.perf_counter
        begin = clock()
        while clock() - begin < WARM * seconds:
            step()
        while clock() - begin < seconds or len(times) < 3:
            started = clock()
            step()
            times.append((clock() - started) * 1e3)
        say({"ms": times, "peak_mib": peak_mib()})
