"""Initial weights and data of a zoo entry, for a torch module.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import numpy as np
import onnx
import torch
from onnx import numpy_helper


def named_weights(model):
    """Float initializers of the ONNX file by the name the module had for them.

    An exporter that transposes the weight of a dense layer names it `onnx::MatMul_7`: the bias added to the product still
    has its name.
    """
    values = {
        i.name: numpy_helper.to_array(i) for i in model.graph.initializer if i.data_type == onnx.TensorProto.FLOAT
    }
    products = {node.output[0]: node.input[1] for node in model.graph.node if node.op_type == "MatMul"}
    for node in model.graph.node:
        if node.op_type != "Add":
            continue
        bias = next((name for name in node.input if name.endswith(".bias")), None)
        weight = next((products[name] for name in node.input if name in products), None)
        if bias in values and weight in values and weight.startswith("onnx::"):
            values[bias[: -len("bias")] + "weight"] = values.pop(weight).T
    return values


def load(module, path, renames):
    """Every parameter and buffer of `module` takes its value from the ONNX file.

    One that finds none is an error, and so is a weight that nothing takes.
    """
    wanted, given = module.state_dict(), {}
    for name, value in named_weights(onnx.load(path)).items():
        for old, new in renames:
            name = name.replace(old, new)
        given[name] = torch.from_numpy(np.array(value))
    missing = [name for name in wanted if name not in given and not name.endswith("num_batches_tracked")]
    unused = [name for name, value in given.items() if name not in wanted and value.numel() > 1]
    if missing or unused:
        raise ValueError(f"{path}: no value for {missing}, no place for {unused}")
    module.load_state_dict({name: given.get(name, value) for name, value in wanted.items()})


def batches(path, slices):
    """[(inputs in the order of the file, label)], one for every slice of the leading axes."""
    arrays = {name: torch.from_numpy(value) for name, value in np.load(path).items()}
    parts = {name: value.chunk(slices) for name, value in arrays.items()}
    label = parts.pop("label")
    return [([part[i].clone() for part in parts.values()], label[i].clone()) for i in range(slices)]
