"""Packages that tests use and `tools/setup` does not install: each test that needs one is skipped without it, by name.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

tools/scripts/check-optional finds imports in tests that none of these functions guards.
"""
import importlib.util
import os
import sys
import unittest


def list_missing(*names):
    """Those of the packages that cannot be imported."""
    return [name for name in names if importlib.util.find_spec(name) is None]


def is_there(*names):
    """Whether all of the packages can be imported."""
    return not list_missing(*names)


def say_missing(names):
    """The reason of a skipped test."""
    return f"no {' and no '.join(names)} in {sys.prefix} (tools/setup --all, tools/test-python --setup)"


def need(*names):
    """Skips the rest of a test program, a test module or a test unless all of the packages can be imported.

    The program that calls it ends with status 77, or 1 with ORTC_NO_SKIP in the environment; in a module that is imported, SkipTest is raised.
    """
    missing = list_missing(*names)
    if not missing:
        return
    if sys._getframe(1).f_globals["__name__"] != "__main__":
        raise unittest.SkipTest(say_missing(missing))
    print(f"SKIPPED: {say_missing(missing)}")
    sys.exit(1 if os.environ.get("ORTC_NO_SKIP") else 77)


def needs(*names):
    """A decorator of unittest's classes and methods: they are skipped unless all of the packages can be imported."""
    missing = list_missing(*names)
    return unittest.skipIf(missing, say_missing(missing))
