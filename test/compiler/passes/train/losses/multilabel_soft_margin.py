"""Cases of multilabel_soft_margin: torch.nn.MultiLabelSoftMarginLoss.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases(draw):
    x, y = draw(4, 5), (draw(4, 5) > 0).double()
    x[0] = torch.tensor([0.0, 0.0, 700.0, -700.0, 40.0])
    y[1] = 0  # no label
    yield "multilabel_soft_margin", "multilabel_soft_margin", x, y, torch.nn.MultiLabelSoftMarginLoss()
    yield ("multilabel_soft_margin_sum", "multilabel_soft_margin:reduction=sum", x, y,
           torch.nn.MultiLabelSoftMarginLoss(reduction="sum"))  # still a mean over classes
    yield "multilabel_soft_margin_one", "multilabel_soft_margin", draw(5), y[2], torch.nn.MultiLabelSoftMarginLoss()
