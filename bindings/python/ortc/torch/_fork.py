"""A piece of work in a forked child, which has the module as it is at that moment.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

_LIMIT_S = 3600
"""A child that is not done by then hangs."""


class Forked:
    """The child of one process; a fork of that process does not wait for it."""

    is_running = False

    def start(self, work: Callable[[], Any]) -> None:
        """`work` ends the child. Raises OSError where there can be no process."""
        self.child = os.fork()
        if self.child == 0:
            try:
                os.setpgid(0, 0)  # with the compiler, so that both can be ended
                work()
            finally:
                os._exit(1)
        self.owner = os.getpid()
        self.begun = time.monotonic()
        self.is_running = True

    def _kill(self) -> None:
        """The child, and what it has started."""
        try:
            os.killpg(self.child, signal.SIGKILL)
        except ProcessLookupError:  # it has no group yet
            os.kill(self.child, signal.SIGKILL)

    def poll(self, limit_s: float) -> int | None:
        """The exit code, negative for a signal; None where the child runs still, after so many seconds. A child that takes too
        long is ended. Raises ChildProcessError where somebody else has waited for all children, or the child is a parent's."""
        if not self.is_running or self.owner != os.getpid():
            self.is_running = False
            raise ChildProcessError
        asked, pause = time.monotonic(), 0.0005
        while True:
            try:
                child, status = os.waitpid(self.child, os.WNOHANG)
                if child == 0 and time.monotonic() - self.begun > _LIMIT_S:
                    self._kill()
                    child, status = os.waitpid(self.child, 0)
            except ChildProcessError:
                self.is_running = False
                raise
            if child:
                self.is_running = False
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() - asked >= limit_s:
                return None
            time.sleep(pause)
            pause = min(2 * pause, 0.005)

    def cancel(self) -> None:
        """Ends it."""
        if self.is_running and self.owner == os.getpid():
            self.is_running = False
            try:
                self._kill()
                os.waitpid(self.child, 0)
            except (ProcessLookupError, ChildProcessError):
                pass

    def __del__(self) -> None:
        self.cancel()
