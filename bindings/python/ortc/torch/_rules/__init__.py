"""The table of ortc.torch.optim: what a step of each optimizer computes. Definitions are PyTorch's, or of the package named.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

A formula is Python of PyTorch, which is exported and compiled. Its tensors are the parameter, the gradient and the
states; its scalars are computed in float64 for every group and step, so that schedules compile nothing. What decides
which operations there are, such as whether there is a weight decay, is a switch: each combination is one artifact.
"""

from __future__ import annotations

from ortc.torch._rules import averages, blocks, gradients, moments, tensors
from ortc.torch._rules.rule import Rule

RULES: dict[str, Rule] = {
    "SGD": gradients.SGD,
    "Adam": moments.ADAM,
    "AdamW": moments.ADAM,
    "RMSprop": gradients.RMSPROP,
    "Adagrad": gradients.ADAGRAD,
    "Adadelta": gradients.ADADELTA,
    "Adamax": moments.ADAMAX,
    "NAdam": moments.NADAM,
    "RAdam": moments.RADAM,
    "Adafactor": tensors.ADAFACTOR,
    "Muon": tensors.MUON,
    "Lion": moments.LION,
    "Lamb": tensors.LAMB,
    "Lars": tensors.LARS,
    "SGDScheduleFree": averages.SGD_SCHEDULE_FREE,
    "AdamWScheduleFree": averages.ADAMW_SCHEDULE_FREE,
    "AdamW8bit": blocks.ADAMW8BIT,
    "Lion8bit": blocks.LION8BIT,
}
"""By the name of the class, whose arguments, groups and state are those of torch.optim or, where that has none, of
lion-pytorch (Lion), timm (Lamb, Lars), schedulefree and bitsandbytes (those of 8 bits)."""
