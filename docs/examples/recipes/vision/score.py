"""Prints how many letters are read right: score.py OUTPUTS.npz TEST.npz. Needs numpy.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import sys

import numpy as np

logits, labels = np.load(sys.argv[1])["logits"], np.load(sys.argv[2])["label"]
right = logits.argmax(1) == labels
for letter in range(5):
    print(f"{'ABCDE'[letter]}: {100 * right[labels == letter].mean():.0f} % of {(labels == letter).sum()}")
print(f"all: {100 * right.mean():.1f} %")
