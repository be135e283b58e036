"""Operators that PyTorch composes of others: their graph is what PyTorch runs, so that their gradient is PyTorch's at every point, and
operators that its exporter has no rule for are of those that it has one for.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from ortc._errors import CompileError
from ortc.torch._symbolics.build import constant, dtype_of, find_rule, is_none, is_plain

_MOST_NODES = 4096
_VIEWS = {
    getattr(torch.ops.aten, name).default
    for name in ("view", "_unsafe_view", "expand", "permute", "t", "unsqueeze", "squeeze", "as_strided", "diagonal", "alias")
} | {torch.ops.aten.select.int, torch.ops.aten.slice.Tensor, torch.ops.aten.transpose.int, torch.ops.aten.squeeze.dim}


def rules(own: Iterable[str]) -> dict[str, Any]:
    """A rule for every composed operator that has none. `own`: our own rules."""
    skipped = set(own)
    found = {}
    for name in _names():
        if name.endswith(("_", "_backward")) or name in skipped or _is_known(name):
            continue
        packet = getattr(torch.ops.aten, name)
        overloads = (getattr(packet, each) for each in packet.overloads())
        if any(torch._C._dispatch_has_kernel(each.name()) and _composes(each) for each in overloads):
            found[name] = functools.partial(_expand, packet)
    return found


@functools.cache
def _names() -> list[str]:
    """The names of all operators of PyTorch itself."""
    names = torch._C._dispatch_get_all_op_names()
    return sorted({each.removeprefix("aten::").partition(".")[0] for each in names if each.startswith("aten::")})


@functools.cache
def _decompositions() -> dict[Any, Any]:
    """How PyTorch writes operators with gradients of their own as others, where the exporter has no rule for them."""
    from torch._decomp import core_aten_decompositions

    return dict(core_aten_decompositions())


def _composes(overload: Any) -> bool:
    if not all(str(each.type) in ("Tensor", "List[Tensor]") for each in overload._schema.returns):
        return False
    key = "CompositeImplicitAutograd"
    return torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), key) or overload in _decompositions()


def _is_known(name: str) -> bool:
    return find_rule(f"aten::{name}") is not None


def _expand(packet: Any, g: Any, *inputs: Any) -> Any:
    """The nodes of one call."""
    name = packet._qualified_op_name
    overload, given = _find(packet, inputs)
    tensors = [each for value in given for each in (value if isinstance(value, list) else [value]) if isinstance(each, torch._C.Value)]
    examples = [_example(each, name) for each in tensors]

    def call(*values: torch.Tensor) -> Any:
        rest = [torch.ops.aten.alias(each) for each in values]  # leaves are not changed in place
        turn: Callable[[Any], Any] = lambda each: rest.pop(0) if isinstance(each, torch._C.Value) else each
        arguments = [list(map(turn, each)) if isinstance(each, list) else turn(each) for each in given]
        named = {a.name: value for a, value in zip(overload._schema.arguments, arguments, strict=True) if a.kwarg_only}
        plain = [value for a, value in zip(overload._schema.arguments, arguments, strict=True) if not a.kwarg_only]
        return overload(*plain, **named)

    table = {each: how for each, how in _decompositions().items() if not _is_known(each._schema.name.removeprefix("aten::"))}
    if overload in _decompositions():
        table[overload] = _decompositions()[overload]
    graph = _trace(call, table, examples)
    if len(graph.nodes) > _MOST_NODES:
        raise CompileError(f"{name} is {len(graph.nodes)} operations here, more than {_MOST_NODES}")
    return _replay(g, graph, tensors, len(overload._schema.returns), name)


def _trace(call: Callable[..., Any], table: dict[Any, Any], examples: list[torch.Tensor]) -> Any:
    """What PyTorch runs for these operands. Some composed operators look at numbers, and some are differentiable in no operand that
    could have a gradient."""
    tries = [(mode, grad) for mode in ("fake", "real") for grad in (True, False)]
    for mode, grad in tries:
        values = [each.detach().requires_grad_(grad and each.is_floating_point()) for each in examples]
        try:
            with torch.enable_grad():
                return make_fx(torch.func.functionalize(call), decomposition_table=table, tracing_mode=mode)(*values).graph
        except Exception:
            if (mode, grad) == tries[-1]:
                raise
    raise AssertionError("one of these ends it")


def _find(packet: Any, inputs: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """The overload that takes these values, and the arguments: values of the graph, and plain ones."""
    best: tuple[int, Any, list[Any]] | None = None
    for each in map(functools.partial(getattr, packet), packet.overloads()):
        arguments = each._schema.arguments
        if len(arguments) != len(inputs) or any(a.is_out for a in arguments):
            continue
        try:
            pairs = [_argument(str(a.type), value) for a, value in zip(arguments, inputs, strict=True)]
        except (TypeError, ValueError, RuntimeError):
            continue
        cost = sum(cost for cost, _ in pairs)
        if best is None or cost < best[0]:
            best = cost, each, [value for _, value in pairs]
    if best is None:
        raise CompileError(f"{packet._qualified_op_name} is called in a way that no rule takes")
    return best[1:]


def _constant_of(value: Any) -> torch.Tensor | None:
    kind = value.node().kind()
    if kind == "onnx::Constant" and value.node().hasAttribute("value") and value.node().kindOf("value") == "t":
        found: torch.Tensor = value.node().t("value")
        return found
    return None


def _argument(kind: str, value: Any) -> tuple[int, Any]:
    """The value of an argument of the schema, and how ill it fits. Raises where it does not."""
    if kind.startswith("Optional["):
        if is_none(value):
            return 0, None
        kind = kind.removeprefix("Optional[").removesuffix("]")
    if is_none(value):
        raise TypeError(kind)
    if kind == "Tensor":
        known = _constant_of(value)
        return int(known is not None and is_plain(value)), value
    if kind.startswith("List["):
        inner = kind.removeprefix("List[").removesuffix("]")
        if value.node().kind() == "prim::ListConstruct":
            parts = [_argument(inner, each) for each in value.node().inputs()]
            return sum(cost for cost, _ in parts), [each for _, each in parts]
        known = _constant_of(value)
        if known is None or inner == "Tensor":
            raise TypeError(kind)
        return int(known.dim() == 0), known.reshape(-1).tolist()
    if kind in ("str", "string"):
        return 0, value.node().s("value")
    known = _constant_of(value)
    if known is None:
        if value.node().kind() == "prim::Constant" and hasattr(value, "toIValue"):
            return 0, value.toIValue()
        raise TypeError(kind)
    plain = known.item()
    if kind in ("int", "bool", "ScalarType", "Layout", "MemoryFormat") and isinstance(plain, float):
        raise TypeError(kind)
    if kind == "float":
        return int(not isinstance(plain, float)), float(plain)
    if kind == "bool":
        return int(not isinstance(plain, bool)), bool(plain)
    if kind == "int" and known.dtype == torch.int64 or kind in ("number", "Scalar"):
        return 0, plain
    if kind == "int":
        return 1, int(plain)
    raise TypeError(kind)


def _example(value: Any, name: str) -> torch.Tensor:
    """A tensor as the value is one."""
    from torch.onnx import symbolic_helper as helper

    sizes = helper._get_tensor_sizes(value)
    if sizes is None or any(each is None for each in sizes):
        raise CompileError(f"{name} is exported for fixed sizes alone, and the batch is symbolic")
    dtype = dtype_of(value)
    return torch.zeros(sizes, dtype=dtype)


def _replay(g: Any, graph: Any, tensors: list[Any], returns: int, name: str) -> Any:
    """The nodes of a graph of PyTorch's operators, by their rules."""
    known: dict[Any, Any] = {}
    rest = list(tensors)
    for node in graph.nodes:
        if node.op == "placeholder":
            known[node] = rest.pop(0)
        elif node.op == "get_attr":
            known[node] = constant(g, _attribute(graph.owning_module, node.target))
        elif node.op == "output":
            result = node.args[0]
            if not isinstance(result, (list, tuple)):
                return known[result]
            found = [known[each] for each in result]
            return found if returns > 1 else _list(g, found)
        elif node.target is operator.getitem:
            known[node] = known[node.args[0]][node.args[1]]
        elif not node.users and not node.target._schema.is_mutable:
            continue
        else:
            target = node.target._schema.name
            rule = find_rule(target.removesuffix("_"))
            if rule is None:
                raise CompileError(f"{name} needs {target}, which PyTorch's exporter has no rule for")
            result = rule(g, *_values(g, node, known))
            made = node.meta.get("val")
            if isinstance(made, (list, tuple)) and isinstance(result, torch._C.Value):
                result = [result]
            for value, example in zip(result if isinstance(result, (list, tuple)) else [result], made if isinstance(made, (list, tuple)) else [made], strict=False):
                _set_type(value, example)
            known[node] = result
            if target.endswith("_"):  # in place, of what is no view
                changed = node.args[0]
                if changed.op == "call_function" and changed.target in _VIEWS:
                    raise CompileError(f"{name} changes a view in place ({target}), which is not exported")
                known[changed] = result
    raise AssertionError("a graph has an output")


def _attribute(module: Any, target: str) -> torch.Tensor:
    for part in target.split("."):
        module = getattr(module, part)
    return module.detach()  # type: ignore[no-any-return]


def _set_type(value: Any, example: Any) -> None:
    if isinstance(value, torch._C.Value) and isinstance(example, torch.Tensor) and isinstance(value.type(), torch._C.TensorType):
        kind = value.type().with_dtype(example.dtype).with_sizes(list(example.shape))
        value.setType(kind)


def _values(g: Any, node: Any, known: dict[Any, Any]) -> list[Any]:
    """All arguments of the schema, as rules take them."""
    positional, found = list(node.args), []
    for argument in node.target._schema.arguments:
        if argument.is_out:
            continue
        if positional and not argument.kwarg_only:
            value = positional.pop(0)
        elif argument.name in node.kwargs:
            value = node.kwargs[argument.name]
        else:
            value = argument.default_value if argument.has_default_value() else None
        found.append(_value(g, value, known))
    return found


def _list(g: Any, values: list[Any]) -> Any:
    made = g.graph.create("prim::ListConstruct", values, 1)
    made.output().setType(torch._C.ListType.ofTensors())
    return g.graph.insertNode(made).output()


def _value(g: Any, value: Any, known: dict[Any, Any]) -> Any:
    from torch.onnx import JitScalarType

    if isinstance(value, torch.fx.Node):
        return known[value]
    if value is None:
        nothing = g.graph.create("prim::Constant", [], 1)
        nothing.output().setType(torch._C.NoneType.get())
        return g.graph.insertNode(nothing).output()
    if isinstance(value, (list, tuple)):
        if any(isinstance(each, torch.fx.Node) for each in value):
            return _list(g, [_value(g, each, known) for each in value])
        return constant(g, torch.tensor(list(value), dtype=None if value else torch.int64))
    if isinstance(value, str):
        return g.op("Constant", value_s=value)
    if isinstance(value, torch.dtype):
        return constant(g, torch.tensor(int(JitScalarType.from_dtype(value))))
    if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
        return _value(g, None, known)
    return constant(g, torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None))
