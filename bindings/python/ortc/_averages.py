"""Averages of the parameters in place of these.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ortc._errors import ArgumentError, NotFoundError, StateError
from ortc._session import Session


def has_begun(session: Session, kind: str) -> bool:
    """False where there are such averages, and nothing was averaged yet."""
    counter = f"{kind}.n_averaged"
    return counter not in session.artifact.tensors or session[counter] != 0


@contextmanager
def averaged(session: Session, kind: str | None) -> Iterator[None]:
    """Within, parameters are the averages of `--ema` or `--swa`; behind it, what they were."""
    if kind is None:
        yield
        return
    if kind not in ("ema", "swa"):
        raise ArgumentError(f"'{kind}' is no kind of averages; there are ema and swa")
    tensors = session.artifact.tensors
    if f"{kind}.n_averaged" not in tensors:
        raise NotFoundError(f"the artifact has no such averages; compile it with {kind}=...")
    if session[f"{kind}.n_averaged"] == 0:
        raise StateError(f"nothing was averaged yet; {kind} begins with the training")
    kept = {}
    try:
        for name in session.artifact.names("parameter"):
            average = tensors.get(f"{name}.{kind}")
            if average is None:
                continue
            kept[name] = session.read(name)
            values = kept[name].copy()  # of which a part of the channels may be trained
            values[tuple(slice(size) for size in average.shape)] = session.read(average.name)
            session.write(name, values)
        yield
    finally:
        for name, values in kept.items():
            session.write(name, values)
