#!/usr/bin/env python3
"""Writes Inputs/losses/NAME.mlir and Inputs/optimizers/NAME.mlir: what PyTorch gives for losses/NAME.py and optimizers/NAME.py, in float64.

usage: make_torch_references.py [NAME ...]     (from anywhere, with torch; the same bytes every time with one version of it)

Without NAME all of them; other versions of torch change last digits.

losses/NAME.py has `cases(draw)`, which yields (case, --loss, prediction, label, loss module); draw(*shape) gives random numbers. A sixth item,
{name: tensor}, has inputs beside the label, which the module gets behind it. FILES of the module, {name: tensor}, become Inputs/factors/NAME.npy;
--loss names them with @ in front.
optimizers/NAME.py has `cases()`, which yields (case, --optimizer, function that makes the optimizer of a list of parameters).
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import importlib.util
import sys

import numpy as np
import torch

from make_references import HERE, dense, number

STEPS = 5
PARAMETERS = {"fc.weight": (3, 2), "fc.bias": (3,)}


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
    for name, spec, x, label, module, *inputs in module.cases(make_draw()):
        x, inputs = x.detach().requires_grad_(), inputs[0] if inputs else {}
        loss = module(x, label, *inputs.values())
        loss.backward()
        others = "".join(f",\n  {dense(v.numpy())[0]} {{test.name = \"{n}\", test.value = {dense(v.numpy())[1]}}}" for n, v in inputs.items())
        (xt, xv), (lt, lv), (_, gv) = dense(x.detach().numpy()), dense(label.numpy()), dense(x.grad.numpy())
        functions.append(f"func.func private @{name}(\n  {xt} {{test.value = {xv}, test.gradient = {gv}}},\n  {lt} {{test.value = {lv}}}{others})\n"
                         f'  attributes {{test.loss = "{spec}", test.result = {number(loss.item())} : f64}}')
    write(path, "Losses and gradients", functions)


def write_optimizers(path):
    functions = []
    for name, spec, make in load(path).cases():
        draw = make_draw()
        initial = [draw(*shape) for shape in PARAMETERS.values()]
        gradients = [draw(STEPS, *shape) for shape in PARAMETERS.values()]
        values = [torch.nn.Parameter(value.clone()) for value in initial]
        optimizer = make(values)
        for t in range(STEPS):
            for value, gradient in zip(values, gradients):
                value.grad = gradient[t].clone()
            optimizer.step()
        arguments = []
        for parameter, value, gradient, expected in zip(PARAMETERS, initial, gradients, values):
            (vt, vv), (_, gv), (_, ev) = dense(value.numpy()), dense(gradient.numpy()), dense(expected.detach().numpy())
            arguments.append(f'  {vt} {{test.name = "{parameter}", test.value = {vv},\n    test.gradients = {gv},\n    test.expected = {ev}}}')
        functions.append(f"func.func private @{name}(\n" + ",\n".join(arguments) + ")\n"
                         f'  attributes {{test.optimizer = "{spec}", test.groups = "", test.steps = {STEPS} : i64}}')
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
