"""The last checkpoints of a training, beside the newest one: engine/checkpoints/kept_checkpoints.h.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path


def name_kept(path: Path, step: int) -> Path:
    """ "a.safetensors" of step 20: "a.step-20.safetensors"."""
    return path.with_name(f"{path.stem}.step-{step}{path.suffix}")


def _step_of(path: Path, name: str) -> int | None:
    """Of a name that name_kept has made of `path`."""
    found = re.fullmatch(re.escape(f"{path.stem}.step-") + r"(0|[1-9]\d*)" + re.escape(path.suffix), name)
    return int(found[1]) if found else None


def is_kept_name(path: Path, file: Path) -> bool:
    """Whether `file` has such a name of `path`, so that it may be replaced or removed."""
    return _step_of(path, file.name) is not None and os.path.abspath(path.parent) == os.path.abspath(file.parent)


def keep_checkpoint(path: Path, step: int, most: int, spared: Path | None) -> None:
    """Gives the checkpoint at `path`, which is of `step`, such a name, too, and removes the oldest ones until `most` are there,
    but never `spared`, nor those of later steps, which another training has left."""
    name = name_kept(path, step)
    making = name.with_name(name.name + ".new")
    making.unlink(missing_ok=True)
    try:
        os.link(path.resolve(), making)
    except OSError:
        shutil.copyfile(path, making)
    try:
        making.replace(name)
    except OSError:
        making.unlink(missing_ok=True)
        raise
    steps = {each: _step_of(path, each.name) for each in path.parent.iterdir()}
    kept = sorted((of, each) for each, of in steps.items() if of is not None and of <= step)
    for _, each in kept[: max(len(kept) - most, 0)]:
        if spared is None or not spared.exists() or not each.samefile(spared):
            with contextlib.suppress(OSError):
                each.unlink()
