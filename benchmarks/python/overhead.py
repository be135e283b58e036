#!/usr/bin/env python3
"""What a step costs more from Python than from C: one session, one process, the fastest of many rounds that take turns.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

    build/venv/bin/python benchmarks/python/overhead.py [--check]

Of a perceptron at batch 1, whose step is short. With --check, exit status 1 where step() takes more than LIMITS allow.
"""
import argparse
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = SOURCE / "build"
sys.path.insert(0, str(BUILD / "python"))
os.environ.setdefault("ORTC_COMPILER", str(BUILD / "bin/ortc"))

import numpy as np  # noqa: E402
import ortc  # noqa: E402

ROUNDS, COUNT = 200, 500
LIMITS = {"step()": 0.3, "train_step(x, y)": 3.0}  # microseconds above C


def time_calls(call):
    """Seconds of COUNT calls, the loop included."""
    begin = time.perf_counter()
    for _ in range(COUNT):
        call()
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/steps.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", f"-I{SOURCE}/runtime/include", SOURCE / "benchmarks/python/steps.c",
                        BUILD / "lib/libortc.a", "-o", library], check=True)
        time_steps = ctypes.CDLL(library).time_steps
        time_steps.restype, time_steps.argtypes = ctypes.c_double, [ctypes.c_void_p, ctypes.c_long]

        artifact = ortc.compile(SOURCE / "test/zoo/mlp-digits/model.onnx", shapes={"batch": 1}, target="native")
        session = ortc.Session(artifact, threads=1)
        session.lr = 0.0  # the same work in every step
        x, y = np.full((1, 64), 0.5, np.float32), np.zeros(1, np.int64)
        others = np.full((1, 64), 0.25, np.float32), np.ones(1, np.int64)
        session.train_step(x, y)

        def alternate():
            session.train_step(x, y)
            session.train_step(*others)

        calls = {
            "step()": session.step,
            "train_step(x, y)": lambda: session.train_step(x, y),
            "train_step(pixels=x, label=y)": lambda: session.train_step(pixels=x, label=y),
            "train_step, other arrays each time": alternate,
        }
        best = dict.fromkeys(["C", *calls], float("inf"))
        for _ in range(ROUNDS):
            best["C"] = min(best["C"], time_steps(session.handle, COUNT))
            for name, call in calls.items():
                best[name] = min(best[name], time_calls(call) / (2 if call is alternate else 1))
    over = {name: (seconds - best["C"]) / COUNT * 1e6 for name, seconds in best.items()}
    print(f"{'ortc_train_step from C':<36}{best['C'] / COUNT * 1e6:8.3f} us a step")
    for name in calls:
        print(f"{name:<36}{over[name]:8.3f} us more")
    slow = [name for name, limit in LIMITS.items() if over[name] > limit]
    for name in slow if check else []:
        print(f"{name} takes {over[name]:.3f} us more than C, at most {LIMITS[name]} are allowed", file=sys.stderr)
    return 1 if check and slow else 0


if __name__ == "__main__":
    sys.exit(main())
