"""Training an entry of test/zoo by gpu-run, and comparing what comes of it with PyTorch's numbers.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

The comparison is that of test/e2e/ZooTest.cpp: distances are relative to the largest magnitude of the golden array, at least the floor of
its kind, and tolerances stand in recipe.json.
"""
import json
import os
import struct

import arrays
import runner

PREDICT_TOLERANCE = 2e-4


def train(program, artifact, entry, optimizer, work, seconds, env=None):
    """Every array that training gives, by name, and what gpu-run says. `entry`: a folder with recipe.json and data.npz."""
    with open(os.path.join(entry, "recipe.json"), encoding="utf-8") as file:
        steps = json.load(file)["steps"]
    flags = runner.write_inputs(arrays.read_npz(os.path.join(entry, "data.npz")), work)
    outputs = {part: os.path.join(work, part) for part in ("gradients", "predict", "save")}
    actions = ["steps", str(steps), "save", outputs["save"]]
    if optimizer == "sgd":
        actions = ["gradients", outputs["gradients"], "reset", "predict", outputs["predict"], "reset", *actions]
    facts = runner.run(program, [artifact, *flags, *actions], timeout=seconds, env=env)
    losses = facts["losses"]
    found = {"loss": arrays.Array("F64", (len(losses),), struct.pack(f"<{len(losses)}d", *losses))}
    for part, path in outputs.items():
        if part in actions:
            with open(path, "rb") as file:
                found.update({f"{part}/{name}": item for name, item in arrays.parse_safetensors(file.read()).items()})
    return found, facts


def compare_golden(entry, optimizer, found):
    """How many arrays there are, the largest share of a tolerance that a distance takes, and what is beyond its tolerance."""
    with open(os.path.join(entry, "recipe.json"), encoding="utf-8") as file:
        recipe = json.load(file)
    golden = arrays.read_npz(os.path.join(entry, "golden.npz"))
    gradients = [arrays.largest(arrays.numbers(item)) for key, item in golden.items() if key.startswith("grad/")]
    kinds = {  # of golden arrays: (the part of `found`, floor)
        "sgd": {"grad": ("gradients", 1e-4 * max(gradients)), "param": ("save", 1e-6)},
        "adamw": {"adamw": ("save", 1e-6)},
    }[optimizer]
    pairs = [(f"loss/{optimizer}", "loss", 1e-3, recipe["tolerance"][f"loss/{optimizer}"])]
    if optimizer == "sgd":
        pairs.append(("predict", f"predict/{recipe['predict']}", 1e-6, PREDICT_TOLERANCE))
    for key in golden:
        kind, _, name = key.partition("/")
        if kind in kinds:
            part, floor = kinds[kind]
            pairs.append((key, f"{part}/{name}", floor, recipe["tolerance"][key]))
    worst, beyond = 0.0, []
    for key, name, floor, tolerance in pairs:
        if name not in found:
            beyond.append(f"{name} is missing")
            continue
        share = arrays.distance(arrays.numbers(golden[key]), arrays.numbers(found[name]), floor) / tolerance
        worst = max(worst, share)
        if share > 1:
            beyond.append(f"{key}: {share:.3g} of its tolerance")
    return len(pairs), worst, beyond


def compare_bits(wanted, found):
    """What differs between two sets of arrays, in a line; None where nothing does."""
    if set(wanted) != set(found):
        return "other tensors: " + ", ".join(sorted(set(wanted) ^ set(found))[:3])
    different = [(name, arrays.describe_difference(wanted[name], found[name])) for name in wanted]
    different = [f"{name}: {text}" for name, text in different if text]
    return f"{len(different)} of {len(wanted)} arrays differ, first {different[0]}" if different else None
