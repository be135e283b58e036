#!/usr/bin/env python3
"""What a step costs more from Python than from C: one process, one thread, the fastest of many rounds that take turns.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

    build/train-step/torch/bin/python benchmarks/python/overhead.py [--check]

Of a perceptron at batch 1, whose step is short: sessions; then, where PyTorch is installed, forward and backward of the same
net with ortc.torch.compile_ beside the same artifact from C, torch.compile and eager. With --check, exit status 1 where
something takes more than LIMITS or MOST_OF_COMPILE allow.
"""
import argparse
import os
import pathlib
import sys
import tempfile
import time

from host import BUILD, SOURCE, Host, load_steps

sys.path.insert(0, str(BUILD / "python"))
os.environ.setdefault("ORTC_COMPILER", str(BUILD / "bin/ortc"))

import numpy as np  # noqa: E402
import ortc  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

ROUNDS, COUNT = 200, 500
IN, OUT = 64, 10  # of the net
TORCH_TENSORS, WRAPPER = "train_step(x, y), tensors of PyTorch", "ortc.torch.compile_(net)"
LIMITS = {"step()": 0.3, "train_step(x, y)": 3.0, TORCH_TENSORS: 4.0, WRAPPER: 30.0}  # microseconds above C
MOST_OF_COMPILE = 0.5  # what forward and backward of WRAPPER may take, as a share of those of torch.compile


def time_calls(call):
    """Seconds of COUNT calls, the loop included."""
    begin = time.perf_counter()
    for _ in range(COUNT):
        call()
    return time.perf_counter() - begin


def take_turns(timers):
    """Microseconds of a call, by name; each timer gives the seconds of COUNT calls."""
    best = dict.fromkeys(timers, float("inf"))
    for _ in range(ROUNDS):
        for name, timer in timers.items():
            best[name] = min(best[name], timer())
    return {name: seconds / COUNT * 1e6 for name, seconds in best.items()}


def measure_session(folder):
    """The first is from C."""
    time_steps = load_steps(folder).time_steps
    artifact = ortc.compile(SOURCE / "test/zoo/mlp-digits/model.onnx", shapes={"batch": 1}, target="native")
    session = ortc.Session(artifact, threads=1)
    session.lr = 0.0  # the same work in every step
    x, y = np.full((1, IN), 0.5, np.float32), np.zeros(1, np.int64)
    others = np.full((1, IN), 0.25, np.float32), np.ones(1, np.int64)
    session.train_step(x, y)

    def alternate():
        session.train_step(x, y)
        session.train_step(*others)

    timers = {
        "ortc_train_step from C": lambda: time_steps(session.handle, COUNT),
        "step()": lambda: time_calls(session.step),
        "train_step(x, y)": lambda: time_calls(lambda: session.train_step(x, y)),
        "train_step(pixels=x, label=y)": lambda: time_calls(lambda: session.train_step(pixels=x, label=y)),
        "train_step, other arrays each time": lambda: time_calls(alternate) / 2,
    }
    if torch:
        tensors = torch.from_numpy(x.copy()), torch.from_numpy(y.copy())
        timers[TORCH_TENSORS] = lambda: time_calls(lambda: session.train_step(*tensors))
    return take_turns(timers)


def make_net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(IN, IN), torch.nn.ReLU(), torch.nn.Linear(IN, OUT))


def time_net(net, call):
    """A timer of forward and backward, where optimizers have forgotten the gradients of the step before."""
    x, cotangent, parameters = torch.full((1, IN), 0.5), torch.ones(1, OUT), list(net.parameters())

    def step():
        for parameter in parameters:
            parameter.grad = None
        call(x).backward(cotangent)

    for _ in range(3):  # torch.compile
        step()
    return lambda: time_calls(step)


def measure_net(folder):
    """Forward and backward; the first is from C."""
    import ortc.torch

    torch.set_num_threads(1)
    os.environ["ORTC_CACHE_DIR"] = f"{folder}/cache"
    own, compiled, eager = make_net(), make_net(), make_net()
    timers = {
        WRAPPER: time_net(own, ortc.torch.compile_(own, wait=True, fallback="error")),
        "torch.compile(net)": time_net(compiled, torch.compile(compiled)),
        "net": time_net(eager, eager),
    }
    (artifact,) = pathlib.Path(folder).glob("cache/*/artifact")
    host = Host(artifact, folder)
    return take_turns({"forward and backward from C": lambda: host.time_roles("fb", COUNT), **timers})


def say(times, over):
    """`over`: those that are compared with the first."""
    first = next(iter(times.values()))
    for name, microseconds in times.items():
        amount, more = (microseconds - first, "more") if name in over else (microseconds, "a step")
        print(f"{name:<38}{amount:8.3f} us {more}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        times = measure_session(folder)
        first, *rest = times
        over = {name: times[name] - times[first] for name in rest}
        say(times, over)
        slow = []
        if torch:
            nets = measure_net(folder)
            first = next(iter(nets))
            over[WRAPPER] = nets[WRAPPER] - nets[first]
            say(nets, over)
            share = nets[WRAPPER] / nets["torch.compile(net)"]
            print(f"{WRAPPER} takes {share:.2f} of torch.compile's time")
            if share > MOST_OF_COMPILE:
                slow.append(f"{WRAPPER} takes {share:.2f} of torch.compile's time, at most {MOST_OF_COMPILE} are allowed")
        else:
            print("PyTorch is not installed: its tensors and modules are left out")
    slow += [
        f"{name} takes {over[name]:.3f} us more than C, at most {limit} are allowed"
        for name, limit in LIMITS.items()
        if over.get(name, 0) > limit
    ]
    for text in slow if check else []:
        print(text, file=sys.stderr)
    return 1 if check and slow else 0


if __name__ == "__main__":
    sys.exit(main())
