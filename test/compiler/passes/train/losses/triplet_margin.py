"""Cases of triplet_margin: torch.nn.TripletMarginLoss.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases(draw):
    make = torch.nn.TripletMarginLoss
    x = draw(6, 4), draw(6, 4), draw(6, 4)
    yield "triplet_margin", "triplet_margin", x, None, make()
    yield "triplet_margin_swap", "triplet_margin:margin=2.5,swap=1", x, None, make(margin=2.5, swap=True)
    for p in (1.0, 1.5, 3.0, 0.5):
        name = f"triplet_margin_p{p:g}".replace(".", "_")
        yield name, f"triplet_margin:p={p:g},margin=3", x, None, make(margin=3, p=p)
    anchor, positive, negative = (each.clone() for each in x)
    positive[0] = anchor[0]  # no distance, so without eps no gradient
    negative[1] = anchor[1]
    negative[2] = positive[2]  # just at the hinge with a margin of 0, and beyond it with one
    negative[3, :], anchor[3, :], positive[3, :] = 0, torch.tensor([1.0, 0, 0, 0]), torch.tensor([0.0, 1.0, 0, 0])  # swap has a tie
    anchor[4], positive[4], negative[4] = torch.zeros(4), torch.tensor([3.0, 4.0, 0, 0]), torch.tensor([6.0, 0, 0, 0])  # 5 + 1 - 6: just at the hinge
    special = anchor, positive, negative
    yield "triplet_margin_special", "triplet_margin:eps=0", special, None, make(eps=0)
    yield "triplet_margin_special_swap", "triplet_margin:eps=0,swap=1", special, None, make(eps=0, swap=True)
    yield "triplet_margin_special_p1", "triplet_margin:eps=0,p=1,swap=1", special, None, make(eps=0, p=1.0, swap=True)
    yield "triplet_margin_special_p3", "triplet_margin:eps=0,p=3", special, None, make(eps=0, p=3.0)
    yield "triplet_margin_tokens", "triplet_margin", tuple(draw(2, 3, 4) for _ in range(3)), None, make()
