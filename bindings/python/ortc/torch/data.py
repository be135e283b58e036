"""Batches of few shapes: each shape is a compilation.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.distributed
from torch.utils.data import Sampler, default_collate

__all__ = ["BucketBatchSampler", "PadToBucket"]


def _check(buckets: Sequence[int]) -> list[int]:
    if not buckets or list(buckets) != sorted(set(buckets)) or buckets[0] < 0:
        raise ValueError(f"buckets are {list(buckets)}, but must be lengths in rising order")
    return list(buckets)


class BucketBatchSampler(Sampler):  # type: ignore[misc]
    """For DataLoader(batch_sampler=...): every batch has samples of like length, for which one of `buckets` is long enough.

    All batches have `batch_size` samples, and every rank has as many, of the same bucket at the same step. What is left of a
    bucket goes into the next longer one, so that an epoch has every sample once, and only the last batch may lack some:
    without it with `drop_last`, otherwise filled up with samples of its own.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        buckets: Sequence[int],
        batch_size: int,
        rank: int | None = None,
        world: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        """`lengths`: of all samples. `rank` and `world`: those of torch.distributed where they are not given; all ranks
        have the same `seed`."""
        is_distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
        self.rank = rank if rank is not None else torch.distributed.get_rank() if is_distributed else 0
        self.world = world if world is not None else torch.distributed.get_world_size() if is_distributed else 1
        if batch_size < 1 or not 0 <= self.rank < self.world:
            raise ValueError(f"batch_size={batch_size}, rank={self.rank}, world={self.world}: sizes begin at 1, ranks end below world")
        self.buckets = _check(buckets)
        self.batch_size = batch_size
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        self.epoch = 0
        self.members: list[list[int]] = [[] for _ in self.buckets]
        """Samples by bucket."""
        for sample, length in enumerate(lengths):
            place = bisect_left(self.buckets, length)
            if place == len(self.buckets):
                limit = self.buckets[-1]
                raise ValueError(f"sample {sample} has length {length}, but the longest bucket is {limit}: cut it, or add a bucket")
            self.members[place].append(sample)

    def set_epoch(self, epoch: int) -> None:
        """Another epoch has another order."""
        self.epoch = epoch

    def __len__(self) -> int:
        samples, size = sum(map(len, self.members)), self.batch_size * self.world
        return samples // size if self.drop_last else -(-samples // size)

    def __iter__(self) -> Iterator[list[int]]:
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        size = self.batch_size * self.world
        batches: list[list[int]] = []
        rest: list[int] = []
        for members in self.members:
            if self.shuffle:
                members = [members[i] for i in torch.randperm(len(members), generator=generator).tolist()]
            rest = rest + members
            whole = len(rest) // size * size
            batches += [rest[first : first + size] for first in range(0, whole, size)]
            rest = rest[whole:]
        if self.shuffle:
            batches = [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]
        if rest and not self.drop_last:
            batches.append([rest[i % len(rest)] for i in range(size)])
        for batch in batches:
            yield batch[self.rank * self.batch_size : (self.rank + 1) * self.batch_size]


class PadToBucket:
    """For DataLoader(collate_fn=...): samples are dicts; tensors that `padding` names are filled up along their first axis,
    with the number there, to the shortest bucket that the batch fits. The others are put together as usual."""

    def __init__(self, buckets: Sequence[int], padding: Mapping[str, float]) -> None:
        self.buckets, self.padding = _check(buckets), dict(padding)

    def __call__(self, samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        longest = max(len(sample[name]) for sample in samples for name in self.padding)
        place = bisect_left(self.buckets, longest)
        if place == len(self.buckets):
            limit = self.buckets[-1]
            raise ValueError(f"a sample has length {longest}, but the longest bucket is {limit}: cut it, or add a bucket")
        length = self.buckets[place]
        return {name: self._join(name, [sample[name] for sample in samples], length) for name in samples[0]}

    def _join(self, name: str, values: list[Any], length: int) -> Any:
        if name not in self.padding:
            return default_collate(values)
        tensors = [torch.as_tensor(value) for value in values]
        if len({tensor.dtype for tensor in tensors}) > 1:
            raise ValueError(f"samples of '{name}' are of several types: {', '.join(sorted({str(each.dtype) for each in tensors}))}")
        shape = (len(tensors), length, *tensors[0].shape[1:])
        joined = torch.full(shape, self.padding[name], dtype=tensors[0].dtype)
        filled = joined.reshape(-1)[:1]
        if bool((filled == filled).all()) and bool((filled != self.padding[name]).any()):  # NaN is no other number than itself
            raise ValueError(f"'{name}' is {joined.dtype}, which has no {self.padding[name]} to fill up with")
        for row, tensor in zip(joined, tensors):
            row[: len(tensor)] = tensor
        return joined
