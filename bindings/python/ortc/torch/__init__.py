"""Compiled steps for modules of PyTorch, in place: the rest of a script stays as it is. And ONNX files that train as modules do.

    model = Net()
    ortc.torch.compile_(model)
    ...                                    # the loop as before
    print(ortc.torch.report(model))

    ortc.torch.export(model, (x,), "model.onnx")

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from ortc.torch import _entry_point
from ortc.torch._examine import Comparison
from ortc.torch._export_file import check, export
from ortc.torch._report import Report
from ortc.torch._trainer import Trainer
from ortc.torch._wrap import compile_, report, restore_

__all__ = ["Comparison", "Report", "Trainer", "check", "compile_", "export", "report", "restore_"]

_entry_point.publish()
