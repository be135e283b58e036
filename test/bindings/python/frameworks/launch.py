"""Scripts and functions of this folder as several processes, which are started as torchrun starts them.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import torch

FOLDER = pathlib.Path(__file__).parent
_LIMIT_S = 300


def _launch(processes: int, *command: str, **environment: str) -> None:
    """Over gloo, at a free port of this machine."""
    done = subprocess.run(
        [sys.executable, "-B", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), *command],
        cwd=FOLDER, env=os.environ | {"OMP_NUM_THREADS": "1"} | environment, capture_output=True, text=True, timeout=_LIMIT_S,
    )
    if done.returncode:
        raise AssertionError(f"a process has failed:\n{done.stdout}{done.stderr}")


def run_workers(script: str, processes: int, **environment: str) -> list[Any]:
    """What each rank has written to RANK.pt in the folder that is its argument."""
    with tempfile.TemporaryDirectory() as folder:
        _launch(processes, str(FOLDER / script), folder, **environment)
        return [torch.load(f"{folder}/{rank}.pt") for rank in range(processes)]


def run_processes(count: int, function: Callable[..., None], *arguments: str) -> None:
    """A function of a test file in `count` processes."""
    name = pathlib.Path(function.__code__.co_filename).stem
    code = f"import sys, {name}; {name}.{function.__name__}(*sys.argv[1:])"
    _launch(count, "--no-python", sys.executable, "-B", "-c", code, *arguments)
