"""Samplers that give all ranks about the same work in a step.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.utils.data
from numpy.typing import NDArray

from ortc._errors import ArgumentError


class LoadBalancingDistributedSampler:
    """Sorts samples by their work and deals neighbours out to the ranks. Without groups all are sorted, and an epoch shuffles the
    rounds of dealing; with `group_size` neighbours of the data set are sorted among themselves, and an epoch shuffles the groups."""

    def __init__(
        self,
        dataset: Any,
        complexity_fn: Callable[..., int],
        world_size: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        group_size: int | None = None,
        seed: int = 0,
        drop_last: bool = False,
        random_level: float = 0,
    ) -> None:
        self.world_size = dist.get_world_size() if world_size is None else world_size
        self.rank = dist.get_rank() if rank is None else rank
        if not 0 <= self.rank < self.world_size:
            raise ArgumentError(f"'rank' is {self.rank}, but must be at least 0 and below {self.world_size}")
        if not 0 <= random_level <= 1:
            raise ArgumentError(f"'random_level' is {random_level}, but must be from 0 to 1")
        self.dataset = dataset
        self.complexity_fn = complexity_fn
        self.shuffle = shuffle
        self.group_size = group_size
        self.seed = seed
        self.drop_last = drop_last
        self.random_level = random_level
        self.epoch = 0
        count = len(dataset)
        self.num_samples = count // self.world_size if drop_last else -(-count // self.world_size)
        self.total_size = self.num_samples * self.world_size

    @cached_property
    def _work(self) -> NDArray[np.int64]:
        return np.array([self.complexity_fn(self.dataset[i]) for i in range(len(self.dataset))], np.int64)

    def deal(self) -> NDArray[np.int64]:
        """Of this epoch: a row for each round, a column for each rank."""
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        work = self._work
        spread = int((work.max() - work.min()) * self.random_level + 1)
        if spread > 1:
            work = work + torch.randint(spread, (len(work),), generator=generator).numpy()
        size = self.group_size or len(work)
        groups = [begin + np.argsort(work[begin : begin + size], kind="stable") for begin in range(0, len(work), size)]
        if self.shuffle and self.group_size is not None:
            groups = [groups[i] for i in torch.randperm(len(groups), generator=generator)]
        # What is missing in the last round comes from the beginning; what is too much is left out.
        rounds = np.resize(np.concatenate(groups), self.total_size).reshape(self.num_samples, self.world_size)
        if self.shuffle and self.group_size is None:
            rounds = rounds[torch.randperm(len(rounds), generator=generator).numpy()]
        return rounds

    def __iter__(self) -> Iterator[int]:
        return iter(self.deal()[:, self.rank].tolist())

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


class LoadBalancingDistributedBatchSampler(torch.utils.data.Sampler):
    """Batches of different sizes: `batch_fn` makes them of a rank's indices. All ranks have the same number of batches: short ones
    begin again, or with `drop_last` long ones are cut."""

    def __init__(
        self, sampler: LoadBalancingDistributedSampler, batch_fn: Callable[[Sequence[int]], list[list[int]]], drop_last: bool = False
    ) -> None:
        if not isinstance(sampler, LoadBalancingDistributedSampler):
            raise ArgumentError(f"'sampler' is a {type(sampler).__qualname__}, but must be a LoadBalancingDistributedSampler")
        if sampler.drop_last:
            raise ArgumentError("'sampler' has drop_last, but must keep all samples: give drop_last to the batch sampler")
        self.sampler = sampler
        self.batch_fn = batch_fn
        self.drop_last = drop_last
        self.world_size = sampler.world_size
        self.rank = sampler.rank
        self.generate_batches()

    def generate_batches(self) -> None:
        """Of all ranks, as each must know how many the others have."""
        rounds = self.sampler.deal()
        batches = [self.batch_fn(rounds[:, rank].tolist()) for rank in range(self.world_size)]
        counts = [len(each) for each in batches]
        self.total_batch = min(counts) if self.drop_last else max(counts)
        self.padded_batches = [[each[i % len(each)] for i in range(self.total_batch)] for each in batches]

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.padded_batches[self.rank])

    def __len__(self) -> int:
        return self.total_batch

    def set_epoch(self, epoch: int) -> None:
        self.sampler.set_epoch(epoch)
        self.generate_batches()
