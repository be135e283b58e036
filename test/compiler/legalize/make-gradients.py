"""Writes gradients/resize-*: resizing at scales that give no whole size, by PyTorch in float64; regions that leave the input, which PyTorch has not, by
the reference evaluator of ONNX in float64, whose outputs are linear in the input.

    python make-gradients.py

Needs numpy, onnx and torch.
SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import pathlib

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

FOLDER = pathlib.Path(__file__).parent / "gradients"
SHAPE = (1, 1, 6, 9)


def by_torch(scale, **interpolation):
    return lambda x: torch.nn.functional.interpolate(x, scale_factor=scale, **interpolation)


def by_reference(opset, constants, attributes):
    """The linear map of a node, from its outputs for a one in each place."""
    node = helper.make_node("Resize", ["x", *constants], ["y"], **attributes)
    value = helper.make_tensor_value_info("x", onnx.TensorProto.DOUBLE, SHAPE)
    graph = helper.make_graph([node], "g", [value], [helper.make_empty_tensor_value_info("y")], [numpy_helper.from_array(v, k) for k, v in constants.items() if k])
    evaluator = ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]))
    run = lambda x: evaluator.run(None, {"x": x})[0]
    start = run(np.zeros(SHAPE))
    rows = np.stack([run(each.reshape(SHAPE)) - start for each in np.eye(int(np.prod(SHAPE)))])
    return lambda x: (x.reshape(-1) @ torch.from_numpy(rows).reshape(len(rows), -1)).reshape(start.shape) + torch.from_numpy(start)


def case(name, opset, constants, reference=None, **attributes):
    random = np.random.default_rng(sum(name.encode()))
    x, p = (np.round(random.uniform(-1, 1, SHAPE) * 1024) / 1024 for _ in range(2))
    parameter = torch.tensor(p, requires_grad=True)
    constants = {k: np.asarray(v) for k, v in constants.items()}
    y = (reference or by_reference(opset, constants, attributes))(torch.tensor(x) + parameter)
    label = np.round(random.uniform(-1, 1, tuple(y.shape)) * 1024) / 1024
    torch.nn.functional.mse_loss(y, torch.tensor(label)).backward()
    nodes = [helper.make_node("Add", ["input_0", "p0"], ["x0"]), helper.make_node("Resize", ["x0", *constants], ["y"], **attributes)]
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("input_0", onnx.TensorProto.FLOAT, SHAPE)],
                              [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, tuple(y.shape))],
                              [numpy_helper.from_array(p.astype(np.float32), "p0"), *(numpy_helper.from_array(v, k) for k, v in constants.items() if k)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, producer_name=""), FOLDER / f"{name}.onnx")
    arrays = {"in/input_0": x, "in/label": label, "grad/p0": parameter.grad.numpy(), "out/y": y.detach().numpy()}
    np.savez(FOLDER / f"{name}.npz", **{k: v.astype(np.float32) for k, v in arrays.items()})


def main():
    scales = {"": np.zeros(0, np.float32), "scales": np.array([1, 1, 1.75, 1.75], np.float32)}
    for mode, torch_mode in (("linear", "bilinear"), ("cubic", "bicubic")):
        case(f"resize-13-align-corners-{mode}", 13, scales, by_torch(1.75, mode=torch_mode, align_corners=True), mode=mode, coordinate_transformation_mode="align_corners")
        case(f"resize-13-half-pixel-{mode}", 13, scales, by_torch(1.75, mode=torch_mode, align_corners=False), mode=mode, coordinate_transformation_mode="half_pixel")
    roi = np.array([0, 0, -0.3, -0.2, 1, 1, 1.4, 1.3], np.float32)
    case("resize-19-crop-outside", 19, {"roi": roi, "scales": np.zeros(0, np.float32), "sizes": np.array([1, 1, 10, 15], np.int64)}, mode="linear", antialias=1,
         exclude_outside=1, coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=0.5)


if __name__ == "__main__":
    main()
