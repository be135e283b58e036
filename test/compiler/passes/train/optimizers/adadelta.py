"""Cases of adadelta: torch.optim.Adadelta.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases():
    make = lambda **given: lambda values: torch.optim.Adadelta(values, **given)
    yield "adadelta", "adadelta", make()
    yield "adadelta_maximize", "adadelta:lr=0.5,rho=0.8,epsilon=1e-3,maximize=1", make(lr=0.5, rho=0.8, eps=1e-3, maximize=True)
    groups = lambda values: torch.optim.Adadelta([{"params": values[:1] + values[2:]}, {"params": values[1:2], "lr": 2, "rho": 0.95, "weight_decay": 0}], lr=0.7, weight_decay=0.05)
    yield "adadelta_all", "adadelta:lr=0.7,weight_decay=0.05", groups, {"groups": ".*bias:lr=2,rho=0.95,weight_decay=0", "clip_norm": 1.5}


def zoo():
    return "lr=1,epsilon=1e-4", "rho=0.8", torch.optim.Adadelta, dict(lr=1, eps=1e-4), dict(rho=0.8)
