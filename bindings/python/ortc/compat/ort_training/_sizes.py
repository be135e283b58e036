"""Graphs with sizes that are not known, compiled with some.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ortc._artifact import Artifact
from ortc._compile import compile
from ortc._errors import CompileError
from ortc.compat.ort_training._graphs import graph_inputs

if TYPE_CHECKING:
    import onnx

_SIZES = (2, 8, 32, 128, 224)
"""Convolutions and poolings need some."""


def compile_with_some(path: str | os.PathLike[str], graph: onnx.ModelProto, **flags: Any) -> Artifact:
    """For what does not depend on sizes, such as weights. Raises the CompileError of the first size where none will do."""
    rows = {each.name: each.type.tensor_type.shape.dim for each in graph_inputs(graph)}
    is_known = all(dim.HasField("dim_value") for row in rows.values() for dim in row)
    first: CompileError | None = None
    for size in _SIZES[:1] if is_known else _SIZES:
        shapes = {name: [dim.dim_value if dim.HasField("dim_value") else size for dim in row] for name, row in rows.items()}
        try:
            return compile(path, shapes=shapes, **flags)
        except CompileError as error:
            first = first or error
    assert first is not None
    raise first
