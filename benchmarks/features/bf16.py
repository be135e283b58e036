#!/usr/bin/env python3
"""Times a training step with narrow products: --precision bf16 beside float32 and beside torch.autocast, in turns on the same cores.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: bf16.py [NAME ...] [--threads 1] [--seconds 5] [--rounds 5] [--ortc build/bin/ortc]

PyTorch is eager with fused AdamW in the environment where it is fastest, convolutional models in both layouts; the faster counts.
Prints a markdown table: medians in ms, the ratios that count, and transient memory by the plan. Exit status 1 when a system failed.
"""

import math
import statistics
import sys

import turns
from performance_set import NAMES


def main():
    args, ratios = turns.parser(__doc__, NAMES).parse_args(), []

    def row(bench):
        bench.add_ortc("f32")
        bench.add_ortc("bf16", ["--precision", "bf16"])
        bench.add_torch("torch")
        bench.add_torch("autocast", "--autocast", "bf16")
        ms = bench.measure()
        ours, peers = ms["f32"] / ms["bf16"], ms["autocast"] / ms["bf16"]
        ratios.append((ours, peers))
        memory = bench.transient("bf16") / bench.transient("f32")
        return [f"{ms[key]:.4g}" for key in ("f32", "bf16", "torch", "autocast")] + [f"{x:.2f}" for x in (ours, peers, memory)]

    columns = ["ortc f32", "ortc bf16", "torch f32", "torch autocast", "f32 / bf16", "autocast / bf16", "memory"]
    complete = turns.tabulate(args, columns, row)
    if ratios:
        means = [math.exp(statistics.fmean(math.log(pair[i]) for pair in ratios)) for i in (0, 1)]
        print(f"\nGeometric means: {means[0]:.2f} of ortc's own f32, {means[1]:.2f} of torch.autocast.")
    sys.exit(not complete)


if __name__ == "__main__":
    main()
