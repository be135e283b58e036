"""Packages that only parts of this one need.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib
from typing import Any


def need(package: str, what: str, raised: type[Exception] = ImportError) -> Any:
    """Imports a package for `what`, and raises an error that says how to install it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        name = package.partition(".")[0]
        raise raised(f"{what} needs the package {name} ({error}): pip install {name}") from error
