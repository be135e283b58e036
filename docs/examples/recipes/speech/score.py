"""Prints the share of syllables that are wrong: score.py OUTPUTS.npz TEST.npz. Needs numpy.

The answer is the best class of every frame, without repetitions and blanks. Wrong are the fewest insertions, deletions and changes that make
the label of it.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import sys

import numpy as np


def decode(classes):
    return [c for i, c in enumerate(classes) if c != 0 and (i == 0 or c != classes[i - 1])]


def distance(said, label):
    row = list(range(len(label) + 1))
    for i, one in enumerate(said, 1):
        above, row = row, [i]
        for j, other in enumerate(label, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (one != other)))
    return row[-1]


outputs, test = np.load(sys.argv[1]), np.load(sys.argv[2])
best = outputs["log_probabilities"].argmax(2)  # [frames, samples]
wrong = 0
for i, frames in enumerate(test["input_lengths"]):
    wrong += distance(decode(best[:frames, i].tolist()), test["label"][i, : test["target_lengths"][i]].tolist())
print(f"syllable error rate {100 * wrong / test['target_lengths'].sum():.1f} % ({wrong} of {test['target_lengths'].sum()})")
