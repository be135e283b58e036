"""Why a module is not compiled, in words of the module: the compiler speaks of its flags and of nodes, and exporters of their rules.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import re

import torch

_RULES: list[tuple[str, str]] = [
    (r"--input-gradients 'input\.(\d+)' is no input .*", r"tensor \1 of its arguments has a gradient that the exported graph has not"),
    (r"--cotangents 'output\.(\d+)' is no output .*", r"output \1 has a gradient, and is of a type that is not compiled"),
    (
        r"one value a channel has no variance \(--batch-norm with unbiased=1\)",
        r"one value a channel has no variance: give it more than one sample, or eval()",
    ),
    (r"--bind is for processors: .*", r"steps of modules run on processors: leave target= out"),
    (r"there is nothing to train: .*", r"none of its parameters is trained"),
    (r"; bind them with --shape .*", r""),
    (r"(\d+) parts? of the model cannot be compiled:", r"\1 of its operators cannot be compiled:"),
    (r" \(since opset \d+\)", r""),
    (r" '/m/((?:[^'/]+/)+)[^'/]+'", r" in '\1'"),
    (r" '/m/[^'/]+'", r""),
    (r"'m\.(?:model\.)?([^']+)'", r"'\1'"),
    (r"\bthe model\b", r"the module"),
    (r"--([a-z][a-z0-9-]*)", r"\1="),  # those of compile_ have such names
]
_NO_RULE = re.compile(r"(?:Exporting the operator '|ONNX export of operator )(?:aten|prim)?:*([^', ]+)")


def explain(text: str) -> str:
    """A refusal of the compiler."""
    text = " ".join(line.strip() for line in text.splitlines())
    for pattern, replacement in _RULES:
        text = re.sub(pattern, replacement, text)
    text = re.sub(r" in '([^']+)/'", lambda found: f" in '{found[1].removeprefix('model/').replace('/', '.')}'", text)
    return re.sub(r"\b([a-z0-9]+(?:-[a-z0-9]+)+)=", lambda found: found[1].replace("-", "_") + "=", text)


def explain_exporter(error: BaseException) -> str:
    """The error of an export, without the graphs that PyTorch adds to what went wrong."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    if found := _NO_RULE.search(first):
        return f"the module calls {found[1]}, for which PyTorch's exporter to ONNX has no rule"
    return f"PyTorch cannot export the module: {first.partition('  [Caused by')[0]}"


def explain_exception(error: BaseException) -> str:
    """The error that the module, PyTorch or its exporter has raised."""
    if isinstance(error, torch.onnx.errors.OnnxExporterError):
        return f"{explain_exporter(error)}; the modules around what it says may be compiled: compile_(model.part)"
    if "vector::_M_range_check" in str(error):
        return (
            "PyTorch's exporter to ONNX fails, as it does where nothing reads the packed output of a recurrent layer: "
            f"pad_packed_sequence of it lets it be written ({error})"
        )
    return f"exporting the module, or comparing it with PyTorch, has ended with {type(error).__name__}: {error}"
