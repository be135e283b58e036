"""Cases of poisson_nll: torch.nn.PoissonNLLLoss.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases(draw):
    x, y = draw(3, 5), draw(3, 5).abs().round()
    x[0], y[0] = torch.tensor([0.0, 1.0, -80.0, 3.0, -1.0]), torch.tensor([0.0, 1.0, 0.0, 2.0, 7.0])  # counts from 1 on change the formula
    loss = torch.nn.PoissonNLLLoss
    yield "poisson_nll", "poisson_nll", x, y, loss()
    yield "poisson_nll_full", "poisson_nll:full=1", x, y, loss(full=True)
    rates = x.abs()  # one of them zero
    yield "poisson_nll_rates", "poisson_nll:log_input=0", rates, y, loss(log_input=False)
    yield "poisson_nll_eps", "poisson_nll:log_input=0,eps=0.001,full=1,reduction=sum", rates, y, loss(False, True, eps=1e-3, reduction="sum")
