"""A model of the performance set in JAX: the step (forward, loss, backward, AdamW) under one jit, buffers donated.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: jax_worker.py FOLDER. A worker (see worker.py). XLA makes as many threads as the process may use cores.
"""

import argparse
import itertools
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

import jax_models
import worker

BATCHES = 4


def load_batches(folder):
    """[(inputs, label)]. Images turn to NHWC."""
    turn = lambda a: a.transpose(0, 2, 3, 1) if a.ndim == 4 else a.astype(np.int32) if a.dtype == np.int64 else a
    parts = {name: np.split(turn(a), BATCHES) for name, a in np.load(folder / "data.npz").items()}
    return [
        ({k: jnp.asarray(part[i]) for k, part in parts.items() if k != "label"}, jnp.asarray(parts["label"][i]))
        for i in range(BATCHES)
    ]


def load_weights(folder, forward, inputs):
    """(trained, running statistics), turned to the shapes that `forward` asks for."""
    seen = jax_models.Weights()
    jax.eval_shape(lambda inputs: forward(seen, {}, **inputs), inputs)
    given, values = np.load(folder / "weights.npz"), {}
    for name, (shape, turn) in seen.seen.items():
        value = given[name].transpose(turn) if turn else given[name]
        if value.shape != shape:
            raise ValueError(f"{name} is {value.shape}, wanted {shape}")
        values[name] = jnp.asarray(np.ascontiguousarray(value))
    running = {name: values.pop(name) for name in list(values) if "running_" in name}
    return values, running


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    jax.block_until_ready(jax.jit(lambda x: x @ x)(jnp.ones((8, 8))))
    facts = {"version": f"JAX {jax.__version__}", "base_mib": worker.reset_peak()}
    forward = jax_models.SET[folder.name]
    batches = load_batches(folder)
    trained, running = load_weights(folder, forward, batches[0][0])
    optimizer = optax.adamw(1e-3, weight_decay=0.01)
    moments = jax.jit(optimizer.init)(trained)

    def loss_of(trained, running, inputs, label):
        new = dict(running)
        logits = forward(jax_models.Weights({**trained, **running}), new, **inputs)
        return optax.softmax_cross_entropy_with_integer_labels(logits, label).mean(), new

    def train(trained, running, moments, inputs, label):
        (loss, running), gradients = jax.value_and_grad(loss_of, has_aux=True)(trained, running, inputs, label)
        updates, moments = optimizer.update(gradients, moments, trained)
        return optax.apply_updates(trained, updates), running, moments, loss

    started = time.perf_counter()
    compiled = jax.jit(train, donate_argnums=(0, 1, 2)).lower(trained, running, moments, *batches[0]).compile()
    seconds = time.perf_counter() - started
    turns, state = itertools.cycle(batches), [trained, running, moments]
    del trained, running, moments

    def step():
        *state[:], loss = compiled(*state, *next(turns))
        return loss.block_until_ready()

    worker.serve(step, seconds, **facts)


if __name__ == "__main__":
    main()
