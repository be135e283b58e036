"""Cases of adagrad: torch.optim.Adagrad.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases():
    adagrad = lambda **given: lambda values: torch.optim.Adagrad(values, **given)
    yield "adagrad", "adagrad", adagrad()
    yield "adagrad_decay", "adagrad:lr=0.1,weight_decay=0.1,epsilon=1e-3", adagrad(lr=0.1, weight_decay=0.1, eps=1e-3)
