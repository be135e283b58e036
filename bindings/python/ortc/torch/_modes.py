"""The surroundings of a call of a module: modes of PyTorch that see more than numbers, and checkpoints that compute again.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import inspect
import weakref
from typing import Any

import torch
from torch.utils._device import DeviceContext

_hooks: Any = torch.nn.modules.module


def is_traced() -> bool:
    return bool(torch.compiler.is_compiling() or torch.jit.is_tracing())


def find_observer() -> str:
    """Who sees more of a call than its numbers; empty where nobody does."""
    if _hooks._global_forward_hooks or _hooks._global_forward_pre_hooks or _hooks._global_backward_hooks:
        return "hooks of all modules are registered (torch.nn.modules.module), which see the modules within it, too"
    if torch.autograd.forward_ad._current_level >= 0:
        return "it is called for forward-mode gradients"
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return "it is called within torch.func, such as vmap or grad"
    if torch._C._len_torch_dispatch_stack():
        mode = torch._C._get_dispatch_stack_at(torch._C._len_torch_dispatch_stack() - 1)
        return f"a mode sees every operator ({type(mode).__name__})"
    for i in range(torch._C._len_torch_function_stack()):
        mode = torch._C._get_function_stack_at(i)
        if not isinstance(mode, DeviceContext):
            return f"a mode sees every function of PyTorch ({type(mode).__name__})"
        if mode.device.type != "cpu":
            return f"the default device is {mode.device}"
    return ""


class Checkpoints:
    """A call that torch.utils.checkpoint (use_reentrant=False) computes again in a backward step must be computed as it was the first
    time: by the same compiled step, or by PyTorch, since it counts what is saved, and masks of dropout are others."""

    def __init__(self) -> None:
        self._first: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
        """By checkpoint: what its calls ran, in their order."""
        self._again: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        """By hook of a checkpoint that computes again: how many of these have been computed."""

    def now(self) -> tuple[list[Any], int | None] | None:
        """Within a checkpoint: what its calls ran so far, and the number of this one where it is computed again."""
        hooks = torch._C._autograd._top_saved_tensors_default_hooks(False)
        if hooks is None or getattr(hooks[0], "__module__", "") != "torch.utils.checkpoint":
            return None
        pack = inspect.unwrap(hooks[0])
        names = dict(zip(pack.__code__.co_freevars, pack.__closure__ or ()))
        if "frame" in names:
            return self._first.setdefault(names["frame"].cell_contents, []), None
        number = self._again.get(pack, 0)
        self._again[pack] = number + 1
        return self._first.get(names["target_frame_ref"].cell_contents(), []), number
