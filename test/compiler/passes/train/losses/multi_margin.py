"""Cases of multi_margin: torch.nn.MultiMarginLoss.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases(draw):
    x, label = (draw(4, 5) * 4).round() / 4, torch.tensor([0, 3, 4, 1])
    x[0] = torch.tensor([2.0, 1.0, 1.0, 2.0, 0.0])  # at the margin; as large as the right one
    x[1] = 0.5  # all equal
    yield "multi_margin", "multi_margin", x, label, torch.nn.MultiMarginLoss()
    yield "multi_margin_squares", "multi_margin:p=2", x, label, torch.nn.MultiMarginLoss(p=2)
    yield "multi_margin_margin", "multi_margin:margin=0.25,p=2,reduction=sum", x, label, torch.nn.MultiMarginLoss(margin=0.25, p=2, reduction="sum")
    yield "multi_margin_one_sample", "multi_margin", draw(6), torch.tensor(4), torch.nn.MultiMarginLoss()
    some = label.clone()
    some[2] = -100  # PyTorch ignores none: only those that count
    yield "multi_margin_ignored", "multi_margin", x, some, lambda x, y: torch.nn.MultiMarginLoss()(x[y != -100], y[y != -100])
    y = torch.tensor([[1, 0, 2], [2, 2, 1]])
    yield ("multi_margin_last_axis", "multi_margin:axis=-1", draw(2, 3, 4), y,
           lambda x, y: torch.nn.MultiMarginLoss()(x.reshape(6, 4), y.reshape(6)))
