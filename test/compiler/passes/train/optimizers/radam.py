"""Cases of radam: torch.optim.RAdam.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases():
    make = lambda **given: lambda values: torch.optim.RAdam(values, **given)
    yield "radam", "radam", make()
    yield "radam_decay", "radam:lr=0.01,weight_decay=0.1,beta2=0.9", make(lr=0.01, weight_decay=0.1, betas=(0.9, 0.9))
    yield "radam_decoupled", "radam:lr=0.01,weight_decay=0.1,decoupled_weight_decay=1,maximize=1,epsilon=1e-3", make(lr=0.01, weight_decay=0.1, decoupled_weight_decay=True, maximize=True, eps=1e-3)
    groups = lambda values: torch.optim.RAdam([{"params": values[:1] + values[2:]}, {"params": values[1:2], "lr": 0.02, "betas": (0.9, 0.95), "weight_decay": 0}], lr=0.01, weight_decay=0.05)
    yield "radam_all", "radam:lr=0.01,weight_decay=0.05", groups, {"groups": ".*bias:lr_scale=2,beta2=0.95,weight_decay=0", "clip_norm": 1.5}


def zoo():
    return "lr=0.01,epsilon=1e-3", "lr_scale=0.5", torch.optim.RAdam, dict(lr=0.01, eps=1e-3), dict(lr=0.005)
