"""Parameters of a session as one array of float32, as ortc/parameters.h has them.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ortc._arrays import Bits, widen
from ortc._errors import ShapeError

if TYPE_CHECKING:
    from ortc._artifact import Tensor
    from ortc._session import Session

_FLOATS = ("float32", "float64", "bfloat16")


def _tensors(session: Session, trainable: bool) -> list[tuple[Tensor, slice]]:
    """In the order of the artifact's table, each with its place in the array."""
    model = {each["name"] for each in session.artifact.manifest["frozen"]}  # running statistics are among them
    found, at = [], 0
    for tensor in session.artifact.tensors.values():
        is_statistic = tensor.role == "state" and tensor.name in model
        if tensor.dtype in _FLOATS and (tensor.role == "parameter" or (is_statistic and not trainable)):
            count = int(np.prod(tensor.shape, dtype=np.int64))
            found.append((tensor, slice(at, at + count)))
            at += count
    return found


def _narrow(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """As bfloat16, rounded to the nearest, ties to even."""
    bits = values.view(np.uint32)
    rounded = (bits.astype(np.uint64) + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(values), bits >> 16 | 0x40, rounded).astype(np.uint16)


def read(session: Session, trainable: bool) -> NDArray[np.float32]:
    tensors = _tensors(session, trainable)
    result = np.empty(tensors[-1][1].stop if tensors else 0, np.float32)
    with np.errstate(over="ignore"):
        for tensor, place in tensors:
            values = session.read(tensor.name)
            result[place] = (widen(values) if tensor.dtype == "bfloat16" else values).reshape(-1)
    return result


def write(session: Session, values: Any, trainable: bool) -> None:
    given = np.asarray(values)
    tensors = _tensors(session, trainable)
    count = tensors[-1][1].stop if tensors else 0
    if given.dtype != np.float32 or given.shape != (count,):
        raise ShapeError(f"the parameters are {count} numbers of float32 in one row, but {given.dtype}{list(given.shape)} was given")
    for tensor, place in tensors:
        part = np.ascontiguousarray(given[place]).reshape(tensor.shape)
        session.write(tensor.name, Bits(_narrow(part)) if tensor.dtype == "bfloat16" else part.astype(tensor.dtype, copy=False))
