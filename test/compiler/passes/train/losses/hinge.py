"""Cases of hinge: keras.losses.Hinge, max(0, 1 - y x) with labels of -1 and 1; of 0 and 1 it makes those.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases(draw):
    x, y = draw(3, 5), torch.where(draw(3, 5) > 0, 1.0, -1.0).double()
    x[0] = torch.tensor([1.0, -1.0, 0.0, 1.0, -1.0])  # at the margin of one label or the other, and at zero
    binary = (y + 1) / 2
    mean = lambda x, y: torch.clamp(1 - y * x, min=0).mean()
    yield "hinge", "hinge", x, y, mean
    yield "hinge_binary", "hinge", x, binary, lambda x, y: mean(x, 2 * y - 1)
    yield "hinge_sum", "hinge:reduction=sum", x, y, lambda x, y: torch.clamp(1 - y * x, min=0).sum()
