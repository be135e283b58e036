"""How often a module ran compiled code, and why it did not.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Report:
    """Calls of a module since compile_."""

    compiled: int = 0
    eager: Counter[str] = field(default_factory=Counter)
    """By reason."""
    artifacts: int = 0
    """In memory now; none are counted of optimizers."""
    failures: list[str] = field(default_factory=list)
    """What the exporter or the compiler has refused, in full."""

    def __str__(self) -> str:
        total = self.compiled + sum(self.eager.values())
        held = f" ({self.artifacts} artifacts)" if self.artifacts else ""
        lines = [f"{total} calls: {self.compiled} compiled{held}, {total - self.compiled} eager"]
        lines += [f"  {count} eager: {reason}" for reason, count in self.eager.most_common()]
        lines += [f"  failed: {text}" for text in self.failures]
        return "\n".join(lines)
