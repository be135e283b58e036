"""Values and functions as text that is the same in another process where they are the same.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

For a function that is of no installed package, its code is described and the values that it reads (`_reads.py`), and so on with the
functions among these. For a class, its code and plain attributes are, and of what it has besides, methods too, what code
mentions by name. For an installed package its files say enough, except for functions that others have put there.
"""

from __future__ import annotations

import collections
import contextvars
import datetime
import decimal
import enum
import fractions
import functools
import hashlib
import importlib.util
import inspect
import logging
import os
import pathlib
import re
import sys
import sysconfig
import threading
import types
import weakref
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import torch

from ortc.torch._reads import Read, find_module, list_names, list_reads
from ortc.torch._watch import ABSENT, Watch

_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format)
_SAID = (pathlib.PurePath, decimal.Decimal, fractions.Fraction, datetime.date, datetime.time, datetime.timedelta, range)
"""Types that repr says all of."""
_SILENT = (logging.Logger, logging.LoggerAdapter, logging.Handler, type(threading.Lock()), type(threading.RLock()))
"""Types without numbers."""
_MUTABLE = (list, dict, set, collections.deque, bytearray)
_OF_C = (
    *(types.BuiltinFunctionType, types.MethodWrapperType, types.WrapperDescriptorType, types.MethodDescriptorType),
    *(types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType),
)
_CALLED = ("forward", "backward", "setup_context", "jvp", "__call__")
"""Methods that PyTorch calls."""
_NOT_CALLED = (
    *("__init__", "__new__", "__post_init__", "__init_subclass__", "__class_getitem__", "__del__", "__repr__", "__str__"),
    *("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__copy__", "__deepcopy__"),
)
"""By operators: a step makes none of the objects that there are."""
_HIDDEN = ("globals", "locals", "eval", "exec", "open", "__import__", "input")
"""Functions that read what no code names."""
_CAPSULES = ("PyCapsule", "pybind11_detail_function_record_v1_system_libstdcpp_gxx_abi_1xxx_use_cxx11_abi_1")
_DEPTH = 50
_MOST = 50_000
"""Objects: more are gone through for each shape of a call."""
_LOOK_UP: Any = (object.__getattribute__, types.SimpleNamespace.__getattribute__)
"""Ways to attributes that look into the object's own first, data descriptors aside."""


def _packages_of_this() -> tuple[str, ...]:
    return str(pathlib.Path(torch.__file__).parent), str(pathlib.Path(__file__).parents[1])


@cache
def _installed_roots() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple({each + os.sep for each in (*(sysconfig.get_path(name) for name in names), *_packages_of_this())})


@cache
def is_installed(path: str) -> bool:
    """Whether a file is of the standard library or of a package, whose version is enough; ortc is one."""
    between = [os.sep + name + os.sep for name in ("site-packages", "dist-packages")]
    return path.startswith(_installed_roots()) or path.startswith("<frozen ") or any(each in path for each in between)


@cache
def identify_file(path: str) -> str:
    status = os.stat(path)
    return f"{path} {status.st_size} {status.st_mtime_ns}"


@cache
def _identify_package(module: str) -> str:
    """The file of a module of an installed package, and that of the package."""
    found = []
    for name in dict.fromkeys((module, module.partition(".")[0])):
        path = getattr(sys.modules.get(name), "__dict__", {}).get("__file__")
        if isinstance(path, str) and os.path.exists(path):
            found.append(identify_file(path))
    return " ".join(found)


def content_digest(tensor: torch.Tensor) -> str:
    """The digest of the values."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return hashlib.sha256(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"").hexdigest()


def _is_of_package(function: types.FunctionType) -> bool:
    return is_installed(function.__code__.co_filename)


def is_class_of_package(kind: type) -> bool:
    path = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return kind.__module__ == "builtins" or (bool(path) and is_installed(str(path)) and "<locals>" not in kind.__qualname__)


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"


def _functions_of(value: Any) -> list[types.FunctionType]:
    """Those within an attribute of a class."""
    if isinstance(value, types.FunctionType):
        return [value]
    if isinstance(value, (staticmethod, classmethod)):
        return _functions_of(value.__func__)
    if isinstance(value, property):
        return [each for part in (value.fget, value.fset, value.fdel) for each in _functions_of(part)]
    if isinstance(value, functools.cached_property):
        return _functions_of(value.func)
    return []


@cache
def names_of_class(kind: type) -> frozenset[str]:
    """Attributes that its own functions mention; of PyTorch's none, which read no others than their own."""
    if kind.__module__.partition(".")[0] in ("builtins", "torch"):
        return frozenset()
    return frozenset().union(*(list_names(each.__code__) for value in vars(kind).values() for each in _functions_of(value)))


@cache
def describe_code(code: types.CodeType) -> str:
    text = hashlib.sha256(code.co_code + code.co_exceptiontable).hexdigest()
    counts = code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount, code.co_flags
    return f"{text}{code.co_names}{code.co_freevars}{counts}{[_describe_constant(each) for each in code.co_consts]}"


def _describe_constant(value: Any) -> str:
    if isinstance(value, types.CodeType):
        return describe_code(value)
    if isinstance(value, (tuple, frozenset)):
        parts = [_describe_constant(each) for each in value]
        return str(parts if isinstance(value, tuple) else sorted(parts))
    return repr(value)


def _is_of_numpy(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic, numpy.dtype, numpy.ufunc))


def _is_hidden(kind: type, slots: int) -> bool:
    """Whether objects of a class have more than attributes, which only C sees: the test of object.__reduce_ex__."""
    seen: int = object.__basicsize__
    seen += 8 * (slots + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0))
    return kind.__itemsize__ > 0 or kind.__basicsize__ > seen


class Describer:
    """Describes values; what was described once is a number from then on."""

    def __init__(self, named: Mapping[int, str]) -> None:
        """`named`: objects that are described elsewhere, such as modules and their parameters, by id."""
        self.named = named
        self.is_complete = True
        """Whether everything could be described."""
        self.numbers: dict[int, int] = {}
        self.kept: list[Any] = []
        """Objects that have a number, so that no other gets their addresses."""
        self.names = set(_CALLED)
        """Attributes that code mentions."""
        self.classes: dict[type, set[str]] = {}
        """Those that are of no package, and which of their attributes have been described."""
        self.of_packages: set[type] = set()
        self.watch = Watch()
        """Is told what is looked at."""

    def describe(self, value: Any, depth: int = 0) -> str:
        kind = _name(type(value))
        if isinstance(value, enum.Enum):
            return f"{kind}.{value.name}={self.describe(value.value, depth + 1)}"
        if isinstance(value, _PLAIN) or isinstance(value, _SAID):
            return repr(value)
        if id(value) in self.named:
            return self.named[id(value)]
        if isinstance(value, _SILENT) or kind.startswith("ortc.torch._wrap."):
            return kind
        if type(value) in (object, types.EllipsisType, types.NotImplementedType):
            return kind
        if isinstance(value, torch.Tensor):
            return f"{kind}{tuple(value.shape)}{value.dtype}{content_digest(value)}"
        if depth > _DEPTH or len(self.numbers) > _MOST:
            self.is_complete = False
            return kind
        if isinstance(value, (tuple, frozenset, slice)):  # whether equal ones are one object is up to Python
            return kind + self._describe_parts(value, depth + 1)
        if id(value) in self.numbers:
            return f"#{self.numbers[id(value)]}"
        self.numbers[id(value)] = len(self.numbers)
        self.kept.append(value)
        return kind + self._describe_object(value, depth + 1)

    def _describe_parts(self, value: Any, depth: int) -> str:
        if isinstance(value, slice):
            value = (value.start, value.stop, value.step)
        if isinstance(value, (set, frozenset)):
            return str(sorted(self._describe_apart(each, depth) for each in value))
        if isinstance(value, Mapping):
            return str([(self.describe(key, depth), self.describe(item, depth)) for key, item in value.items()])
        return str([self.describe(each, depth) for each in value])

    def _describe_apart(self, value: Any, depth: int) -> str:
        """Without numbers of what was before, since the order of sets is another one in each process."""
        if isinstance(value, _PLAIN):
            return repr(value)
        other = Describer(self.named)
        other.watch = self.watch
        text = other.describe(value, depth)
        self.is_complete &= other.is_complete
        self.names |= other.names
        for each in other.classes:
            self.classes.setdefault(each, set())
        self.kept += other.kept
        return text

    def _describe_object(self, value: Any, depth: int) -> str:
        deeper = functools.partial(self.describe, depth=depth)
        if isinstance(value, types.FunctionType):
            return self._describe_function(value, depth)
        if isinstance(value, type):
            return self.describe_class(value, depth, is_made=True)
        if isinstance(value, types.ModuleType):
            return self._describe_module(value, depth)
        if isinstance(value, types.MethodType):
            return f"{deeper(value.__func__)} of {deeper(value.__self__)}"
        if isinstance(value, functools.partial):
            return f"{deeper(value.func)}{deeper(value.args)}{deeper(value.keywords)}{self._describe_fields(value, depth)}"
        if isinstance(value, (staticmethod, classmethod)):
            return deeper(value.__func__)
        if isinstance(value, property):
            return f"{deeper(value.fget)}{deeper(value.fset)}{deeper(value.fdel)}"
        if isinstance(value, (_MUTABLE, types.MappingProxyType)):
            more = deeper(value.default_factory) if isinstance(value, collections.defaultdict) else ""
            return self._describe_parts(value, depth) + more + self._describe_fields(value, depth)
        if isinstance(value, weakref.ref):  # to a parameter, in torch.nn.RNNBase
            return deeper(value())
        if isinstance(value, re.Pattern):
            return f"{value.pattern!r}{value.flags}"
        if isinstance(value, contextvars.ContextVar):
            return deeper(value.get(None))
        if isinstance(value, os._Environ):
            return deeper(dict(sorted(value.items())))
        if _is_of_numpy(value):
            return self._describe_array(value, depth)
        if isinstance(value, (torch._ops.OpOverload, torch._ops.OpOverloadPacket, torch.finfo, torch.iinfo)):
            return str(value)
        if isinstance(value, _OF_C):
            owner = getattr(value, "__self__", None)
            is_bound = owner is not None and not isinstance(owner, (types.ModuleType, type)) and type(owner).__name__ not in _CAPSULES
            return f"{_name(value)}{deeper(owner) if is_bound else ''}"
        if isinstance(value, torch.nn.Module):
            return f"{list(self.describe_module(value, depth))}"
        return self._describe_fields(value, depth, is_needed=True)

    def _describe_array(self, value: Any, depth: int) -> str:
        if not hasattr(value, "tobytes"):
            return str(value)  # numpy.dtype, numpy.ufunc
        values = self.describe(value.tolist(), depth) if value.dtype.hasobject else hashlib.sha256(value.tobytes()).hexdigest()
        return f"{getattr(value, 'shape', '')}{value.dtype}{values}"

    def _describe_fields(self, value: Any, depth: int, is_needed: bool = False) -> str:
        """The attributes of an object, and its class."""
        fields, count = dict(getattr(value, "__dict__", None) or {}), 0
        for base in type(value).__mro__:
            slots = base.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if isinstance(base.__dict__.get(name), types.MemberDescriptorType) and hasattr(value, name):
                    fields[name] = getattr(value, name)
                    count += 1
        text = self.describe_class(type(value), depth)
        if is_needed and _is_hidden(type(value), count):
            try:
                text += self.describe(value.__reduce_ex__(4)[:3], depth)
            except Exception:
                self.is_complete = False
        return text + str([(name, self.describe(each, depth)) for name, each in sorted(fields.items())])

    def describe_module(self, module: torch.nn.Module, depth: int = 0) -> Iterable[str]:
        """One that is none of `named`: a global, say. Its values are constants."""
        for name, each in module.named_modules():
            yield f"{name}: {self.describe_class(type(each), depth)}"
            for key, value in sorted(each.__dict__.items()):
                if key != "_modules" and not key.endswith("_hooks") and not key.endswith("_hooks_with_kwargs"):
                    yield f"{key}={self.describe(value, depth + 1)}"

    # ---- Code.

    def _describe_function(self, function: types.FunctionType, depth: int) -> str:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
        if _is_of_package(function):
            # Functions that others have given it: torch.no_grad and functools.wraps are functions around those of the module.
            held = [each.cell_contents for each in cells.values() if not _is_empty(each)]
            given = [each for each in held if isinstance(each, (types.FunctionType, types.MethodType, functools.partial, *_PLAIN))]
            return f"{_name(function)} {_identify_package(function.__module__ or '')}{[self.describe(each, depth) for each in given]}"
        code = function.__code__
        self.names |= list_names(code)
        self.watch.note_function(function)
        parts = [_name(function), describe_code(code), self.describe(function.__defaults__, depth)]
        parts += [self.describe(function.__kwdefaults__, depth), self.describe(vars(function) or None, depth)]
        whole = {(each.kind, each.name) for each in list_reads(code) if not each.steps}
        for each in list_reads(code):
            if not each.steps or (each.kind, each.name) not in whole:
                parts.append(f"{each.name}{each.steps}={self._describe_read(function, cells, each, depth)}")
        return str(parts)

    def _describe_read(self, function: types.FunctionType, cells: Mapping[str, types.CellType], read: Read, depth: int) -> str:
        value: Any = ABSENT
        if read.kind == "environment":
            value = vars(os)[read.name]  # which is looked up by its next step
        elif read.kind == "module":
            value = find_module(read.name, function.__globals__.get("__package__"))
            if value is None:
                self._note_missing(read.name)
        elif read.name == "__class__" and read.kind == "cell":  # of super()
            return self.describe_class(cells["__class__"].cell_contents, depth) if "__class__" in cells else ""
        elif read.kind == "cell":
            value = ABSENT if read.name not in cells or _is_empty(cells[read.name]) else cells[read.name].cell_contents
            if read.name in cells:
                self.watch.note_cell(cells[read.name], read.name)
        else:
            builtins = function.__globals__.get("__builtins__", {})
            known = builtins if isinstance(builtins, dict) else vars(builtins)
            value = function.__globals__.get(read.name, known.get(read.name, ABSENT))
            self.watch.note_item(function.__globals__, read.name, read.name)
            if read.name in _HIDDEN and value is known.get(read.name):
                self.is_complete = False
        return self._describe_steps(value, read, depth)

    def _note_missing(self, name: str) -> None:
        """Takes note of a module that is imported in a function and is not loaded yet."""
        try:
            found = importlib.util.find_spec(name.partition(".")[0])
        except (ImportError, ValueError):
            found = None
        self.is_complete &= found is not None and bool(found.origin) and (
            found.origin in ("built-in", "frozen") or is_installed(str(found.origin))
        )

    def _describe_steps(self, value: Any, read: Read, depth: int) -> str:
        """The part of a value that is read, as far as it is sure what that is."""
        steps, label = read.steps, read.name
        for number, (kind, key) in enumerate(steps):
            if value is os.environ or value is os.environb or value is os.getenv or value is os.getenvb:
                last_kind, name = steps[-1]
                if last_kind == "item" and isinstance(name, (str, bytes)):
                    self._watch_environment(os.fsdecode(name))
                    return repr(os.environ.get(os.fsdecode(name)))
                value = os.environ
                break
            if id(value) in self.named:
                break
            follows = number + 1 < len(steps) and steps[number + 1][0] == "item"
            if type(value) is dict and kind == "attribute" and key == "get" and follows:
                continue
            label += f"[{key!r}]" if kind == "item" else f".{key}"
            if type(value) is dict and kind == "item":
                value = self._look_up(value, key, label)
            elif isinstance(value, types.ModuleType) and kind == "attribute":
                value = self._look_up(vars(value), key, label)
            elif kind == "attribute" and _has_field(value, key):
                value = self._look_up(vars(value), key, label)
            elif kind == "attribute" and isinstance(value, type) and is_class_of_package(value):
                found = inspect.getattr_static(value, key, ABSENT)
                if not isinstance(found, (*_PLAIN, *_MUTABLE)):
                    break
                value = found
            else:
                break
        if value is os.getenv or value is os.getenvb or value is os.environb:
            value = os.environ
        if value is os.environ:
            self._watch_environment()
        self.watch.note_root(value, label)
        return "nothing" if value is ABSENT else self.describe(value, depth)

    def _look_up(self, namespace: Mapping[Any, Any], key: Any, label: str) -> Any:
        self.watch.note_item(namespace, key, label)
        return namespace.get(key, ABSENT)

    def _watch_environment(self, name: str = "") -> None:
        """One variable, or all."""
        own: Any = os.environ
        if name:
            self.watch.note_item(own._data, own.encodekey(name), f"${name}")
        else:
            self.watch.note_root(own._data, "os.environ")

    def _describe_module(self, module: types.ModuleType, depth: int) -> str:
        path = getattr(module, "__file__", None)
        if not path or is_installed(path):
            return f"{module.__name__} {_identify_package(module.__name__)}"
        fields = {name: each for name, each in vars(module).items() if not (name.startswith("__") and name.endswith("__"))}
        return f"{module.__name__}{[(name, self.describe(each, depth)) for name, each in sorted(fields.items())]}"

    # ---- Classes.

    def describe_class(self, kind: type, depth: int = 0, is_made: bool = False) -> str:
        """`is_made`: code may make objects of it."""
        parts = [_name(kind)]
        for base in kind.__mro__:
            if base in self.of_packages:
                continue
            if is_class_of_package(base):
                self.of_packages.add(base)
                parts += self._describe_patches(base, depth)
                if base.__module__.partition(".")[0] not in ("builtins", "torch"):
                    parts.append(_identify_package(base.__module__))
            elif base not in self.classes:
                self.classes[base] = set()
                self.kept.append(base)
                self.watch.note_class(base)
                parts.append(_name(base))
                for name, value in sorted(vars(base).items()):
                    if functions := _functions_of(value):
                        parts.append(f"{name}={[describe_code(each.__code__) for each in functions]}")
                    elif isinstance(value, _PLAIN) and name not in ("__doc__", "__firstlineno__"):
                        parts.append(f"{name}={value!r}")
        if is_made:
            for base in kind.__mro__:
                if base in self.classes:
                    parts += self._describe_attributes(base, {"__init__", "__new__", "__post_init__"}, depth)
        return str(parts)

    def _describe_patches(self, base: type, depth: int) -> list[str]:
        """Functions that others have put into a class of a package."""
        found = []
        for name, value in list(vars(base).items()):
            if any(not _is_of_package(each) and not each.__code__.co_filename.startswith("<") for each in _functions_of(value)):
                found.append(f"{base.__qualname__}.{name}={self.describe(value, depth)}")
        return found

    def _describe_attributes(self, base: type, names: set[str], depth: int) -> list[str]:
        found = []
        for name, value in sorted(vars(base).items()):
            if name in names and name not in self.classes[base] and not isinstance(value, _PLAIN):
                self.classes[base].add(name)
                found.append(f"{base.__qualname__}.{name}={self.describe(value, depth)}")
        return found

    def describe_mentioned(self) -> list[str]:
        """Attributes that classes have and code mentions by name: described until nothing more is mentioned."""
        found: list[str] = []
        while True:
            before = len(found)
            for base in list(self.classes):
                by_operators = {
                    name
                    for name, value in vars(base).items()
                    if name.startswith("__") and name.endswith("__") and name not in _NOT_CALLED and _functions_of(value)
                }
                found += self._describe_attributes(base, self.names | by_operators, 0)
            if len(found) == before:
                return found

    def describe_patched(self) -> list[str]:
        """Functions that others have put among those of PyTorch."""
        found = []
        for owner in (torch, torch.nn.functional):
            for name, value in sorted(vars(owner).items()):
                if isinstance(value, types.FunctionType) and not _is_of_package(value) and not value.__code__.co_filename.startswith("<"):
                    found.append(f"{owner.__name__}.{name}={self.describe(value)}")
        return found + self._describe_patches(torch.Tensor, 0)


def _is_empty(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


def _has_field(value: Any, name: str) -> bool:
    """Whether an attribute is that of the object, whatever its class has."""
    kind: Any = type(value)
    if isinstance(value, type) or kind.__getattribute__ not in _LOOK_UP or name not in getattr(value, "__dict__", {}):
        return False
    return not hasattr(getattr(kind, name, None), "__set__")
