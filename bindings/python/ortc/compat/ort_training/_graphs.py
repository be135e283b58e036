"""Graphs that Module trains: with what they are trained with in their metadata; and checkpoints of their weights.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ortc._compile import run_compiler
from ortc._errors import ArgumentError
from ortc._runtime import suggest
from ortc.compat.ort_training import _safetensors

if TYPE_CHECKING:
    import onnx

FLAGS = "ortc.compat.flags"
"""The key of a model's metadata with flags of `ortc train`, as JSON."""


def graph_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Those that are no initializers."""
    weights = {each.name for each in model.graph.initializer}
    return [each for each in model.graph.input if each.name not in weights]


def add_outputs(model: onnx.ModelProto, names: Iterable[str]) -> None:
    """Of values that are none yet."""
    present = {each.name for each in model.graph.output}
    for name in dict.fromkeys(names):
        if name not in present:
            model.graph.output.add().name = name


def keep_outputs(model: onnx.ModelProto, names: Iterable[str]) -> None:
    """These, in this order."""
    found = {each.name: each for each in model.graph.output}
    kept = [found[name] for name in names]
    del model.graph.output[:]
    model.graph.output.extend(kept)


def make_evaluated(model: onnx.ModelProto, losses: Iterable[str]) -> onnx.ModelProto:
    """As evaluation computes it, whatever it was exported for: nothing drops, batch normalisations use their running statistics. Losses
    are its first outputs."""
    import onnx

    given = copy.deepcopy(model)
    first = list(losses)
    add_outputs(given, first)
    keep_outputs(given, [*first, *(each.name for each in given.graph.output if each.name not in first)])
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("model.onnx", "evaluated.onnx")]
        onnx.save(given, paths[0])
        run_compiler(["export", paths[0], "--output", paths[1], "--quiet"])
        return onnx.load(paths[1])


def describe_training(model: onnx.ModelProto, trained: Iterable[str], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Gives the flags that it has written."""
    flags = dict(flags)
    if any(node.op_type == "BatchNormalization" for node in model.graph.node):
        flags.setdefault("batch_norm", "train")
    model.metadata_props.add(key="ortc.trainable", value="\n".join(trained))
    model.metadata_props.add(key=FLAGS, value=json.dumps(flags))
    return flags


def list_parameters(model: onnx.ModelProto, trained: list[str], frozen: list[str]) -> tuple[list[Any], list[Any]]:
    """Initializers that are trained, and those that are frozen. Raises ArgumentError for names of none."""
    weights = {each.name: each for each in model.graph.initializer}
    for name in (*trained, *frozen):
        if name not in weights:
            raise ArgumentError(f"the model has no initializer {name}; it has {', '.join(weights)}{suggest(name, list(weights))}")
    return [weights[name] for name in trained], [weights[name] for name in frozen]


def write_checkpoint(
    path: str | os.PathLike[str], trained: Iterable[str], tensors: Mapping[str, Any], outputs: Iterable[str]
) -> None:
    """With the names of outputs beside the loss."""
    metadata = {"trainable": "\n".join(trained), "outputs": json.dumps(list(outputs)), "properties": "{}"}
    _safetensors.write(path, tensors, metadata)
