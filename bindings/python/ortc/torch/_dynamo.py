"""The backend of torch.compile: torch.compile(model, backend="ortc").

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Each graph that dynamo cuts out of a script becomes a module of its own, with compile_. Dynamo hands over parameters and
buffers as inputs, and may use one graph for several modules: those of a call are put into the module's places before it.
"""

from __future__ import annotations

import inspect
import logging
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from ortc.torch._report import Report
from ortc.torch._wrap import compile_, report

_LOG = logging.getLogger("ortc.torch")
_FAMILIES = ("torch", "_operator", "operator", "math", "builtins")


class _Refused(Exception):
    """Why a graph runs as it is."""


class _Norm(torch.nn.modules.batchnorm._BatchNorm):
    """A batch normalisation of any rank, whose tensors are set before a call."""

    def __init__(self, momentum: float, eps: float) -> None:
        super().__init__(1, eps, momentum)
        self.num_batches_tracked = None  # the graph counts

    def _check_input_dim(self, input: torch.Tensor) -> None:
        pass


class _Graph(torch.nn.Module):
    """A graph as a module: parameters and running statistics are its own."""

    def __init__(self, source: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> None:
        super().__init__()
        graph = torch.fx.Graph()
        copies: dict[torch.fx.Node, torch.fx.Node] = {}
        graph.output(graph.graph_copy(source.graph, copies))
        places = [copies[node] for node in source.graph.nodes if node.op == "placeholder"]
        self.counters: list[int] = []
        """Inputs that count batches."""
        self.slots: list[tuple[int, str, str]] = []
        """Inputs that are tensors of the module: number, path of the module within, name."""
        self._lift_norms(graph, places)
        for number, (node, example) in enumerate(zip(places, example_inputs, strict=True)):
            if isinstance(example, torch.nn.Parameter) and node.users:
                self._lift(graph, node, f"p{number}", number, example)
        moved = {*self.counters, *(number for number, _, _ in self.slots)}
        self.rest = [number for number in range(len(places)) if places[number].users or number not in moved]
        """Inputs of the module."""
        for number, node in enumerate(places):
            if number not in self.rest:
                graph.erase_node(node)
        for node in graph.nodes:
            if node.op == "get_attr" and not hasattr(self, node.target):
                self.register_buffer(node.target, getattr(source, node.target))
        graph.lint()
        self.run = type(torch.fx.GraphModule(self, graph)).forward

    def _lift(self, graph: torch.fx.Graph, node: torch.fx.Node, name: str, number: int, value: torch.nn.Parameter) -> None:
        self.register_parameter(name, value)
        self.slots.append((number, "", name))
        with graph.inserting_before(next(each for each in graph.nodes if each.op != "placeholder")):
            node.replace_all_uses_with(graph.get_attr(name))

    def _lift_norms(self, graph: torch.fx.Graph, places: list[torch.fx.Node]) -> None:
        """Batch normalisations that move running statistics: a step does nothing else to what is not its own."""
        seen: set[torch.fx.Node] = set()
        for node in list(graph.nodes):
            is_counted = node.op == "call_method" and node.target == "add_" and node.args[1:] == (1,) and not node.kwargs
            if is_counted and node.args[0] in places and list(node.args[0].users) == [node] and not node.users:
                self.counters.append(places.index(node.args[0]))
                graph.erase_node(node)
            if node.target not in (F.batch_norm, F.instance_norm):
                continue
            given = inspect.signature(node.target).bind(*node.args, **node.kwargs)
            given.apply_defaults()
            x, mean, variance, weight, bias, moves, momentum, eps = list(given.arguments.values())[:8]
            if not moves or mean is None:
                continue
            tensors = {"running_mean": mean, "running_var": variance, "weight": weight, "bias": bias}
            if seen & {mean, variance} or any(each not in (None, *places) for each in tensors.values()):
                raise _Refused("a normalisation runs several times, or on tensors that are no inputs")
            if not isinstance(momentum, float):
                raise _Refused("the momentum of a batch normalisation changes")
            if node.target is F.instance_norm:
                raise _Refused("a normalisation of instances moves running statistics")
            seen |= {mean, variance}
            name = f"norm{len(seen) // 2}"
            self.add_module(name, _Norm(momentum, eps))
            for key, each in tensors.items():
                if each is None:
                    self.get_submodule(name)._parameters[key] = None
                else:
                    self.slots.append((places.index(each), name, key))
            with graph.inserting_before(node):
                node.replace_all_uses_with(graph.call_module(name, (x,)))
            graph.erase_node(node)

    def take(self, inputs: Sequence[Any]) -> list[Any]:
        """Puts tensors of a call into their places; the other inputs are left."""
        for number, path, name in self.slots:
            module = self.get_submodule(path)
            tensors = module._parameters if name in module._parameters else module._buffers
            tensors[name] = inputs[number]
        return [inputs[number] for number in self.rest]

    def forward(self, *inputs: Any) -> Any:
        return self.run(self, *inputs)


def _check(source: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> None:
    if not all(isinstance(each, torch.Tensor) for each in example_inputs):
        raise _Refused("an input is a number that changes (torch.compile(dynamic=False) makes a graph for each)")
    if not any(each.requires_grad for each in example_inputs):
        raise _Refused("neither a parameter nor an input has a gradient in it")
    for node in source.graph.nodes:
        if node.op == "call_module" or isinstance(node.target, torch._ops.HigherOrderOperator):
            raise _Refused(f"there is a graph within the graph ({node.target})")
        if node.op == "get_attr" and not isinstance(getattr(source, node.target, None), torch.Tensor):
            raise _Refused(f"there is a graph within the graph ({node.target})")
        family = str(getattr(node.target, "__module__", None) or "torch").partition(".")[0]
        if node.op == "call_function" and family not in _FAMILIES:
            raise _Refused(f"it calls {node.target}, which is none of PyTorch's")
        if node.op == "call_function" and node.target is operator.setitem:
            raise _Refused("it changes a part of a tensor")


class _Compiled:
    """What runs for a graph. Its first call is the graph's own, and shows whether it changes its inputs."""

    def __init__(self, source: torch.fx.GraphModule, module: _Graph) -> None:
        self.source = source
        self.module = module
        self.is_new = True
        self.reason = ""

    @property
    def report(self) -> Report:
        return report(self.module)

    def __call__(self, *inputs: Any) -> Any:
        if self.reason:
            return self.source(*inputs)
        if self.is_new:
            self.is_new = False
            kept = [inputs[i] for i in self.module.rest] + [each for each in inputs if isinstance(each, torch.nn.Parameter)]
            before = [each._version for each in kept]
            results = self.source(*inputs)
            if before != [each._version for each in kept]:
                self.reason = "it changes an input"
                _LOG.info("a graph of dynamo is not compiled: %s", self.reason)
            return results
        results = self.module(*self.module.take(inputs))
        for number in self.module.counters:
            inputs[number].add_(1)
        return results


def backend(
    source: torch.fx.GraphModule, example_inputs: Sequence[Any], *, options: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """For torch.compile(model, backend="ortc"); `options`: those of compile_, such as {"threads": 2}."""
    try:
        _check(source, example_inputs)
        module = _Graph(source, example_inputs)
    except _Refused as why:
        _LOG.info("a graph of dynamo is not compiled: %s", why)
        return source.forward  # type: ignore[no-any-return]
    compile_(module, **(options or {}))
    return _Compiled(source, module)
