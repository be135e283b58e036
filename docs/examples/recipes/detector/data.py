"""Writes train.npz and test.npz: pictures of 32 x 32 with one to three discs, squares and crosses, and what a grid of 4 x 4 cells should say of them.

label.class has 1 where a cell has the centre of a shape, in the plane of its class. label.box has how far its left, upper, right and lower edge are from
the centre of the cell, over 8 pixels, and zeros where there is no shape; objects is 1 where there is one. Needs numpy.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import numpy as np

SIZE, CELL, CLASSES = 32, 8, 3
GRID = SIZE // CELL


def draw(picture, kind, x, y, radius, brightness):
    rows, columns = np.mgrid[0:SIZE, 0:SIZE] + 0.5
    dx, dy = np.abs(columns - x), np.abs(rows - y)
    inside = [dx**2 + dy**2 <= radius**2, np.maximum(dx, dy) <= radius, (np.maximum(dx, dy) <= radius) & (np.minimum(dx, dy) <= radius / 3)]
    picture[inside[kind]] = brightness


def sample(random):
    picture, placed = np.full((SIZE, SIZE), random.uniform(-0.5, 0)), []
    classes, boxes, objects = (np.zeros((n, GRID, GRID), np.float32) for n in (CLASSES, 4, 1))
    for _ in range(random.randint(1, 4)):
        kind, radius = random.randint(CLASSES), random.uniform(3.5, 6)
        x, y = random.uniform(radius, SIZE - radius, 2)
        column, row = int(x // CELL), int(y // CELL)
        if objects[0, row, column] or any(max(abs(x - u), abs(y - v)) < radius + r for u, v, r in placed):
            continue  # a cell has one shape, and shapes do not touch
        placed.append((x, y, radius))
        draw(picture, kind, x, y, radius, random.uniform(1, 2))
        u, v = (column + 0.5) * CELL, (row + 0.5) * CELL
        classes[kind, row, column] = objects[0, row, column] = 1
        boxes[:, row, column] = np.array([u - (x - radius), v - (y - radius), x + radius - u, y + radius - v]) / 8
    return picture + random.normal(0, 0.2, picture.shape), classes, boxes, objects


def write(path, count, seed):
    random = np.random.RandomState(seed)  # its numbers are the same in every version of numpy
    pictures, classes, boxes, objects = zip(*(sample(random) for _ in range(count)))
    arrays = {"pictures": np.array(pictures)[:, None], "objects": np.array(objects), "label.class": np.array(classes), "label.box": np.array(boxes)}
    np.savez_compressed(path, **{name: array.astype(np.float32) for name, array in arrays.items()})


if __name__ == "__main__":
    write("train.npz", 1024, 1)
    write("test.npz", 256, 2)
