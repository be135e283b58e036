"""What the checks of a GPU found: a line on stderr as each is done, and everything as JSON.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import sys
import threading
import time


class Report:
    """Rows {check, status, text, figures}; status is ok, slow (right, below its goal of speed), FAILED or SKIPPED."""

    def __init__(self, seconds):
        self.rows, self.lock, self.started, self.limit = [], threading.Lock(), time.monotonic(), seconds

    def left(self):
        """Seconds until the checks should be done."""
        return self.limit - (time.monotonic() - self.started)

    def add(self, check, status, text, **figures):
        with self.lock:
            self.rows.append({"check": check, "status": status, "text": text, **figures})
            print(f"{status:8}{check:36} {text}", file=sys.stderr, flush=True)

    def count(self, status):
        return sum(row["status"] == status for row in self.rows)

    def attempt(self, check, seconds, work):
        """Adds what work() returns, (status, text, figures), unless fewer `seconds` are left than it may take."""
        if self.left() < seconds:
            self.add(check, "SKIPPED", f"less than {seconds} s of {self.limit:.0f} s are left")
            return
        try:
            status, text, figures = work()
        except Exception as error:  # a check that breaks off has failed, and the others go on
            status, text, figures = "FAILED", f"{error}" or type(error).__name__, {}
        self.add(check, status, text, **figures)
