"""Scripts of this folder as several processes.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

import torch

_LIMIT_S = 300


def run_workers(script: str, processes: int, **environment: str) -> list[Any]:
    """What each rank has written to RANK.pt in the folder that is its argument. They are started as torchrun starts them."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-B", *launcher, str(pathlib.Path(__file__).parent / script), folder]
        done = subprocess.run(
            command, env=os.environ | {"OMP_NUM_THREADS": "1"} | environment, capture_output=True, text=True, timeout=_LIMIT_S
        )
        if done.returncode:
            raise AssertionError(done.stdout + done.stderr)
        return [torch.load(f"{folder}/{rank}.pt") for rank in range(processes)]
