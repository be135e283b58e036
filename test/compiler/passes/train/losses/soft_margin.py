"""Cases of soft_margin: torch.nn.SoftMarginLoss.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases(draw):
    x, y = draw(3, 5), torch.where(draw(3, 5) > 0, 1.0, -1.0).double()
    x[0] = torch.tensor([0.0, 0.0, 80.0, -80.0, 30.0])
    y[0] = torch.tensor([1.0, -1.0, 1.0, 1.0, -1.0])
    yield "soft_margin", "soft_margin", x, y, torch.nn.SoftMarginLoss()
    yield "soft_margin_sum", "soft_margin:reduction=sum", x, y, torch.nn.SoftMarginLoss(reduction="sum")
    far = x.clone()
    far[0, 3] = -1000.0  # its exp overflows
    yield "soft_margin_far", "soft_margin", far, y, lambda x, y: torch.logaddexp(torch.zeros_like(x), -y * x).mean()
