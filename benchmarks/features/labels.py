#!/usr/bin/env python3
"""Times steps of a masked language model, most of whose labels are ignored: the head in chunks beside the whole head and PyTorch, in turns.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: labels.py [NAME ...] [--threads 1] [--chunk 128] [--seconds 5] [--rounds 5] [--ortc build/bin/ortc]

PyTorch is eager with fused AdamW. Prints a markdown table: medians in ms, transient memory by the plan, and how far first losses are apart. Exit
status 1 when a system failed.
"""

import sys

import turns


def main():
    parser = turns.parser(__doc__, ["bert-mini-masked"])
    parser.add_argument("--chunk", type=int, default=128, help="rows of a chunk")
    args = parser.parse_args()

    def row(bench):
        bench.add_ortc("whole", ["--head-chunk", "0"])
        bench.add_ortc("chunks", ["--head-chunk", str(args.chunk)])
        bench.add_torch("torch")
        ms = bench.measure()
        cells = [f"{ms['whole']:.4g}", f"{ms['chunks']:.4g}", f"{ms['torch']:.4g}", f"{ms['chunks'] / ms['whole']:.2f}"]
        memory = ", ".join(f"{bench.transient(label) / 2**20:.0f} MiB" for label in ("whole", "chunks"))
        return [*cells, memory, f"{bench.losses_apart():.1e}"]

    sys.exit(not turns.tabulate(args, ["whole head", "chunks", "torch", "chunks / whole", "memory", "losses apart"], row))


if __name__ == "__main__":
    main()
