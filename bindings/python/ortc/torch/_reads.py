"""Values that functions read beside their arguments: globals, attributes of them, modules that they import, variables of the environment.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import dis
import importlib.util
import sys
import types
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

_ROOTS = {
    "LOAD_GLOBAL": "global",
    "LOAD_NAME": "global",
    "LOAD_FROM_DICT_OR_GLOBALS": "global",
    "LOAD_DEREF": "cell",
    "LOAD_CLASSDEREF": "cell",
    "LOAD_FROM_DICT_OR_DEREF": "cell",
}
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_BETWEEN = ("CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL", "RESUME")
_OF_ENVIRONMENT = ("environ", "environb", "getenv", "getenvb")
_GETTERS = ("get", "getenv", "getenvb", "__getitem__")

Step = tuple[str, Any]
"""An attribute or an item, and its name or key."""


class Read(NamedTuple):
    """A value that code names, and what of it: only that is read, unless there is nothing."""

    kind: str
    """global, cell, module (that is imported), or environment."""
    name: str
    steps: tuple[Step, ...]


def _is_text(instruction: dis.Instruction) -> bool:
    return instruction.opname == "LOAD_CONST" and isinstance(instruction.argval, (str, bytes))


def _is_item(instruction: dis.Instruction) -> bool:
    return instruction.opname == "BINARY_SUBSCR" or (instruction.opname == "BINARY_OP" and instruction.argrepr == "[]")


def _follow(code: list[dis.Instruction], at: int) -> tuple[tuple[Step, ...], int]:
    """The attributes and items that are taken of what the instruction at `at` has loaded, one of the other, and where that ends."""
    steps: list[Step] = []
    is_got = code[at].argval in _GETTERS
    at += 1
    while at < len(code):
        each = code[at]
        if is_got and _is_text(each):
            return (*steps, ("item", each.argval)), at + 1
        if each.opname in _ATTRIBUTES:
            steps.append(("attribute", each.argval))
            is_got = each.argval in _GETTERS
            at += 1
        elif each.opname == "LOAD_CONST" and at + 1 < len(code) and _is_item(code[at + 1]):
            steps.append(("item", each.argval))
            is_got = False
            at += 2
        else:
            break
    return tuple(steps), at


def _find_imports(code: list[dis.Instruction], at: int, variables: dict[str, str]) -> Iterator[Read]:
    """The reads that the IMPORT_NAME at `at` is for. A module is a local variable, which is added to `variables`."""
    level, names = (each.argval for each in code[at - 2 : at])
    name = "." * level + code[at].argval
    for part in names or ():
        yield Read("module", name, (("attribute", part),))
    if names is None:
        end = min(at + 8, len(code)) - 1
        at += 1
        while at < end and not code[at].opname.startswith("STORE_"):
            at += 1
        is_renamed = code[at - 1].opname == "POP_TOP"  # import a.b as c
        if code[at].opname == "STORE_FAST":
            variables[code[at].argval] = name if is_renamed else name.partition(".")[0]
        else:
            yield Read("module", name, ())


@cache
def list_reads(code: types.CodeType) -> tuple[Read, ...]:
    """The reads of a function and of those within it, without repetitions."""
    found: dict[Read, None] = {}
    instructions = [each for each in dis.get_instructions(code) if each.opname not in _BETWEEN]
    variables: dict[str, str] = {}
    end = 0
    for at, each in enumerate(instructions):
        kind, name = _ROOTS.get(each.opname, ""), each.argval
        if each.opname.startswith("LOAD_FAST"):
            if isinstance(name, tuple):  # two at once
                found.update(dict.fromkeys(Read("module", variables[one], ()) for one in name if one in variables))
            elif name in variables:
                kind, name = "module", variables[name]
        # Also of what is none of these, such as an object's.
        elif at >= end and each.opname in _ATTRIBUTES and name in _OF_ENVIRONMENT:
            kind = "environment"
        if each.opname == "IMPORT_NAME":
            found.update(dict.fromkeys(_find_imports(instructions, at, variables)))
        elif kind:
            steps, end = _follow(instructions, at)
            if at and _is_text(instructions[at - 1]) and end < len(instructions) and instructions[end].opname == "CONTAINS_OP":
                steps += (("item", instructions[at - 1].argval),)
            found[Read(kind, name, steps)] = None
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found.update(dict.fromkeys(list_reads(constant)))
    return tuple(found)


@cache
def list_names(code: types.CodeType) -> frozenset[str]:
    """All attributes that a function and those within it mention, also as texts, which getattr may take."""
    names = {*code.co_names, *(each for each in code.co_consts if isinstance(each, str) and each.isidentifier())}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= list_names(constant)
    return frozenset(names)


def find_module(name: str, package: str | None) -> types.ModuleType | None:
    """What `import` of a function would find, if it is loaded."""
    try:
        return sys.modules.get(importlib.util.resolve_name(name, package))
    except (ImportError, ValueError, TypeError):
        return None
