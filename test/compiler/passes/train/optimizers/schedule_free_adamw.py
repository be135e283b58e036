"""Cases of schedule_free_adamw: schedulefree.AdamWScheduleFree.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import schedulefree


def cases():
    make = lambda **given: lambda values: schedulefree.AdamWScheduleFree(values, **given)
    yield "schedule_free_adamw", "schedule_free_adamw", make()
    yield ("schedule_free_adamw_warmup", "schedule_free_adamw:lr=0.01,beta1=0.8,beta2=0.95,epsilon=1e-3,warmup_steps=20,r=0.5,weight_lr_power=1.5",
           make(lr=0.01, betas=(0.8, 0.95), eps=1e-3, warmup_steps=20, r=0.5, weight_lr_power=1.5))
    groups = lambda values: schedulefree.AdamWScheduleFree([{"params": values[:1] + values[2:]}, {"params": values[1:2], "lr": 0.02, "weight_decay": 0}],
                                                           lr=0.01, weight_decay=0.05, warmup_steps=10)
    yield ("schedule_free_adamw_all", "schedule_free_adamw:lr=0.01,weight_decay=0.05,warmup_steps=10", groups,
           {"groups": ".*bias:lr_scale=2,weight_decay=0", "clip_norm": 1.5})


def zoo():
    return "lr=0.01,epsilon=1e-3", "weight_decay=0.01", schedulefree.AdamWScheduleFree, dict(lr=0.01, eps=1e-3), dict(weight_decay=0.01)
