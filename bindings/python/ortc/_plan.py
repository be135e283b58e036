"""The memory plan of an artifact, as text and as a picture.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import html
import json
import os
import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ortc._errors import CompileError

if TYPE_CHECKING:
    from ortc._artifact import Artifact

_WIDTH, _HEIGHT = 720, 320


def _format_bytes(size: int) -> str:
    value = float(size)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} GiB"


class Plan:
    """What the compiler has planned. For an artifact that ortc.compile has made in this process it is whole, from `ortc
    plan`; of one that was loaded there is what its manifest has: sizes, and the step that needs most."""

    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact

    @property
    def entries(self) -> list[dict[str, Any]]:
        """Of each step: its name and its memory (docs/manifest.md)."""
        entries: list[dict[str, Any]] = self._artifact.manifest.get("entries", [])
        return entries

    def _run(self, *arguments: str) -> str:
        """`ortc plan` with the flags of the compilation that it takes."""
        from ortc._compile import list_flags, run_compiler

        if not self._artifact.plan_command:
            raise CompileError("an artifact that was loaded has no whole plan; compile it in this process")
        known = list_flags("plan")
        source, *flags = self._artifact.plan_command
        taken: list[str] = []
        is_taken = True
        for flag in flags:
            is_taken = flag in known if flag.startswith("--") else is_taken
            taken += [flag] if is_taken else []
        return run_compiler(["plan", source, *taken, *arguments])[0]

    @cached_property
    def report(self) -> dict[str, Any]:
        """Every step and buffer (docs/commands/plan.md)."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "plan.json"
            self._run("--report", str(file), "--quiet")
            report: dict[str, Any] = json.loads(file.read_text())
            return report

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """The page of `ortc plan --html`: the arena over time, with the tensors of every step."""
        self._run("--html", os.fspath(path), "--quiet")

    @cached_property
    def _text(self) -> str:
        if self._artifact.plan_command:
            return self._run().rstrip()
        memory = self._artifact.manifest.get("memory", {})
        lines = [
            f"persistent {_format_bytes(memory.get('persistent', 0))}, "
            f"constants {_format_bytes(memory.get('constants', 0))}"
        ]
        for entry in self.entries:
            lines.append(f"transient  {entry['name']}: {_format_bytes(entry['memory']['transient'])}")
            for tensor in entry["memory"].get("peak", {}).get("tensors", []):
                lines.append(f"    {_format_bytes(tensor['bytes']):>10}  {tensor['name']}  {tensor['type']}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def svg(self, entry: str | None = None) -> str:
        """The buffers of a step's entry, as rectangles: time goes to the right, memory upwards."""
        if self._artifact.plan_command:
            entries = self.report["entries"]
            buffers_of = {each["name"]: each["buffers"] for each in entries}
            steps_of = {each["name"]: len(each["steps"]) for each in entries}
        else:  # the step that needs most
            buffers_of = {each["name"]: each["memory"].get("peak", {}).get("tensors", []) for each in self.entries}
            steps_of = {each["name"]: each.get("steps", 1) for each in self.entries}
        name = entry or next(iter(buffers_of))
        buffers, steps = buffers_of[name], max(steps_of[name], 1)
        top = max((each["offset"] + each["bytes"] for each in buffers), default=1)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT + 20}" '
            f'viewBox="0 0 {_WIDTH} {_HEIGHT + 20}" font-family="sans-serif" font-size="12">'
        ]
        for each in buffers:
            x, y = each["first"] / steps * _WIDTH, (1 - (each["offset"] + each["bytes"]) / top) * _HEIGHT
            width = (each["last"] - each["first"] + 1) / steps * _WIDTH
            height = each["bytes"] / top * _HEIGHT
            hue = sum(each["name"].encode()) * 47 % 360
            title = f"{each['name']}: {_format_bytes(each['bytes'])}, steps {each['first']} to {each['last']}"
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="hsl({hue},55%,70%)" '
                f'stroke="white" stroke-width="0.5"><title>{html.escape(title)}</title></rect>'
            )
        label = f"{name}: {_format_bytes(top)}, {steps} steps"
        parts.append(f'<text x="0" y="{_HEIGHT + 15}">{html.escape(label)}</text></svg>')
        return "".join(parts)

    def _repr_html_(self) -> str:
        return f"{self.svg()}<pre>{html.escape(str(self))}</pre>"
