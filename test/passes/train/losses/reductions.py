"""Cases of the key reduction, of losses that have other cases elsewhere.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases(draw):
    x, y = draw(3, 4), draw(3, 4)
    label = torch.tensor([1, -100, 3])
    p = draw(3, 4).softmax(1)
    yield "sum_mse", "mse:reduction=sum", x, y, torch.nn.MSELoss(reduction="sum")
    yield "sum_l1", "l1:reduction=sum", x, y, torch.nn.L1Loss(reduction="sum")
    yield "sum_smooth_l1", "smooth_l1:reduction=sum", x, y, torch.nn.SmoothL1Loss(reduction="sum")
    yield "sum_bce_with_logits", "bce_with_logits:reduction=sum", x, p, torch.nn.BCEWithLogitsLoss(reduction="sum")
    yield "sum_cross_entropy", "cross_entropy:reduction=sum,label_smoothing=0.1", x, label, torch.nn.CrossEntropyLoss(reduction="sum", label_smoothing=0.1)
    yield "sum_cross_entropy_nothing", "cross_entropy:reduction=sum", x, torch.full((3,), -100), torch.nn.CrossEntropyLoss(reduction="sum")
    yield "sum_cross_entropy_probabilities", "cross_entropy:probabilities=1,reduction=sum", x, p, torch.nn.CrossEntropyLoss(reduction="sum")
    yield "sum_nll", "nll:reduction=sum", x.log_softmax(1), label, torch.nn.NLLLoss(reduction="sum")
    for reduction in ("mean", "sum"):
        yield f"{reduction}_kl_div", f"kl_div:reduction={reduction}", x.log_softmax(1), p, torch.nn.KLDivLoss(reduction=reduction)
    yield "given_mean_cross_entropy", "cross_entropy:reduction=mean", x, label, torch.nn.CrossEntropyLoss()
