"""What one forward of a module must not do where a graph stands for it.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ortc._errors import CompileError
from ortc.torch import _estimators
from ortc.torch._layout import Layout
from ortc.torch._watch import Watch


class ChangeError(CompileError):
    """A forward changes what its code reads."""


@contextmanager
def one_forward(module: torch.nn.Module, watch: Watch | None = None) -> Iterator[None]:
    """Around one call. Raises CompileError where it has changed the module, running statistics aside, or what its code reads, or where
    a batch normalisation in training mode has run several times, or not at all: a step updates its statistics once."""
    layout = Layout(module)
    before = layout.values()
    counts = [int(each) for each in layout.counters]
    yield
    after = Layout(module)
    if before != after.values():
        raise CompileError(f"the module changes its attributes or buffers in forward{_name_change(layout, before, after)}")
    if watch is not None and (change := watch.find_change()):
        raise ChangeError(f"forward changes {change}, which a compiled step does not")
    for number, (each, count) in enumerate(zip(after.counters, counts, strict=True)):
        if (runs := int(each) - count) != 1:
            name = next((name for name, known in module.named_buffers() if known is each), str(number)).removesuffix(".num_batches_tracked")
            again = "; let it see all parts at once, as torch.cat makes them" if runs > 1 else ""
            raise CompileError(f"a batch normalisation runs several times in a step, or not at all: '{name}' {runs} times{again}")


def _name_change(layout: Layout, before: tuple[Any, ...], after: Layout) -> str:
    """The first buffer that has changed, for a message; empty where it is something else."""
    places = zip(layout.constants, before[1], after.values()[1], strict=False)
    name = next((name for name, old, new in places if old != new), "")
    return f" ('{name}'); let forward give the new values as an output, and change the module after the call" if name else ""


@contextmanager
def outputs_with_gradients(layout: Layout) -> Iterator[list[Any]]:
    """Collects what modules give whose hooks let it have a gradient."""
    found: list[Any] = []
    handles = [each.register_forward_hook(lambda module, args, output: found.append(output)) for _, each in layout.with_gradient_hooks()]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def check_graph(results: tuple[torch.Tensor, ...], known: Iterable[torch.Tensor] | None = None) -> None:
    """Refuses gradients of the module's own that the graph does not have, and those of tensors that are not `known`, where that is said."""
    own = None if known is None else {id(each) for each in known}
    seen: set[Any] = set()
    stack: list[Any] = [each.grad_fn for each in results if each.grad_fn is not None]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, torch.autograd.function.BackwardCFunction) and not _estimators.is_handled(node):
            raise CompileError(f"the module has a gradient of its own ({type(node).__name__})")
        variable = getattr(node, "variable", None)
        if variable is not None and own is not None and id(variable) not in own:
            raise CompileError(
                f"a tensor of shape {tuple(variable.shape)} has a gradient, and is neither a parameter of the module nor an "
                "argument: make it an nn.Parameter, or its module an attribute"
            )
        stack += [each for each, _ in node.next_functions if each is not None]
