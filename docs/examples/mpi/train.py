#!/usr/bin/env python3
"""Trains one model in several processes that add up their gradients with MPI, as train.c does, and with its bits:

    mpirun -np 2 train.py ARTIFACT SAMPLES STEPS OUT

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

ARTIFACT is compiled with gradients=True and bind="gradients", for the batch of one process. SAMPLES: records of 64 floats
(pixels) and an int64 (label), of which every process takes its part. Rank R writes the checkpoint OUT.R.
"""
import sys

import numpy as np
import ortc
from mpi4py import MPI


def bind_gradients(session):
    """One array for the gradients of all parameters, which every gradients step writes and every update step reads."""
    shapes = {name: session.artifact.tensors[name].shape for name in session.parameters}
    flat = np.empty(sum(int(np.prod(shape)) for shape in shapes.values()), np.float32)
    parts = np.split(flat, np.cumsum([int(np.prod(shape)) for shape in shapes.values()])[:-1])
    session.bind(**{f"{name}.gradient": part.reshape(shapes[name]) for name, part in zip(shapes, parts)})
    return flat


def main():
    world = MPI.COMM_WORLD
    path, samples, steps, out = sys.argv[1:]
    session = ortc.Session(path, threads=1)
    gradients = bind_gradients(session)
    if "random.seed" in session.scalars:  # other masks than the others
        session["random.seed"] = world.rank

    # All begin with the weights of the first one, whatever it has loaded.
    weights = session.read_parameters(trainable=False)
    world.Bcast(weights)
    session.write_parameters(weights, trainable=False)

    records = np.fromfile(samples, np.dtype([("pixels", np.float32, 64), ("label", np.int64)]))
    batch = session.artifact.tensors["label"].shape[0]
    for step in range(int(steps)):
        part = records[((step * world.size + world.rank) * batch + np.arange(batch)) % len(records)]
        loss = session.gradients_step(pixels=part["pixels"], label=part["label"])
        world.Allreduce(MPI.IN_PLACE, gradients)
        gradients /= np.float32(world.size)  # the mean over all samples, where every process has as many
        session.update_step()
        loss = world.allreduce(loss)
        if world.rank == 0:
            print(f"step {step + 1} loss {loss / world.size:.9g}")
    session.save(f"{out}.{world.rank}")


if __name__ == "__main__":
    main()
