"""Cases of muon: torch.optim.Muon, in float64 where it rounds products to bfloat16; other tensors than matrices have adamw.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch
import torch.optim._muon


class Wide:
    """torch, with another type for bfloat16."""

    bfloat16 = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


torch.optim._muon.torch = Wide()
OTHERS = ".*bias:optimizer=adamw;conv.*:optimizer=adamw"


def cases():
    def make(**given):
        return lambda values: [torch.optim.Muon([values[0], values[3]], **given), torch.optim.AdamW([values[1], values[2]])]

    yield "muon", "muon", make(), {"groups": OTHERS}
    yield ("muon_match", "muon:lr=0.02,weight_decay=0,momentum=0.8,nesterov=0,adjust_lr_fn=match_rms_adamw",
           make(lr=0.02, weight_decay=0, momentum=0.8, nesterov=False, adjust_lr_fn="match_rms_adamw"), {"groups": OTHERS})
    yield ("muon_steps", "muon:lr=0.01,ns_steps=3,ns_a=3,ns_b=-4,ns_c=1.5,epsilon=0.1,adjust_lr_fn=spectral_unclamped",
           make(lr=0.01, ns_steps=3, ns_coefficients=(3, -4, 1.5), eps=0.1, adjust_lr_fn="spectral_unclamped"), {"groups": OTHERS})
    groups = lambda values: [torch.optim.Muon([{"params": values[:1]}, {"params": values[3:], "lr": 0.04, "momentum": 0.9}], lr=0.02, weight_decay=0.01),
                             torch.optim.SGD([values[1], values[2]], lr=0.05)]
    yield ("muon_all", "muon:lr=0.02,weight_decay=0.01", groups,
           {"groups": ".*bias|conv.*:optimizer=sgd,lr=0.05;in.*:lr_scale=2,momentum=0.9", "clip_norm": 1.5})


def zoo():
    return "lr=0.02", "optimizer=adamw,lr=0.01,epsilon=1e-3", torch.optim.Muon, dict(lr=0.02), dict(lr=0.01, eps=1e-3)
