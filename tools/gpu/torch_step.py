"""The same work in PyTorch, to stand beside ortc's: float32 without TF32, the same weights, data and optimizer.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: torch_step.py JOBS.json DEVICE FOLDER
JOBS.json is a list of jobs; each answers with one line of JSON, an `error` in it where the job failed. FOLDER holds models.py of
benchmarks/train-step. A job has a `kind`:
  train       `steps` losses from the `weights` and `inputs` in files, then `ms` of a step whose inputs are on the device. `variant`:
              eager, channels_last (eager, in that memory format) or compile
  product     `ms` of `chain` products of two square matrices of `size`, one after the other
  layer-norm  `ms` of a layer normalisation of `rows` times `width`
"""
import itertools
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F

import arrays

TYPES = {"F32": torch.float32, "I64": torch.int64}


def tensor_of(data, dtype, shape, device):
    return torch.frombuffer(bytearray(data), dtype=TYPES[dtype]).reshape(shape).to(device)


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def measure(step, device, seconds):
    """Milliseconds a step, as gpu-run measures: the median of groups of steps that are waited for once, after two groups."""

    def run_group(steps):
        started = time.perf_counter()
        for _ in range(steps):
            step()
        wait(device)
        return time.perf_counter() - started

    run_group(1)
    steps = max(1, min(10000, int(0.1 / max(run_group(3) / 3, 1e-9))))
    times, started = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - started < seconds:
        times.append(run_group(steps) * 1e3 / steps)
    return statistics.median(times)


def build(job):
    if job["module"] == "resnet18":
        import torchvision

        return torchvision.models.resnet18(weights=None, **job["arguments"])
    import models

    return models.GPT2(**job["arguments"])


def load(module, path):
    with open(path, "rb") as file:
        weights = arrays.parse_safetensors(file.read())
    state = {name: tensor_of(item.data, item.dtype, item.shape, "cpu") for name, item in weights.items()}
    left = module.load_state_dict(state, strict=False)
    missing = [name for name in left.missing_keys if not name.endswith("num_batches_tracked")]
    if missing or left.unexpected_keys:
        raise ValueError(f"weights do not fit: missing {missing}, not known {left.unexpected_keys}")


def make_batches(job, device, layout):
    """[(inputs, label)], one of every slice."""
    parts = {}
    for item in job["inputs"]:
        with open(item["file"], "rb") as file:
            whole = tensor_of(file.read(), item["dtype"], [job["slices"], *item["shape"]], device)
        turn = lambda t: t.contiguous(memory_format=layout) if t.dim() == 4 else t
        parts[item["name"]] = [turn(part) for part in whole]
    labels = parts.pop("label")
    return [(inputs, label) for *inputs, label in zip(*parts.values(), labels)]


def train(job, device):
    layout = torch.channels_last if job["variant"] == "channels_last" else torch.contiguous_format
    module = build(job).train()
    load(module, job["weights"])
    module = module.to(device, memory_format=layout)
    batches = make_batches(job, device, layout)
    options = dict(job["optimizer"])
    optimizer = getattr(torch.optim, options.pop("kind"))(module.parameters(), fused=True, **options)
    forward = lambda inputs, label: F.cross_entropy(module(*inputs), label)
    started = time.perf_counter()
    forward = torch.compile(forward) if job["variant"] == "compile" else forward

    def step(inputs, label):
        loss = forward(inputs, label)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    turns = itertools.cycle(batches)
    losses = [step(*next(turns)).item()]
    first = time.perf_counter() - started
    losses += [step(*next(turns)).item() for _ in range(job["steps"] - 1)]
    facts = {"losses": losses, "first_step_seconds": first, "ms": measure(lambda: step(*batches[0]), device, job["seconds"])}
    if device == "cuda":
        facts["memory_bytes"] = torch.cuda.max_memory_allocated()
    return facts


def product(job, device):
    x, w = (torch.randn(job["size"], job["size"], device=device) for _ in range(2))

    def step():
        for _ in range(job["chain"]):
            torch.matmul(x, w)

    return {"ms": measure(step, device, job["seconds"])}


def layer_norm(job, device):
    x = torch.randn(job["rows"], job["width"], device=device)
    scale, bias = torch.ones(job["width"], device=device), torch.zeros(job["width"], device=device)
    return {"ms": measure(lambda: F.layer_norm(x, scale.shape, scale, bias), device, job["seconds"])}


def main():
    jobs, device, folder = sys.argv[1:]
    sys.path.append(folder)
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    with open(jobs, encoding="utf-8") as file:
        todo = json.load(file)
    for job in todo:
        try:
            if device == "cuda":
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
            with torch.set_grad_enabled(job["kind"] == "train"):
                facts = {"train": train, "product": product, "layer-norm": layer_norm}[job["kind"]](job, device)
        except Exception as error:  # of any library: the other jobs go on, and this one says why
            facts = {"error": f"{type(error).__name__}: {error}".split("\n")[0]}
        print(json.dumps({"torch": torch.__version__, **facts}), flush=True)


if __name__ == "__main__":
    main()
