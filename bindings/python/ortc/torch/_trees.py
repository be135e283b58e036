"""How nested outputs are put together, as JSON: what another process makes them from.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Of PyTorch's own texts of a TreeSpec, those of namedtuples and of most registered classes need a name that nobody gives.
Here classes are their modules and names, and are looked for among those that exist.
"""

from __future__ import annotations

import enum
import gc
import sys
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import torch.utils._pytree as pytree

from ortc._errors import CompileError

_PLAIN = (type(None), bool, int, float, str)


def dump(spec: pytree.TreeSpec) -> Any:
    """Raises CompileError for what has no such form."""
    if spec.is_leaf():
        return None
    children = [dump(child) for child in spec._children]
    if spec.type is namedtuple:
        return [_dump_value(spec._context), None, children]
    own = pytree.SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if own is not None and own.to_dumpable_context is not None and own.from_dumpable_context is not None:
        return [_dump_value(spec.type), {"dumped": own.to_dumpable_context(spec._context)}, children]
    return [_dump_value(spec.type), _dump_value(spec._context), children]


def load(form: Any) -> pytree.TreeSpec:
    """Raises LookupError where a class is not there."""
    if form is None:
        return pytree.TreeSpec(None, None, [])
    kind, context, children = form
    cls = _load_value(kind)
    specs = [load(child) for child in children]
    if pytree.is_namedtuple_class(cls):
        return pytree.TreeSpec(namedtuple, cls, specs)
    if isinstance(context, dict) and "dumped" in context:
        return pytree.TreeSpec(cls, pytree.SUPPORTED_SERIALIZED_TYPES[cls].from_dumpable_context(context["dumped"]), specs)
    return pytree.TreeSpec(cls, _load_value(context), specs)


def _dump_value(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if type(value) is list:
        return [_dump_value(each) for each in value]
    if type(value) is tuple:
        return {"tuple": [_dump_value(each) for each in value]}
    if type(value) is dict:
        return {"dict": [[_dump_value(key), _dump_value(each)] for key, each in value.items()]}
    if isinstance(value, enum.Enum):
        return {"member": [_dump_value(type(value)), value.name]}
    if isinstance(value, type):
        return {"class": [value.__module__, value.__qualname__]}
    raise CompileError(f"an output is in a container with a {type(value).__qualname__} as a key: give it texts or numbers")


def _load_value(form: Any) -> Any:
    if isinstance(form, list):
        return [_load_value(each) for each in form]
    if not isinstance(form, dict):
        return form
    ((kind, value),) = form.items()
    if kind == "tuple":
        return tuple(map(_load_value, value))
    if kind == "dict":
        return {_load_value(key): _load_value(each) for key, each in value}
    if kind == "member":
        return _load_value(value[0])[value[1]]
    return _find(*value)


def _find(module: str, name: str) -> Any:
    """The class: as the module has it, or one that a function has made."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type):
        return found
    for _ in range(2):
        known = {*_subclasses(tuple), *pytree.SUPPORTED_NODES}
        alive = [each for each in known if (each.__module__, each.__qualname__) == (module, name)]
        if len(alive) == 1:
            return alive[0]
        gc.collect()  # those of functions that have returned
    raise LookupError(
        f"outputs are of a class {module}.{name}, and there are {len(alive)} of that name: define it once, outside of functions"
    )


def _subclasses(cls: type) -> Iterator[type]:
    found: list[type] = type.__subclasses__(cls)
    for each in found:
        yield each
        yield from _subclasses(each)
