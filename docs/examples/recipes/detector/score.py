"""Prints how many shapes were found: score.py OUTPUTS.npz TEST.npz. Needs numpy.

A cell finds a shape where the probability of its best class is above one half. It is right where the shape that is there has that class, and the
intersection of both boxes is at least half of their union.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import sys

import numpy as np

outputs, test = np.load(sys.argv[1]), np.load(sys.argv[2])
logits, labels = outputs["classes"], test["label.class"]
found, there = logits.max(1) > 0, labels.max(1) > 0
boxes, meant = outputs["boxes"], test["label.box"]  # distances to the left, upper, right and lower edge
both = (np.minimum(boxes, meant)[:, :2] + np.minimum(boxes, meant)[:, 2:]).clip(0).prod(1)
area = lambda boxes: (boxes[:, :2] + boxes[:, 2:]).clip(0).prod(1)
union = area(boxes) + area(meant) - both
overlap = np.divide(both, union, out=np.zeros_like(both), where=union > 0)
right = found & there & (logits.argmax(1) == labels.argmax(1)) & (overlap >= 0.5)
print(f"of {there.sum()} shapes {right.sum()} found: recall {100 * right.sum() / there.sum():.1f} %, precision {100 * right.sum() / found.sum():.1f} %")
print(f"mean overlap of boxes {overlap[there].mean():.3f}")
