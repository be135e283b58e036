"""Cases of schedule_free_sgd: schedulefree.SGDScheduleFree.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import schedulefree


def cases():
    make = lambda **given: lambda values: schedulefree.SGDScheduleFree(values, **given)
    yield "schedule_free_sgd", "schedule_free_sgd:lr=0.1", make(lr=0.1)
    yield ("schedule_free_sgd_warmup", "schedule_free_sgd:lr=0.1,momentum=0.8,warmup_steps=20,r=0.5,weight_lr_power=1.5",
           make(lr=0.1, momentum=0.8, warmup_steps=20, r=0.5, weight_lr_power=1.5))
    groups = lambda values: schedulefree.SGDScheduleFree([{"params": values[:1] + values[2:]}, {"params": values[1:2], "lr": 0.2, "weight_decay": 0}],
                                                         lr=0.1, weight_decay=0.05, warmup_steps=10)
    yield ("schedule_free_sgd_all", "schedule_free_sgd:lr=0.1,weight_decay=0.05,warmup_steps=10", groups,
           {"groups": ".*bias:lr_scale=2,weight_decay=0", "clip_norm": 1.5})


def zoo():
    return ("lr=0.2,warmup_steps=10,weight_decay=0.01", "lr_scale=0.5",
            schedulefree.SGDScheduleFree, dict(lr=0.2, warmup_steps=10, weight_decay=0.01), dict(lr=0.1))
