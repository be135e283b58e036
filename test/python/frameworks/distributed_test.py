"""DistributedDataParallel over gloo.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest

import torch
from modules import use_own_cache


def setUpModule() -> None:
    use_own_cache()


class DistributedTest(unittest.TestCase):
    """Two processes with halves of a batch are one process with the whole."""

    SCRIPT = """
import sys, torch, torch.distributed as dist, torch.nn.functional as F, ortc.torch
from torch import nn
rank, world, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous{world}", rank=rank, world_size=world)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
ortc.torch.compile_(model, wait=True, fallback="error")
wrapped = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(wrapped.parameters(), lr=1e-2)
x, y = torch.randn(8, 6), torch.randint(3, (8,))
part = slice(rank * 8 // world, (rank + 1) * 8 // world)
for step in range(20):
    optimizer.zero_grad()
    if step % 4 == 3:
        with wrapped.no_sync():
            F.cross_entropy(wrapped(x[part]), y[part]).backward()
    F.cross_entropy(wrapped(x[part]), y[part]).backward()
    optimizer.step()
assert ortc.torch.report(model).compiled == 25, str(ortc.torch.report(model))
torch.save(model.state_dict(), f"{folder}/{world}.{rank}.pt")
dist.destroy_process_group()
"""

    def test_two_processes(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for world in (1, 2):
                ranks = [
                    subprocess.Popen([sys.executable, "-c", self.SCRIPT, str(rank), str(world), folder], stderr=subprocess.PIPE, text=True)
                    for rank in range(world)
                ]
                for each in ranks:
                    errors = each.communicate()[1]
                    self.assertEqual(each.returncode, 0, errors)
            first, second, alone = (torch.load(f"{folder}/{name}.pt") for name in ("2.0", "2.1", "1.0"))
            for name in alone:
                self.assertTrue(torch.equal(first[name], second[name]), name)
                self.assertLess(float((first[name] - alone[name]).abs().max()), 1e-4, name)

if __name__ == "__main__":
    unittest.main()
