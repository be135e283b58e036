#!/usr/bin/env bash
# Functions that PyTorch 2.15.0's TorchScript exporter (dynamo=False, opset 20) writes with other numbers, without a word; ONNX Runtime 1.32.0 runs the files.
#
# 1. softplus(beta=2, threshold=4): no threshold; at 2.5 the file gives 2.50336, the module 2.5.
# 2. pairwise_distance(p=1): no absolute value, eps is not added to the difference but to p, whose root is taken: NaN for a negative sum, and a sum of signed
#    differences otherwise. cdist(p=1): the same. p=2 differs in the last digits.
# 3. index_add with an index twice: the last value stays instead of the sum.
# 4. floor_divide: rounded towards zero.
# 5. scaled_dot_product_attention with a mask of minus infinities that hides a whole row: NaN; the module gives zeros.
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


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, y):
        return self.function(x, y)


def both(name, function, x, y):
    module, given = Module(function), (torch.tensor(x), torch.tensor(y))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        torch.onnx.export(module, given, PATH, dynamo=False, opset_version=20, input_names=["x", "y"])
    session = onnxruntime.InferenceSession(PATH)
    used = {each.name for each in session.get_inputs()}
    got = session.run(None, {name: each.numpy() for name, each in zip("xy", given) if name in used})[0]
    want = module(*given).numpy()
    print(name, "file", got.ravel()[:4], "module", want.ravel()[:4])
    return got, want


got, want = both("1", lambda x, y: F.softplus(x, 2.0, 4.0) + 0 * y, [2.5], [0.0])
assert want[0] == 2.5 and abs(got[0] - 2.50336) < 1e-5
rows = [[1.0, 1.0], [3.0, 1.0]], [[2.0, 2.0], [1.0, 2.0]]
for function in lambda x, y: F.pairwise_distance(x, y, p=1.0), lambda x, y: torch.cdist(x, y, 1.0).diagonal():
    got, want = both("2", function, *rows)
    assert np.isnan(got[0]) and abs(got[1] - 1) < 1e-4 and np.allclose(want, [2, 3], atol=1e-4)
got, want = both("3", lambda x, y: x.index_add(0, torch.tensor([0, 0]), y), [[1.0], [1.0]], [[10.0], [20.0]])
assert want[0, 0] == 31 and got[0, 0] == 21
got, want = both("4", lambda x, y: torch.floor_divide(x, y), [-1.0], [2.0])
assert want[0] == -1 and got[0] == 0
inf = float("inf")
got, want = both("5", lambda x, y: F.scaled_dot_product_attention(x, x, x, y), [[[1.0, 2.0], [3.0, 4.0]]], [[-inf, -inf], [0.0, 0.0]])
assert (want[0, 0] == 0).all() and np.isnan(got[0, 0]).all()
PY
echo "as stated"
