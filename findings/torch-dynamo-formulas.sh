#!/usr/bin/env bash
# Functions that PyTorch 2.15.0's dynamo exporter writes with other numbers, without a word (opset 20, with and without its optimizer); ONNX Runtime 1.32.0 runs
# the files.
#
# 1. scatter_reduce(reduce="mean"): ScatterElements with reduction none, which keeps the last of several values.
# 2. scaled_dot_product_attention with a mask of truth values that hides a whole row: hidden scores are the lowest finite number, and the weights of the row are
#    equal; with a mask of minus infinities they are NaN. The module gives zeros for both.
# 3. signbit(-0.0) is false: written as x < 0.
# 4. remainder(1, inf) is NaN: written as x - y * floor(x / y).
#
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Exits with 0 when all is as stated.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.15.0 onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.32.0 numpy==2.4.6
"$folder/venv/bin/python" - "$folder/model.onnx" <<'PY'
import contextlib
import io
import sys
import warnings

import numpy as np
import onnxruntime
import torch
import torch.nn.functional as F

warnings.simplefilter("ignore")
PATH = sys.argv[1]
inf = float("inf")


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, y):
        return self.function(x, y)


def both(name, function, x, y, optimize):
    module, given = Module(function), (torch.tensor(x), torch.tensor(y))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        torch.onnx.export(module, given, PATH, dynamo=True, optimize=optimize, opset_version=20, input_names=["x", "y"], external_data=False)
    session = onnxruntime.InferenceSession(PATH)
    used = {each.name for each in session.get_inputs()}
    got = session.run(None, {name: each.numpy() for name, each in zip("xy", given) if name in used})[0]
    want = module(*given).numpy()
    print(name, "file", got.ravel()[:4], "module", want.ravel()[:4])
    return got, want


for optimize in True, False:
    got, want = both("1", lambda x, y: x.scatter_reduce(0, torch.tensor([0, 0]), y, "mean", include_self=False), [1.0, 1.0], [10.0, 20.0], optimize)
    assert want[0] == 15 and got[0] == 20
    rows = [[[[1.0, 2.0], [3.0, 4.0]]]]
    attend = lambda x, y: F.scaled_dot_product_attention(x, x, x, y)
    got, want = both("2", attend, rows, [[False, False], [True, True]], optimize)
    assert (want[0, 0, 0] == 0).all() and np.allclose(got[0, 0, 0], [2, 3])
    got, want = both("2", attend, rows, [[-inf, -inf], [0.0, 0.0]], optimize)
    assert (want[0, 0, 0] == 0).all() and np.isnan(got[0, 0, 0]).all()
    got, want = both("3", lambda x, y: torch.where(torch.signbit(x), y, -y), [-0.0], [1.0], optimize)
    assert want[0] == 1 and got[0] == -1
    got, want = both("4", lambda x, y: torch.remainder(x, y), [1.0], [inf], optimize)
    assert want[0] == 1 and np.isnan(got[0])
PY
echo "as stated"
