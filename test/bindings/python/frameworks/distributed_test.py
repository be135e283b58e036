"""DistributedDataParallel over gloo: two processes that torchrun starts.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import unittest
from typing import Any

import torch
from distributed_worker import STEPS
from launch import run_workers
from modules import distance, use_own_cache

FAR = 1e-5
"""Of float32 after eight steps; the largest seen is 6e-7."""


def setUpModule() -> None:
    use_own_cache()


class DistributedTest(unittest.TestCase):
    """Compiled modules over DistributedDataParallel are eager ones over it."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.ranks: list[dict[str, Any]] = run_workers("distributed_worker.py", 2)

    def agree(self, case: str, calls: int = STEPS, far: float = FAR) -> None:
        """Ranks have parameters of the same bits, and are not far from eager ones, running statistics included."""
        first, second = (rank[case] for rank in self.ranks)
        for name, tensor in first["compiled"]["state"].items():
            if "running" not in name:  # which each rank has moved last
                self.assertTrue(torch.equal(tensor, second["compiled"]["state"][name]), name)
        for each in (first, second):
            self.assertEqual(each["calls"], calls)
            for kind in ("state", "gradients"):
                self.assertEqual(each["compiled"][kind].keys(), each["eager"][kind].keys())
                for name, wanted in each["eager"][kind].items():
                    got = each["compiled"][kind][name]
                    self.assertEqual(got is None, wanted is None, name)
                    if wanted is not None:
                        self.assertLess(distance(wanted, got), far, f"{kind} {name}")
        self.assertNotEqual(first["compiled"]["losses"], second["compiled"]["losses"])

    def test_plain(self) -> None:
        self.agree("plain")

    def test_one_process_that_adds_up_has_the_same_bits(self) -> None:
        """Halving is exact, and a sum of two numbers has no order."""
        for name, wanted in self.ranks[0]["alone"].items():
            if "norm.running" not in name and "tracked" not in name:  # which have moved twice as often
                self.assertTrue(torch.equal(wanted, self.ranks[1]["plain"]["compiled"]["state"][name]), name)

    def test_steps_without_communication(self) -> None:
        self.agree("accumulated", 3 * STEPS)

    def test_static_graphs_and_views_of_buckets(self) -> None:
        for case in ("static", "views", "static views"):
            with self.subTest(case):
                self.agree(case)

    def test_buffers_are_those_of_the_first_rank_before_each_step(self) -> None:
        self.agree("own buffers")
        first, second = ([rank[case]["compiled"]["state"]["norm.running_mean"] for case in ("plain", "own buffers")] for rank in self.ranks)
        self.assertTrue(torch.equal(*first))
        self.assertFalse(torch.equal(*second))

    def test_hooks_of_communication(self) -> None:
        self.agree("hook")
        for rank in self.ranks:
            compiled, eager = (rank["hook"][kind]["buckets"] for kind in ("compiled", "eager"))
            self.assertEqual(compiled, eager)
            self.assertEqual(len(set(compiled)), 5)
        # Gradients travel with 8 bits: another last bit of one is 2^-8 of it.
        self.agree("bf16 hook", far=2.0**-8)

    def test_parameters_that_are_not_used(self) -> None:
        self.agree("unused")

    def test_dropout_masks(self) -> None:
        one, two = ([rank[f"masks of {seeds}"] for rank in self.ranks] for seeds in ("one seed", "two seeds"))
        self.assertTrue(torch.equal(*one))
        self.assertGreater(int((two[0] != two[1]).sum()), 64)  # 128 of 256 are expected
        self.assertTrue(torch.equal(one[0], two[0]))


if __name__ == "__main__":
    unittest.main()
