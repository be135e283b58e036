"""The key of a compilation: everything that code of a module names is in its key, and the key is the same in other processes.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import os
import subprocess
import sys
import types
import unittest
import unittest.mock
from collections.abc import Callable, Iterator
from os import environ, getenv
from typing import Any

import modules
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from ortc.torch import _key

logger = logging.getLogger(__name__)
POOL = "mean"
TABLE = {"beta": 1.0, "unread": object}
CALLED = [torch.tanh, lambda x: x * 2, functools.partial(torch.mul, other=3.0)]
NAMES = {"one", "two", "three", "four"}
WEIGHT, ARRAY = torch.ones(3), np.ones(3)
SCALE = 1.5
criterion = nn.SmoothL1Loss(beta=0.5)
arguments = types.SimpleNamespace(beta=1.0, run=os.urandom(4))
"""As of argparse: what is not read is another one in each run."""


elsewhere = types.ModuleType("elsewhere")
exec(compile("SLOPE = 1.0\ndef bend(x): return x * SLOPE", "elsewhere.py", "exec"), vars(elsewhere))


@dataclasses.dataclass
class Settings:
    rate: float = 0.5
    parts: tuple[int, ...] = (1, 2)


class Slotted:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 1.0


settings, slotted = Settings(), Slotted()


def twice(x: Any) -> Any:
    return x * 2 * SCALE


def with_default(x: Any, factor: float = 1.0) -> Any:
    return x * factor


@functools.lru_cache
def cached(count: int) -> float:
    return count * SCALE


@functools.wraps(twice)
def wrapped(x: Any) -> Any:
    return twice(x)


@torch.no_grad()
def without_gradients(x: Any) -> Any:
    return x * SCALE


class Table:
    factor = 2.0
    parts = [1, 2]

    @staticmethod
    def scale(x: Any) -> Any:
        return x * SCALE

    @property
    def value(self) -> float:
        return 3.0

    def __len__(self) -> int:
        return 3


table = Table()


def system() -> Any:
    return sys.modules["os"]


class Square(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        return x * x

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


class Reading(nn.Module):
    gain = 1.0
    options = [1, 2]
    unread: Any = object

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.functions = [twice, F.relu]
        self.config = Settings()

    def helper(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gain + sum(self.options)

    @property
    def factor(self) -> float:
        return SCALE

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        import modules as local
        from modules import distance

        logger.debug("a step")
        y = self.layer(x)
        if POOL == "mean" or "five" in NAMES:
            y = y.mean(1)
        y = y * TABLE["beta"] * TABLE.get("gamma", 1) * arguments.beta * settings.rate * slotted.value * modules.F.relu(y)
        for each in CALLED:
            y = each(y)
        y = criterion(with_default(twice(y)), y) * table.value * Table.factor * table.scale(y) + WEIGHT.sum() + float(ARRAY.sum())
        y = elsewhere.bend(y)  # type: ignore[attr-defined]
        y = wrapped(without_gradients(y)) + cached(3) + len(table) + Square.apply(y)
        y = y * float(os.environ.get("ORTC_KEY_A", "1")) * float(environ["ORTC_KEY_B"]) * float(getenv("ORTC_KEY_C", "1"))
        y = y * float(system().environ.get("ORTC_KEY_E", "1"))
        y = y * float("ORTC_KEY_D" in os.environ) + local.__name__.count("x") + (lambda: SCALE)() + distance(x, x)
        return self.helper(y) * self.factor


def digest(module: nn.Module) -> str:
    layout = dict(module.named_parameters())
    return _key.digest(_key.describe(module), layout.items(), module.buffers(), "a call")


@contextlib.contextmanager
def changed(owner: Any, name: str, value: Any) -> Iterator[None]:
    """An attribute, item or variable of the environment that is another one for a while."""
    nothing = object()
    is_item = isinstance(owner, (dict, list, os._Environ))

    def get() -> Any:
        if is_item:
            return owner[name] if isinstance(owner, list) or name in owner else nothing
        return vars(owner).get(name, nothing) if isinstance(owner, (type, nn.Module)) else getattr(owner, name, nothing)

    put = owner.__setitem__ if is_item else functools.partial(setattr, owner)
    before = get()
    put(name, value)
    try:
        yield
    finally:
        if before is nothing:
            owner.__delitem__(name) if is_item else delattr(owner, name)
        else:
            put(name, before)


HERE: Any = sys.modules[__name__]


class KeysTest(unittest.TestCase):
    def setUp(self) -> None:
        patch = unittest.mock.patch.dict(os.environ, ORTC_KEY_B="1")
        patch.start()
        self.addCleanup(patch.stop)
        self.module = Reading()

    def test_what_code_names(self) -> None:
        """Each change is another key, and undone it is the key from before."""
        closure: Callable[[float], Any] = lambda factor: lambda x: x * factor  # noqa: E731
        cases: dict[str, tuple[Any, Any, Any]] = {
            "a global": (HERE, "POOL", "max"),
            "a global that a function reads": (HERE, "SCALE", 2.5),
            "an item": (TABLE, "beta", 2.0),
            "an item that get reads": (TABLE, "gamma", 2.0),
            "a field of arguments": (arguments, "beta", 2.0),
            "a field of a dataclass": (settings, "rate", 2.0),
            "a slot": (slotted, "value", 2.0),
            "a function in a list": (CALLED, 1, lambda x: x * 3),
            "a partial in a list": (CALLED, 2, functools.partial(torch.mul, other=4.0)),
            "a function": (HERE, "twice", lambda x: x * 2),
            "a default": (with_default, "__defaults__", (2.0,)),
            "a set": (HERE, "NAMES", NAMES | {"five"}),
            "a tensor": (HERE, "WEIGHT", torch.zeros(3)),
            "an array": (HERE, "ARRAY", np.zeros(3)),
            "a setting of a module": (criterion, "beta", 0.7),
            "a class attribute": (Reading, "gain", 2.0),
            "a class attribute that is a list": (Reading, "options", [1]),
            "an attribute in the place of the class's": (self.module, "gain", 2.0),
            "a method of the class": (Reading, "helper", lambda self, x: x),
            "a method of the object": (self.module, "helper", types.MethodType(lambda self, x: x, self.module)),
            "a closure": (self.module, "functions", [closure(2.0)]),
            "another closure": (self.module, "functions", [closure(3.0)]),
            "a property": (Reading, "factor", property(lambda self: 7.0)),
            "a property of a global": (Table, "value", property(lambda self: 4.0)),
            "a class attribute of a global": (Table, "factor", 3.0),
            "a static method": (Table, "scale", staticmethod(lambda x: x)),
            "an operator": (Table, "__len__", lambda self: 4),
            "a gradient": (Square, "backward", staticmethod(lambda context, gradient: gradient * 2)),
            "a field of a configuration": (self.module.config, "rate", 2.0),
            "forward of a module within": (self.module.layer, "forward", lambda x: x),
            "forward of a class of PyTorch": (nn.Linear, "forward", lambda self, x: x),
            "a function of PyTorch": (F, "gelu", twice),
            "a method of tensors": (torch.Tensor, "relu", lambda self: self),
            "a function of another file": (modules, "distance", lambda wanted, got: 0.0),
            "what a function of another file reads": (elsewhere, "SLOPE", 2.0),
            "the environment, by get": (os.environ, "ORTC_KEY_A", "2"),
            "the environment, by item": (os.environ, "ORTC_KEY_B", "2"),
            "the environment, by getenv": (os.environ, "ORTC_KEY_C", "2"),
            "the environment, by in": (os.environ, "ORTC_KEY_D", "2"),
            "the environment, of what a function gives": (os.environ, "ORTC_KEY_E", "2"),
        }
        before = digest(self.module)
        seen = {before}
        watch = _key.describe(self.module).watch
        for case, (owner, name, value) in cases.items():
            with self.subTest(case):
                with changed(owner, name, value):
                    found = digest(self.module)
                    # Modules follow their own attributes; what others put into PyTorch is looked at once.
                    if owner not in (self.module, torch.Tensor, F, self.module.layer):
                        self.assertNotEqual(watch.find_change(), "")
                        self.assertFalse(watch.is_current())
                self.assertNotIn(found, seen)
                seen.add(found)
                self.assertEqual(digest(self.module), before)
                self.assertEqual(watch.find_change(), "")
                self.assertTrue(watch.is_current())
        default = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            self.assertNotIn(digest(self.module), seen)
        finally:
            torch.set_default_dtype(default)

    def test_what_no_code_reads(self) -> None:
        """Would be a compilation in every run of a script."""
        before = digest(self.module)
        watch = _key.describe(self.module).watch
        for owner, name, value in (
            (HERE, "unheard", 1),
            (TABLE, "unread", 3),
            (arguments, "run", "another"),
            (Reading, "unread", {1: 2}),
            (os.environ, "ORTC_KEY_Z", "2"),
        ):
            with self.subTest(name), changed(owner, name, value):
                self.assertEqual(digest(self.module), before)
                if owner is not Reading:  # a class is looked at as a whole
                    self.assertTrue(watch.is_current())

    def test_parameters_that_functions_hold(self) -> None:
        """Their values change from step to step."""
        module = nn.Sequential(nn.Linear(3, 3))
        module.penalty = lambda x: x + module[0].weight.sum()  # type: ignore[assignment]
        before = digest(module)
        with torch.no_grad():
            module[0].weight.add_(1.0)
        self.assertEqual(digest(module), before)

    def test_what_cannot_be_described(self) -> None:
        """It has a key of its own every time: files, generators, evaluated texts, what is not there yet."""
        sources = ("open('x').read()", "eval('SCALE')", "globals()['SCALE']", "next(rows)", "sum(file)")
        names = {"rows": (each for each in ()), "file": sys.stdout}
        for source in sources:
            with self.subTest(source):
                module = nn.Linear(2, 2)
                module.factor = types.FunctionType(compile(f"lambda: {source}", "mine.py", "eval").co_consts[0], {**globals(), **names})
                self.assertNotEqual(digest(module), digest(module))

    def test_other_processes(self) -> None:
        """With other seeds of hashes, and other addresses."""
        found = [
            subprocess.run([sys.executable, __file__, "digest"], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True)
            for seed in ("1", "2")
        ]
        self.assertEqual(len(found[0].stdout), 65, found[0].stderr)
        self.assertEqual(found[0].stdout, found[1].stdout)


if __name__ == "__main__":
    if sys.argv[1:] == ["digest"]:
        print(digest(Reading()))
    else:
        unittest.main()
