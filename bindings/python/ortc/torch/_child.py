"""The state in which a module is exported: that of a new process, whatever the call stands in.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch


def run_clean(work: Callable[[], Any]) -> None:
    """For a forked child, which has one thread.

    A new thread has no hooks of saved tensors, no modes of gradients, inference, autocast, functions or dispatch, and no default
    device: PyTorch keeps all of them by thread. Those that it keeps by process are set back.
    """
    torch.set_deterministic_debug_mode("default")  # use_deterministic_algorithms loads inductor, which takes a second
    torch.autograd.set_detect_anomaly(False)
    _forget_checkpoints()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def _forget_checkpoints() -> None:
    """Lets hooks of saved tensors that the module sets do nothing, and reentrant checkpoints call their functions: numbers and
    gradients are the same, and a compiled plan decides by itself what it keeps."""
    import torch.utils.checkpoint

    hooks: Any = torch.autograd.graph.saved_tensors_hooks
    hooks.__enter__ = lambda self: None
    hooks.__exit__ = lambda self, *_: None
    torch.utils.checkpoint.CheckpointFunction.apply = call_directly  # type: ignore[assignment,method-assign]


def call_directly(function: Callable[..., Any], _: bool, *args: Any) -> Any:
    """As CheckpointFunction.apply: without a gradient where no argument itself has one."""
    has_grad = torch.is_grad_enabled() and any(isinstance(each, torch.Tensor) and each.requires_grad for each in args)
    with torch.set_grad_enabled(has_grad):
        return function(*args)
