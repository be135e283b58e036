"""Artifacts: the file that a compilation leaves, and what it says of itself.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import os
import struct
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ortc import _runtime
from ortc._errors import FormatError

if TYPE_CHECKING:
    from ortc._plan import Plan

# runtime/include/ortc/format.h
_MAGIC = b"ORTC\r\n\x1a\n"
_SECTION_MANIFEST = 11
_DIGEST = 88
"""Where the header has its hash."""


@dataclass(frozen=True)
class Tensor:
    """A row of the tensor table."""

    name: str
    role: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    owner: str | None


def _read_manifest(path: Path) -> bytes:
    """From the file itself: it may have code for devices alone, which the runtime does not open without one."""
    try:
        with path.open("rb") as file:
            head = file.read(32)
            if head[:8] != _MAGIC:
                raise FormatError(f"{path}: is no artifact of ortc")
            header_bytes, _, count, row = struct.unpack_from("<IQII", head, 12)
            file.seek(header_bytes)
            table = file.read(count * row)
            for at in range(0, count * row, row):
                kind, _, offset, size = struct.unpack_from("<IIQQ", table, at)
                if kind == _SECTION_MANIFEST:
                    file.seek(offset)
                    return file.read(size)
    except (struct.error, MemoryError, OverflowError) as error:
        raise FormatError(f"{path}: is damaged: {error}") from error
    return b"{}"


def read_digest(path: str | os.PathLike[str]) -> str:
    """The hash of header and section table, which has those of the sections: what a signature is of. Raises FormatError."""
    with open(path, "rb") as file:
        head = file.read(_DIGEST + 32)
    if head[:8] != _MAGIC or len(head) != _DIGEST + 32:
        raise FormatError(f"{os.fspath(path)}: is no artifact of ortc")
    return head[_DIGEST:].hex()


class Artifact:
    """An artifact on disk. Sessions train it; it stays as it is."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        given = Path(path)
        self.path = given / "model.ortc" if given.is_dir() else given
        self._programs: dict[str, _runtime.Program] = {}
        self.plan_command: list[str] = []
        """The arguments of `ortc plan` that this artifact was compiled with; empty where they are not known."""
        self.notes: list[str] = []
        """What the compiler has noted."""
        self.manifest  # noqa: B018 - what is no artifact is refused now

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What the compiler says of it (docs/manifest.md)."""
        try:
            manifest = json.loads(_read_manifest(self.path))
        except ValueError as error:
            raise FormatError(f"{self.path}: has no readable manifest: {error}") from error
        if not isinstance(manifest, dict):
            raise FormatError(f"{self.path}: has no readable manifest")
        return manifest

    def list_files(self) -> list[tuple[str, str | os.PathLike[str]]]:
        """Those that nothing may overwrite, and what each is."""
        return [("the artifact's", self.path), ("the artifact's", self.path.parent / "manifest.json")]

    def program(self, device: str = "cpu") -> _runtime.Program:
        """Opened for a device: "cpu", "cuda", "hip", "cuda:1", ... Sessions of one device share it."""
        if device not in self._programs:
            self._programs[device] = _runtime.Program(os.fspath(self.path), device)
        return self._programs[device]

    @cached_property
    def tensors(self) -> dict[str, Tensor]:
        """Parameters, constants, state, scalars, inputs and outputs, by name."""
        program = next(iter(self._programs.values()), None) or self.program()
        rows = [Tensor(*row) for row in program.tensors()]
        return {row.name: row for row in rows if row.role not in ("gradient", "loss")}

    def names(self, role: str) -> tuple[str, ...]:
        """Of the tensors of a role, such as "parameter" or "scalar"."""
        return tuple(name for name, tensor in self.tensors.items() if tensor.role == role)

    @property
    def bindings(self) -> list[str]:
        return [binding["name"] for binding in self.manifest.get("bindings", [])]

    def batch_axes(self, binding: str) -> dict[str, int]:
        """Of outputs of a binding that have the batch, but not in front: which axis it is."""
        found = (each for each in self.manifest.get("bindings", []) if each["name"] == binding)
        return {each["name"]: each["batch_axis"] for one in found for each in one["outputs"] if "batch_axis" in each}

    @cached_property
    def plan(self) -> Plan:
        """The memory plan: print it, or show it in a notebook."""
        from ortc._plan import Plan

        return Plan(self)

    def __repr__(self) -> str:
        targets = ", ".join(target["name"] for target in self.manifest.get("targets", []))
        return f"<ortc.Artifact {self.manifest.get('name', '?')} for {targets}: {self.path}>"


def load(path: str | os.PathLike[str]) -> Artifact:
    """Opens an artifact: the folder that the compiler has written, or the file model.ortc."""
    return Artifact(path)
