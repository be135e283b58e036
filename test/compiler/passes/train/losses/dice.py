"""Cases of dice: 1 - (2 sum(p y) + smooth) / (sum(p) + sum(y) + smooth) with p = sigmoid(x), of each sample and channel.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def dice(smooth=1e-5, reduction="mean"):
    def loss(x, y):
        axes = tuple(range(2 if x.ndim > 2 else 1, x.ndim))
        p = torch.sigmoid(x)
        return getattr(1 - (2 * (p * y).sum(axes) + smooth) / ((p + y).sum(axes) + smooth), reduction)()
    return loss


def cases(draw):
    x, y = draw(2, 3, 4, 2), (draw(2, 3, 4, 2) > 0).double()
    x[0, 0, 0] = torch.tensor([0.0, 500.0])
    y[1, 1], x[1, 1] = 0, -60.0  # nothing to find, and nothing found
    yield "dice", "dice", x, y, dice()
    yield "dice_smooth", "dice:smooth=1,reduction=sum", x, y, dice(1.0, "sum")
    yield "dice_flat", "dice", draw(3, 7), (draw(3, 7) > 0).double(), dice()
