"""Cases of info_nce: the cross entropy of cosines between all predictions and all labels.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch
from torch.nn.functional import cross_entropy, normalize


def info_nce(temperature=0.1, reduction="mean"):
    return lambda x, y: cross_entropy(normalize(x) @ normalize(y).T / temperature, torch.arange(len(x)), reduction=reduction)


def cases(draw):
    x, y = draw(5, 4), draw(5, 4)
    y[1] = 3 * x[1]  # the same direction
    y[2] = y[3]  # two equal labels
    yield "info_nce", "info_nce", x, y, info_nce()
    yield "info_nce_sum", "info_nce:temperature=0.5,reduction=sum", x, y, info_nce(0.5, "sum")
    yield "info_nce_one", "info_nce", draw(1, 4), draw(1, 4), info_nce()  # nothing to tell apart
    flat = y.clone()
    flat[4] = 0  # a label without a direction
    yield "info_nce_zero", "info_nce", x, flat, info_nce()
