"""A zoo entry in PyTorch: forward, loss, backward, fused AdamW. A worker (see worker.py).

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: torch_worker.py ENTRY_FOLDER --threads N --cores 0,1 [--mode eager|compile]
                       [--layout contiguous|channels_last] [--stock]
--stock leaves denormals as they are; its environment, too, is that of a user who tunes nothing.
"""

import argparse
import itertools
import json
import pathlib

import torch

import models
import weights
import worker


def warm_up(compiled):
    """Brings libraries (and the compiler's own caches) in, so that what follows is the model's."""
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(144, 4)
    )
    optimizer = torch.optim.AdamW(module.parameters(), fused=True)
    run = torch.compile(module) if compiled else module
    run(torch.randn(2, 1, 8, 8)).sum().backward()
    optimizer.step()


def make_optimizer(module, spec):
    name, _, options = spec.partition(":")
    if name != "adamw":
        raise ValueError(f"no optimizer '{spec}' here")
    o = {key: float(value) for key, value in (pair.split("=") for pair in options.split(","))}
    return torch.optim.AdamW(
        module.parameters(),
        lr=o["lr"],
        betas=(o["beta1"], o["beta2"]),
        eps=o["epsilon"],
        weight_decay=o["weight_decay"],
        fused=True,
    )


def make_step(folder, compiled, layout):
    recipe = json.loads((folder / "recipe.json").read_text())
    module = models.NETWORKS[folder.name]().train()
    weights.load(module, folder / "model.onnx", models.RENAMES.get(folder.name, []))
    turns = itertools.cycle(weights.batches(folder / "data.npz", recipe["steps"]))
    if layout == "channels_last":
        module.to(memory_format=torch.channels_last)
        turn = lambda t: t.to(memory_format=torch.channels_last) if t.dim() == 4 else t
        turns = itertools.cycle(
            [([turn(t) for t in inputs], turn(label)) for inputs, label in itertools.islice(turns, recipe["steps"])]
        )
    loss = models.loss_function(recipe["flags"][recipe["flags"].index("--loss") + 1])
    optimizer = make_optimizer(module, recipe["optimizers"]["adamw"])
    run = lambda inputs, label: loss(module(*inputs), label)
    run = torch.compile(run) if compiled else run

    def step():
        value = run(*next(turns))
        value.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return value.detach()

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cores", required=True)
    parser.add_argument("--mode", choices=["eager", "compile"], default="eager")
    parser.add_argument("--layout", choices=["contiguous", "channels_last"], default="contiguous")
    parser.add_argument("--stock", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(not args.stock)
    warm_up(args.mode == "compile")
    base = worker.reset_peak()
    step = make_step(args.folder, args.mode == "compile", args.layout)
    worker.serve(step, [int(core) for core in args.cores.split(",")], base_mib=base)


if __name__ == "__main__":
    main()
