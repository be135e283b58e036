"""The entry of the cache beside the module: once for each entry that a process opens, in a child, before it is used. The key of an
entry has everything that code names; what it does not say ends here.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable
from typing import Any

import torch

from ortc._errors import CompileError
from ortc.torch import _cache
from ortc.torch._child import run_clean
from ortc.torch._export import Request
from ortc.torch._fork import Forked

PATIENCE_S = 5.0
"""The first call of a kind waits so long, and is compiled then; after that, calls go on without."""
_SAME, _OTHER = "\0", "\1"


def compare(request: Request) -> Comparison:
    """Compares a call with the entry that it finds."""

    def run() -> None:
        from ortc.torch._verify import verify

        found = _cache.find(request.digest)
        if found is None:
            raise CompileError("there is no entry any more")
        verify(request, *found)

    return Comparison(request.digest, run)


class Comparison(Forked):
    """A child that computes both. Raises OSError where there is no process for it."""

    def __init__(self, digest: str, compare: Callable[[], Any]) -> None:
        """`compare` raises where numbers differ, and may change the module."""
        self.digest = digest
        self.difference = ""
        """The difference, or why it is not known; empty where there is none."""
        self.is_known = True
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.reading, False)
        try:
            self.start(lambda: self._work(compare))
        finally:
            os.close(self.writing)

    def _work(self, compare: Callable[[], Any]) -> None:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)  # what forward prints, it prints in the process itself
        os.dup2(silent, 2)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        found: list[str] = ["it has ended before"]

        def run() -> None:
            try:
                torch.set_num_threads(1)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    compare()
                found[0] = _SAME
            except CompileError as error:
                found[0] = _OTHER + str(error)
            except BaseException as error:
                found[0] = f"{type(error).__name__}: {error}"

        run_clean(run)
        os.write(self.writing, found[0].encode("utf-8", "replace")[:4000])
        os._exit(0)

    def is_done(self, limit_s: float = 0.0) -> bool:
        """Waits so many seconds at most."""
        try:
            if self.poll(limit_s) is None:
                return False
        except ChildProcessError:
            pass
        try:
            said = os.read(self.reading, 4096).decode("utf-8", "replace")
        except BlockingIOError:  # another child has the other end, too
            said = ""
        self.is_known = said.startswith((_SAME, _OTHER))
        self.difference = said.strip(_SAME + _OTHER) if self.is_known else f"the comparison has failed: {said or 'its process has ended'}"
        return True

    def __del__(self) -> None:
        super().__del__()
        os.close(self.reading)
