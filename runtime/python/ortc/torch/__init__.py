"""Compiled steps for modules of PyTorch, in place: the rest of a script stays as it is.

    model = Net()
    ortc.torch.compile_(model)
    ...                                    # the loop as before
    print(ortc.torch.report(model))

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from ortc.torch import _entry_point
from ortc.torch._report import Report
from ortc.torch._trainer import Trainer
from ortc.torch._wrap import compile_, report, restore_

__all__ = ["Report", "Trainer", "compile_", "report", "restore_"]

_entry_point.publish()
