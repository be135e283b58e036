"""Writes pretrain.npz, and train.npz, valid.npz, test.npz and class_weight.npy of another task: letters in noise, pictures of 16 x 16.

There are few letters to learn from, and the last class is sixteen times as rare as the first one. The weight of a class is what makes all classes count
alike: the number of samples over the number of classes and the number of samples of the class. Needs numpy.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import numpy as np

DIGITS = [  # of 5 x 7 points, rows with bits from left to right
    "0E 11 13 15 19 11 0E", "04 0C 04 04 04 04 0E", "0E 11 01 02 04 08 1F", "1F 02 04 02 01 11 0E", "02 06 0A 12 1F 02 02",
    "1F 10 1E 01 01 11 0E", "06 08 10 1E 11 11 0E", "1F 01 02 04 08 08 08", "0E 11 11 0E 11 11 0E", "0E 11 11 0F 01 02 0C",
]  # fmt: skip
LETTERS = ["0E 11 11 1F 11 11 11", "1E 11 11 1E 11 11 1E", "0E 11 10 10 10 11 0E", "1C 12 11 11 11 12 1C", "1F 10 10 1E 10 10 1F"]  # A to E
COUNTS = [256, 128, 64, 32, 16]


def pictures(random, glyphs, labels):
    points = np.array([[[int(row, 16) >> (4 - column) & 1 for column in range(5)] for row in glyph.split()] for glyph in glyphs], np.float32)
    result = random.normal(0, 0.4, (len(labels), 1, 16, 16))
    for picture, label in zip(result, labels):
        row, column, stretch = random.randint(0, 3), random.randint(0, 6), random.randint(1, 3)
        drawn = np.repeat(points[label], stretch, 0)
        picture[0, row : row + len(drawn), column : column + 2 * 5] += random.uniform(0.8, 1.4) * np.repeat(drawn, 2, 1)[: 16 - row, : 16 - column]
    return result.astype(np.float32)


def write(path, glyphs, counts, seed):
    random = np.random.RandomState(seed)  # its numbers are the same in every version of numpy
    labels = random.permutation(np.repeat(np.arange(len(counts)), counts))
    np.savez(path, pictures=pictures(random, glyphs, labels), label=labels.astype(np.int64))


if __name__ == "__main__":
    write("pretrain.npz", DIGITS, [300] * 10, 1)
    write("train.npz", LETTERS, COUNTS, 2)
    write("valid.npz", LETTERS, [50] * 5, 3)
    write("test.npz", LETTERS, [100] * 5, 4)
    np.save("class_weight.npy", (sum(COUNTS) / (len(COUNTS) * np.array(COUNTS))).astype(np.float32))
