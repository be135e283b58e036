"""Cases of adamw8bit: of tensors this small it is torch.optim.AdamW. make_byte_references.py has those of larger ones.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases():
    make = lambda **given: lambda values: torch.optim.AdamW(values, **given)
    yield "adamw8bit", "adamw8bit", make()
    yield "adamw8bit_keys", "adamw8bit:lr=0.01,beta1=0.8,beta2=0.99,epsilon=1e-4,weight_decay=0.1,maximize=1", make(
        lr=0.01, betas=(0.8, 0.99), eps=1e-4, weight_decay=0.1, maximize=True)
    groups = lambda values: torch.optim.AdamW([{"params": values[:1] + values[2:]}, {"params": values[1:2], "lr": 0.02, "weight_decay": 0}], lr=0.01)
    yield "adamw8bit_all", "adamw8bit:lr=0.01", groups, {"groups": ".*bias:lr_scale=2,weight_decay=0", "clip_norm": 1.5}


def zoo():
    import byte_optimizers

    return ("lr=0.01,epsilon=1e-4", "weight_decay=0,lr=0.02",
            byte_optimizers.AdamW8bit, dict(lr=0.01, eps=1e-4), dict(weight_decay=0, lr=0.02))
