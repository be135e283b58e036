"""Python of the pages in docs.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import pathlib
import re
import tempfile
from typing import Any


def run_page(name: str) -> dict[str, Any]:
    """Runs all blocks in order, in a folder of their own, and gives the names that they leave. All must be Python."""
    path = pathlib.Path(__file__).parents[4] / "docs" / name
    text = path.read_text()
    names: dict[str, Any] = {"__name__": path.stem}
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for block in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
                assert block[1] == "python", "a block that no test runs"
                exec(compile("\n" * text[: block.start(2)].count("\n") + block[2], str(path), "exec"), names)
        finally:
            os.chdir(before)
    return names
