#!/usr/bin/env python3
"""Writes what PyTorch makes of a small model with sparse tables, as goldens.

    python make-sparse.py

model.onnx: a table that two Gathers read, one of a history in which items come more than once, another table of its own, and a small
network. data.npz: what it is trained with. NAME.npz: losses of six steps and the parameters afterwards, in float32: `sgd` and `adagrad` of
sparse gradients, `adam` as SparseAdam for the tables and Adam for the rest, `clip` SGD of dense gradients whose norm is limited.
labels.onnx, labels-data.npz, labels.npz: the same of a model of words, most of whose labels are ignored, with SGD.
Needs torch, onnx and numpy.
SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import pathlib
import warnings

import numpy as np
import torch

FOLDER = pathlib.Path(__file__).parent
STEPS, BATCH, HISTORY, ITEMS, USERS, WIDTH, CLASSES = 6, 8, 5, 40, 30, 6, 3
SENTENCES, LENGTH, WORDS = 4, 6, 23


class Net(torch.nn.Module):
    def __init__(self, sparse):
        super().__init__()
        self.items, self.users = (torch.nn.Embedding(n, WIDTH, sparse=sparse) for n in (ITEMS, USERS))
        self.hidden, self.head = torch.nn.Linear(3 * WIDTH, 8), torch.nn.Linear(8, CLASSES)

    def forward(self, history, item, user):
        x = torch.cat([self.items(history).mean(1), self.items(item), self.users(user)], 1)
        return self.head(torch.relu(self.hidden(x)))


class Words(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.hidden, self.head = torch.nn.Embedding(WORDS, WIDTH), torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        return self.head(torch.tanh(self.hidden(self.word(tokens))))


def ignore_labels(rng):
    n = STEPS * SENTENCES
    tokens, label = rng.integers(0, WORDS, (n, LENGTH)), rng.integers(0, WORDS, (n, LENGTH))
    label[rng.random((n, LENGTH)) < 0.8] = -100
    label[:SENTENCES] = -100
    label[0, 3] = 5  # one of the first step counts
    label[SENTENCES:2 * SENTENCES] = 7  # all of the second
    np.savez_compressed(FOLDER / "labels-data.npz", tokens=tokens, label=label)
    torch.manual_seed(0)
    net, losses = Words(), []
    tokens, label = torch.from_numpy(tokens), torch.from_numpy(label)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net, (tokens[:SENTENCES],), str(FOLDER / "labels.onnx"), dynamo=False, opset_version=17, input_names=["tokens"],
                          output_names=["output"], do_constant_folding=False)  # weights keep their names
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    for x, y in zip(tokens.split(SENTENCES), label.split(SENTENCES)):
        loss = torch.nn.functional.cross_entropy(net(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print("labels", losses)
    np.savez_compressed(FOLDER / "labels.npz", loss=np.array(losses), **{k: v.detach().numpy() for k, v in net.named_parameters()})


def train(name, sparse, make, limit=None):
    torch.manual_seed(0)
    net = Net(sparse)
    data = np.load(FOLDER / "data.npz")
    tables = [net.items.weight, net.users.weight]
    rest = [p for p in net.parameters() if all(p is not t for t in tables)]
    optimizers, losses = make(tables, rest), []
    for k in range(STEPS):
        x = {key: torch.from_numpy(data[key][k * BATCH:(k + 1) * BATCH]) for key in data.files}
        loss = torch.nn.functional.cross_entropy(net(x["history"], x["item"], x["user"]), x["label"])
        net.zero_grad()
        loss.backward()
        if limit:
            torch.nn.utils.clip_grad_norm_(net.parameters(), limit)
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
    print(name, losses)
    np.savez_compressed(FOLDER / f"{name}.npz", loss=np.array(losses), **{k: v.detach().numpy() for k, v in net.named_parameters()})


def main():
    torch.set_num_threads(1)
    rng = np.random.default_rng(3)
    n = STEPS * BATCH
    # Few items are often read, so that rows repeat within a batch and between them; most are read once or never.
    often = lambda limit, *shape: np.minimum(rng.geometric(0.15, shape) - 1, limit - 1)
    np.savez_compressed(FOLDER / "data.npz", history=often(ITEMS, n, HISTORY), item=often(ITEMS, n), user=rng.integers(0, USERS, n),
                        label=rng.integers(0, CLASSES, n))
    torch.manual_seed(0)
    data = np.load(FOLDER / "data.npz")
    inputs = tuple(torch.from_numpy(data[key][:BATCH]) for key in ("history", "item", "user"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(Net(False), inputs, str(FOLDER / "model.onnx"), dynamo=False, opset_version=17,
                          input_names=["history", "item", "user"], output_names=["output"])
    optim = torch.optim
    train("sgd", True, lambda tables, rest: [optim.SGD(tables + rest, lr=0.5)])
    train("adagrad", True, lambda tables, rest: [optim.Adagrad(tables + rest, lr=0.1)])
    train("adam", True, lambda tables, rest: [optim.SparseAdam(tables, lr=0.05, eps=1e-3), optim.Adam(rest, lr=0.05, eps=1e-3)])
    train("clip", False, lambda tables, rest: [optim.SGD(tables + rest, lr=0.5)], limit=0.2)
    ignore_labels(rng)


if __name__ == "__main__":
    main()
