"""Cases of margin_ranking: torch.nn.MarginRankingLoss.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases(draw):
    x, y, label = draw(7), draw(7), torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 0.5], dtype=torch.float64)
    yield "margin_ranking", "margin_ranking", (x, y), label, torch.nn.MarginRankingLoss()
    x[0], y[0], x[1], y[1] = 2.0, 2.0, 1.5, 1.0  # ties, and just at the margin
    yield "margin_ranking_ties", "margin_ranking", (x, y), label, torch.nn.MarginRankingLoss()
    yield "margin_ranking_margin", "margin_ranking:margin=0.5", (x, y), -label, torch.nn.MarginRankingLoss(margin=0.5)
    yield "margin_ranking_below", "margin_ranking:margin=-0.5", (x, y), label, torch.nn.MarginRankingLoss(margin=-0.5)
    yield "margin_ranking_table", "margin_ranking", (draw(2, 3), draw(2, 3)), draw(2, 3).sign(), torch.nn.MarginRankingLoss()
