"""Cases of cosine_embedding: torch.nn.CosineEmbeddingLoss.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases(draw):
    x, y, label = draw(5, 4), draw(5, 4), torch.tensor([1.0, -1.0, 1.0, -1.0, 0.5], dtype=torch.float64)
    yield "cosine_embedding", "cosine_embedding", (x, y), label, torch.nn.CosineEmbeddingLoss()
    yield "cosine_embedding_margin", "cosine_embedding:margin=0.3", (x, y), label, torch.nn.CosineEmbeddingLoss(margin=0.3)
    yield "cosine_embedding_below", "cosine_embedding:margin=-0.5", (x, y), -label, torch.nn.CosineEmbeddingLoss(margin=-0.5)
    x, y = x.clone(), y.clone()
    x[0] = 0  # no direction
    x[1], y[1] = torch.tensor([1.0, 0.0, 0.0, 0.0]), torch.tensor([0.0, 2.0, 0.0, 0.0])  # just at the margin
    x[2] = y[2]
    yield "cosine_embedding_special", "cosine_embedding", (x, y), label, torch.nn.CosineEmbeddingLoss()
    yield "cosine_embedding_one", "cosine_embedding", (x[3], y[3]), torch.tensor(-1.0, dtype=torch.float64), torch.nn.CosineEmbeddingLoss()
