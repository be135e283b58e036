#!/usr/bin/env bash
# Biases of zeros, as fresh layers have them, in ONNX exports from TensorFlow: Keras 3.15.1 with TensorFlow 2.21.0, and tf2onnx 1.17.0.
#
# 1. Two Dense layers, fresh: two MatMul without Add; the biases are in the file under no name. Both exporters.
# 2. The same with biases of 1e-6: both are there.
# 3. Conv2D, BatchNormalization, both fresh: one Conv, whose filter the norm has been multiplied into; nothing of the norm or of biases is left.
#
# Who trains such a file trains a model without these biases. Exits with 0 when all is as stated.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q tensorflow-cpu==2.21.0 keras==3.15.1 tf2onnx==1.17.0
KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" - "$folder/model.onnx" <<'PY'
import sys

import keras
import numpy as np
import onnx
import tensorflow as tf
import tf2onnx

PATH = sys.argv[1]


def with_keras(model, shape):
    model.export(PATH, format="onnx", verbose=False)


def with_tf2onnx(model, shape):
    tf2onnx.convert.from_function(tf.function(model), [tf.TensorSpec(shape, tf.float32, name="x")], output_path=PATH)


def read(exporter, model, shape):
    model(np.zeros(shape, np.float32))
    exporter(model, shape)
    graph = onnx.load(PATH).graph
    return [node.op_type for node in graph.node], [tensor.name for tensor in graph.initializer]


for exporter in with_keras, with_tf2onnx:
    dense = keras.Sequential([keras.Input((4,), batch_size=2), keras.layers.Dense(3, activation="tanh"), keras.layers.Dense(2)])
    nodes, names = read(exporter, dense, (2, 4))
    print(exporter.__name__, nodes)
    assert nodes == ["MatMul", "Tanh", "MatMul"] and not any("Bias" in name for name in names)
    for layer in dense.layers:
        layer.bias.assign(np.full(layer.bias.shape, 1e-6))
    nodes, names = read(exporter, dense, (2, 4))
    assert len([name for name in names if "Bias" in name]) == 2
    conv = keras.Sequential([keras.Input((6, 6, 2), batch_size=2), keras.layers.Conv2D(3, 3), keras.layers.BatchNormalization(), keras.layers.ReLU()])
    nodes, names = read(exporter, conv, (2, 6, 6, 2))
    print(exporter.__name__, nodes)
    assert nodes == ["Transpose", "Conv", "Relu", "Transpose"] and len(names) == 1
PY
echo "as stated"
