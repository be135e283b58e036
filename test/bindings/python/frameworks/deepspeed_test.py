"""DeepSpeed on processors: ZeRO 1 and 2 over compiled modules, in one process and in two.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import unittest

import torch
from launch import run_workers
from modules import use_own_cache
from optional import needs

FAR = 1e-5
"""A thousandth of an update of AdamW, whose rate is 1e-2: it divides gradients by their own size. The largest seen is 1.5e-7."""


def setUpModule() -> None:
    use_own_cache()


@needs("deepspeed")
class DeepSpeedTest(unittest.TestCase):
    def agree(self, processes: int) -> None:
        ranks = run_workers("deepspeed_worker.py", processes, DS_ACCELERATOR="cpu")
        for stage in (1, 2):
            for rank, results in enumerate(ranks):
                eager, compiled = results[stage]
                self.assertEqual(compiled["calls"], 12)
                for name, wanted in eager["state"].items():
                    got = compiled["state"][name]
                    self.assertLess(float((got - wanted).abs().max()), FAR, f"stage {stage}, rank {rank}: {name}")
                    self.assertTrue(torch.equal(got, ranks[0][stage][1]["state"][name]), f"stage {stage}: {name} differs between ranks")

    def test_one_process(self) -> None:
        self.agree(1)

    def test_two_processes(self) -> None:
        self.agree(2)


if __name__ == "__main__":
    unittest.main()
