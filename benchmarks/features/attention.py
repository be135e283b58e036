#!/usr/bin/env python3
"""Times steps of a language model on long sequences beside PyTorch with its fused attention, in turns on the same cores.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: attention.py [NAME ...] [--threads 1] [--seconds 5] [--rounds 5] [--ortc build/bin/ortc]

PyTorch is eager (scaled_dot_product_attention) with fused AdamW. Prints a markdown table: medians in ms, transient memory by the plan, and how
far first losses are apart. Exit status 1 when a system failed.
"""

import sys

import turns


def main():
    args = turns.parser(__doc__, ["gpt2-small-1024", "gpt2-small-2048"]).parse_args()

    def row(bench):
        bench.add_ortc("ortc")
        bench.add_torch("torch")
        ms = bench.measure()
        cells = [f"{ms['ortc']:.4g}", f"{ms['torch']:.4g}", f"{ms['torch'] / ms['ortc']:.2f}"]
        return [*cells, f"{bench.transient('ortc') / 2**20:.0f} MiB", f"{bench.losses_apart():.1e}"]

    sys.exit(not turns.tabulate(args, ["ortc", "torch", "torch / ortc", "memory", "losses apart"], row))


if __name__ == "__main__":
    main()
