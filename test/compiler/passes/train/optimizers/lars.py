"""Cases of lars: timm.optim.Lars.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import importlib
import importlib.util
import sys
import types

package = sys.modules["timm_optim"] = types.ModuleType("timm_optim")  # timm itself imports what this does not need
package.__path__ = [importlib.util.find_spec("timm").submodule_search_locations[0] + "/optim"]
Lars = importlib.import_module("timm_optim.lars").Lars


def cases():
    make = lambda **given: lambda values: Lars(values, **given)
    yield "lars", "lars", make()
    yield "lars_adapt", "lars:lr=0.5,always_adapt=1,trust_coeff=0.01,momentum=0.9", make(lr=0.5, always_adapt=True, trust_coeff=0.01, momentum=0.9)
    yield "lars_clip", "lars:lr=0.5,weight_decay=0.1,trust_coeff=2,trust_clip=1,momentum=0.9,nesterov=1", make(lr=0.5, weight_decay=0.1, trust_coeff=2, trust_clip=True, momentum=0.9, nesterov=True)
    groups = lambda values: Lars([{"params": values[:1] + values[2:]}, {"params": values[1:2], "lr": 0.02, "weight_decay": 0}], lr=0.5, momentum=0.9, dampening=0.2, weight_decay=0.05)
    yield "lars_all", "lars:lr=0.5,momentum=0.9,dampening=0.2,weight_decay=0.05", groups, {"groups": ".*bias:lr=0.02,weight_decay=0", "clip_norm": 1.5}


def zoo():
    return ("lr=1,momentum=0.9,weight_decay=0.01,trust_coeff=0.01", "weight_decay=0,lr=0.01",
            Lars, dict(lr=1, momentum=0.9, weight_decay=0.01, trust_coeff=0.01), dict(weight_decay=0, lr=0.01))
