"""Cases of distributed_test.py, all in one start of two processes: each trains a compiled module and an eager twin over
DistributedDataParallel, and writes down what became of both.

    torchrun --nproc-per-node 2 distributed_worker.py FOLDER

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

import ortc.torch

STEPS, BATCH = 8, 8


class Net(nn.Module):
    """Batch normalisation, so that there are buffers, and several buckets with bucket_cap_mb below."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(2, 8, 3, bias=False), nn.BatchNorm2d(8), nn.Linear(8 * 16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.norm(self.conv(x))).flatten(1))


class Unused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.spare = nn.Linear(72, 3), nn.Linear(72, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x.flatten(1))


def make_net(kind: type[nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return kind()


def train(module: nn.Module, hook: Callable[..., Any] | None = None, accumulate: int = 1, **options: Any) -> dict[str, Any]:
    """Parameters, buffers, last gradients and losses of one rank; every second rank has the second half of each batch."""
    wrapped = DistributedDataParallel(module, **options)
    buckets: list[int] = []
    if hook is not None:
        wrapped.register_comm_hook(None if hook in vars(default_hooks).values() else buckets, hook)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(1)
    rank, losses = dist.get_rank(), []
    for step in range(STEPS):
        optimizer.zero_grad()
        for i in range(accumulate):
            x, y = torch.randn(2 * BATCH, 2, 6, 6), torch.randint(3, (2 * BATCH,))
            part = slice(rank * BATCH, (rank + 1) * BATCH)
            with contextlib.nullcontext() if i == accumulate - 1 else wrapped.no_sync():
                loss = F.cross_entropy(wrapped(x[part]), y[part]) / accumulate
                loss.backward()
            losses.append(float(loss.detach()))
        optimizer.step()
    gradients = {name: each.grad for name, each in module.named_parameters()}
    return {"state": module.state_dict(), "gradients": gradients, "losses": losses, "buckets": buckets}


def add_up(buckets: list[int], bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """The mean over ranks; notes the buckets that it is given."""
    buckets.append(bucket.index())
    summed = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
    return summed.then(lambda done: done.value()[0] / dist.get_world_size())


def both(kind: type[nn.Module] = Net, **options: Any) -> dict[str, Any]:
    """The compiled module and the eager one."""
    compiled = ortc.torch.compile_(make_net(kind), wait=True, fallback="error")
    result = {"compiled": train(compiled, **options), "eager": train(make_net(kind), **options)}
    return result | {"calls": ortc.torch.report(compiled).compiled}


def train_alone() -> dict[str, torch.Tensor]:
    """Parameters and buffers of one process that goes through the parts of both ranks and adds up."""
    module = ortc.torch.compile_(make_net(Net), wait=True, fallback="error")
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(1)
    for _ in range(STEPS):
        optimizer.zero_grad()
        x, y = torch.randn(2 * BATCH, 2, 6, 6), torch.randint(3, (2 * BATCH,))
        for part in (slice(0, BATCH), slice(BATCH, 2 * BATCH)):
            (F.cross_entropy(module(x[part]), y[part]) / 2).backward()
        optimizer.step()
    return module.state_dict()


def draw(seed: int) -> torch.Tensor:
    """The mask of a compiled dropout."""
    module = ortc.torch.compile_(nn.Sequential(nn.Dropout(0.5), nn.Linear(64, 64, bias=False)), wait=True, fallback="error")
    nn.init.eye_(module[1].weight)
    wrapped = DistributedDataParallel(module)
    torch.manual_seed(seed)
    return wrapped(torch.ones(4, 64)).detach() != 0


CASES: dict[str, Callable[[], Any]] = {
    "plain": both,
    "accumulated": lambda: both(accumulate=3),
    "static": lambda: both(static_graph=True),
    "views": lambda: both(gradient_as_bucket_view=True),
    "static views": lambda: both(static_graph=True, gradient_as_bucket_view=True),
    "own buffers": lambda: both(forward_sync_buffers=False),
    "hook": lambda: both(hook=add_up, bucket_cap_mb=1e-6),  # each parameter is a bucket from the second step on
    "bf16 hook": lambda: both(hook=default_hooks.bf16_compress_hook),
    "unused": lambda: both(Unused, find_unused_parameters=True),
    "alone": train_alone,
    "masks of one seed": lambda: draw(5),
    "masks of two seeds": lambda: draw(5 + dist.get_rank()),
}


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.save({name: run() for name, run in CASES.items()}, f"{sys.argv[1]}/{dist.get_rank()}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
