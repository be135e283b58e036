"""ortc.torch.data: which samples are in which batch, and how many shapes there are.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import random
import unittest
from typing import Any

import torch
from torch.utils.data import DataLoader

from ortc.torch.data import BucketBatchSampler, PadToBucket

BUCKETS = [8, 16, 40]
LENGTHS = random.Random(0).choices((3, 8, 9, 15, 16, 17, 40), k=211)


def fit(batch: list[int]) -> int:
    """The bucket of a batch."""
    return next(bucket for bucket in BUCKETS if max(LENGTHS[i] for i in batch) <= bucket)


class BucketTest(unittest.TestCase):
    def epoch(self, epoch: int = 0, world: int = 1, **options: Any) -> list[list[list[int]]]:
        """By step and rank."""
        ranks = []
        for rank in range(world):
            sampler = BucketBatchSampler(LENGTHS, BUCKETS, 4, rank=rank, world=world, **options)
            sampler.set_epoch(epoch)
            batches = list(sampler)
            self.assertEqual(len(batches), len(sampler))
            ranks.append(batches)
        return [list(step) for step in zip(*ranks, strict=True)]

    def test_every_sample_once(self) -> None:
        for world in (1, 3):
            steps = self.epoch(world=world, drop_last=True)
            samples = [sample for step in steps for batch in step for sample in batch]
            self.assertEqual(len(samples), len(set(samples)))  # ranks have none in common
            self.assertEqual(len(samples), 211 // (4 * world) * (4 * world))
            self.assertTrue(all(len(batch) == 4 for step in steps for batch in step))
            whole = [sample for step in self.epoch(world=world) for batch in step for sample in batch]
            self.assertEqual(set(whole), set(range(211)))
            self.assertEqual(len(whole), -(-211 // (4 * world)) * 4 * world)

    def test_lengths(self) -> None:
        for world in (1, 3):
            steps = self.epoch(world=world, shuffle=False)
            buckets = [fit([sample for batch in step for sample in batch]) for step in steps]
            self.assertEqual(buckets, sorted(buckets))
            # Samples of a shorter bucket are in batches of a longer one only where the former had no whole batch left.
            for bucket in BUCKETS[1:]:
                shorter = [i for i in range(211) if LENGTHS[i] <= BUCKETS[BUCKETS.index(bucket) - 1]]
                guests = [i for step, own in zip(steps, buckets) if own == bucket for batch in step for i in batch if i in shorter]
                self.assertLess(len(guests), 4 * world)

    def test_order_follows_seed_and_epoch(self) -> None:
        self.assertEqual(self.epoch(), self.epoch())
        self.assertNotEqual(self.epoch(), self.epoch(epoch=1))
        self.assertNotEqual(self.epoch(), self.epoch(seed=5))
        self.assertEqual(self.epoch(epoch=1, shuffle=False), self.epoch(shuffle=False))
        buckets = [fit(step[0]) for step in self.epoch()]
        self.assertNotEqual(buckets, sorted(buckets))

    def test_the_last_batch_is_the_one_that_is_filled_up(self) -> None:
        for epoch in range(3):
            *steps, last = self.epoch(epoch, world=3)
            samples = [sample for step in steps for batch in step for sample in batch]
            self.assertEqual(len(set(samples)), 204)
            self.assertEqual(set(range(211)) - set(samples), {sample for batch in last for sample in batch})

    def test_fewer_samples_than_a_batch(self) -> None:
        few = [BucketBatchSampler([3, 9], BUCKETS, 4, rank=rank, world=2, shuffle=False) for rank in range(2)]
        self.assertEqual([list(each) for each in few], [[[0, 1, 0, 1]], [[0, 1, 0, 1]]])
        self.assertEqual(list(BucketBatchSampler([3, 9], BUCKETS, 4, drop_last=True)), [])
        self.assertEqual(list(BucketBatchSampler([], BUCKETS, 4)), [])

    def test_refuses(self) -> None:
        for arguments, text in (
            (([3, 41], BUCKETS, 4), "sample 1 has length 41, but the longest bucket is 40: cut it, or add a bucket"),
            (([3], [16, 8], 4), r"buckets are \[16, 8\], but must be lengths in rising order"),
            (([3], BUCKETS, 0), "batch_size=0"),
            (([3], BUCKETS, 4, 2, 2), "rank=2, world=2"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                BucketBatchSampler(*arguments)
        with self.assertRaisesRegex(ValueError, "length 41, but the longest bucket is 40"):
            PadToBucket(BUCKETS, {"x": 0})([{"x": torch.zeros(41)}])

    def test_types(self) -> None:
        """Nothing is cut off in silence."""
        join = PadToBucket([4], {"t": 0})
        with self.assertRaisesRegex(ValueError, "'t' are of several types: torch.float32, torch.int64"):
            join([{"t": torch.tensor([1, 2])}, {"t": torch.tensor([0.5, 1.5])}])
        with self.assertRaisesRegex(ValueError, "'t' is torch.int64, which has no 0.5"):
            PadToBucket([4], {"t": 0.5})([{"t": torch.tensor([1, 2])}])

    def test_loader(self) -> None:
        data = [{"x": torch.full((length, 2), i + 1.0), "label": torch.arange(length), "i": i} for i, length in enumerate(LENGTHS)]
        loader = DataLoader(
            data,
            batch_sampler=BucketBatchSampler(LENGTHS, BUCKETS, 4),
            collate_fn=PadToBucket(BUCKETS, {"x": 0, "label": -100}),
            num_workers=1,
        )
        shapes, seen = set(), set()
        for batch in loader:
            shapes.add((batch["x"].shape, batch["label"].shape))
            for x, label, i in zip(batch["x"], batch["label"], batch["i"].tolist(), strict=True):
                seen.add(i)
                self.assertTrue(torch.equal(x[: LENGTHS[i]], data[i]["x"]) and not x[LENGTHS[i] :].any())
                self.assertTrue(torch.equal(label[: LENGTHS[i]], data[i]["label"]) and (label[LENGTHS[i] :] == -100).all())
        self.assertEqual(seen, set(range(211)))
        self.assertEqual(shapes, {((4, bucket, 2), (4, bucket)) for bucket in BUCKETS})


if __name__ == "__main__":
    unittest.main()
