"""Files that are written all or none.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

from ortc._checks import check_output
from ortc._errors import CompileError


@contextlib.contextmanager
def written_at_once(folder: Path) -> Iterator[Path]:
    """A folder whose files and folders replace those of the same names in `folder` at the end; without an end nothing is
    there of them."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    made = Path(mkdtemp(prefix=".ortc-", dir=folder))
    try:
        yield made
        found = sorted(made.iterdir())
        for each in found:
            if each.is_file():
                check_output("artifact_directory", folder / each.name)
        for each in found:
            if each.is_dir():
                shutil.rmtree(folder / each.name, ignore_errors=True)
            each.replace(folder / each.name)
        is_new = False
    except CompileError as error:
        raise CompileError(str(error).replace(str(made), str(folder))) from None
    finally:
        shutil.rmtree(made, ignore_errors=True)
        if is_new:
            folder.rmdir()
