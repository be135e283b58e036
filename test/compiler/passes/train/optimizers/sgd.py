"""Cases of sgd: torch.optim.SGD.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases():
    sgd = lambda **given: lambda values: torch.optim.SGD(values, **given)
    yield "sgd_maximize", "sgd:lr=0.01,maximize=1,weight_decay=0.1", sgd(lr=0.01, maximize=True, weight_decay=0.1)
    yield "sgd_dampening", "sgd:lr=0.01,momentum=0.9,dampening=0.3", sgd(lr=0.01, momentum=0.9, dampening=0.3)
    yield "sgd_nesterov", "sgd:lr=0.01,momentum=0.9,nesterov=1", sgd(lr=0.01, momentum=0.9, nesterov=True)
    groups = lambda values: torch.optim.SGD([{"params": values[:1] + values[2:]},
                                             {"params": values[1:2], "lr": 0.005, "momentum": 0.5, "dampening": 0.1, "weight_decay": 0}],
                                            lr=0.01, momentum=0.9, weight_decay=0.01)
    yield ("sgd_all", "sgd:lr=0.01,momentum=0.9,weight_decay=0.01", groups,
           {"groups": ".*bias:lr=0.005,momentum=0.5,dampening=0.1,weight_decay=0", "clip_norm": 1.5})


def zoo():
    return ("lr=0.05,momentum=0.9,dampening=0.1,weight_decay=0.01", "lr_scale=2,weight_decay=0",
            torch.optim.SGD, dict(lr=0.05, momentum=0.9, dampening=0.1, weight_decay=0.01), dict(lr=0.1, weight_decay=0))
