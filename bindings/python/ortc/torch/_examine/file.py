"""The step of a file: compiled in float64, and run over tensors of PyTorch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import torch
from numpy.typing import NDArray

from ortc import _runtime
from ortc._artifact import Artifact
from ortc._compile import compile, run_compiler
from ortc._errors import CompileError, CompileWarning
from ortc.torch._examine.precision import MIDDLE

_ALIGNMENT = 64
_MIDDLES = {"RandomNormalLike", "RandomUniformLike", "RandomNormal", "RandomUniform"}
_DRAWS = {*_MIDDLES, "Bernoulli", "Multinomial"}


class File:
    """An ONNX file as it is read here."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        import onnx

        self.path = os.fspath(path)
        try:
            self.model = onnx.load(self.path)
        except Exception as error:
            raise CompileError(f"{self.path}: is no ONNX file: {error}") from error
        graph = self.model.graph
        self.initializers = {each.name: each for each in graph.initializer}
        self.inputs = [each for each in graph.input if each.name not in self.initializers]
        self.outputs = [each.name for each in graph.output]
        self.is_random = False

    def value(self, name: str) -> NDArray[Any] | None:
        """The value of an initializer."""
        from onnx import numpy_helper

        found = self.initializers.get(name)
        return None if found is None else numpy_helper.to_array(found)

    def find_masks(self, folder: str) -> set[str]:
        """Draws of nodes that inference has no need of: masks of dropout, which `--dropout off` leaves out."""
        import onnx

        drawn = {node.output[0] for node in list_nodes(self.model) if node.op_type in _DRAWS}
        if not drawn:
            return drawn
        path = os.path.join(folder, "inference.onnx")
        run_compiler(["export", self.path, "-o", path])
        return drawn - {node.output[0] for node in list_nodes(onnx.load(path, load_external_data=False))}

    def still(self, folder: str, masks: Collection[str] = ()) -> str:
        """The path of the same model whose random numbers, `masks` aside, are one number. The file itself, where it has none."""
        import onnx

        nodes = list(list_nodes(self.model))
        self.is_random = any(node.op_type in _DRAWS or _drops(node) for node in nodes)
        drawn = [node for node in nodes if node.op_type in _DRAWS and node.output[0] not in masks]
        if refused := [node for node in drawn if node.op_type not in _MIDDLES]:
            raise CompileError(f"{self.path}: has {refused[0].op_type} '{refused[0].name}', whose random numbers are not compared")
        if not drawn:
            return self.path
        names = {node.output[0] for node in drawn}
        for graph in list_graphs(self.model):
            nodes = [each for node in graph.node for each in (_still(node) if node.output and node.output[0] in names else [node])]
            del graph.node[:]
            graph.node.extend(nodes)
        path = os.path.join(folder, "still.onnx")
        onnx.save(self.model, path)
        return path


def list_graphs(model: Any) -> Iterator[Any]:
    """The graph and the functions of a model, and graphs within."""
    graphs = [model.graph, *model.functions]
    for graph in graphs:  # which grows meanwhile
        yield graph
        graphs += [inner for node in graph.node for each in node.attribute for inner in (each.g, *each.graphs) if inner.node]


def list_nodes(model: Any) -> Iterator[Any]:
    return (node for graph in list_graphs(model) for node in graph.node)


def _drops(node: Any) -> bool:
    return node.op_type == "Dropout" and len(node.input) > 2 and bool(node.input[2])


def _still(node: Any) -> list[Any]:
    """The stand-in for an operator that draws numbers."""
    from onnx import TensorProto, helper

    settings = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    low, mean = settings.get("low", 0.0), settings.get("mean", 0.0)
    spread = settings.get("scale", 1.0) if "Normal" in node.op_type else settings.get("high", 1.0) - low
    number = (mean if "Normal" in node.op_type else low) + spread * MIDDLE
    name = node.output[0]
    shape = helper.make_node("Constant", [], [name + ".shape"], value_ints=settings.get("shape", [0]))
    if node.op_type.endswith("Like"):
        shape = helper.make_node("Shape", [node.input[0]], [name + ".shape"])
    value = helper.make_tensor("value", TensorProto.FLOAT, [1], [number])
    filled = helper.make_node("ConstantOfShape", [name + ".shape"], [name + ".float"], value=value)
    kind = settings.get("dtype", 0 if node.op_type.endswith("Like") else TensorProto.FLOAT)
    if kind:
        return [shape, filled, helper.make_node("Cast", [name + ".float"], [name], to=kind)]
    return [shape, filled, helper.make_node("CastLike", [name + ".float", node.input[0]], [name])]


class FileStep:
    """Outputs and gradients of a file as `ortc train` compiles it."""

    def __init__(
        self,
        path: str,
        folder: str,
        shapes: Mapping[str, Sequence[int]],
        cotangents: Sequence[str],
        gradients: Sequence[str],
        flags: Mapping[str, Any],
    ) -> None:
        """`folder`: takes the artifact, which is read only here. `gradients`: inputs whose gradients are asked for. Without
        `cotangents` there are only outputs."""
        wanted: dict[str, Any] = {"precision": "f64", "target": "native", **flags, "dropout": "off"}
        if cotangents:
            wanted |= {"cotangents": list(cotangents), "input_gradients": list(gradients), "bind": "parameters,gradients"}
        else:
            wanted |= {"loss": "none"}
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", CompileWarning)
            artifact: Artifact = compile(path, shapes=dict(shapes), output=os.path.join(folder, "artifact"), **wanted)
        self.said = [str(each.message) for each in said if issubclass(each.category, CompileWarning)] + artifact.notes
        self.program = artifact.program()
        self.frame = _runtime.Frame(self.program, _runtime.Pool(1))
        steps = self.program.steps()["default"]
        self.tensors = {name: (dtype, shape) for step in steps.values() for part in step for name, dtype, shape in part}
        names = self.frame.names
        self.inputs, self.outputs, self.bound = names("inputs"), names("outputs"), names("bound")
        self.cotangents, self.order, self.given = names("cotangents"), names("gradients"), names("input_gradients")
        self.trained = [each.removesuffix(".gradient") for each in self.order]

    def _empty(self, name: str) -> torch.Tensor:
        dtype, shape = self.tensors[name]
        return torch.empty(shape, dtype=getattr(torch, dtype))

    def _take(self, name: str, value: torch.Tensor) -> torch.Tensor:
        dtype, shape = self.tensors[name]
        return value.detach().to(getattr(torch, dtype)).reshape(shape).contiguous()

    def run(
        self, inputs: Mapping[str, torch.Tensor], bound: Mapping[str, torch.Tensor], cotangents: Mapping[str, torch.Tensor]
    ) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor], dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """Outputs; gradients of what is trained; gradients of inputs; bound tensors afterwards. All by names of the file."""
        given = tuple(self._take(name, inputs[name]) for name in self.inputs)
        weights = tuple(self._take(name, bound[name]).clone() for name in self.bound)
        results = tuple(self._empty(name) for name in self.outputs)
        self.frame.forward(given, weights, results, 0)
        outputs = dict(zip(self.outputs, results, strict=True))
        after = dict(zip(self.bound, weights, strict=True))
        if not self.order and not self.given:
            return outputs, {}, {}, after
        sources = tuple(self._take(name, cotangents[name.removesuffix(".cotangent")]) for name in self.cotangents)
        buffer = torch.zeros(self.frame.gradient_bytes + _ALIGNMENT, dtype=torch.uint8)
        skip = -buffer.data_ptr() % _ALIGNMENT
        slots = tuple(self._empty(name) for name in self.given)
        kept = tuple(given[self.inputs.index(name)] for name in self.frame.names("kept"))
        again = tuple(outputs[name] for name in self.frame.names("reread"))
        self.frame.backward(sources, buffer.data_ptr() + skip, slots, kept, weights, again)
        gradients = {}
        for name, offset in zip(self.order, self.frame.gradient_offsets, strict=True):
            dtype, shape = self.tensors[name]
            size = torch.empty(shape, dtype=getattr(torch, dtype)).numel() * getattr(torch, dtype).itemsize
            gradients[name.removesuffix(".gradient")] = buffer[skip + offset : skip + offset + size].view(getattr(torch, dtype)).reshape(shape).clone()
        return outputs, gradients, {name.removesuffix(".gradient"): each for name, each in zip(self.given, slots, strict=True)}, after


def symbolic_shapes(file: File, examples: Mapping[str, torch.Tensor]) -> dict[str, list[int]]:
    """Shapes of the inputs that the file leaves open."""
    found = {}
    for each in file.inputs:
        if each.name not in examples:
            continue
        given = each.type.tensor_type.shape.dim
        if any(not dim.HasField("dim_value") for dim in given) or not each.type.tensor_type.HasField("shape"):
            found[each.name] = list(examples[each.name].shape)
    return found
