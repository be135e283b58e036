"""Cases of deepspeed_test.py: a compiled module and an eager twin under ZeRO 1 and 2, each in as many processes as there are.

    torchrun --nproc-per-node N deepspeed_worker.py FOLDER

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import sys
from typing import Any

import deepspeed
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import ortc.torch

STEPS, BATCH = 6, 4


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Linear(6, 40), nn.Linear(40, 40), nn.Linear(40, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.third(torch.tanh(self.second(torch.tanh(self.first(x)))))


def train(stage: int, is_compiled: bool) -> dict[str, Any]:
    """Parameters after steps of two batches each; every process has its part of each batch."""
    torch.manual_seed(0)
    module = Net()
    if is_compiled:
        ortc.torch.compile_(module, wait=True, fallback="error")
    engine, *_ = deepspeed.initialize(
        model=module,
        optimizer=torch.optim.AdamW(module.parameters(), lr=1e-2),
        config={
            "train_micro_batch_size_per_gpu": BATCH,
            "gradient_accumulation_steps": 2,
            "gradient_clipping": 0.5,
            "zero_optimization": {"stage": stage, "reduce_bucket_size": 1000},
            "zero_allow_untested_optimizer": True,
        },
    )
    torch.manual_seed(1)
    rank, size = dist.get_rank(), dist.get_world_size()
    for _ in range(2 * STEPS):
        x, y = torch.randn(size * BATCH, 6), torch.randint(3, (size * BATCH,))
        part = slice(rank * BATCH, (rank + 1) * BATCH)
        engine.backward(F.cross_entropy(engine(x[part]), y[part]))
        engine.step()
    state = {name: each.detach().clone() for name, each in module.named_parameters()}
    return {"state": state, "calls": ortc.torch.report(module).compiled if is_compiled else 0}


def main() -> None:
    torch.set_num_threads(1)
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # else it is compiled first, which takes minutes
    deepspeed.init_distributed(dist_backend="gloo")
    results = {stage: [train(stage, is_compiled) for is_compiled in (False, True)] for stage in (1, 2)}
    torch.save(results, f"{sys.argv[1]}/{dist.get_rank()}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
