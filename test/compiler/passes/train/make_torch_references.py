#!/usr/bin/env python3
"""Writes Inputs/losses/NAME.mlir and Inputs/optimizers/NAME.mlir: what PyTorch gives for losses/NAME.py and optimizers/NAME.py, in float64.

usage: make_torch_references.py [NAME ...]     (from anywhere, with torch; the same bytes every time with one version of it)

Without NAME all of them; other versions of torch change last digits. Beside torch, lion.py needs lion-pytorch, lamb.py and lars.py
need timm, and schedule_free_*.py need schedulefree.

losses/NAME.py has `cases(draw)`, which yields (case, --loss, prediction, label, loss module); draw(*shape) gives random numbers. A sixth item,
{name: tensor}, has inputs beside the label, which the module gets after it. FILES of the module, {name: tensor}, become Inputs/factors/NAME.npy;
--loss names them with @ in front. A tuple of predictions is for losses that read several outputs; a label of None for those that read no label.
optimizers/NAME.py has `cases()`, which yields (case, --optimizer, function that makes the optimizer, or several, of the parameters
in the order of PARAMETERS). A fourth thing may be {"groups": what --group takes, with ; between, "clip_norm": a number}.
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import importlib.util
import sys

import numpy as np
import torch

from make_references import HERE, dense, number

STEPS = 50
PARAMETERS = {"fc.weight": (3, 2), "fc.bias": (3,), "conv.weight": (2, 3, 1, 2), "in.weight": (2, 4)}
TRANSPOSED = ("in.weight",)  # how it is stored


def gradient(step, parameter, shape):
    """Numbers that binary fractions hold, of no period that the steps would show. The test computes the same."""
    place = np.arange(int(np.prod(shape)))
    return torch.tensor(((7 * step * step + 13 * place + 5 * step * place + 3 * parameter) % 23 - 11) / 8.0).reshape(shape)


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(path, what, functions):
    head = [f"// {what} in float64, written by make_torch_references.py.", "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"]
    (HERE / "Inputs" / path.parent.name / f"{path.stem}.mlir").write_text("\n".join(head + functions) + "\n")


def make_draw():
    rng = np.random.default_rng(5)
    return lambda *shape: torch.tensor(np.round(rng.normal(size=shape) * 2, 3))


def write_losses(path):
    functions, module = [], load(path)
    for name, values in getattr(module, "FILES", {}).items():
        np.save(HERE / "Inputs" / "factors" / f"{name}.npy", values.numpy())
    for name, spec, x, label, compute, *inputs in module.cases(make_draw()):
        xs = [each.detach().requires_grad_() for each in (x if isinstance(x, tuple) else (x,))]
        labels, inputs = [] if label is None else [label], inputs[0] if inputs else {}
        loss = compute(*xs, *labels, *inputs.values())
        loss.backward()
        arguments = []
        for each in xs:
            (xt, xv), (_, gv) = dense(each.detach().numpy()), dense((torch.zeros_like(each) if each.grad is None else each.grad).numpy())
            arguments.append(f"  {xt} {{test.value = {xv}, test.gradient = {gv}}}")
        for each in labels:
            lt, lv = dense(each.numpy())
            arguments.append(f"  {lt} {{test.value = {lv}}}")
        for key, each in inputs.items():
            it, iv = dense(each.numpy())
            arguments.append(f'  {it} {{test.name = "{key}", test.value = {iv}}}')
        functions.append(f"func.func private @{name}(\n" + ",\n".join(arguments) + ")\n"
                         f'  attributes {{test.loss = "{spec}", test.result = {number(loss.item())} : f64}}')
    write(path, "Losses and gradients", functions)


def write_optimizers(path):
    torch.set_default_dtype(torch.float64)  # scalars of state are of the default type
    functions = []
    for name, spec, make, *more in load(path).cases():
        settings = {"groups": "", **(more[0] if more else {})}
        draw = make_draw()
        initial = [draw(*shape) for shape in PARAMETERS.values()]
        values = [torch.nn.Parameter(value.clone()) for value in initial]
        optimizers = make(values)
        optimizers = optimizers if isinstance(optimizers, list) else [optimizers]
        for optimizer in optimizers:
            getattr(optimizer, "train", lambda: None)()
        for t in range(STEPS):
            for i, value in enumerate(values):
                value.grad = gradient(t, i, value.shape)
            if "clip_norm" in settings:
                torch.nn.utils.clip_grad_norm_(values, settings["clip_norm"])
            for optimizer in optimizers:
                optimizer.step()
        for optimizer in optimizers:
            getattr(optimizer, "eval", lambda: None)()
        arguments = []
        for parameter, value, expected in zip(PARAMETERS, initial, values):
            (vt, vv), (_, ev) = dense(value.numpy()), dense(expected.detach().numpy())
            stored = ", test.permutation = array<i64: 1, 0>" if parameter in TRANSPOSED else ""
            arguments.append(f'  {vt} {{test.name = "{parameter}", test.value = {vv},\n    test.expected = {ev}{stored}}}')
        clip = f", test.clip_norm = {number(settings['clip_norm'])} : f64" if "clip_norm" in settings else ""
        functions.append(f"func.func private @{name}(\n" + ",\n".join(arguments) + ")\n"
                         f'  attributes {{test.optimizer = "{spec}", test.groups = "{settings["groups"]}"{clip}, test.steps = {STEPS} : i64}}')
    write(path, "Parameters after some steps", functions)


def main(names):
    writers = {cases: writer for folder, writer in (("losses", write_losses), ("optimizers", write_optimizers))
               for cases in sorted((HERE / folder).glob("*.py"))}
    if unknown := set(names) - {cases.stem for cases in writers}:
        sys.exit(f"there are no cases of {', '.join(sorted(unknown))} in {HERE / 'losses'} and {HERE / 'optimizers'}")
    for cases, writer in writers.items():
        if not names or cases.stem in names:
            writer(cases)


if __name__ == "__main__":
    main(sys.argv[1:])
