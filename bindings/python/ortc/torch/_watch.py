"""Whether what the code of a module reads beside its arguments is still what it was: a few comparisons of addresses in every call.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import collections
import functools
import gc
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from ortc import _runtime
from ortc.torch._layout import place_of

ABSENT = object()
_PLAIN = (bool, int, float, str, bytes, type(None))
_COPIED = (set, collections.deque, bytearray)
_CODE = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, property, staticmethod, classmethod)
"""What Describer follows by itself."""
_MOST = 2000
"""Objects that are gone through."""
_MOST_BYTES = 1 << 16
"""The most bytes of an array that is compared in every call."""


def _read_cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def _copy(value: Any) -> Any:
    return list(value) if isinstance(value, collections.deque) else value.tobytes() if hasattr(value, "tobytes") else value.copy()


def _find_dict(view: Mapping[Any, Any]) -> dict[Any, Any]:
    """That of a class, which vars() is a view of."""
    return next(each for each in gc.get_referents(view) if type(each) is dict)


class Watch:
    """Places with what was found there. They are kept alive, so that nothing else gets an address of theirs."""

    def __init__(self) -> None:
        self._noted: dict[tuple[int, Any], tuple[dict[Any, Any], Any, Any, str]] = {}
        self._items: tuple[tuple[dict[Any, Any], Any, Any, str], ...] = ()
        """Namespaces, and names in them."""
        self._calls: list[tuple[Callable[[], Any], Any, str]] = []
        """Cells and slots."""
        self._functions: list[tuple[types.FunctionType, Any, Any, Any]] = []
        self._copies: list[tuple[Any, Any, str]] = []
        self._tensors: list[tuple[torch.Tensor, Any, str]] = []
        self._containers: dict[int, tuple[Any, str]] = {}
        """Lists and dicts, of which everything matters."""
        self._roots: list[tuple[Any, str, bool]] = []
        self._snapshot: Any = None
        self._whole: tuple[Any, ...] = ()

    # ---- Noting.

    def note_item(self, namespace: Mapping[Any, Any], name: Any, label: str) -> None:
        own = namespace if isinstance(namespace, dict) else _find_dict(namespace)
        if (id(own), name) not in self._noted:
            self._noted[id(own), name] = own, name, own.get(name, ABSENT), label

    def note_cell(self, cell: types.CellType, label: str) -> None:
        self._calls.append((functools.partial(_read_cell, cell), _read_cell(cell), label))

    def note_function(self, function: types.FunctionType) -> None:
        self._functions.append((function, function.__code__, function.__defaults__, function.__kwdefaults__))
        for given in (function.__defaults__, function.__kwdefaults__, vars(function)):
            self.note_root(given or None, f"a default of {function.__qualname__}")

    def note_class(self, kind: type) -> None:
        own = _find_dict(vars(kind))
        self._containers[id(own)] = own, f"class {kind.__qualname__}"

    def note_root(self, value: Any, label: str, is_attribute: bool = False) -> None:
        """A value whose contents matter, too. `is_attribute`: of a module."""
        if not isinstance(value, _PLAIN):
            self._roots.append((value, label, is_attribute))

    def finish(self, names: Iterable[str], of_packages: Iterable[str], known: Mapping[int, Any]) -> Watch:
        """Goes through what the roots have. `names`: attributes that code mentions; `of_packages`: those that modules' classes of
        installed packages do; `known`: objects that somebody else follows."""
        stack = self._roots[::-1]
        seen: set[int] = set()
        while stack and len(seen) < _MOST:
            value, label, is_attribute = stack.pop()
            if id(value) in seen or id(value) in known or isinstance(value, (*_PLAIN, *_CODE)):
                continue
            if type(value).__module__.partition(".")[0] == "ortc":  # a compiled module within counts its calls
                continue
            seen.add(id(value))
            stack += [(each, part, False) for each, part in self._open(value, label, names, of_packages if is_attribute else ())]
        self._roots = []
        self._items = tuple(self._noted.values())
        self._whole = tuple(each for each, _ in self._containers.values())
        self._snapshot = _runtime.take_snapshot(self._whole)
        return self

    def _open(self, value: Any, label: str, names: Iterable[str], of_packages: Iterable[str]) -> list[tuple[Any, str]]:
        """Notes what changes a value, and gives what it has."""
        if isinstance(value, torch.Tensor):
            self._tensors.append((value, place_of(value), label))
        elif isinstance(value, (list, dict)):
            self._containers[id(value)] = value, label
            if isinstance(value, dict):
                return [(each, f"{label}[{key!r}]") for key, each in value.items()]
            return [(each, label) for each in value]
        elif isinstance(value, (tuple, frozenset)):
            return [(each, label) for each in value]
        elif isinstance(value, _COPIED) or _is_small_array(value):
            self._copies.append((value, _copy(value), label))
        elif isinstance(value, functools.partial):
            return [(value.func, label), (value.args, label), (value.keywords, label)]
        elif isinstance(value, types.MethodType):
            return [(value.__self__, label)]
        elif isinstance(value, torch.nn.Module):
            return self._open_module(value, label)
        else:
            return self._open_object(value, label, names, of_packages)
        return []

    def _open_module(self, module: torch.nn.Module, label: str) -> list[tuple[Any, str]]:
        for each in module.modules():
            for values in (each.__dict__, each._parameters, each._buffers, each._modules):
                self._containers[id(values)] = values, label
        return [(each, label) for each in (*module.parameters(), *module.buffers())]

    def _open_object(self, value: Any, label: str, names: Iterable[str], of_packages: Iterable[str]) -> list[tuple[Any, str]]:
        fields = getattr(value, "__dict__", None)
        found = []
        if type(fields) is dict:
            chosen = {name for name in names if name in fields or hasattr(type(value), name)}
            chosen |= {name for name in of_packages if isinstance(fields.get(name, ABSENT), _PLAIN)}
            for name in chosen:
                self.note_item(fields, name, f"{label}.{name}")
                if name in fields:
                    found.append((fields[name], f"{label}.{name}"))
        for base in type(value).__mro__:
            for name in set(names) & {name for name, each in vars(base).items() if isinstance(each, types.MemberDescriptorType)}:
                get = functools.partial(getattr, value, name, ABSENT)
                self._calls.append((get, get(), f"{label}.{name}"))
                found.append((get(), f"{label}.{name}"))
        return found

    # ---- Looking.

    def is_current(self) -> bool:
        return (
            _runtime.have_items(self._items, ABSENT)
            and _runtime.is_unchanged(self._whole, self._snapshot)
            and not self._find_other()
        )

    def _find_other(self) -> str:
        for function, code, defaults, named in self._functions:
            if function.__code__ is not code or function.__defaults__ is not defaults or function.__kwdefaults__ is not named:
                return f"a default of {function.__qualname__}"
        for get, value, label in self._calls:
            if get() is not value:
                return label
        for tensor, place, label in self._tensors:
            if place_of(tensor) != place:
                return label
        for each, copy, label in self._copies:
            if _copy(each) != copy:
                return label
        return ""

    def find_change(self) -> str:
        """The change, for a message; empty where nothing has."""
        for namespace, name, value, label in self._items:
            if namespace.get(name, ABSENT) is not value:
                return label
        for each, contents in zip(self._containers.values(), self._snapshot, strict=True):
            if not _runtime.is_unchanged((each[0],), (contents,)):
                return each[1]
        return self._find_other()


def _is_small_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray) and value.nbytes <= _MOST_BYTES and not value.dtype.hasobject
