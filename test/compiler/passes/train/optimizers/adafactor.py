"""Cases of adafactor: torch.optim.Adafactor.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases():
    make = lambda **given: lambda values: torch.optim.Adafactor(values, **given)
    yield "adafactor", "adafactor", make()
    yield "adafactor_decay", "adafactor:lr=0.5,weight_decay=0.01,beta2_decay=-0.5,epsilon1=0.5,epsilon2=0.1,d=1.2,maximize=1", make(lr=0.5, weight_decay=0.01, beta2_decay=-0.5, eps=(0.5, 0.1), d=1.2, maximize=True)
    groups = lambda values: torch.optim.Adafactor([{"params": values[:1] + values[2:]}, {"params": values[1:2], "lr": 0.1, "d": 1.1, "weight_decay": 0}], lr=0.05, weight_decay=0.05)
    yield "adafactor_all", "adafactor:lr=0.05,weight_decay=0.05", groups, {"groups": ".*bias:lr_scale=2,d=1.1,weight_decay=0", "clip_norm": 1.5}


def zoo():
    return "lr=0.05,epsilon1=1e-3", "lr_scale=0.5", torch.optim.Adafactor, dict(lr=0.05, eps=(1e-3, 1e-3)), dict(lr=0.025)
