"""Ray Train: two workers on processors, over a compiled module.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import pathlib
import tempfile
import unittest
from typing import Any

import torch
from modules import use_own_cache
from optional import needs

STEPS, BATCH = 8, 8
FAR = 1e-6
"""Eight steps on parameters below one, which each step rounds to 2^-24; the largest seen is 3e-8."""


def setUpModule() -> None:
    use_own_cache()


def train_worker(config: dict[str, Any]) -> None:
    """Runs in each worker."""
    import ray.train
    import ray.train.torch
    import torch.nn.functional as F
    from torch import nn

    import ortc.torch

    torch.set_num_threads(1)
    rank = ray.train.get_context().get_world_rank()
    results = []
    for is_compiled in (False, True):
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
        if is_compiled:
            ortc.torch.compile_(module, wait=True, fallback="error")
        wrapped = ray.train.torch.prepare_model(module)
        optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1, momentum=0.9)
        torch.manual_seed(1)
        for _ in range(STEPS):
            x, y = torch.randn(2 * BATCH, 6), torch.randint(3, (2 * BATCH,))
            part = slice(rank * BATCH, (rank + 1) * BATCH)
            optimizer.zero_grad()
            F.cross_entropy(wrapped(x[part]), y[part]).backward()
            optimizer.step()
        results.append({"state": module.state_dict(), "calls": ortc.torch.report(module).compiled if is_compiled else 0})
    torch.save(results, f"{config['folder']}/{rank}.pt")


@needs("ray")
class RayTest(unittest.TestCase):
    def test_two_workers(self) -> None:
        import ray
        import ray.train
        import ray.train.torch

        path = os.pathsep.join([str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        with tempfile.TemporaryDirectory() as folder:
            ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": path}})
            self.addCleanup(ray.shutdown)
            ray.train.torch.TorchTrainer(
                train_worker,
                train_loop_config={"folder": folder},
                scaling_config=ray.train.ScalingConfig(num_workers=2, use_gpu=False, resources_per_worker={"CPU": 0.5}),
                run_config=ray.train.RunConfig(storage_path=folder, name="run"),
            ).fit()
            ranks = [torch.load(f"{folder}/{rank}.pt") for rank in range(2)]
        for eager, compiled in ranks:
            self.assertEqual(compiled["calls"], STEPS)
            for name, wanted in eager["state"].items():
                got = compiled["state"][name]
                self.assertLess(float((got - wanted).abs().max()), FAR, name)
                self.assertTrue(torch.equal(got, ranks[0][1]["state"][name]), name)


if __name__ == "__main__":
    unittest.main()
