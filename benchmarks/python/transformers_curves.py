#!/usr/bin/env python3
"""How far the losses of 300 steps of transformers' Trainer, eager and compiled, are from those in float64.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

    PYTHONPATH=build/python ORTC_COMPILER=build/bin/ortc python benchmarks/python/transformers_curves.py [--steps N]

BERT and GPT-2 of the tests, four batches in a step, no dropout. The limit is that of the tests, by eager float32 runs with one
and two threads and from weights that are one unit in the last place off. Exit status 1 where the compiled run is farther.
"""
import argparse
import pathlib
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "test/bindings/python/frameworks"))

import language_models as lm  # noqa: E402
import ortc.torch  # noqa: E402
import torch  # noqa: E402
from tolerance import distance, limit, nudge  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    steps = parser.parse_args().steps
    torch.set_num_threads(1)
    failed = False
    for make, rows in ((lm.bert, lm.questions(256)), (lm.gpt2, lm.stories(256))):
        wanted = lm.train(make().double(), rows, max_steps=steps)
        runs = {"eager": lm.train(make(), rows, max_steps=steps)}
        torch.set_num_threads(2)
        runs["eager, two threads"] = lm.train(make(), rows, max_steps=steps)
        torch.set_num_threads(1)
        runs |= {f"eager, nudged {seed}": lm.train(nudge(make(), seed), rows, max_steps=steps) for seed in range(2)}
        most = limit(wanted, list(runs.values()))
        model = make()
        ortc.torch.compile_(model, wait=True)
        runs["ortc"] = lm.train(model, rows, max_steps=steps)
        print(f"{make.__name__}: loss {wanted[0]:.4f} to {wanted[-10:].mean():.4f}, limit {most:.1e}; {ortc.torch.report(model)}")
        for name, run in runs.items():
            apart = (run - wanted).abs()
            print(f"  {name:20} first {apart[0]:.1e}, first tenth {apart[: max(1, steps // 10)].max():.1e}, largest {apart.max():.1e}")
        failed |= not distance(wanted, runs["ortc"]) <= most  # NaN is farther, too
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
