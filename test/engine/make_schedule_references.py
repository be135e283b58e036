#!/usr/bin/env python3
"""Writes data/schedules.json: rates by torch.optim.lr_scheduler and transformers, in float64.

usage: make_schedule_references.py     (from anywhere, with torch and transformers; the same bytes every time)

A schedule of transformers has a rate of 0 in its first step, and its warm-up reaches the whole rate one step after the last. Ours leave that
step out: with a warm-up, step s is their step s + 1 of a training that is one step longer. Without one, steps are the same.
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import pathlib

import torch
import transformers
from torch.optim import lr_scheduler as torch_schedules

BASE = 0.3


def rates(make, steps, skip=0):
    """Of `steps` steps; of some schedulers get_lr() multiplies, so that every step is taken."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=BASE)
    scheduler = make(optimizer)
    found = []
    for _ in range(steps + skip):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found[skip:]


def theirs(make, warmup, steps, **more):
    """transformers: `make` takes the optimizer, the warm-up and, where it has one, the total."""
    shift = 1 if warmup else 0
    more = {key: value + shift if key == "num_training_steps" else value for key, value in more.items()}
    return rates(lambda optimizer: make(optimizer, num_warmup_steps=warmup, **more), steps, shift)


def one_cycle(total, **more):
    """Past the total, torch raises: ours stays where it is."""
    found = rates(lambda o: torch_schedules.OneCycleLR(o, max_lr=BASE, total_steps=total, **more), total - 1)
    last = BASE / more.get("div_factor", 25) / more.get("final_div_factor", 1e4)
    return found + [last] * 4


def cases():
    t = torch_schedules
    yield "constant", rates(lambda o: t.ConstantLR(o, factor=1.0), 9)
    yield "constant:warmup=5", theirs(transformers.get_constant_schedule_with_warmup, 5, 12)
    yield "linear:total=17", theirs(transformers.get_linear_schedule_with_warmup, 0, 22, num_training_steps=17)
    yield "linear:warmup=7,total=23", theirs(transformers.get_linear_schedule_with_warmup, 7, 30, num_training_steps=23)
    yield "linear:min=0.03,total=13", rates(lambda o: t.LinearLR(o, start_factor=1.0, end_factor=0.1, total_iters=13), 20)
    yield "step:step_size=7", rates(lambda o: t.StepLR(o, step_size=7), 60)
    yield "step:step_size=49,gamma=0.87", rates(lambda o: t.StepLR(o, step_size=49, gamma=0.87), 300)
    yield "multistep:milestones=3/8/20", rates(lambda o: t.MultiStepLR(o, milestones=[3, 8, 20]), 30)
    yield "multistep:milestones=5/6,gamma=0.3", rates(lambda o: t.MultiStepLR(o, milestones=[5, 6], gamma=0.3), 12)
    yield "exponential:gamma=0.97", rates(lambda o: t.ExponentialLR(o, gamma=0.97), 200)
    yield "polynomial:total=15", rates(lambda o: t.PolynomialLR(o, total_iters=15), 20)
    yield "polynomial:power=2.5,total=31", rates(lambda o: t.PolynomialLR(o, total_iters=31, power=2.5), 40)
    yield ("polynomial:warmup=4,power=0.7,min=0.001,total=21", theirs(
        transformers.get_polynomial_decay_schedule_with_warmup, 4, 30, num_training_steps=21, lr_end=0.001, power=0.7))
    yield "cosine:total=19", theirs(transformers.get_cosine_schedule_with_warmup, 0, 20, num_training_steps=19)
    yield "cosine:warmup=5,total=33", theirs(transformers.get_cosine_schedule_with_warmup, 5, 34, num_training_steps=33)
    yield "cosine:min=0.02,total=12", rates(lambda o: t.CosineAnnealingLR(o, T_max=12, eta_min=0.02), 13)
    yield ("cosine:warmup=6,min=0.06,total=30", theirs(
        transformers.get_cosine_with_min_lr_schedule_with_warmup, 6, 30, num_training_steps=30, min_lr_rate=0.2))
    yield "cosine_restarts:period=7", rates(lambda o: t.CosineAnnealingWarmRestarts(o, T_0=7), 60)
    yield ("cosine_restarts:period=5,mult=2,min=0.01",
           rates(lambda o: t.CosineAnnealingWarmRestarts(o, T_0=5, T_mult=2, eta_min=0.01), 100))
    yield "one_cycle:total=40", one_cycle(40)
    yield ("one_cycle:pct_start=0.25,div_factor=10,final_div_factor=100,anneal=linear,total=30",
           one_cycle(30, pct_start=0.25, div_factor=10.0, final_div_factor=100.0, anneal_strategy="linear"))
    yield "inverse_sqrt:warmup=8", theirs(transformers.get_inverse_sqrt_schedule, 8, 60)
    yield "inverse_sqrt:warmup=4,timescale=100", theirs(transformers.get_inverse_sqrt_schedule, 4, 40, timescale=100)
    yield "inverse_sqrt", theirs(transformers.get_inverse_sqrt_schedule, 0, 30, timescale=10000)
    for anneal, theirs_name in (("linear", "linear"), ("cosine", "cosine"), ("sqrt", "1-sqrt")):
        yield (f"wsd:warmup=5,decay=9,anneal={anneal},total=34",
               theirs(transformers.get_wsd_schedule, 5, 40, num_training_steps=34, num_decay_steps=9, decay_type=theirs_name))
    yield ("wsd:decay=6,total=20", theirs(transformers.get_wsd_schedule, 0, 24, num_training_steps=20, num_decay_steps=6,
                                          decay_type="linear"))


if __name__ == "__main__":
    lines = [json.dumps({"schedule": spec, "base": BASE, "rates": found}) for spec, found in cases()]
    path = pathlib.Path(__file__).resolve().parent / "data" / "schedules.json"
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")
