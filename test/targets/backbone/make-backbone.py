#!/usr/bin/env python3
"""Writes a keyword spotter whose front is of 8-bit integers, what it is trained with, and what comes of that elsewhere.

    python make-backbone.py

model.onnx: the layers of ds-cnn of MLPerf Tiny (64 channels, spectrograms of 49 x 10), quantised by onnxruntime.quantization in the QOperator
format, one scale for each channel; the average and the linear layer after them are of floats. Weights are drawn.
data.npz: spectrograms of rising and falling tones in noise, and their labels; steps take them one after the other, again and again.
golden.npz: codes of the last QLinearConv for the first one, as onnxruntime computes them; losses of steps of SGD on the linear layer, its
gradients in the first step, and its parameters after the last one, by numpy in float64 from onnxruntime's codes.
Needs onnxruntime, onnx and numpy.
SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import pathlib
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

FOLDER = pathlib.Path(__file__).parent
CHANNELS, BLOCKS, CLASSES, SOUNDS, STEPS, RATE = 64, 4, 12, 12, 48, 0.05
ROWS, COLUMNS = 49, 10
FEATURES = 5 * CHANNELS  # means of 5 x 5 places
draw = np.random.default_rng(7)


def spectrogram(label):
    """Tones that begin at a frequency of their own and rise or fall."""
    time, band = np.arange(ROWS)[:, None], np.arange(COLUMNS)[None, :]
    slope = (-1) ** (label % 2) * 0.06
    centre = 2 + label // 2 + slope * (time - ROWS / 2)
    tone = np.exp(-((band - centre) ** 2)) * (1 + np.sin(time * (1 + label % 3) / 3))
    sound = 2 * tone + 0.4 * draw.standard_normal((ROWS, COLUMNS))
    return (np.round(64 * sound) / 64).astype(np.float32)[None, None]  # which a file has in few bytes


class Calibration(CalibrationDataReader):
    def __init__(self, samples):
        self.samples = iter(samples)

    def get_next(self):
        sample = next(self.samples, None)
        return None if sample is None else {"sound": sample}


def build(samples):
    """The model in floats; channels of convolutions have mean 0 and deviation 1, as a folded normalisation leaves them."""
    nodes, weights, last = [], {}, "sound"

    def assemble(output, shape):
        graph = helper.make_graph(nodes, "keywords", [helper.make_tensor_value_info("sound", TensorProto.FLOAT, [1, 1, ROWS, COLUMNS])],
                                  [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
                                  [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()])
        return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])

    def layer(name, shape, **attributes):
        nonlocal last
        weights[f"{name}.weight"], weights[f"{name}.bias"] = draw.standard_normal(shape), np.zeros(shape[0])
        nodes.append(helper.make_node("Conv", [last, f"{name}.weight", f"{name}.bias"], [f"{name}.sums"], name=name, **attributes))
        session = onnxruntime.InferenceSession(assemble(f"{name}.sums", None).SerializeToString(), providers=["CPUExecutionProvider"])
        sums = np.concatenate([session.run(None, {"sound": sample})[0] for sample in samples])
        mean, deviation = sums.mean((0, 2, 3)), sums.std((0, 2, 3)) + 0.01
        weights[f"{name}.weight"] /= deviation[:, None, None, None]
        weights[f"{name}.bias"] = -mean / deviation
        nodes.append(helper.make_node("Relu", [f"{name}.sums"], [name], name=f"{name}.relu"))
        last = name

    layer("first", (CHANNELS, 1, 10, 4), strides=[2, 2], pads=[4, 1, 5, 1])
    for i in range(BLOCKS):
        layer(f"depth{i}", (CHANNELS, 1, 3, 3), pads=[1, 1, 1, 1], group=CHANNELS)
        layer(f"point{i}", (CHANNELS, CHANNELS, 1, 1))
    nodes.append(helper.make_node("AveragePool", [last], ["average"], name="average", kernel_shape=[5, 5], strides=[5, 5]))
    nodes.append(helper.make_node("Flatten", ["average"], ["features"], name="flatten"))
    nodes.append(helper.make_node("Gemm", ["features", "tail.weight", "tail.bias"], ["scores"], name="tail", transB=1))
    weights["tail.weight"], weights["tail.bias"] = draw.standard_normal((CLASSES, FEATURES)) / 16, np.zeros(CLASSES)
    return assemble("scores", [1, CLASSES])


def quantise(model, samples):
    """The front in integers; the codes of its last layer are an output, too."""
    with tempfile.TemporaryDirectory() as work:
        floats, integers = f"{work}/floats.onnx", f"{work}/integers.onnx"
        onnx.save(model, floats)
        quantize_static(floats, integers, Calibration(samples), quant_format=QuantFormat.QOperator, op_types_to_quantize=["Conv", "Relu"],
                        per_channel=True, activation_type=QuantType.QInt8, weight_type=QuantType.QInt8)
        quantised = onnx.load(integers)
    for node in quantised.graph.node:
        node.ClearField("doc_string")
    codes = [node for node in quantised.graph.node if node.op_type == "QLinearConv"][-1].output[0]
    quantised.graph.output.append(helper.make_tensor_value_info(codes, TensorProto.INT8, [1, CHANNELS, 25, 5]))
    onnx.checker.check_model(quantised)
    return quantised, codes


def train(model, codes, labels):
    """SGD on the linear layer, from codes of what is in front of it."""
    values = {item.name: numpy_helper.to_array(item) for item in model.graph.initializer}
    weight, bias = values["tail.weight"].astype(np.float64), values["tail.bias"].astype(np.float64)
    last = [node for node in model.graph.node if node.op_type == "DequantizeLinear"][-1]
    scale, zero = (float(values[name].item()) for name in last.input[1:])
    losses, gradients = [], None
    for code, label in zip(codes, labels):
        features = ((code.astype(np.float64) - zero) * scale).reshape(CHANNELS, 5, 25).mean(2).ravel()
        scores = weight @ features + bias
        odds = np.exp(scores - scores.max())
        odds /= odds.sum()
        losses.append(-np.log(odds[label]))
        error = odds - np.eye(CLASSES)[label]
        gradients = gradients or (np.outer(error, features), error)
        weight, bias = weight - RATE * np.outer(error, features), bias - RATE * error
    return {"losses": np.array(losses), "grad/tail.weight": gradients[0].astype(np.float32), "grad/tail.bias": gradients[1].astype(np.float32),
            "tail.weight": weight.astype(np.float32), "tail.bias": bias.astype(np.float32)}


def main():
    samples = [spectrogram(i % CLASSES) for i in range(4 * CLASSES)]
    model, name = quantise(build(samples), samples)
    onnx.save(model, FOLDER / "model.onnx")
    labels = [[3, 8, 5][i % 3] for i in range(SOUNDS)]
    sounds = [spectrogram(label) for label in labels]
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    codes = [session.run([name], {"sound": sound})[0] for sound in sounds]
    # A second opinion: a processor without sums of 32 bits would cut some off.
    other = ReferenceEvaluator(model).run([name], {"sound": sounds[0]})[0]
    assert np.abs(other.astype(int) - codes[0]).max() <= 1, "onnxruntime and the reference of ONNX differ by more than a quantum"
    golden = train(model, [codes[i % SOUNDS] for i in range(STEPS)], [labels[i % SOUNDS] for i in range(STEPS)])
    np.savez_compressed(FOLDER / "data.npz", sound=np.concatenate(sounds), label=np.array(labels, np.int64))
    np.savez_compressed(FOLDER / "golden.npz", codes=codes[0], **golden)
    print(f"{len(model.SerializeToString())} bytes, losses {golden['losses'][0]:.3f} to {golden['losses'][-1]:.3f}; "
          f"codes {codes[0].min()} to {codes[0].max()}, {len(np.unique(codes[0]))} different ones")


if __name__ == "__main__":
    main()
