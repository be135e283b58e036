"""Cases of nadam: torch.optim.NAdam.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases():
    make = lambda **given: lambda values: torch.optim.NAdam(values, **given)
    yield "nadam", "nadam", make()
    yield "nadam_decay", "nadam:lr=0.01,weight_decay=0.1,momentum_decay=0.1", make(lr=0.01, weight_decay=0.1, momentum_decay=0.1)
    yield "nadam_decoupled", "nadam:lr=0.01,weight_decay=0.1,decoupled_weight_decay=1,maximize=1,epsilon=1e-3", make(lr=0.01, weight_decay=0.1, decoupled_weight_decay=True, maximize=True, eps=1e-3)
    groups = lambda values: torch.optim.NAdam([{"params": values[:1] + values[2:]}, {"params": values[1:2], "lr": 0.02, "betas": (0.7, 0.999), "momentum_decay": 0.02, "weight_decay": 0}], lr=0.01, weight_decay=0.05)
    yield "nadam_all", "nadam:lr=0.01,weight_decay=0.05", groups, {"groups": ".*bias:lr_scale=2,beta1=0.7,momentum_decay=0.02,weight_decay=0", "clip_norm": 1.5}


def zoo():
    return "lr=0.01,epsilon=1e-3", "momentum_decay=0.01", torch.optim.NAdam, dict(lr=0.01, eps=1e-3), dict(momentum_decay=0.01)
