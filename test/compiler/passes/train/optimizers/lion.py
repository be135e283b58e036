"""Cases of lion: lion_pytorch.Lion.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import lion_pytorch


def cases():
    make = lambda **given: lambda values: lion_pytorch.Lion(values, **given)
    yield "lion", "lion", make()
    yield "lion_decay", "lion:lr=0.01,weight_decay=0.1,beta1=0.8,beta2=0.95", make(lr=0.01, weight_decay=0.1, betas=(0.8, 0.95))
    groups = lambda values: lion_pytorch.Lion([{"params": values[:1] + values[2:]}, {"params": values[1:2], "lr": 0.02, "betas": (0.9, 0.9), "weight_decay": 0}], lr=0.01, weight_decay=0.05)
    yield "lion_all", "lion:lr=0.01,weight_decay=0.05", groups, {"groups": ".*bias:lr_scale=2,beta2=0.9,weight_decay=0", "clip_norm": 1.5}


def zoo():
    return "lr=0.001,weight_decay=0.1", "weight_decay=0", lion_pytorch.Lion, dict(lr=0.001, weight_decay=0.1), dict(weight_decay=0)
