"""Cases of hinge_embedding: torch.nn.HingeEmbeddingLoss.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases(draw):
    x, y = draw(3, 5).abs(), torch.where(draw(3, 5) > 0, 1.0, -1.0).double()
    x[0], y[0] = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.5]), torch.tensor([1.0, 1.0, -1.0, -1.0, -1.0])  # zeros, at the margin
    yield "hinge_embedding", "hinge_embedding", x, y, torch.nn.HingeEmbeddingLoss()
    yield "hinge_embedding_margin", "hinge_embedding:margin=0.5", x, y, torch.nn.HingeEmbeddingLoss(margin=0.5)
    other = y.clone()
    other[1, :2] = torch.tensor([0.0, 2.0])  # neither label
    yield "hinge_embedding_sum", "hinge_embedding:reduction=sum", x, other, torch.nn.HingeEmbeddingLoss(reduction="sum")
