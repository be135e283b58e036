#!/usr/bin/env python3
"""Writes a model with two heads, and PyTorch's training of it with several losses, as goldens.

    python make-losses.py

model.onnx: a shared layer, boxes (values), classes (logits) and two embeddings. data.npz: its input and a label for each loss; some
classes are ignored. golden.npz, in float64: losses of ten steps of SGD with momentum, in all and each by itself, and what they are
afterwards over all samples, the last batch being short. tokens.npz: labels for steps whose gradients are added up, of one of which
all are ignored; `tokens/` are weights after two updates of four steps each, by the sum of losses over the number of labels.
teacher.onnx: a model of the same input, whose weights have names of model.onnx's; `teacher/` are losses of ten steps that distil it, with teacher.npz.
Needs torch, onnx and numpy.
SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import torch
import torch.nn.functional as F

FOLDER = pathlib.Path(__file__).parent
STEPS, BATCH, SAMPLES, WIDTH, HIDDEN = 10, 8, 85, 6, 12
HEADS = {"boxes": 4, "classes": 5, "left": 7, "right": 7}
WEIGHTS = {"boxes": 0.25, "classes": 2.0, "pairs": 1.0}


def save(path, nodes, outputs, arrays):
    graph = helper.make_graph(
        nodes, "heads", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", WIDTH])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", size]) for name, size in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()])
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)]), FOLDER / path)


def make_parameters(arrays):
    return {name: torch.tensor(array, dtype=torch.float64, requires_grad=True) for name, array in arrays.items()}


def make_model(rng):
    arrays = {"shared.weight": rng.normal(size=(HIDDEN, WIDTH)) * 0.5, "shared.bias": rng.normal(size=HIDDEN) * 0.1}
    nodes = [helper.make_node("Gemm", ["x", "shared.weight", "shared.bias"], ["sum"], transB=1), helper.make_node("Tanh", ["sum"], ["hidden"])]
    for name, size in HEADS.items():
        arrays |= {f"{name}.weight": rng.normal(size=(size, HIDDEN)) * 0.4, f"{name}.bias": rng.normal(size=size) * 0.1}
        nodes.append(helper.make_node("Gemm", ["hidden", f"{name}.weight", f"{name}.bias"], [name], transB=1))
    arrays = {name: array.astype(np.float32) for name, array in arrays.items()}
    save("model.onnx", nodes, HEADS, arrays)
    return arrays


def make_teacher(rng):
    arrays = {"shared.weight": rng.normal(size=(HEADS["classes"], WIDTH)).astype(np.float32)}
    save("teacher.onnx", [helper.make_node("Gemm", ["x", "shared.weight"], ["hidden"], transB=1), helper.make_node("Softsign", ["hidden"], ["sum"]),
                          helper.make_node("Mul", ["sum", "hidden"], ["logits"])], {"logits": HEADS["classes"]}, arrays)
    weight = torch.tensor(arrays["shared.weight"], dtype=torch.float64)
    return lambda x: F.softsign(F.linear(x, weight)) * F.linear(x, weight)


def forward(weights, x):
    hidden = torch.tanh(F.linear(x, weights["shared.weight"], weights["shared.bias"]))
    return {name: F.linear(hidden, weights[f"{name}.weight"], weights[f"{name}.bias"]) for name in HEADS}


def measure(weights, data, rows):
    outputs = forward(weights, data["x"][rows])
    return {"boxes": F.smooth_l1_loss(outputs["boxes"], data["label.boxes"][rows], beta=0.5),
            "classes": F.cross_entropy(outputs["classes"], data["label.classes"][rows]),
            "pairs": F.cosine_embedding_loss(outputs["left"], outputs["right"], data["label.pairs"][rows], margin=0.1)}


def rows_of(step):
    return slice(step * BATCH, step * BATCH + BATCH)


def add_up_tokens(arrays, x, rng):
    label = rng.integers(0, HEADS["classes"], len(x))
    label[rng.random(len(x)) < 0.4] = -100
    label[rows_of(1)] = -100
    np.savez_compressed(FOLDER / "tokens.npz", x=x, label=label)
    x, label, weights = torch.tensor(x, dtype=torch.float64), torch.tensor(label), make_parameters(arrays)
    optimizer = torch.optim.SGD(weights.values(), lr=0.1, momentum=0.9)
    for first in (0, 4):
        steps = [rows_of(first + i) for i in range(4)]
        count = sum((label[rows] != -100).sum() for rows in steps)
        optimizer.zero_grad()
        for rows in steps:
            (F.cross_entropy(forward(weights, x[rows])["classes"], label[rows], reduction="sum") / count).backward()
        optimizer.step()
    return {f"tokens/{name}": value.detach().numpy() for name, value in weights.items() if value.grad is not None}


def distil(arrays, teacher, x, label, temperature=2.0, share=0.25):
    weights, curves = make_parameters(arrays), {"loss": [], "label": [], "teacher": []}
    optimizer = torch.optim.SGD(weights.values(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        logits = forward(weights, x[rows_of(step)])["classes"]
        target = F.softmax(teacher(x[rows_of(step)]) / temperature, 1)
        soft = F.kl_div(F.log_softmax(logits / temperature, 1), target, reduction="batchmean") * temperature**2
        hard = F.cross_entropy(logits, label[rows_of(step)])
        total = share * soft + (1 - share) * hard
        for name, loss in {"loss": total, "label": hard, "teacher": soft}.items():
            curves[name].append(loss.item())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    return {f"teacher/{name}": np.array(values) for name, values in curves.items()}


def main():
    torch.set_num_threads(1)
    rng = np.random.default_rng(3)
    arrays = make_model(rng)
    weights = make_parameters(arrays)
    classes = rng.integers(0, HEADS["classes"], SAMPLES)
    classes[rng.random(SAMPLES) < 0.2] = -100
    data = {"x": rng.normal(size=(SAMPLES, WIDTH)).astype(np.float32), "label.boxes": rng.normal(size=(SAMPLES, HEADS["boxes"])).astype(np.float32),
            "label.classes": classes, "label.pairs": rng.choice([-1, 1], SAMPLES).astype(np.float32)}
    np.savez_compressed(FOLDER / "data.npz", **data)
    np.savez_compressed(FOLDER / "teacher.npz", x=data["x"], label=classes)
    data = {name: torch.tensor(array, dtype=torch.float64 if array.dtype == np.float32 else torch.int64) for name, array in data.items()}
    optimizer = torch.optim.SGD(weights.values(), lr=0.1, momentum=0.9)
    curves = {name: [] for name in ("loss", *WEIGHTS)}
    for step in range(STEPS):
        losses = measure(weights, data, rows_of(step))
        total = sum(WEIGHTS[name] * loss for name, loss in losses.items())
        for name, loss in {"loss": total, **losses}.items():
            curves[name].append(loss.item())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    whole = measure(weights, data, slice(None))
    right = (forward(weights, data["x"])["classes"].argmax(1) == data["label.classes"]).sum().item()
    np.savez_compressed(FOLDER / "golden.npz", right=np.int64(right), **{f"step/{name}": np.array(values) for name, values in curves.items()},
                        **{f"eval/{name}": np.float64(loss.item()) for name, loss in whole.items()},
                        **add_up_tokens(arrays, rng.normal(size=(8 * BATCH, WIDTH)).astype(np.float32), rng),
                        **distil(arrays, make_teacher(rng), data["x"], data["label.classes"]))


if __name__ == "__main__":
    main()
