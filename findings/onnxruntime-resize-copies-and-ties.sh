#!/usr/bin/env bash
# Resize in ONNX Runtime 1.32.0 and in the reference evaluator of onnx 1.23.2: five inputs on which they differ.
#
# 1. align_corners at a scale that gives no whole size: the runtime divides by the size that comes out less one, as PyTorch does; the reference by
#    scale * size less one, which is no whole number. ONNX's text says length_resized.
# 2. A scale of 1.1 that leaves the size as it is: the runtime copies, whatever the mode; the reference interpolates.
# 3. tf_crop_and_resize: the runtime ignores the region of an axis whose scale is 1; the reference takes it.
# 4. round_prefer_ceil: coordinates up to 1e-6 below a half count as halves in the runtime, and go up; not in the reference.
# 5. pytorch_half_pixel to one element, cubic: the runtime takes coordinate 0, as the text says; the reference -0.5.
#
# Exits with 0 when all is as stated.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PY'
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator


def both(x, scale=None, size=None, roi=None, **attributes):
    arrays = {"roi": roi, "scales": scale, "sizes": size}
    known = {k: np.array(v, np.int64 if k == "sizes" else np.float32) for k, v in arrays.items() if v is not None}
    inputs = ["x", *("" if v is None else k for k, v in arrays.items())]
    while not inputs[-1]:
        inputs.pop()
    node = helper.make_node("Resize", inputs, ["y"], **attributes)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(v, k) for k, v in known.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    runtime = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    return runtime[0, 0, 0], ReferenceEvaluator(model).run(None, {"x": x})[0][0, 0, 0]


ramp = np.arange(9, dtype=np.float32).reshape(1, 1, 1, 9)
short = np.arange(4, dtype=np.float32).reshape(1, 1, 1, 4) ** 2

runtime, reference = both(ramp, scale=[1, 1, 1, 1.7], mode="linear", coordinate_transformation_mode="align_corners")
print("1", runtime[-1], reference[-1])
assert len(runtime) == 15 and runtime[-1] == 8 and reference[-1] < 7.9

runtime, reference = both(short, scale=[1, 1, 1, 1.1], mode="cubic", coordinate_transformation_mode="half_pixel")
print("2", runtime, reference)
assert np.array_equal(runtime, short[0, 0, 0]) and np.abs(reference - runtime).max() > 0.1

region = dict(roi=[0, 0, 0, 0.25, 1, 1, 1, 0.75], mode="linear", coordinate_transformation_mode="tf_crop_and_resize")
runtime, reference = both(ramp, scale=[1, 1, 2, 1], **region)
print("3", runtime, reference)
assert np.array_equal(runtime, ramp[0, 0, 0]) and reference[0] == 2 and reference[-1] == 6

runtime, reference = both(np.arange(32, dtype=np.float32).reshape(1, 1, 1, 32), scale=[1, 1, 1, 2.4], mode="nearest", nearest_mode="round_prefer_ceil",
                          coordinate_transformation_mode="asymmetric")
print("4", runtime[18], reference[18])
assert np.float32(18) / np.float32(2.4) < 7.5 and runtime[18] == 8 and reference[18] == 7

runtime, reference = both(short + 1, size=[1, 1, 1, 1], mode="cubic", coordinate_transformation_mode="pytorch_half_pixel")
print("5", runtime, reference)
assert runtime[0] == 1 and abs(reference[0] - 1) > 0.05
PY
echo "as stated"
