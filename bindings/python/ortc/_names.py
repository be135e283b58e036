"""Names that a message lists, and which of them was meant; numbers as text. As support/Spec.h, support/EditDistance.h and
support/Text.h have them.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any


def join_words(words: Sequence[str]) -> str:
    """ "a, b and c"."""
    return ", ".join(words[:-1]) + " and " * (len(words) > 1) + words[-1]


def count_edits(a: Sequence[Any], b: Sequence[Any]) -> int:
    """What must be inserted, removed or replaced to make one the other (Levenshtein)."""
    row = list(range(len(b) + 1))
    for i, each in enumerate(a):
        diagonal, row[0] = row[0], i + 1
        for k, other in enumerate(b):
            replaced = diagonal + (each != other)
            diagonal = row[k + 1]
            row[k + 1] = min(replaced, row[k] + 1, diagonal + 1)
    return row[-1]


def suggest(text: str, words: Sequence[str]) -> str:
    """ "; did you mean 'word'?" where one of the words is close to the text, else nothing."""
    found = [(count_edits(text, word), i) for i, word in enumerate(words)]
    near = [each for each in found if each[0] <= 1 + len(text) // 4 and each[0] < len(words[each[1]])]
    return f"; did you mean '{words[min(near)[1]]}'?" if near and text else ""


def describe_names(name: str, names: Sequence[str]) -> str:
    """ "there are a, b and c", and which of them is meant where `name` is nearly one."""
    return f"there are {join_words(names)}{suggest(name, names)}"


def parse_number(text: str, is_whole: bool) -> float | None:
    """Digits, with a sign and, where it may be a fraction, a point or an exponent; None of other text."""
    if is_whole:
        return int(text) if re.fullmatch("-?[0-9]{1,18}", text) else None
    return float(text) if re.fullmatch(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text) else None


def format_exact(value: float) -> str:
    """The shortest text of the same double, as std::to_chars writes it: checkpoints of `ortc run` are compared as texts."""
    sign, digits, exponent = Decimal(repr(float(value))).normalize().as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    power = exponent + len(text) - 1
    short = f"{text[0]}{'.' * (len(text) > 1)}{text[1:]}e{'-' if power < 0 else '+'}{abs(power):02}"
    if exponent >= 0:
        plain = text + "0" * exponent
    elif power >= 0:
        plain = f"{text[: power + 1]}.{text[power + 1 :]}"
    else:
        plain = "0." + "0" * (-power - 1) + text
    return "-" * sign + (short if len(short) < len(plain) else plain)
