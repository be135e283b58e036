"""The time of a launch, from what its kernel is made of and the constants of a machine.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

A multiprocessor has as many blocks as its registers, shared memory and threads allow. Blocks that reside together share its pipelines, and
each waits while others work; all blocks are equal, so they come in waves, and the last wave may have few. As the compiler estimates when it
chooses tiles (compiler/backends/gpu/product/ProductCut.cpp), a step of a loop takes max(n * busy, busy + latency) cycles with n blocks.
"""
import dataclasses
import json
import math
import pathlib

from predict.artifact import Launch, Unusable
from predict.sass import Function, Region

WARP = 32
REGISTERS_OF_A_GRANULE = 256  # of a warp
LEAST_OF_A_STEP = 32  # multiplications of a loop that is the step of a product


@dataclasses.dataclass
class Machine:
    """Constants; tools/gpu/machines has them, and docs/gpu.md says where each is from. Cycles are of a multiprocessor."""

    name: str
    multiprocessors: int
    clock: float
    schedulers: int
    registers: int
    shared_bytes: int
    shared_bytes_of_a_block: int
    threads: int
    blocks: int
    issue_efficiency: float
    step_latency: float
    bytes_per_second: float
    launch_seconds: float
    cache_bytes: float
    cache_latency: float
    memory_latency: float
    prefetched_share: float
    copied_share: float
    instruction_latency: float
    cache_bytes_per_second: float
    integers_per_cycle: float
    specials_per_cycle: float
    doubles_per_cycle: float
    wavefronts_per_cycle: float
    matrix_cycles: dict[str, float]


def read_machine(path: pathlib.Path) -> Machine:
    try:
        return Machine(**json.loads(path.read_text()))
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}") from None
    except (TypeError, ValueError) as error:
        raise Unusable(f"{path} is no machine: {error}") from None


@dataclasses.dataclass
class Counts:
    """Of all blocks of a launch, as the emulator counts."""

    bytes: float | None  # distinct ones, read and written; None where only a sample of the blocks has run
    asked: float  # distinct ones of each block, summed up: what it has in no cache of its own
    wavefronts: float  # of shared memory in the main loop, with bank conflicts


@dataclasses.dataclass
class Work:
    """A launch and what is known of it."""

    launch: Launch
    threads: int
    dynamic: int  # bytes of shared memory
    function: Function
    flops: float | None = None  # of the kernel, where this is the launch that multiplies
    bytes: float | None = None  # that the kernel reads and writes at least
    steps: float | None = None  # of the main loop, by the compiler
    counts: Counts | None = None  # by the emulator


@dataclasses.dataclass
class Time:
    """Seconds of one launch: the sum, and the time that each limit by itself would take."""

    seconds: float
    bound: str
    parts: dict[str, float]
    resident: int


def count_resident(machine: Machine, function: Function, threads: int, dynamic: int) -> int:
    warps = math.ceil(threads / WARP)
    granules = math.ceil(max(function.registers, 16) * WARP / REGISTERS_OF_A_GRANULE)
    shared = function.shared + dynamic + machine.shared_bytes_of_a_block
    return max(1, min(machine.registers // (granules * REGISTERS_OF_A_GRANULE * warps), machine.shared_bytes // shared,
                      machine.threads // (warps * WARP), machine.blocks))


def find_step(function: Function) -> int | None:
    """The loop that multiplies most, where it is the step of a product: its warps meet, which those of other loops do not."""
    weight = lambda region: (sum(region.matrix.values()) * 1000 + region.multiplications) * (region.barriers > 0)
    best = max(range(1, len(function.regions)), key=lambda i: weight(function.regions[i]), default=None)
    return best if best is not None and weight(function.regions[best]) >= LEAST_OF_A_STEP else None


def find_steps(function: Function) -> set[int]:
    """That loop, and others whose warps meet for products of matrices: attention has one for each pass over the keys."""
    step = find_step(function)
    others = {i for i, region in enumerate(function.regions) if i > 0 and region.matrix and region.barriers}
    return others if step is None else others | {step}


def count_executions(work: Work) -> list[float]:
    """How often a thread passes through each region; a loop whose trips nobody knows counts as one."""
    regions, step, steps = work.function.regions, find_step(work.function), find_steps(work.function)
    counts = [1.0] * len(regions)
    for i, region in enumerate(regions[1:], 1):
        trips = region.trips
        if i in steps and work.steps:
            trips = work.steps
        elif i in steps and trips is None and region.matrix:
            raise Unusable(f"{work.launch.kernel} multiplies matrices in a loop whose steps the artifact does not tell")
        elif i == step and trips is None and work.flops:
            trips = max(work.flops / 2 / (work.launch.blocks * work.threads * region.multiplications), 1)
        counts[i] = counts[region.parent or 0] * (trips or 1) * region.share
    return counts


def busy_cycles(machine: Machine, region: Region, warps: int) -> dict[str, float]:
    """Cycles of a multiprocessor in which a block passes through a region once, by what takes them."""
    lanes = warps * WARP
    matrix = 0.0
    for kind, count in region.matrix.items():
        if kind not in machine.matrix_cycles:
            raise Unusable(f"{machine.name} has no rate for {kind}")
        matrix += count * warps * machine.matrix_cycles[kind]
    issue = max(region.instructions * warps / machine.schedulers / machine.issue_efficiency, region.integers * lanes / machine.integers_per_cycle,
                region.specials * lanes / machine.specials_per_cycle, region.doubles * lanes / machine.doubles_per_cycle)
    return {"tensor cores": matrix, "issue": issue,
            "shared memory": region.wavefronts * warps / machine.wavefronts_per_cycle / machine.issue_efficiency}


def wait_cycles(machine: Machine, region: Region, isStep: bool, latency: float) -> float:
    """Cycles in which the warps of a block wait when they pass through a region once, beside those in which they work."""
    if isStep:
        if region.copies:
            return machine.step_latency * machine.copied_share
        if region.loaded:
            # Half of the multiplications are as good as all of them: their cycles are as many as a load takes.
            return machine.step_latency * (1 - min(2 * region.ahead, 1) * (1 - machine.prefetched_share))
        return 0.0
    return (latency if region.loaded else 0.0) + region.instructions * machine.instruction_latency


def count_bytes(work: Work, counts: list[float]) -> float:
    """Bytes that a launch moves at least: buffers that it uses, and no more than its threads ask for."""
    used = [work.launch.arguments[k] for k in work.function.parameters if k < len(work.launch.arguments)]
    least = float(sum(used))
    if work.counts and work.counts.bytes is not None:
        least = min(least, work.counts.bytes)
    if work.bytes is not None:
        least = min(least, work.bytes)
    if all(region.trips is not None for region in work.function.regions[1:]):
        asked = sum(count * (region.loaded + region.stored) for count, region in zip(counts, work.function.regions))
        least = min(least, asked * work.launch.blocks * work.threads)
    return least


def predict(machine: Machine, work: Work) -> Time:
    function, warps = work.function, math.ceil(work.threads / WARP)
    counts, step, steps = count_executions(work), find_step(function), find_steps(function)
    resident = count_resident(machine, function, work.threads, work.dynamic)
    # Where it fits into the cache, the kernel before has left it there.
    latency = machine.cache_latency if count_bytes(work, counts) < machine.cache_bytes / 2 else machine.memory_latency
    regions = list(function.regions)
    if work.counts and step is not None:
        passes = counts[step] * work.launch.blocks * warps
        regions[step] = dataclasses.replace(regions[step], wavefronts=work.counts.wavefronts / passes)
    busy = [busy_cycles(machine, region, warps) for region in regions]

    def wave(blocks: int) -> tuple[float, dict[str, float]]:
        """Cycles of a wave with so many blocks on the fullest multiprocessor; by limits."""
        cycles, limits = 0.0, {}
        for i, (region, count) in enumerate(zip(function.regions, counts)):
            name, most = max(busy[i].items(), key=lambda item: item[1])
            alone = most + wait_cycles(machine, region, i in steps, latency)
            spent = count * max(blocks * most, alone)
            cycles += spent
            name = name if blocks * most >= alone else "latency"
            limits[name] = limits.get(name, 0.0) + spent
        return cycles, limits

    whole, rest = divmod(work.launch.blocks, machine.multiprocessors * resident)
    cycles, limits = 0.0, {}
    for times, blocks in ((whole, resident), (1 if rest else 0, math.ceil(rest / machine.multiprocessors))):
        if times:
            spent, parts = wave(blocks)
            cycles += times * spent
            for name, part in parts.items():
                limits[name] = limits.get(name, 0.0) + times * part
    parts = {name: part / machine.clock for name, part in limits.items()}
    running = cycles / machine.clock
    parts["DRAM"] = count_bytes(work, counts) / machine.bytes_per_second
    if step is not None:
        asked = sum(count * region.loaded for count, region in zip(counts, function.regions)) * work.launch.blocks * work.threads
        parts["cache"] = (work.counts.asked if work.counts else asked) / machine.cache_bytes_per_second
    parts["launch"] = machine.launch_seconds
    limit = max(running, parts["DRAM"], parts.get("cache", 0.0))
    candidates = {name: part for name, part in parts.items() if limit == running or name in ("DRAM", "cache")}
    bound = max(candidates, key=lambda name: candidates[name]) if limit > machine.launch_seconds else "launch"
    return Time(limit + machine.launch_seconds, bound, parts, resident)
