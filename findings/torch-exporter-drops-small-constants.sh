#!/usr/bin/env bash
# Constants of 1e-8 and less in sums, by the default ONNX export of PyTorch 2.15.0 (dynamo, optimize=True, onnxscript 0.7.2).
#
# 1. sqrt((w x)^2 + e): the Add is in the file for e of 1e-6 and 1e-7, and not for 1e-8, 1e-9 and 1e-12, without a word.
# 2. With optimize=False, and by TorchScript, it is there for all.
#
# At x = 0 the root of what is left has an infinite derivative, where the module's is 0.
# Exits with 0 when all is as stated.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.15.0 onnx==1.23.2 onnxscript==0.7.2 numpy==2.4.6
"$folder/venv/bin/python" - "$folder/model.onnx" <<'PY'
import contextlib
import io
import sys

import onnx
import torch

PATH = sys.argv[1]


class Root(torch.nn.Module):
    def __init__(self, epsilon):
        super().__init__()
        self.epsilon, self.w = epsilon, torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return torch.sqrt((self.w * x) ** 2 + self.epsilon)


def adds(epsilon, **options):
    with contextlib.redirect_stdout(io.StringIO()):
        torch.onnx.export(Root(epsilon), (torch.randn(2, 3),), PATH, **options)
    return "Add" in [node.op_type for node in onnx.load(PATH).graph.node]


every = [1e-6, 1e-7, 1e-8, 1e-9, 1e-12]
default = [adds(each, dynamo=True, external_data=False) for each in every]
print("default", dict(zip(every, default)))
assert default == [True, True, False, False, False]
for options in dict(dynamo=True, optimize=False, external_data=False), dict(dynamo=False):
    kept = [adds(each, **options) for each in every]
    print(options, dict(zip(every, kept)))
    assert all(kept)
PY
echo "as stated"
