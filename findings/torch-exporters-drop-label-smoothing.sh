#!/usr/bin/env bash
# cross_entropy(label_smoothing=0.3) in a graph, by the ONNX exporters of PyTorch 2.15.0.
#
# 1. dynamo, with and without its optimizer: SoftmaxCrossEntropyLoss, and nothing of the smoothing. The file gives the loss without it, without a word.
# 2. TorchScript: refused, "ONNX does not support label_smoothing".
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

import onnxruntime
import torch
import torch.nn.functional as F

PATH = sys.argv[1]


class Smoothed(torch.nn.Module):
    def forward(self, logits, label):
        return F.cross_entropy(logits, label, label_smoothing=0.3)


torch.manual_seed(0)
logits, label = torch.randn(4, 5), torch.tensor([0, 1, 2, 4])
smoothed, plain = Smoothed()(logits, label).item(), F.cross_entropy(logits, label).item()
assert abs(smoothed - plain) > 1e-2
for optimize in True, False:
    with contextlib.redirect_stdout(io.StringIO()):
        torch.onnx.export(Smoothed(), (logits, label), PATH, dynamo=True, optimize=optimize, external_data=False)
    session = onnxruntime.InferenceSession(PATH)
    got = session.run(None, dict(zip([each.name for each in session.get_inputs()], [logits.numpy(), label.numpy()])))[0].item()
    print(f"dynamo, optimize={optimize}: {got:.6f}; PyTorch {smoothed:.6f}, without smoothing {plain:.6f}")
    assert abs(got - plain) < 1e-5
try:
    with contextlib.redirect_stdout(io.StringIO()):
        torch.onnx.export(Smoothed(), (logits, label), PATH, dynamo=False)
    raise SystemExit("TorchScript exports it")
except torch.onnx.errors.SymbolicValueError as error:
    print("TorchScript:", str(error).splitlines()[0][:80])
    assert "ONNX does not support label_smoothing" in str(error)
PY
echo "as stated"
