"""Cases of huber: torch.nn.HuberLoss.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases(draw):
    x, y = (draw(4, 6) * 8).round() / 8, (draw(4, 6) * 8).round() / 8
    y[0, :3] = x[0, :3]  # no difference at all
    y[1] = x[1] + torch.tensor([1.0, -1.0, 0.5, -0.5, 2.0, -2.0], dtype=x.dtype)  # at delta, too
    yield "huber", "huber", x, y, torch.nn.HuberLoss()
    yield "huber_delta", "huber:delta=0.5", x, y, torch.nn.HuberLoss(delta=0.5)
    yield "huber_sum", "huber:delta=2,reduction=sum", x, y, torch.nn.HuberLoss("sum", 2.0)
