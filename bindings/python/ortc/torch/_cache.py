"""Artifacts on disk, by the digest of what they were compiled from. An entry is a folder that appears whole or not at all.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Entries are code that is executed. So the folder is only for its owner: nothing is taken from one that is of somebody else, that
others may write into or put another in the place of, and no link is followed in it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from ortc._artifact import read_digest

_T = TypeVar("_T")
Meta = dict[str, Any]
"""The facts of an entry beside its artifact."""
_INSTEAD = "remove it, or name another folder in ORTC_CACHE_DIR"
_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC


def cache_folder() -> Path:
    """$ORTC_CACHE_DIR, or ortc in the user's folder for caches."""
    named = os.environ.get("ORTC_CACHE_DIR")
    if named:
        return Path(named)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ortc"
    except RuntimeError as error:  # the user has no home
        raise OSError(f"{error}: name a folder in ORTC_CACHE_DIR") from error


def _check(path: Path, status: os.stat_result) -> None:
    """Refuses what somebody else may have written."""
    if stat.S_ISLNK(status.st_mode):
        raise PermissionError(f"{path}: is a link, and no link is followed to code that is executed: {_INSTEAD}")
    if not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
        raise PermissionError(f"{path}: is neither a folder nor a file: {_INSTEAD}")
    if status.st_uid != os.geteuid():
        raise PermissionError(
            f"{path}: is of user {status.st_uid}, and code that is executed must be of user {os.geteuid()}, who runs it: {_INSTEAD}"
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(status.st_mode)
        raise PermissionError(f"{path}: others may write into it (mode {mode:04o}), and what is there is executed: {_INSTEAD}")


def _check_tree(path: Path) -> None:
    status = os.lstat(path)
    _check(path, status)
    if stat.S_ISDIR(status.st_mode):
        for name in os.listdir(path):
            _check_tree(path / name)


def _root(make: bool = False) -> Path:
    """The folder of the cache. Raises OSError where there is none, or one that is not safe."""
    root = cache_folder()
    if make:
        root.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            root.mkdir(mode=0o700)
    _check(root, os.lstat(root))
    for each in Path(os.path.realpath(root)).parents:
        mode = os.stat(each).st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise PermissionError(
                f"{root}: everybody may write into {each}, and put another folder there: name another one in ORTC_CACHE_DIR"
            )
    return root


def open_entry(digest: str, use: Callable[[Path, Meta], _T], failures: list[str] | None = None) -> _T | None:
    """What `use` makes of an entry, or None where there is none. One that is damaged, of others, or that `use` fails at, is taken
    out, and as another process may have put a whole one there meanwhile, that is tried once more. Raises nothing; why an entry
    was taken out is added to `failures`."""
    for _ in range(2):
        try:
            folder = _root() / digest
            if not os.path.lexists(folder):
                return None
        except (OSError, ValueError):  # begin() says why
            return None
        try:
            return use(folder, _read(folder, digest))
        except MemoryError:
            return None
        except Exception as error:
            if failures is not None:
                failures.append(f"damaged entry of the cache, {folder}: {error}")
            drop(folder)
    return None


def _read(folder: Path, digest: str) -> Meta:
    """Checks an entry, which may be what a power cut has left or somebody has put there."""
    _check_tree(folder)
    meta = json.loads((folder / "meta.json").read_text())
    if not isinstance(meta, dict) or meta.get("digest") != digest:
        raise ValueError("it was compiled from something else")
    if meta.get("artifact") != read_digest(folder / "artifact" / "model.ortc"):
        raise ValueError("its artifact is another one")
    return meta


def find(digest: str) -> tuple[Path, Meta] | None:
    """The folder of an entry, if there is one, and what is known of it."""
    return open_entry(digest, lambda folder, meta: (folder, meta))


def begin(digest: str) -> Path:
    """A new folder beside the entries, for what becomes one. Raises OSError where there can be none."""
    return Path(tempfile.mkdtemp(prefix=f"{digest[:16]}.", suffix=".tmp", dir=_root(make=True)))


def _settle(path: Path) -> None:
    """Makes a folder and all in it the owner's alone, whatever the umask is, and sees it on the disk."""
    for each in sorted(path.iterdir()):
        if each.is_dir():
            _settle(each)
        else:
            os.chmod(each, 0o600)
            _sync(each)
    os.chmod(path, 0o700)
    _sync(path)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | _NO_LINK)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def commit(made: Path, digest: str, meta: Meta) -> None:
    """Makes a folder the entry; where another process was first, theirs stays."""
    known = {**meta, "digest": digest, "artifact": read_digest(made / "artifact" / "model.ortc")}
    (made / "meta.json").write_text(json.dumps(known))
    _settle(made)
    root = _root()
    try:
        os.rename(made, root / digest)
    except OSError:
        if find(digest) is None:  # half of an entry was there
            os.rename(made, root / digest)
        else:
            shutil.rmtree(made, ignore_errors=True)
    _sync(root)


def kernel_flags() -> list[str]:
    """Flags with which the compiler keeps kernels beside the entries, so that what differs in a learning rate, a loss or a
    batch norm is compiled in a fraction of the time; none where ORTC_KERNEL_CACHE names another folder, or is empty."""
    if "ORTC_KERNEL_CACHE" in os.environ:
        return []
    try:
        return ["--kernel-cache", str(_root(make=True) / "kernels")]
    except OSError:
        return []


@contextmanager
def lock(digest: str) -> Iterator[None]:
    """One process at a time; a process that ends has it no more."""
    path = _root(make=True) / f"{digest}.lock"
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(handle), os.lstat(path)):
                break
        os.close(handle)  # whoever had it has removed the file meanwhile
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def read_used(base: str) -> list[int] | None:
    """The outputs that had gradients when something was compiled last."""
    try:
        path = _root() / f"{base}.used"
        _check(path, os.lstat(path))
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, list) and all(isinstance(each, int) for each in found) else None


def write_used(base: str, outputs: list[int]) -> None:
    root = _root(make=True)
    handle, made = tempfile.mkstemp(prefix=f"{base[:16]}.", suffix=".tmp", dir=root)
    with open(handle, "w") as file:
        file.write(json.dumps(outputs))
    os.replace(made, root / f"{base}.used")


def drop(entry: Path) -> None:
    """Takes an entry out, such as one that is damaged: at once for other processes, without following links."""
    gone = entry.with_name(f"{entry.name[:16]}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    with contextlib.suppress(OSError):
        os.rename(entry, gone)
        if stat.S_ISDIR(os.lstat(gone).st_mode):
            shutil.rmtree(gone, ignore_errors=True)
        else:
            gone.unlink()
