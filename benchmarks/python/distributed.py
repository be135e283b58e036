#!/usr/bin/env python3
"""Two processes of one thread with DistributedDataParallel over gloo: compiled modules beside eager ones, in turns on the same cores.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

    distributed.py [bert-mini resnet8-cifar] [--rounds 10] [--views] [--check]

In the environment of PyTorch, with the package `ortc`. Prints a markdown table: milliseconds of a step (forward, backward, AdamW) of
one process while the other waits, of two that know nothing of each other, and of two with DDP; and the share of twice the samples per
second of one that two reach. Of every column the fastest of all rounds. What two apart lose is the machine's.
The last share is that of processor time, waiting left out: it holds on a machine that others use, too.

With --check nothing is timed: after 50 steps on smaller batches, both ranks must have the same bits, and those of one process that goes
through both halves and adds up. Halving gradients is exact, so no tolerance is needed. Exit status 1 where a bit differs.
"""
import argparse
import copy
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "train-step"))
NAMES = ("bert-mini", "resnet8-cifar")
SYSTEMS = ("eager", "ortc")
CHECKED_STEPS = 50


def make_module(module, system):
    import ortc.torch

    made = copy.deepcopy(module)
    return ortc.torch.compile_(made, wait=True, fallback="error") if system == "ortc" else made


class Loop:
    """Steps of one module, with the usual optimizer."""

    def __init__(self, module, batches, loss):
        import torch

        self.module, self.batches, self.loss, self.count = module, batches, loss, 0
        self.optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, fused=True)

    def backward(self, inputs, label, share=1):
        (self.loss(self.module(*inputs.values()), label) / share).backward()

    def step(self):
        self.optimizer.zero_grad()
        self.backward(*self.batches[self.count % len(self.batches)])
        self.optimizer.step()
        self.count += 1


def time_steps(loop, steps, takes_part):
    """Milliseconds of a step, of the slower process, and those of its processor."""
    import torch
    import torch.distributed as dist

    dist.barrier()
    begin, used = time.perf_counter(), time.process_time()
    for _ in range(steps if takes_part else 0):
        loop.step()
    taken = torch.tensor([time.perf_counter() - begin, time.process_time() - used]) / steps * 1e3
    dist.all_reduce(taken, dist.ReduceOp.MAX)
    return taken.tolist()


def measure(name, rounds, views):
    import models
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    case, rank = models.make(name), dist.get_rank()
    torch.manual_seed(2 + rank)
    batches = [models.SET[name][1]() for _ in case.batches]
    loops = {}
    for system in SYSTEMS:
        loops[system, "one"] = loops[system, "apart"] = Loop(make_module(case.module, system), batches, case.loss)
        wrapped = DistributedDataParallel(make_module(case.module, system), gradient_as_bucket_view=views)
        loops[system, "ddp"] = Loop(wrapped, batches, case.loss)
        for way in ("one", "ddp"):
            time_steps(loops[system, way], 3, True)  # compiles, builds buckets anew
    once = max(time_steps(loops[system, "one"], 3, True)[0] for system in SYSTEMS)
    steps = max(1, round(400 / once))
    times = {key: [] for key in loops}
    for _ in range(rounds):
        for system, way in loops:
            times[system, way].append(time_steps(loops[system, way], steps, way != "one" or rank == 0))
    if rank == 0:
        for system in SYSTEMS:
            (one, apart, ddp), (one_used, _, ddp_used) = (
                [min(each[kind] for each in times[system, way]) for way in ("one", "apart", "ddp")] for kind in range(2)
            )
            shares = f"{one / apart:.3f} | {one / ddp:.3f} | {one_used / ddp_used:.3f}"
            print(f"| {name} | {system} | {one:.1f} | {apart:.1f} | {ddp:.1f} | {shares} |", flush=True)
    return True


def small_case(name):
    """The model with a batch that is quick."""
    import models
    import torch

    torch.manual_seed(0)
    if name == "bert-mini":
        module, batch_of = models.Bert(4, 256, seq=32), models.sentences(4, 32)
    else:
        module, batch_of = models.build(name), models.images(8, 3, 32, 32, classes=10)
    torch.manual_seed(1)
    return module.train(), [[batch_of() for _ in range(2)] for _ in range(4)], models.LOSSES[models.SET[name][2]]


def check(name):
    """Whether every bit is what it must be."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    module, batches, loss = small_case(name)
    rank, good = dist.get_rank(), True
    for system in SYSTEMS:
        ranked = make_module(module, system)
        loop = Loop(DistributedDataParallel(ranked), [halves[rank] for halves in batches], loss)
        for _ in range(CHECKED_STEPS):
            loop.step()
        mine = torch.cat([each.detach().flatten() for each in ranked.parameters()])
        both = [torch.empty_like(mine) for _ in range(2)]
        dist.all_gather(both, mine)
        if rank:
            continue
        alone = Loop(make_module(module, system), batches, loss)
        for step in range(CHECKED_STEPS):
            alone.optimizer.zero_grad()
            for half in batches[step % len(batches)]:
                alone.backward(*half, share=2)
            alone.optimizer.step()
        wanted = torch.cat([each.detach().flatten() for each in alone.module.parameters()])
        apart, away = (int((both[0] != other).sum()) for other in (both[1], wanted))
        moved = float((wanted - torch.cat([each.detach().flatten() for each in module.parameters()])).abs().max())
        differ = f"{apart} differ between ranks and {away} from one process"
        print(f"{name}, {system}: of {wanted.numel()} parameters, moved by up to {moved:.3g}, {differ}", flush=True)
        good &= not apart and not away and moved > 0
    dist.barrier()
    return good


def work(args):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    dist.init_process_group("gloo")
    if dist.get_rank() == 0 and not args.check:
        ddp = "DDP, views of buckets" if args.views else "DDP"
        shares = "share apart | share with DDP | by processor time"
        print(f"| model | | one, ms | two apart | two with {ddp} | {shares} |\n|{'---|' * 8}", flush=True)
    good = all([check(name) if args.check else measure(name, args.rounds, args.views) for name in args.names])
    dist.destroy_process_group()
    return not good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--views", action="store_true", help="gradients are views of the buckets of DDP")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if "RANK" in os.environ:
        sys.exit(work(args))
    os.environ["OMP_NUM_THREADS"] = "1"
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    os.execv(sys.executable, [sys.executable, "-B", *launcher, __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main()
