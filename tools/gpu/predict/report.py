"""The launches of a step with their times, as a table and as JSON.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import dataclasses
import json
import math
import pathlib
from typing import Any

from predict import timing
from predict.artifact import Unusable
from predict.facts import Facts, work_of

PRODUCTS = ("dot", "conv", "matmul")


@dataclasses.dataclass
class Row:
    """All launches of a kernel with the same number of blocks and the same buffers."""

    kernel: str
    work: str
    times: int
    blocks: int
    threads: int
    registers: int
    time: timing.Time

    def seconds(self) -> float:
        return self.times * self.time.seconds


@dataclasses.dataclass
class Step:
    name: str
    target: str
    entry: str
    machine: str
    rows: list[Row]

    def seconds(self) -> float:
        return sum(row.seconds() for row in self.rows)

    def launches(self) -> int:
        return sum(row.times for row in self.rows)


def read_counts(path: pathlib.Path) -> dict[tuple[str, int], timing.Counts]:
    """By function and blocks: rows of the same launch are equal except for the data."""
    try:
        rows = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Unusable(f"{path}: {error}") from None
    counts = {}
    for row in rows:
        accesses = row["global"]
        asked = (accesses["block_bytes_read"] + accesses["block_bytes_written"]) * math.prod(row["grid"])
        wavefronts = sum(each["wavefronts"] for each in row["loop"]["shared_accesses"].values()) if row["loop"] else 0
        touched = accesses["distinct_bytes_read"] + accesses["distinct_bytes_written"] if row["blocks_run"] == math.prod(row["grid"]) else None
        counts[row["kernel"], math.prod(row["grid"])] = timing.Counts(touched, asked, wavefronts)
    return counts


def predict(facts: Facts, machine: timing.Machine, entry: str | None, counts: pathlib.Path | None) -> Step:
    entry = entry or next((name for name in ("train", "predict") if name in facts.entries), next(iter(facts.entries)))
    if entry not in facts.entries:
        raise Unusable(f"{facts.name} has no entry {entry}, only {', '.join(facts.entries)}")
    found = read_counts(counts) if counts else {}
    rows = []
    for launch, times in facts.entries[entry].items():
        kernel, function = facts.kernels[launch.kernel], facts.functions[launch.kernel]
        work, number = work_of(facts, launch.kernel)
        kind = work.get("work", launch.kernel)
        isOnly = number == 0 and f"{launch.kernel}_1" not in facts.kernels
        known = timing.Work(launch, kernel.threads, kernel.shared, function, work.get("flops") if number == 0 and kind.startswith(PRODUCTS) else None,
                            work.get("bytes") if isOnly else None, facts.steps.get(launch.kernel), found.get((launch.kernel, launch.blocks)))
        title = " ".join([kind, work.get("shape", ""), f"({number + 1})" if number else ""]).strip()
        rows.append(Row(launch.kernel, title, times, launch.blocks, kernel.threads, function.registers, timing.predict(machine, known)))
    rows.sort(key=lambda row: -row.seconds())
    return Step(facts.name, facts.target, entry, machine.name, rows)


def describe(step: Step) -> dict[str, Any]:
    rows = [{**dataclasses.asdict(row), "ms": row.seconds() * 1e3} for row in step.rows]
    return {"model": step.name, "target": step.target, "entry": step.entry, "machine": step.machine, "ms": step.seconds() * 1e3,
            "launches": step.launches(), "bounds": sum_bounds(step), "kernels": rows}


def sum_bounds(step: Step) -> dict[str, float]:
    """Milliseconds of launches by their limit."""
    sums: dict[str, float] = {}
    for row in step.rows:
        sums[row.time.bound] = sums.get(row.time.bound, 0.0) + row.seconds() * 1e3
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def format_table(step: Step, top: int) -> str:
    lines = [f"{'ms':>8} {'times':>6} {'us each':>8} {'blocks':>7} {'thr':>4} {'regs':>4} {'res':>3}  {'bound':13} kernel"]
    for row in step.rows[:top]:
        lines.append(f"{row.seconds() * 1e3:8.3f} {row.times:6} {row.time.seconds * 1e6:8.1f} {row.blocks:7} {row.threads:4} {row.registers:4} {row.time.resident:3}  "
                     f"{row.time.bound:13} {row.kernel} {row.work}")
    others = step.rows[top:]
    if others:
        lines.append(f"{sum(row.seconds() for row in others) * 1e3:8.3f} {sum(row.times for row in others):6} {len(others)} more")
    bounds = ", ".join(f"{name} {ms:.2f}" for name, ms in sum_bounds(step).items())
    lines.append(f"{step.seconds() * 1e3:8.3f} ms in {step.launches()} launches: {step.entry} of {step.name} for {step.target} on {step.machine}")
    return "\n".join([*lines, f"ms by bound: {bounds}"])
