#!/usr/bin/env python3
"""Writes what the PEFT library makes of a small model with adapters, as goldens.

    python make-lora.py

model.onnx: an embedding, products of two and of three dimensions, a 1x1 convolution. start/: adapters as PEFT saves them, drawn at
random, so that none is zero. golden.npz: losses of five steps of SGD only on the adapters, adapters and outputs afterwards, in
float32; `plain/` is the output without adapters. data.npz: what it is trained with. Needs torch, peft, onnx and numpy.
SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import pathlib
import warnings

import numpy as np
import onnx
import onnx.numpy_helper
import peft
import torch
from safetensors.numpy import load_file

FOLDER = pathlib.Path(__file__).parent
STEPS, BATCH, LENGTH, WIDTH, WORDS, CLASSES = 5, 4, 6, 12, 20, 5


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.word = torch.nn.Embedding(WORDS, WIDTH)
        self.query, self.value = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self.mix = torch.nn.Conv1d(WIDTH, 10, 1)
        self.head = torch.nn.Linear(10, CLASSES)

    def forward(self, tokens):
        x = self.word(tokens)
        x = torch.tanh(self.query(x)) * self.value(x)
        x = torch.relu(self.mix(x.transpose(1, 2))).mean(2)
        return self.head(x)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = Net()
    tokens = torch.randint(WORDS, (STEPS * BATCH, LENGTH))
    label = torch.randint(CLASSES, (STEPS * BATCH,))
    np.savez_compressed(FOLDER / "data.npz", tokens=tokens.numpy(), label=label.numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net, (tokens[:BATCH],), str(FOLDER / "model.onnx"), dynamo=False, opset_version=17, input_names=["tokens"],
                          output_names=["output"], training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
    graph = onnx.load(FOLDER / "model.onnx")
    for tensor in graph.graph.initializer:
        if tensor.name == "value.weight":  # other exporters write numbers so
            tensor.float_data.extend(onnx.numpy_helper.to_array(tensor).flatten().tolist())
            tensor.ClearField("raw_data")
    onnx.save(graph, FOLDER / "model.onnx")
    golden = {"plain/output": net(tokens).detach().numpy()}
    config = peft.LoraConfig(r=3, lora_alpha=6, lora_dropout=0.0, target_modules=["word", "query", "value", "mix", "head"],
                             rank_pattern={"head": 2}, alpha_pattern={"head": 3})
    model = peft.get_peft_model(net, config)
    trained = {name: tensor for name, tensor in model.named_parameters() if tensor.requires_grad}
    with torch.no_grad():
        for tensor in trained.values():
            tensor.normal_(std=0.3)
    model.save_pretrained(FOLDER / "start")
    (FOLDER / "start/README.md").unlink()
    optimizer = torch.optim.SGD(trained.values(), lr=0.1, momentum=0.9)
    losses = []
    for x, y in zip(tokens.split(BATCH), label.split(BATCH)):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(losses)
    model.save_pretrained("/tmp/lora-end")
    golden |= {"loss": np.array(losses), "output": model(tokens).detach().numpy()}
    golden |= {"adapter/" + name: value for name, value in load_file("/tmp/lora-end/adapter_model.safetensors").items()}
    np.savez_compressed(FOLDER / "golden.npz", **golden)


if __name__ == "__main__":
    main()
