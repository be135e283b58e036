#!/usr/bin/env python3
"""Prints what LossesTest.cpp expects: losses of torch.nn.CTCLoss under torch.optim.SGD, in float64.

usage: make-ctc.py     (with torch)
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import torch

x = torch.tensor([(i * 7 % 11) / 4 - 1 for i in range(48)], dtype=torch.float32).double().reshape(6, 2, 4)
bias = torch.tensor([0.5, -0.25, 0.0, 1.0], dtype=torch.float64, requires_grad=True)
optimizer = torch.optim.SGD([bias], lr=0.5)
losses = []
for _ in range(3):
    optimizer.zero_grad()
    loss = torch.nn.CTCLoss()((x + bias).log_softmax(2), torch.tensor([[1, 1, 2], [3, 0, -1]]), torch.tensor([6, 4]), torch.tensor([3, 1]))
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(", ".join(repr(each) for each in losses))
