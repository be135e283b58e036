#!/usr/bin/env python3
"""Times a step that trains adapters only: --lora, with --base too, beside full training and beside the PEFT library, in turns on the same cores.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: lora.py [NAME ...] [--threads 1] [--rank 8] [--seconds 5] [--rounds 5] [--ortc build/bin/ortc]

NAME: models of benchmarks/train-step with attention; the environment of PyTorch needs `pip install peft`. Adapters are on the product that
gives queries, keys and values. PyTorch is eager with fused AdamW. Prints a markdown table: medians in ms, transient memory by the plan, the
artifact's size. Exit status 1 when a system failed.
"""

import json
import pathlib
import sys

LAYER, ALPHA = "qkv", 16


def serve(folder, threads, rank):
    """The worker with PEFT (worker.py)."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "train-step"))
    import models
    import peft
    import torch
    import torch_worker
    import worker

    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    recipe = json.loads((folder / "recipe.json").read_text())
    loss = models.LOSSES[recipe["flags"][recipe["flags"].index("--loss") + 1]]
    module, batches = torch_worker.load(folder, "contiguous")
    module = peft.get_peft_model(module, peft.LoraConfig(r=rank, lora_alpha=ALPHA, lora_dropout=0.0, target_modules=[LAYER]))
    worker.serve(torch_worker.make_usual(module, loss, batches, compiled=False, narrow=False), version=f"PEFT {peft.__version__}")


def main():
    import turns

    parser = turns.parser(__doc__, ["bert-mini", "bert-base"])
    parser.add_argument("--rank", type=int, default=8)
    args = parser.parse_args()

    def row(bench):
        lora = ["--lora", rf".*{LAYER}\.weight:rank={args.rank},alpha={ALPHA}"]
        for label, flags in {"full": [], "lora": lora, "int8": [*lora, "--base", "int8"], "int4": [*lora, "--base", "int4"]}.items():
            bench.add_ortc(label, flags)
        bench.add_worker("peft", __file__, "--worker", bench.folder, bench.threads, args.rank)
        ms = bench.measure()
        cells = [f"{ms['full']:.4g}", f"{ms['lora']:.4g}", f"{ms['lora'] / ms['full']:.2f}", f"{ms['int8']:.4g}", f"{ms['int4']:.4g}"]
        cells += [f"{ms['peft']:.4g}", f"{ms['peft'] / ms['lora']:.2f}"]
        for bytes_of in (bench.transient, bench.files.get):
            cells.append(", ".join(f"{bytes_of(label) / 2**20:.0f} MiB" for label in ("full", "lora", "int4")))
        return cells

    columns = ["full", "lora", "lora / full", "int8", "int4", "PEFT", "PEFT / lora", "memory full, lora, int4", "file full, lora, int4"]
    sys.exit(not turns.tabulate(args, columns, row))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        serve(pathlib.Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
