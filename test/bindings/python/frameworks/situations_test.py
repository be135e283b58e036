"""Scripts that do things with a module around its calls: numbers are PyTorch's, whether a call is compiled, or runs eagerly for a reason.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import functools
import io
import pickle
import unittest
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
import torch.utils.checkpoint as checkpoints
from modules import distance, use_own_cache
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import ortc.torch

TOLERANCE = 2e-5  # as in wrap_test


def setUpModule() -> None:
    use_own_cache()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.tanh(self.first(x)))


class Scaled(Net):
    """With a parameter that is there later."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        return y * self.scale if "scale" in self._parameters else y


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(4, 4, batch_first=True)

    def forward(self, packed: Any) -> torch.Tensor:
        return self.layer(packed)[1][0][-1]


class Packing(Recurrent):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        packed = pack_padded_sequence(x[:, None].expand(-1, 3, -1), torch.tensor([3, 2, 1]), batch_first=True)
        return pad_packed_sequence(self.layer(packed)[0], batch_first=True)[0]


class Unread(Packing):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Recurrent.forward(self, pack_padded_sequence(x[:, None].expand(-1, 3, -1), torch.tensor([3, 2, 1]), batch_first=True))


class Output(OrderedDict[str, Any]):
    """As transformers' ModelOutput was: attributes are items."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(name)


class Named(Net):
    def forward(self, x: torch.Tensor) -> Any:
        return Output(logits=super().forward(x))


class Selective(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = functools.partial(checkpoints.create_selective_checkpoint_contexts, [torch.ops.aten.addmm.default])
        return self.second(checkpoints.checkpoint(lambda t: torch.tanh(self.first(t)), x, use_reentrant=False, context_fn=kept))


class Mapped(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.vmap(lambda row: torch.tanh(row @ self.first.weight))(x) + super().forward(x)


class Called(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(self.first, {"weight": self.first.weight * 2, "bias": self.first.bias}, (x,))


class Derived(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.vmap(torch.func.grad(lambda row: torch.tanh(self.first(row)).sum()))(x) + self.second(x)


class Forward(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result, tangent = torch.func.jvp(lambda t: torch.tanh(self.first(t)), (x,), (torch.ones_like(x),))
        return self.second(result + tangent)


def freeze(module: Any, x: torch.Tensor) -> list[Any]:
    first = module(x)
    first.square().sum().backward()
    module.first.weight.requires_grad_(False)
    module.first.weight.grad = None
    second = module(x)
    second.square().sum().backward()
    module.first.weight.requires_grad_(True)
    return [first, second, module(x)]


def add(module: Any, x: torch.Tensor) -> list[Any]:
    first = module(x)
    module.scale = nn.Parameter(torch.full((4,), 1.5))
    second = module(x)
    second.sum().backward()
    gradient = module.scale.grad
    del module.scale
    return [first, second, gradient, module(x)]


def load(module: Any, x: torch.Tensor) -> list[Any]:
    first, state = module(x), {name: each * 0.5 for name, each in module.state_dict().items()}
    module.load_state_dict(state)
    second = module(x)
    module.load_state_dict({name: each + 1 for name, each in state.items()}, assign=True)
    third = module(x)
    third.square().sum().backward()
    return [first, second, third]


def convert(module: Any, x: torch.Tensor) -> list[Any]:
    found = [module(x)]
    for dtype in (torch.float64, torch.float32):
        module.to(dtype)
        found.append(module(x.to(dtype)))
    found[1].sum().backward()
    return found


def copied(module: Any, x: torch.Tensor) -> list[Any]:
    module(x).sum().backward()
    other = copy.deepcopy(module)
    other.zero_grad()
    with torch.no_grad():
        other.first.weight.mul_(2)
    file = io.BytesIO()
    torch.save(other, file)
    file.seek(0)
    found = [module(x), other(x), pickle.loads(pickle.dumps(other))(x), torch.load(file, weights_only=False)(x)]
    found[1].square().sum().backward()
    return [*found, *(p.grad for p in other.parameters())]


def tie(module: Any, x: torch.Tensor) -> list[Any]:
    own, found = module.second.weight, [module(x)]
    module.second.weight = module.first.weight
    found.append(module(x))
    found[1].square().sum().backward()
    gradient = module.first.weight.grad
    module.second.weight = own
    return [*found, gradient, module(x)]


def share(module: Any, x: torch.Tensor) -> list[Any]:
    found, own = [module(x)], module.second
    module.second = module.first
    found.append(module(x))
    (found[0].sum() + found[1].square().sum()).backward()
    module.second = own
    return [*found, module(x)]


def several(module: Any, x: torch.Tensor) -> list[Any]:
    found = [module(module(x)), module(x * 2)]
    (found[0].square().sum() + found[1].sum()).backward()
    return found


def parts(module: Any, x: torch.Tensor) -> list[Any]:
    return [*torch.autograd.grad(module(x).sum(), [x, module.second.bias]), *torch.autograd.grad(module(x).sum(), [module.first.weight])]


def modes(module: Any, x: torch.Tensor) -> list[Any]:
    with torch.no_grad():
        found = [module(x)]
    with torch.autocast("cpu", torch.bfloat16):
        module(x.detach()).float().sum().backward()
    module.zero_grad()
    module.eval()
    found.append(module(x))
    module.train()
    with torch.autograd.detect_anomaly(check_nan=True):
        found.append(module(x))
        found[2].square().sum().backward()
    return found


def hook(module: Any, x: torch.Tensor) -> list[Any]:
    handles = [
        module.register_forward_hook(lambda own, given, result: result * 2),
        module.register_forward_pre_hook(lambda own, given: (given[0] * 2,)),
        module.register_full_backward_hook(lambda own, given, got: (given[0] * 2,)),
        module.register_full_backward_pre_hook(lambda own, got: (got[0] * 3,)),
        module.first.weight.register_hook(lambda gradient: gradient * 2),
    ]
    found = [module(x)]
    found[0].square().sum().backward()
    for each in handles:
        each.remove()
    return [*found, module(x)]


def hook_within(module: Any, x: torch.Tensor) -> list[Any]:
    handles = [
        module.first.register_forward_hook(lambda own, given, result: result * 2),
        module.second.register_full_backward_hook(lambda own, given, got: (given[0] * 2,)),
    ]
    found = [module(x)]
    found[0].square().sum().backward()
    for each in handles:
        each.remove()
    return [*found, module(x)]


def swap(module: Any, x: torch.Tensor) -> list[Any]:
    """Tensors that are no parameters in the place of parameters."""
    result = torch.func.functional_call(module, {name: each * 2 for name, each in module.named_parameters()}, (x,))
    result.square().sum().backward()
    return [result]


def plain(module: Any, x: torch.Tensor) -> list[Any]:
    result = module(x)
    result = result if isinstance(result, torch.Tensor) else result.logits
    result.square().sum().backward()
    return [result]


def packed(module: Any, x: torch.Tensor) -> list[Any]:
    return plain(lambda t: module(pack_padded_sequence(t[:, None].expand(-1, 3, -1), [3, 2, 1], batch_first=True)), x)


def around(module: Any, x: torch.Tensor) -> list[Any]:
    kept = functools.partial(checkpoints.create_selective_checkpoint_contexts, [torch.ops.aten.addmm.default])
    return plain(lambda t: checkpoints.checkpoint(module, t, use_reentrant=False, context_fn=kept), x)


COMPILED: dict[str, tuple[Callable[[Any, torch.Tensor], list[Any]], type[nn.Module]]] = {
    "frozen for a while": (freeze, Net),
    "a parameter that is added": (add, Scaled),
    "states that are loaded": (load, Net),
    "copies": (copied, Net),
    "weights that are tied": (tie, Net),
    "modules that are shared": (share, Net),
    "several calls before a backward": (several, Net),
    "gradients of parts": (parts, Net),
    "hooks": (hook, Net),
    "packed within": (plain, Packing),
    "selective checkpoints within": (plain, Selective),
    "vmap": (plain, Mapped),
    "functional_call within": (plain, Called),
    "functional_call": (swap, Net),
}
EAGER: dict[str, tuple[Callable[[Any, torch.Tensor], list[Any]], type[nn.Module], str]] = {
    "other types": (convert, Net, "an input of torch.float64 has a gradient"),
    "modes": (modes, Net, "gradients are disabled in training mode"),
    "hooks within": (hook_within, Net, "a module within the module has hooks"),
    "packed": (packed, Recurrent, "an argument is a PackedSequence: give forward the padded tensor and the lengths"),
    "packed, and not read": (plain, Unread, "nothing reads the packed output of a recurrent layer: pad_packed_sequence of it"),
    "an own container": (plain, Named, "an output is a Output, neither a tensor nor a plain value"),
    "a selective checkpoint": (around, Net, "a mode sees every operator"),
    "gradients within": (plain, Derived, "the module computes gradients in forward"),
    "forward-mode gradients within": (plain, Forward, "the module computes forward-mode gradients in forward"),
}


class SituationsTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)
        warnings.simplefilter("ignore")  # of modules that go on without compiling
        self.addCleanup(warnings.resetwarnings)

    def agree(self, way: Callable[[Any, torch.Tensor], list[Any]], eager: nn.Module, compiled: nn.Module) -> None:
        for step in range(2):
            x, seen = torch.randn(3, 4), []
            for module in (eager, compiled):
                module.zero_grad()
                own = x.clone().requires_grad_()
                found = way(module, own)
                seen.append([*found, own.grad, *(p.grad for p in module.parameters())])
            for i, (wanted, got) in enumerate(zip(*seen, strict=True)):
                self.assertEqual(wanted is None, got is None, f"step {step}, number {i}")
                if wanted is not None:
                    self.assertEqual((wanted.shape, wanted.dtype), (got.shape, got.dtype))
                    self.assertLessEqual(distance(wanted.detach(), got.detach()), TOLERANCE, f"step {step}, number {i}")

    def test_what_is_compiled(self) -> None:
        for name, (way, kind) in COMPILED.items():
            with self.subTest(name):
                eager = kind()
                compiled = ortc.torch.compile_(copy.deepcopy(eager), wait=True, fallback="error")
                self.agree(way, eager, compiled)

    def test_what_is_not(self) -> None:
        for name, (way, kind, reason) in EAGER.items():
            with self.subTest(name):
                eager = kind()
                compiled = ortc.torch.compile_(copy.deepcopy(eager), wait=True)
                self.agree(way, eager, compiled)
                self.assertIn(reason, str(ortc.torch.report(compiled)))

    def test_two_in_one_graph(self) -> None:
        """And a compiled module within a compiled module."""
        eager = nn.Sequential(Net(), Net())
        compiled = copy.deepcopy(eager)
        for each in compiled:
            ortc.torch.compile_(each, wait=True, fallback="error")
        self.agree(plain, eager, compiled)
        self.agree(plain, eager, ortc.torch.compile_(compiled, wait=True, fallback="error"))


if __name__ == "__main__":
    unittest.main()
