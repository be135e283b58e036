"""The findings of a comparison, as a table.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """One tensor, where it is farthest off for its tolerance."""

    what: str
    """output, gradient, gradient of input, statistics, or tensor (of a parameter or buffer that is not compared)."""
    name: str
    """As the module has it."""
    where: str = ""
    """The point."""
    difference: float = 0.0
    tolerance: float = 0.0
    reason: str = ""
    """The reason for the tolerance."""
    note: str = ""
    """How the file has it, where that is not as the module does."""
    passed: bool = True


@dataclass
class Comparison:
    """The comparison of a file with a module: str() is the table."""

    path: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return all(row.passed for row in self.rows)

    def __str__(self) -> str:
        cells = [("what", "where", "difference", "tolerance", "")]
        for row in self.rows:
            numbers = (f"{row.difference:.2g}", f"{row.tolerance:.2g}") if row.where else ("", "")
            reason = row.reason if row.where else ""
            said = "; ".join(each for each in (("" if row.passed else "DIFFERS"), reason, row.note) if each)
            cells.append((f"{row.what} {row.name}", row.where, *numbers, said))
        widths = [max(len(row[i]) for row in cells) for i in range(4)]
        lines = ["  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[4]]).rstrip() for row in cells]
        return "\n".join([*lines, *(f"note: {each}" for each in self.notes)])
