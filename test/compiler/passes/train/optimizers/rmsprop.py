"""Cases of rmsprop: torch.optim.RMSprop.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases():
    rmsprop = lambda **given: lambda values: torch.optim.RMSprop(values, **given)
    yield "rmsprop", "rmsprop", rmsprop()
    yield "rmsprop_decay", "rmsprop:lr=0.02,weight_decay=0.1,epsilon=1e-3", rmsprop(lr=0.02, weight_decay=0.1, eps=1e-3)
    yield "rmsprop_momentum", "rmsprop:momentum=0.8,maximize=1", rmsprop(momentum=0.8, maximize=True)
    yield "rmsprop_centered", "rmsprop:centered=1,alpha=0.9", rmsprop(centered=True, alpha=0.9)
    groups = lambda values: torch.optim.RMSprop([{"params": values[:1] + values[2:]}, {"params": values[1:2], "lr": 0.01, "alpha": 0.8, "centered": False}],
                                                lr=0.003, alpha=0.95, momentum=0.9, centered=True, weight_decay=0.05)
    yield ("rmsprop_all", "rmsprop:lr=0.003,alpha=0.95,momentum=0.9,centered=1,weight_decay=0.05", groups,
           {"groups": ".*bias:lr=0.01,alpha=0.8,centered=0", "clip_norm": 1.5})


def zoo():
    return ("lr=0.002,epsilon=1e-3,centered=1", "momentum=0.5",
            torch.optim.RMSprop, dict(lr=0.002, eps=1e-3, centered=True), dict(momentum=0.5))
