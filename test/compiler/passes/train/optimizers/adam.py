"""Cases of adam: torch.optim.Adam; with epsilon_hat torch.optim.SparseAdam, to which all gradients are sparse.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


class Hat(torch.optim.SparseAdam):
    def step(self):
        for group in self.param_groups:
            for each in group["params"]:
                places = torch.ones_like(each.grad).nonzero().T  # zeros, too
                each.grad = torch.sparse_coo_tensor(places, each.grad.flatten(), each.shape)
        super().step()


def cases():
    adam = lambda **given: lambda values: torch.optim.Adam(values, **given)
    yield "adam", "adam", adam()
    yield "adam_amsgrad", "adam:lr=0.01,amsgrad=1,weight_decay=0.1", adam(lr=0.01, amsgrad=True, weight_decay=0.1)
    yield "adam_maximize", "adam:lr=0.01,maximize=1,epsilon=1e-3", adam(lr=0.01, maximize=True, eps=1e-3)
    yield "adam_hat", "adam:lr=0.01,epsilon=1e-2,epsilon_hat=1", lambda values: Hat(values, lr=0.01, eps=1e-2)
    groups = lambda values: torch.optim.Adam([{"params": values[:1] + values[2:]},
                                              {"params": values[1:2], "lr": 0.02, "betas": (0.8, 0.999), "amsgrad": True}], lr=0.01, weight_decay=0.01)
    yield "adam_all", "adam:lr=0.01,weight_decay=0.01", groups, {"groups": ".*bias:lr_scale=2,beta1=0.8,amsgrad=1", "clip_norm": 1.5}


def zoo():
    return "lr=0.01,amsgrad=1,epsilon=1e-4", "beta1=0.8", torch.optim.Adam, dict(lr=0.01, amsgrad=True, eps=1e-4), dict(betas=(0.8, 0.999))
