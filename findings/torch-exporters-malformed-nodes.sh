#!/usr/bin/env bash
# Files that the ONNX exporters of PyTorch 2.15.0 write wrongly without a word, and ONNX Runtime 1.32.0 on them.
#
# 1. Conv3d without a bias (dynamo, optimize=False): a bias of zeros of shape [filters, 2] instead of [filters]; refused when it runs.
# 2. LSTM with proj_size (dynamo): hidden_size is the size of the projection, weights are cut accordingly, the projection is missing; refused.
# 3. InstanceNorm2d with running statistics in training mode (TorchScript, opset 15 and later): BatchNormalization with five outputs; refused.
# 4. AvgPool2d with divisor_override (every exporter): the divisor is dropped; outputs are divided by the size of the window.
# 5. BatchNorm2d in training mode (dynamo): written as in evaluation, with running statistics; outputs differ from the module's.
#
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
import onnx
import onnxruntime
import torch
from torch import nn

warnings.filterwarnings("ignore")
onnxruntime.set_default_logger_severity(4)
PATH = sys.argv[1]


class First(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        y = self.layer(x)
        return y[0] if isinstance(y, tuple) else y


def export(module, x, **how):
    """The nodes by operator, the module's output and the runtime's, which is its message where it fails."""
    wanted = module(x).detach().numpy()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        torch.onnx.export(module, (x,), PATH, input_names=["x"], **how)
    nodes = {node.op_type: node for node in onnx.load(PATH).graph.node}
    try:
        got = onnxruntime.InferenceSession(PATH).run(None, {"x": x.numpy()})[0]
    except Exception as error:
        got = str(error)
    return nodes, wanted, got


unfolded = dict(dynamo=True, optimize=False, external_data=False)
_, _, got = export(nn.Conv3d(2, 4, 2, bias=False), torch.randn(1, 2, 3, 3, 3), **unfolded)
print("1", got)
assert "bias must be a 1D tensor" in got

nodes, _, got = export(First(nn.LSTM(3, 5, proj_size=2)), torch.randn(4, 2, 3), **unfolded)
hidden = next(a.i for a in nodes["LSTM"].attribute if a.name == "hidden_size")
print("2", hidden, got)
assert hidden == 2 and "initial_c must have shape" in got

nodes, _, got = export(nn.InstanceNorm2d(2, track_running_stats=True), torch.randn(1, 2, 3, 3), dynamo=False, do_constant_folding=False,
                       training=torch.onnx.TrainingMode.TRAINING)
print("3", len(nodes["BatchNormalization"].output), got[:160])
assert len(nodes["BatchNormalization"].output) == 5 and "INVALID_GRAPH" in got

for how in (unfolded, dict(dynamo=True, external_data=False), dict(dynamo=False)):
    _, wanted, got = export(nn.AvgPool2d(2, divisor_override=3), torch.randn(1, 2, 4, 4), **how)
    print("4", np.abs(got * 4 / 3 - wanted).max(), np.abs(got - wanted).max())
    assert np.abs(got * 4 / 3 - wanted).max() < 1e-6 < np.abs(got - wanted).max()

torch.manual_seed(0)
nodes, wanted, got = export(nn.BatchNorm2d(3).train(), torch.randn(4, 3, 5, 5) * 3 + 1, **unfolded)
attributes = {a.name: a.i for a in nodes["BatchNormalization"].attribute}
print("5", attributes.get("training_mode", 0), np.abs(got - wanted).max())
assert not attributes.get("training_mode", 0) and np.abs(got - wanted).max() > 0.5
PY
echo "as stated"
