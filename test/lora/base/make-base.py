#!/usr/bin/env python3
"""Writes what the PEFT library makes of a small model with adapters beside weights that were quantised, as goldens.

    python make-base.py

model.onnx: an embedding, products of two and of three dimensions with weights both ways round; rows of 96 and 128 numbers, and
numbers of rows that no power of two divides. start/: adapters as PEFT saves them, drawn at random, so that none is zero.
golden-int8.npz (blocks of 64), golden-int4-32.npz (blocks of 32): the weights beside adapters, quantised and brought back to
float32 by the formula of docs/decisions/0031-quantised-base.md, then losses of five steps of SGD only on the adapters, adapters
and outputs afterwards; `merged/` are two of those weights, in the layout of the file, with what their adapters add. data.npz:
what it is trained with. Needs torch, peft, onnx and numpy.
SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import copy
import pathlib
import tempfile
import warnings

import numpy as np
import onnx
import onnx.numpy_helper
import peft
import torch
from safetensors.numpy import load_file

FOLDER = pathlib.Path(__file__).parent
STEPS, BATCH, LENGTH, WORDS, WIDTH, MIDDLE, CLASSES = 5, 4, 6, 40, 96, 70, 5
LAYERS = ["word", "query", "value", "wide", "head"]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.word = torch.nn.Embedding(WORDS, WIDTH)
        self.query, self.value = torch.nn.Linear(WIDTH, MIDDLE), torch.nn.Linear(WIDTH, MIDDLE, bias=False)
        self.wide = torch.nn.Linear(MIDDLE, 128)
        self.head = torch.nn.Linear(128, CLASSES)

    def forward(self, tokens):
        x = self.word(tokens)
        x = torch.tanh(self.query(x)) * self.value(x)
        x = torch.relu(self.wide(x)).mean(1)
        return self.head(x)


def quantise(weight, bits, block):
    """Rows of float32 as integers with a scale a block, and back."""
    most = np.float32(2 ** (bits - 1) - 1)
    result = np.empty_like(weight)
    for begin in range(0, weight.shape[1], block):
        part = weight[:, begin : begin + block]
        scale = np.abs(part).max(axis=1, keepdims=True) / most
        quotient = np.divide(part, scale, out=np.zeros_like(part), where=scale > 0)
        result[:, begin : begin + block] = np.clip(np.rint(quotient), -most, most) * scale
    assert result.dtype == np.float32
    return result


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = Net()
    tokens = torch.randint(WORDS, (STEPS * BATCH, LENGTH))
    label = torch.randint(CLASSES, (STEPS * BATCH,))
    np.savez_compressed(FOLDER / "data.npz", tokens=tokens.numpy(), label=label.numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # The three-dimensional products become MatMul with a Transpose of the weight in front, the head a Gemm.
        torch.onnx.export(net, (tokens[:BATCH],), str(FOLDER / "model.onnx"), dynamo=False, opset_version=17, input_names=["tokens"],
                          output_names=["output"], training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
    turn_weights(FOLDER / "model.onnx", ["value.weight"])
    start = None
    for name, bits, block in [("int8", 8, 64), ("int4-32", 4, 32)]:
        base = copy.deepcopy(net)
        with torch.no_grad():
            for layer in LAYERS:
                weight = getattr(base, layer).weight
                weight.copy_(torch.from_numpy(quantise(weight.numpy().copy(), bits, block)))
        config = peft.LoraConfig(r=3, lora_alpha=6, lora_dropout=0.0, target_modules=LAYERS)
        model = peft.get_peft_model(base, config)
        trained = {key: tensor for key, tensor in model.named_parameters() if tensor.requires_grad}
        with torch.no_grad():
            for key, tensor in trained.items():
                tensor.normal_(std=0.2) if start is None else tensor.copy_(start[key])
        if start is None:
            start = {key: tensor.detach().clone() for key, tensor in trained.items()}
            model.save_pretrained(FOLDER / "start")
            (FOLDER / "start/README.md").unlink()
        optimizer = torch.optim.SGD(trained.values(), lr=0.02, momentum=0.9)
        losses = []
        for x, y in zip(tokens.split(BATCH), label.split(BATCH)):
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(name, losses)
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            golden = {"adapter/" + key: value for key, value in load_file(folder + "/adapter_model.safetensors").items()}
        golden |= {"loss": np.array(losses), "output": model(tokens).detach().numpy()}
        merged = model.merge_and_unload()
        golden["merged/head.weight"] = merged.head.weight.detach().numpy()
        golden["merged/value.weight"] = merged.value.weight.detach().numpy().T.copy()
        np.savez_compressed(FOLDER / f"golden-{name}.npz", **golden)


def turn_weights(path, names):
    """Stores weights as [in, out], as other exporters do, without the Transpose in front of their products."""
    model = onnx.load(path)
    graph = model.graph
    for tensor in graph.initializer:
        if tensor.name in names:
            turned = onnx.numpy_helper.to_array(tensor).T.copy()
            tensor.CopyFrom(onnx.numpy_helper.from_array(turned, tensor.name))
    for node in list(graph.node):
        if node.op_type == "Transpose" and node.input[0] in names:
            for reader in graph.node:
                for i, value in enumerate(reader.input):
                    if value == node.output[0]:
                        reader.input[i] = node.input[0]
            graph.node.remove(node)
    onnx.checker.check_model(model)
    onnx.save(model, path)


if __name__ == "__main__":
    main()
