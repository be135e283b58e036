"""Cases of adamax: torch.optim.Adamax.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases():
    make = lambda **given: lambda values: torch.optim.Adamax(values, **given)
    yield "adamax", "adamax", make()
    yield "adamax_maximize", "adamax:lr=0.01,beta1=0.8,beta2=0.9,epsilon=1e-2,maximize=1", make(lr=0.01, betas=(0.8, 0.9), eps=1e-2, maximize=True)
    groups = lambda values: torch.optim.Adamax([{"params": values[:1] + values[2:]}, {"params": values[1:2], "lr": 0.02, "betas": (0.7, 0.999), "weight_decay": 0}], lr=0.01, weight_decay=0.05)
    yield "adamax_all", "adamax:lr=0.01,weight_decay=0.05", groups, {"groups": ".*bias:lr_scale=2,beta1=0.7,weight_decay=0", "clip_norm": 1.5}


def zoo():
    return "lr=0.01,epsilon=1e-3", "beta2=0.9", torch.optim.Adamax, dict(lr=0.01, eps=1e-3), dict(betas=(0.9, 0.9))
