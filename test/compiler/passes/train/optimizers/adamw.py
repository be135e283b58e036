"""Cases of adamw: torch.optim.AdamW.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases():
    adamw = lambda **given: lambda values: torch.optim.AdamW(values, **given)
    yield "adamw", "adamw", adamw()
    yield "adamw_amsgrad", "adamw:lr=0.01,amsgrad=1,beta2=0.9", adamw(lr=0.01, amsgrad=True, betas=(0.9, 0.9))
    yield "adamw_maximize", "adamw:lr=0.01,maximize=1,weight_decay=0.1", adamw(lr=0.01, maximize=True, weight_decay=0.1)
    groups = lambda values: [torch.optim.AdamW(values[2:], lr=0.01), torch.optim.SGD(values[1:2], lr=0.05, momentum=0.8),
                             torch.optim.AdamW(values[:1], lr=0.03, betas=(0.9, 0.99), weight_decay=0)]
    yield ("adamw_all", "adamw:lr=0.01", groups,
           {"groups": ".*bias:optimizer=sgd,lr=0.05,momentum=0.8;fc.*:beta2=0.99,lr_scale=3,weight_decay=0", "clip_norm": 1.5})


def zoo():
    return "lr=0.01,epsilon=1e-4", "weight_decay=0,lr=0.02", torch.optim.AdamW, dict(lr=0.01, eps=1e-4), dict(weight_decay=0, lr=0.02)
