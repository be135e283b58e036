#!/usr/bin/env bash
# Gradients that run_decompositions() of torch.export loses (PyTorch 2.15.0): the program that it gives is run by PyTorch itself, in float64. With an empty table
# of decompositions all are as the module's.
#
# 1. x.detach() is gone: the gradient goes through.
# 2. std of equal numbers, a norm of zeros, cosine_similarity of zeros, xlogy(0, 0), sinc(0): NaN, where the module has 0.
# 3. binary_cross_entropy at a probability of 0 for a label of 0: NaN, where the module has 0.
# 4. softplus at infinity: NaN, where the module has 1.
#
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Exits with 0 when all is as stated.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.15.0 numpy==2.4.6
"$folder/venv/bin/python" - "$folder/model.onnx" <<'PY'
import warnings

import torch
import torch.nn.functional as F

warnings.simplefilter("ignore")


class Module(torch.nn.Module):
    def __init__(self, function, values):
        super().__init__()
        self.function = function
        self.w = torch.nn.Parameter(torch.tensor(values, dtype=torch.float64))

    def forward(self, x):
        return self.function(self.w)


def gradient(module):
    module(torch.ones(1)).sum().backward()
    return module.w.grad


CASES = {
    "detach": (lambda w: w * w.detach(), [2.0]),
    "std": (lambda w: w.std(), [2.0, 2.0]),
    "norm": (lambda w: torch.linalg.vector_norm(w), [0.0, 0.0]),
    "cosine_similarity": (lambda w: F.cosine_similarity(w[None], torch.zeros(1, 2, dtype=w.dtype)), [0.0, 0.0]),
    "xlogy": (lambda w: torch.xlogy(w, torch.zeros(1, dtype=w.dtype)), [0.0]),
    "sinc": (torch.sinc, [0.0]),
    "binary_cross_entropy": (lambda w: F.binary_cross_entropy(w, torch.zeros(1, dtype=w.dtype)), [0.0]),
    "softplus": (F.softplus, [float("inf")]),
}
for name, (function, values) in CASES.items():
    want = gradient(Module(function, values))
    found = []
    for table in {}, None:
        program = torch.export.export(Module(function, values), (torch.ones(1),))
        found.append(gradient((program.run_decompositions() if table is None else program.run_decompositions(table)).module()))
    print(name, "module", want.tolist(), "empty table", found[0].tolist(), "default", found[1].tolist())
    assert torch.equal(found[0], want)
    assert torch.equal(found[1], 2 * want) if name == "detach" else found[1].isnan().all()
PY
echo "as stated"
