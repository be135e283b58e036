"""Functions of tests in several processes.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable


def run_processes(count: int, function: Callable[..., None], *arguments: str) -> None:
    """A function of a test file in `count` processes, as torchrun starts them: over gloo, at a free port of this machine."""
    file = pathlib.Path(function.__code__.co_filename)
    code = f"import sys, {file.stem}; {file.stem}.{function.__name__}(*sys.argv[1:])"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)),
            *("--no-python", sys.executable, "-B", "-c", code, *arguments),
        ],
        cwd=file.parent, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
    )
    if done.returncode != 0:
        raise AssertionError(f"a process has failed:\n{done.stderr}")
