"""The name of the backend of torch.compile where no wheel says it, as on PYTHONPATH: dynamo looks for entry points when it
first needs one, and importing it here would take a second.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_FILES = {
    "METADATA": "Metadata-Version: 2.1\nName: ortc-backend\nVersion: 0\n",
    "entry_points.txt": "[torch_dynamo_backends]\nortc = ortc.torch._dynamo:backend\n",
}


class _Distribution(importlib.metadata.Distribution):
    def read_text(self, filename: str) -> str | None:
        return _FILES.get(filename)

    def locate_file(self, path: Any) -> Any:
        return Path(__file__).parent / path


class Finder:
    """One of sys.meta_path, only for importlib.metadata."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        return None

    def find_distributions(self, context: Any) -> Iterable[importlib.metadata.Distribution]:
        return [_Distribution()] if context.name in (None, "ortc-backend") else []


def publish() -> None:
    """Makes the backend known, unless dynamo has looked already: then it is registered."""
    registry: Any = sys.modules.get("torch._dynamo.backends.registry")
    if registry is None:
        sys.meta_path.append(Finder())
    elif "ortc" not in registry.list_backends():
        from ortc.torch._dynamo import backend

        registry.register_backend(backend, name="ortc")
