"""A model of the performance set in PyTorch: forward, loss, backward, AdamW. A worker (see worker.py).

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: torch_worker.py FOLDER --threads N [--mode eager|compile|whole|ortc-torch|ortc-trainer] [--layout contiguous|channels_last]
                       [--stock] [--autocast bf16]
eager: fused AdamW. compile: torch.compile of forward and loss, fused AdamW. whole: forward, backward and AdamW traced into
one graph, compiled with max_autotune. ortc-torch: ortc.torch.compile_, fused AdamW. ortc-trainer: ortc.torch.Trainer with
AdamW. --autocast: forward and loss of eager and compile with narrow products. --stock leaves denormals as they are; its
environment, too, is that of a user who tunes nothing. Compiled steps of ortc flush denormals by themselves; what PyTorch
does between them does as in eager.
"""

import argparse
import itertools
import json
import pathlib
import time

import numpy as np
import torch

import models
import worker

LEARNING_RATE, WEIGHT_DECAY, BETA1, BETA2, EPSILON = 1e-3, 0.01, 0.9, 0.999, 1e-8


def warm_up():
    """Brings the libraries in, so that what follows is the model's."""
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(144, 4)
    )
    optimizer = torch.optim.AdamW(module.parameters(), fused=True)
    module(torch.randn(2, 1, 8, 8)).sum().backward()
    optimizer.step()


def load(folder, layout):
    """The module with the weights of the ONNX file, and the batches [(inputs, label)], in the layout."""
    module = models.build(folder.name)
    module.load_state_dict({name: torch.from_numpy(value) for name, value in np.load(folder / "weights.npz").items()})
    arrays = {name: torch.from_numpy(value) for name, value in np.load(folder / "data.npz").items()}
    turn = lambda t: t.clone()
    if layout == "channels_last":
        module.to(memory_format=torch.channels_last)
        turn = lambda t: t.clone(memory_format=torch.channels_last if t.dim() == 4 else torch.contiguous_format)
    parts = {name: [turn(part) for part in value.chunk(models.BATCHES)] for name, value in arrays.items()}
    labels = parts.pop("label")
    return module, [(inputs, label) for *inputs, label in zip(*parts.values(), labels)]


def count_state(module):
    """Bytes of what stays between steps: trained parameters with two moments, the other tensors."""
    trained = sum(p.nbytes for p in module.parameters() if p.requires_grad)
    return 2 * trained + sum(t.nbytes for t in (*module.parameters(), *module.buffers()))


def make_optimizer(module):
    return torch.optim.AdamW(
        module.parameters(), lr=LEARNING_RATE, betas=(BETA1, BETA2), eps=EPSILON, weight_decay=WEIGHT_DECAY, fused=True
    )


def make_usual(module, loss, batches, compiled=False, narrow=False):
    optimizer = make_optimizer(module)

    def run(inputs, label):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=narrow):
            return loss(module(*inputs), label)

    run = torch.compile(run) if compiled else run
    turns = itertools.cycle(batches)

    def step():
        value = run(*next(turns))
        value.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return value.detach()

    return step


def make_whole(module, loss, batches):
    """The step as one graph, as JAX's jit would see it."""
    from torch.fx.experimental.proxy_tensor import make_fx

    parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
    first, second = ([torch.zeros_like(p) for p in parameters.values()] for _ in range(2))
    scales, count = (torch.zeros(()), torch.zeros(())), itertools.count(1)

    def train(parameters, buffers, first, second, scales, inputs, label):
        value = loss(torch.func.functional_call(module, (parameters, buffers), tuple(inputs)), label)
        gradients = torch.autograd.grad(value, list(parameters.values()))
        with torch.no_grad():
            for p, g, m, v in zip(parameters.values(), gradients, first, second):
                p.mul_(1 - LEARNING_RATE * WEIGHT_DECAY)
                m.lerp_(g, 1 - BETA1)
                v.mul_(BETA2).addcmul_(g, g, value=1 - BETA2)
                p.sub_(scales[0] * m / (v.sqrt() * scales[1] + EPSILON))
        return value.detach()

    graph = make_fx(train, tracing_mode="fake")(parameters, buffers, first, second, scales, *batches[0])
    run = torch.compile(graph, fullgraph=True, options={"max_autotune": True})
    module.requires_grad_(False)
    turns = itertools.cycle(batches)

    def step():
        t = next(count)
        scales[0].fill_(LEARNING_RATE / (1 - BETA1**t))
        scales[1].fill_((1 - BETA2**t) ** -0.5)
        return run(parameters, buffers, first, second, scales, *next(turns)).clone()

    return step


def make_ortc(module, loss, batches, threads):
    """The usual step, where forward and backward of the module are a compiled plan."""
    import ortc.torch

    ortc.torch.compile_(module, wait=True, fallback="error", threads=threads)
    return make_usual(module, loss, batches)


def make_trainer(module, loss, batches, threads):
    import ortc.torch

    trainer = ortc.torch.Trainer(module, loss, make_optimizer(module), threads=threads)
    turns = itertools.cycle(batches)

    def step():
        inputs, label = next(turns)
        return trainer.step(tuple(inputs), label)

    return step


OWN = {"ortc-torch": make_ortc, "ortc-trainer": make_trainer}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--mode", choices=["eager", "compile", "whole", *OWN], default="eager")
    parser.add_argument("--layout", choices=["contiguous", "channels_last"], default="contiguous")
    parser.add_argument("--stock", action="store_true")
    parser.add_argument("--autocast", choices=["bf16"])
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(not args.stock)
    warm_up()
    if args.mode in OWN:
        import ortc.torch  # noqa: F401
    base = worker.reset_peak()
    recipe = json.loads((args.folder / "recipe.json").read_text())
    loss = models.LOSSES[recipe["flags"][recipe["flags"].index("--loss") + 1]]
    module, batches = load(args.folder, args.layout)
    facts = {"version": f"PyTorch {torch.__version__}", "base_mib": base, "state_mib": round(count_state(module) / 2**20, 3)}
    started = time.perf_counter()
    if args.mode in OWN:
        step = OWN[args.mode](module, loss, batches, args.threads)
    elif args.mode == "whole":
        step = make_whole(module, loss, batches)
    else:
        step = make_usual(module, loss, batches, args.mode == "compile", args.autocast is not None)
    compiles = args.mode != "eager"
    worker.serve(step, time.perf_counter() - started if compiles else None, lazy=compiles, **facts)


if __name__ == "__main__":
    main()
