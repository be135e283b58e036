"""Artifacts on disk, by the digest of what they were compiled from. An entry is a folder that appears whole or not at all.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_folder() -> Path:
    """$ORTC_CACHE_DIR, or ortc in the user's folder for caches."""
    named = os.environ.get("ORTC_CACHE_DIR")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ortc"


def find(digest: str) -> Path | None:
    """The entry, if there is one."""
    folder = cache_folder() / digest
    return folder if (folder / "meta.json").is_file() else None


def begin(digest: str) -> Path:
    """A new folder beside the entries, for what becomes one. Raises OSError where there can be none."""
    root = cache_folder()
    root.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{digest[:16]}.", suffix=".tmp", dir=root))


def commit(made: Path, digest: str) -> None:
    """Makes a folder the entry; where another process was first, theirs stays."""
    target = cache_folder() / digest
    try:
        os.rename(made, target)
    except OSError:
        if find(digest) is None:  # what is there is half of an entry
            shutil.rmtree(target, ignore_errors=True)
            os.rename(made, target)
        else:
            shutil.rmtree(made, ignore_errors=True)


@contextmanager
def lock(digest: str) -> Iterator[None]:
    """One process at a time; a process that ends has it no more."""
    path = cache_folder() / f"{digest}.lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def read_used(base: str) -> list[int] | None:
    """The outputs that had gradients when something was compiled last."""
    try:
        found = json.loads((cache_folder() / f"{base}.used").read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, list) and all(isinstance(each, int) for each in found) else None


def write_used(base: str, outputs: list[int]) -> None:
    made = cache_folder() / f"{base}.{os.getpid()}.tmp"
    made.write_text(json.dumps(outputs))
    os.replace(made, cache_folder() / f"{base}.used")


def drop(digest: str) -> None:
    """Takes an entry out, such as one that is damaged."""
    shutil.rmtree(cache_folder() / digest, ignore_errors=True)
