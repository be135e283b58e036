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
    pair, sign = (draw(3, 4), draw(3, 4)), torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)
    yield "sum_cosine_embedding", "cosine_embedding:margin=0.1,reduction=sum", pair, sign, torch.nn.CosineEmbeddingLoss(margin=0.1, reduction="sum")
    yield "sum_margin_ranking", "margin_ranking:margin=0.2,reduction=sum", pair, y.sign(), torch.nn.MarginRankingLoss(margin=0.2, reduction="sum")
    yield "sum_triplet_margin", "triplet_margin:reduction=sum", (*pair, draw(3, 4)), None, torch.nn.TripletMarginLoss(reduction="sum")
    yield ("sum_gaussian_nll", "gaussian_nll:reduction=sum", (pair[0], pair[1].abs() + 0.1), y,
           lambda mean, variance, y: torch.nn.functional.gaussian_nll_loss(mean, y, variance, reduction="sum"))
    divergence = torch.nn.KLDivLoss(reduction="sum")
    yield ("sum_distillation", "distillation:reduction=sum", pair, None,
           lambda student, teacher: divergence(student.log_softmax(-1), teacher.detach().softmax(-1)))
