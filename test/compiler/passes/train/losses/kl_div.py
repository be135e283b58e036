"""Cases of kl_div: torch.nn.KLDivLoss.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases(draw):
    mean, logarithms = torch.nn.KLDivLoss(reduction="batchmean"), torch.nn.KLDivLoss(reduction="batchmean", log_target=True)
    x, target = draw(4, 5).log_softmax(1), draw(4, 5).softmax(1)
    yield "kl_div", "kl_div", x, target, mean
    certain = target.clone()
    certain[1] = torch.tensor([0.0, 1.0, 0.0, 0.0, 0.0])  # 0 log 0
    yield "kl_div_zeros", "kl_div", x, certain, mean
    yield "kl_div_log_target", "kl_div:log_target=1", x, target.log(), logarithms
    x, target = draw(2, 3, 4).log_softmax(2), draw(2, 3, 4).softmax(2)
    yield "kl_div_tokens", "kl_div", x, target, mean  # divided by 2, not by 6
