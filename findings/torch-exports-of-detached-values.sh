#!/usr/bin/env bash
# The ONNX exporters of PyTorch 2.15.0 and values without gradients.
#
# 1. x.detach(): dynamo with optimize=False writes an Identity whose notes name aten.detach. Its optimizer (the default) removes the node, and the notes of
#    the reader still have "%detach" among the arguments. TorchScript leaves nothing.
# 2. x.detach_(), in place: no exporter leaves a node or a note.
# 3. torch.no_grad() around a part of forward: no exporter leaves a node or a note.
# 4. x.data: TorchScript writes the numbers that the example had as a Constant, so that the output for another input is wrong; dynamo fails:
#    "Cannot take content out from the FakeTensor" with optimize=False, an error of a pass of the optimizer by default.
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
import traceback
import warnings

import numpy as np
import onnx
import onnxruntime
import torch

warnings.simplefilter("ignore")
PATH = sys.argv[1]
KINDS = {"default": dict(dynamo=True, external_data=False), "unoptimized": dict(dynamo=True, optimize=False, external_data=False),
         "torchscript": dict(dynamo=False)}


def module(function):
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(3))

        def forward(self, x):
            return function(self.w * x)

    return Module()


def export(function, kind):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        torch.onnx.export(module(function), (torch.full((2, 3), 0.5),), PATH, input_names=["x"], **KINDS[kind])
    nodes = onnx.load(PATH).graph.node
    notes = [p.value for node in nodes for p in node.metadata_props if p.key == "pkg.torch.onnx.fx_node"]
    return [node.op_type for node in nodes], " ".join(notes)


def unseen(y):
    with torch.no_grad():
        z = torch.tanh(y)
    return y + z


nodes, notes = export(lambda y: y + y.detach(), "unoptimized")
assert "Identity" in nodes and "aten.detach.default" in notes
nodes, notes = export(lambda y: y + y.detach(), "default")
assert nodes == ["Mul", "Add"] and "aten.detach" not in notes and "%detach" in notes
nodes, notes = export(lambda y: y + y.detach(), "torchscript")
assert nodes == ["Mul", "Add"] and not notes
print("1 detach: as stated")
for kind in KINDS:
    nodes, notes = export(lambda y: y + torch.sin(y).detach_(), kind)
    assert nodes == ["Mul", "Sin", "Add"] and "detach" not in notes, (kind, nodes)
    nodes, notes = export(unseen, kind)
    assert nodes == ["Mul", "Tanh", "Add"] and "grad" not in notes, (kind, nodes)
print("2 detach_, 3 no_grad: as stated")
nodes, _ = export(lambda y: y + y.data, "torchscript")
(got,) = onnxruntime.InferenceSession(PATH).run(None, {"x": np.full((2, 3), 3, np.float32)})
print("4 data, TorchScript:", nodes, got[0, 0], "where the module gives 6.0")
assert nodes == ["Mul", "Constant", "Add"] and got[0, 0] == 3.5
for kind, said in ("default", "PassError"), ("unoptimized", "Cannot take content out from the FakeTensor"):
    try:
        export(lambda y: y + y.data, kind)
    except Exception:
        assert said in traceback.format_exc(), kind
    else:
        raise SystemExit(f"{kind} exports x.data")
PY
echo "as stated"
