"""Cases of focal: torchvision.ops.sigmoid_focal_loss, from its documentation.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def focal(alpha=0.25, gamma=2.0, reduction="mean"):
    def loss(x, y):
        # 1 - p_t without a difference, which rounds: torchvision's p_t of 1 - 1e-17 is 1.
        miss = torch.sigmoid(x) * (1 - y) + torch.sigmoid(-x) * y
        each = torch.nn.functional.binary_cross_entropy_with_logits(x, y, reduction="none") * miss ** gamma
        if alpha >= 0:
            each = (alpha * y + (1 - alpha) * (1 - y)) * each
        return getattr(each, reduction)()
    return loss


def cases(draw):
    x, y = draw(3, 5), (draw(3, 5) > 0).double()
    x[0] = torch.tensor([0.0, 0.0, 30.0, -30.0, 30.0])
    y[0] = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0])
    yield "focal", "focal", x, y, focal()
    yield "focal_gamma", "focal:alpha=0.6,gamma=1.5,reduction=sum", x, y, focal(0.6, 1.5, "sum")
    yield "focal_neither", "focal:alpha=-1,gamma=0", x, y, focal(-1, 0)
    yield "focal_soft", "focal:gamma=0.5", x, torch.sigmoid(draw(3, 5)), focal(gamma=0.5)
