#!/usr/bin/env python3
"""Times forward, backward and update of a host in C, whose parameters and gradients lie in its own memory or in the session's, in turns.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: bound.py [NAME ...] [--seconds 3] [--rounds 6] [--core N] [--models build/train-step/models] [--ortc build/bin/ortc]
                [--artifacts FOLDER]

The host is steps.c, which host.py compiles and loads: Python only starts it, and no figure has Python in it. It stands here since
ortc.torch trains parameters that are bound so.

NAME: models of benchmarks/train-step. All three are compiled with --cotangents and AdamW, run on one core and read the same numbers:
    session  parameters and gradients in the session, in the layouts that the compiler chose
    bound    --bind parameters,gradients: the host's, dense
    strided  --bind parameters,gradients,strided: the host's, in the compiler's layouts
Prints a markdown table of medians in ms of processor time, with the ranges of the turns' medians. Exit status 1 where outputs or
gradients differ. With --artifacts a run takes what an earlier one has compiled there.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from host import BUILD, Host

BINDS = {"session": [], "bound": ["--bind", "parameters,gradients"], "strided": ["--bind", "parameters,gradients,strided"]}
PARTS = {"forward": "f", "backward": "b", "update": "u"}
FAR = 1e-3  # sums over all values: other orders of float32 sums, of gradients through all layers


def compile_artifact(ortc, folder, binds, output):
    if (output / "model.ortc").is_file():
        return output
    recipe = json.loads((folder / "recipe.json").read_text())
    flags = list(recipe["flags"])
    del flags[(loss := flags.index("--loss")) : loss + 2]
    command = [ortc, "train", folder / "model.onnx", "-o", output, "--cotangents", "output", "--optimizer", recipe["optimizer"]]
    subprocess.run([*command, "--target", "native", "--max-workers", "1", "--quiet", *flags, *binds], check=True)
    return output


def are_near(first, second):
    return all(math.isfinite(a) and abs(a - b) <= FAR * abs(b) for a, b in zip(first, second))


def measure(args, name):
    """By kind of memory: step times in ms by part, of each turn."""
    with tempfile.TemporaryDirectory() as scratch:
        place = args.artifacts or pathlib.Path(scratch)
        hosts = {
            kind: Host(compile_artifact(args.ortc, args.models / name, binds, place / f"{name}-{kind}"), scratch)
            for kind, binds in BINDS.items()
        }
        sums = {}
        for kind, host in hosts.items():
            host.freeze()
            host.time_roles("fb")
            sums[kind] = host.sum_values()
            host.time_roles("u")
        turns = {kind: [] for kind in hosts}
        pace = max(host.time_roles("fbu") for host in hosts.values())
        count = max(3, int(args.seconds / args.rounds / pace))
        for _ in range(args.rounds):
            for kind, host in hosts.items():
                host.time_roles("fbu")
                steps = [[1e3 * host.time_roles(role) for role in PARTS.values()] for _ in range(count)]
                turns[kind].append(steps)
    return turns, sums


def show(name, turns):
    cells, whole = [name], {}
    for kind, of_kind in turns.items():
        medians = [statistics.median(sum(step) for step in turn) for turn in of_kind]
        whole[kind] = statistics.median(sum(step) for turn in of_kind for step in turn)
        parts = [statistics.median(step[i] for turn in of_kind for step in turn) for i in range(len(PARTS))]
        cells.append(f"{whole[kind]:.4g} ({min(medians):.4g} to {max(medians):.4g}): " + " + ".join(f"{part:.3g}" for part in parts))
    cells += [f"{whole[kind] / whole['session']:.3f}" for kind in ("bound", "strided")]
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", default=["resnet18-224", "mobilenetv2-224"])
    parser.add_argument("--seconds", type=float, default=3.0, help="of each kind of memory")
    parser.add_argument("--rounds", type=int, default=6, help="turns into which the seconds are cut")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--models", type=pathlib.Path, default=BUILD / "train-step/models", help="as ../train-step/export.py makes them")
    parser.add_argument("--ortc", type=pathlib.Path, default=BUILD / "bin/ortc")
    parser.add_argument("--artifacts", type=pathlib.Path, help="where artifacts are kept; default: nowhere")
    args = parser.parse_args()
    os.sched_setaffinity(0, [args.core])
    columns = ["model", *(f"{kind}: {' + '.join(PARTS)}" for kind in BINDS), "bound / session", "strided / session"]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    wrong = False
    for name in args.names:
        turns, sums = measure(args, name)
        show(name, turns)
        for kind in ("bound", "strided"):
            if not are_near(sums[kind], sums["session"]):
                print(f"{name}, {kind}: outputs and gradients sum up to {sums[kind]}, session's to {sums['session']}", file=sys.stderr)
                wrong = True
    sys.exit(wrong)


if __name__ == "__main__":
    main()
