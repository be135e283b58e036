"""Cases of lamb: timm.optim.Lamb, whose clipping is off.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import importlib
import importlib.util
import sys
import types

package = sys.modules["timm_optim"] = types.ModuleType("timm_optim")  # timm itself imports what this does not need
package.__path__ = [importlib.util.find_spec("timm").submodule_search_locations[0] + "/optim"]
Lamb = importlib.import_module("timm_optim.lamb").Lamb


def cases():
    make = lambda **given: lambda values: Lamb(values, **given)
    yield "lamb", "lamb", make(max_grad_norm=None)
    yield "lamb_adapt", "lamb:lr=0.01,weight_decay=0,always_adapt=1,trust_clip=1,beta2=0.9,epsilon=1e-3", make(lr=0.01, weight_decay=0, always_adapt=True, trust_clip=True, betas=(0.9, 0.9), eps=1e-3, max_grad_norm=None)
    yield "lamb_plain", "lamb:lr=0.01,weight_decay=0", make(lr=0.01, weight_decay=0, max_grad_norm=None)
    yield "lamb_sums", "lamb:lr=0.01,grad_averaging=0", make(lr=0.01, grad_averaging=False, max_grad_norm=None)
    groups = lambda values: Lamb([{"params": values[:1] + values[2:]}, {"params": values[1:2], "lr": 0.02, "betas": (0.8, 0.999), "weight_decay": 0}], lr=0.01, weight_decay=0.05, max_grad_norm=None)
    yield "lamb_all", "lamb:lr=0.01,weight_decay=0.05", groups, {"groups": ".*bias:lr_scale=2,beta1=0.8,weight_decay=0", "clip_norm": 1.5}


def zoo():
    return ("lr=0.01,epsilon=1e-3", "weight_decay=0,lr=0.005",
            Lamb, dict(lr=0.01, eps=1e-3, max_grad_norm=None), dict(weight_decay=0, lr=0.005))
