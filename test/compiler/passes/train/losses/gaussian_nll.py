"""Cases of gaussian_nll: torch.nn.GaussianNLLLoss.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch.nn.functional as F


def cases(draw):
    def make(**keys):
        return lambda x, variance, label: F.gaussian_nll_loss(x, label, variance, **keys)

    x, label, variance = draw(4, 3), draw(4, 3), draw(4, 3).abs() + 0.1
    yield "gaussian_nll", "gaussian_nll", (x, variance), label, make()
    yield "gaussian_nll_full", "gaussian_nll:full=1", (x, variance), label, make(full=True)
    small = variance.clone()
    small[0, 0], small[1, 1], small[2, 2] = 0.0, 0.05, 0.3  # below, and just at the least variance
    yield "gaussian_nll_eps", "gaussian_nll:eps=0.3", (x, small), label, make(eps=0.3)
    yield "gaussian_nll_last_axis", "gaussian_nll", (x, variance[:, :1]), label, make()
    yield "gaussian_nll_without_axis", "gaussian_nll", (x, variance[:, 0]), label, make()
    x, label, variance = draw(2, 3, 4), draw(2, 3, 4), draw(2, 1, 4).abs() + 0.1
    yield "gaussian_nll_inner_axis", "gaussian_nll", (x, variance), label, make()
