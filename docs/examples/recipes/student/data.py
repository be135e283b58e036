"""Writes teacher.npz, train.npz and test.npz: digits of 5 x 7 points, moved and drawn in noise into pictures of 12 x 12.

The teacher learns from 4,096 pictures. The student has 1,536, and two labels of five are drawn at random. Needs numpy.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import numpy as np

ROWS = [  # of 0, 1, ... 9, bits from left to right
    "0E 11 13 15 19 11 0E", "04 0C 04 04 04 04 0E", "0E 11 01 02 04 08 1F", "1F 02 04 02 01 11 0E", "02 06 0A 12 1F 02 02",
    "1F 10 1E 01 01 11 0E", "06 08 10 1E 11 11 0E", "1F 01 02 04 08 08 08", "0E 11 11 0E 11 11 0E", "0E 11 11 0F 01 02 0C",
]  # fmt: skip
DIGITS = np.array([[[int(row, 16) >> (4 - column) & 1 for column in range(5)] for row in digit.split()] for digit in ROWS], np.float32)


def pictures(random, count):
    labels = random.randint(0, 10, count)
    result = random.normal(0, 0.3, (count, 1, 12, 12))
    for picture, label in zip(result, labels):
        row, column = random.randint(1, 5), random.randint(2, 6)
        picture[0, row : row + 7, column : column + 5] += random.uniform(0.8, 1.4) * DIGITS[label]
    return result.astype(np.float32), labels.astype(np.int64)


def write(path, count, seed, wrong=0.0):
    random = np.random.RandomState(seed)  # its numbers are the same in every version of numpy
    images, labels = pictures(random, count)
    others = np.where(random.uniform(size=count) < wrong, random.randint(0, 10, count), labels)
    np.savez(path, pictures=images, label=others.astype(np.int64))


if __name__ == "__main__":
    write("teacher.npz", 4096, 1)
    write("train.npz", 1536, 2, wrong=0.4)
    write("test.npz", 1024, 3)
