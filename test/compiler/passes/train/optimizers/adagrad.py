"""Cases of adagrad: torch.optim.Adagrad.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases():
    adagrad = lambda **given: lambda values: torch.optim.Adagrad(values, **given)
    yield "adagrad", "adagrad", adagrad()
    yield "adagrad_decay", "adagrad:lr=0.1,weight_decay=0.1,epsilon=1e-3", adagrad(lr=0.1, weight_decay=0.1, eps=1e-3)
    yield "adagrad_lr_decay", "adagrad:lr=0.1,lr_decay=0.2,maximize=1", adagrad(lr=0.1, lr_decay=0.2, maximize=True)
    yield "adagrad_first", "adagrad:lr=0.1,initial_accumulator_value=0.5", adagrad(lr=0.1, initial_accumulator_value=0.5)
    groups = lambda values: [torch.optim.Adagrad(values[:1] + values[2:], lr=0.1, lr_decay=0.01),
                             torch.optim.Adagrad(values[1:2], lr=0.2, lr_decay=0.1, initial_accumulator_value=0.1)]
    yield ("adagrad_all", "adagrad:lr=0.1,lr_decay=0.01", groups,
           {"groups": ".*bias:lr_scale=2,lr_decay=0.1,initial_accumulator_value=0.1", "clip_norm": 1.5})


def zoo():
    return "lr=0.02,lr_decay=0.01,epsilon=1e-3", "lr_scale=2", torch.optim.Adagrad, dict(lr=0.02, lr_decay=0.01, eps=1e-3), dict(lr=0.04)
