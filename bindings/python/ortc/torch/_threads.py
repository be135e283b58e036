"""The threads of compiled steps: those that PyTorch's own loops run on.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

import torch

from ortc import _runtime

generation = 0
"""How often this process is a fork of one that had threads."""
_pools: dict[int, _runtime.Pool] = {}
_abandoned: list[dict[int, _runtime.Pool]] = []


def default_threads() -> int:
    """$ORTC_THREADS, or as many as PyTorch has."""
    return int(os.environ.get("ORTC_THREADS", 0)) or torch.get_num_threads()


def pool(threads: int) -> _runtime.Pool:
    """The threads of this process, one set for each number."""
    if threads not in _pools:
        # OpenMP has no threads in a forked child, and does not know it.
        _pools[threads] = _runtime.Pool(threads, None if generation else _openmp())
    return _pools[threads]


@cache
def _openmp() -> tuple[int, int, int] | None:
    """Addresses of functions of the OpenMP that PyTorch is linked with; None where it has another kind of threads."""
    path = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    try:
        library = ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)  # finds what it is linked with, too
        functions = library.GOMP_parallel, library.omp_get_num_threads, library.omp_get_thread_num
    except (OSError, AttributeError):
        return None
    parallel, threads, thread = (ctypes.cast(each, ctypes.c_void_p).value or 0 for each in functions)
    return parallel, threads, thread


def _forget() -> None:
    """In a forked child, where the threads are not: they must not be waited for, so what stands for them is kept."""
    global generation
    generation += 1
    _abandoned.append(dict(_pools))
    _pools.clear()


os.register_at_fork(after_in_child=_forget)
