#!/usr/bin/env python3
"""Whether ONNX Runtime gets from exported quantised models what `ortc predict` gives.

    python check-onnxruntime.py ORTC

As the graph is written, outputs agree to 1e-5 of the largest: both sides round to the same integers. With all of ONNX Runtime's
optimisations its kernels compute with the integers and sum in other orders, and where a value lies half way between two integers it may
be rounded the other way: outputs agree to one step of as many bits. x64quantprecision keeps kernels from saturating on processors
without VNNI.
SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import pathlib
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "python"))
from optional import need

need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
import onnxruntime

LEVELS = onnxruntime.GraphOptimizationLevel


def outputs(model, x, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def make_shared(folder):
    """A net whose two layers have one weight, which ONNX Runtime changes for either kernel."""
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(0)
    weight = (0.3 * random.standard_normal((16, 16))).astype(np.float32)
    nodes = [("Gemm", ["x", "tied.weight"], "a"), ("Relu", ["a"], "b"), ("Gemm", ["b", "tied.weight"], "output")]
    nodes = [helper.make_node(kind, inputs, [out], **({"transB": 1} if kind == "Gemm" else {})) for kind, inputs, out in nodes]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, 16]) for name in ("x", "output")]
    graph = helper.make_graph(nodes, "tied", values[:1], values[1:], [numpy_helper.from_array(weight, "tied.weight")])
    folder.mkdir()
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), folder / "model.onnx")
    np.savez(folder / "data.npz", x=random.standard_normal((32, 16)).astype(np.float32), label=random.integers(0, 16, 32))


def check(ortc, folder, source, settings):
    def call(*arguments):
        subprocess.run([ortc, *map(str, arguments), "--quiet"], check=True)

    data, artifact, saved, model = source / "data.npz", folder / "a", folder / "s.safetensors", folder / "q.onnx"
    call("train", source / "model.onnx", "-o", artifact, "--loss", "cross_entropy", "--target", "native", "--optimizer",
         "sgd:lr=0.02,momentum=0.9", "--qat", ".*weight" + settings)
    call("run", artifact, "--data", data, "--steps", 6, "--save", saved)
    call("predict", artifact, "--data", data, "--load", saved, "-o", folder / "p.npz")
    call("export", artifact, "--load", saved, "-o", model)
    onnx.checker.check_model(str(model), full_check=True)
    x, wanted = np.load(data)["x"], np.load(folder / "p.npz")["output"]
    step = 1 / (2 ** (4 if "bits=4" in settings else 8) - 1)
    for level, tolerance in ((LEVELS.ORT_DISABLE_ALL, 1e-5), (LEVELS.ORT_ENABLE_ALL, step)):
        got = np.concatenate([outputs(str(model), part, level) for part in np.split(x, len(x) // 8)])
        off = np.abs(got - wanted).max() / np.abs(wanted).max()
        print(source.name, settings or "-", level.name, f"off by {off:.1e} of the largest")
        if not off <= tolerance:
            sys.exit("too far off")


def main():
    ortc = sys.argv[1]
    with tempfile.TemporaryDirectory() as made:
        make_shared(pathlib.Path(made) / "shared")
        for source in (FOLDER / "conv", FOLDER / "text", pathlib.Path(made) / "shared"):
            for settings in ("", ":per=tensor,observer=minmax", ":bits=4", ":learned=1,observe=2"):
                with tempfile.TemporaryDirectory() as folder:
                    check(ortc, pathlib.Path(folder), source, settings)


if __name__ == "__main__":
    main()
