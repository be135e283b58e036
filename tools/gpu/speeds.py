"""How fast a GPU trains, beside PyTorch where it can be imported, and whether both get the same losses.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Goals: layer normalisation and AdamW at 80 % of the speed of copies, products at 60 % of PyTorch's (cuBLAS). Below them a check is `slow`.
"""
import json
import math
import queue
import subprocess
import tempfile
import threading
from pathlib import Path

import arrays
import checks
import runner
import workloads

STEPS = 20  # whose losses are compared
LOSS_TOLERANCE = 1e-4  # relative
COPY_BYTES = 1 << 30  # or a 16th of the device's memory
COPY_GOAL, PRODUCT_GOAL = 0.8, 0.6
KERNEL_STEPS, KERNEL_SECONDS = 5, 40  # whose launches are timed one by one; what that may take
OWN_SECONDS = 150  # that a model may take, reading and hashing half a GiB of weights included
TORCH_SECONDS = 150  # that a job may take: compiling a model is among them
HERE = Path(__file__).resolve().parent


class Torch:
    """torch_step.py as a process that answers job after job."""

    def __init__(self, python, device, jobs, folder, work):
        path = Path(work) / "jobs.json"
        path.write_text(json.dumps(jobs))
        self.answers, self.device = queue.Queue(), device
        with open(Path(work) / "torch.log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([python, HERE / "torch_step.py", path, device, folder], stdout=subprocess.PIPE,
                                            stderr=log, text=True)
        threading.Thread(target=self.read, args=[self.process.stdout], daemon=True).start()

    def read(self, output):
        for line in output:
            self.answers.put(json.loads(line))
        self.answers.put({"error": "PyTorch's process has ended"})

    def answer(self, seconds):
        """Facts of the next job; the process is stopped when it does not answer."""
        if self.process is None:
            return {"error": "PyTorch's process was stopped"}
        try:
            facts = self.answers.get(timeout=max(seconds, 1))
        except queue.Empty:
            self.close()
            facts = {"error": f"PyTorch has not answered within {max(seconds, 1):.0f} s"}
        return facts

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.process = None


def ask_torch(python, device):
    """The version of PyTorch and None, or None and why it cannot be asked."""
    code = "import sys, torch; print(torch.__version__, sys.argv[1] == 'cpu' or torch.cuda.is_available())"
    try:
        done = subprocess.run([python, "-c", code, device], capture_output=True, text=True, check=False, timeout=120)
    except subprocess.TimeoutExpired:
        return None, "importing torch takes more than 120 s"
    if done.returncode:
        return None, "torch cannot be imported"
    version, usable = done.stdout.split()
    return (version, None) if usable == "True" else (None, f"PyTorch {version} sees no GPU")


def write_workload(described, name, work):
    """Writes weights and inputs; the file of weights, the flags of gpu-run, and inputs as torch_step.py wants them."""
    weights, flags, inputs = f"{work}/weights.safetensors", [], []
    generator, parts = workloads.generator_of(name), []
    for item in described["tensors"]:
        count = math.prod(item["shape"])
        parts.append((item["name"], "F32", item["shape"], 4 * count, workloads.fill(generator, count, item["fill"])))
    arrays.write_safetensors(weights, parts)
    for number, item in enumerate(described["inputs"]):
        path = f"{work}/input-{number}"
        with open(path, "wb") as file:
            file.writelines(workloads.fill_input(workloads.generator_of(f"{name} {item['name']}"), item, slices_of(described)))
        flags += ["--input", f"{item['name']}={path}"]
        inputs.append({**item, "file": path})
    return weights, flags, inputs


def slices_of(described):
    """Products and norms take the same numbers again and again."""
    return workloads.SLICES if described["torch"]["kind"] == "train" else 1


def run_workload(context, name, work):
    """Measures ortc; what gpu-run says, and the jobs for PyTorch."""
    described = context.facts["speed"][name]
    folder, torch = context.pack / "speed" / name, described["torch"]
    row = context.newest(described["artifacts"])
    if not row:
        raise runner.Failure("the pack has no code for this GPU")
    weights, flags, inputs = write_workload(described, name, work)
    artifact, seconds = runner.unpack(folder / row["artifact"], work), str(context.measure)
    if torch["kind"] == "train":
        actions = ["load", weights, "steps", str(STEPS), "memory", "place", "time", "train", seconds]
        if torch["optimizer"]["kind"] == "AdamW":
            actions += ["time", "gradients", seconds, "time", "update", seconds]
    else:
        actions = ["place", "time", "predict", seconds]
    facts = runner.run(context.program, [artifact, *flags, *actions], timeout=min(OWN_SECONDS, context.report.left()))
    kernels = ["load", weights, "place", "kernels", "train"] if torch["kind"] == "train" else ["place", "kernels", "predict"]
    facts["kernels"], facts["kernels_missing"] = time_kernels(context, [artifact, *flags, *kernels, str(KERNEL_STEPS)])
    job = {**torch, "weights": weights, "inputs": inputs, "slices": slices_of(described), "steps": STEPS, "seconds": context.measure}
    variants = {"gpt2": ["eager", "compile"], "resnet18": ["eager", "channels_last", "compile"]}.get(torch.get("module"), [""])
    return {**facts, "images": row["images"], "launches": row["launches"]}, [{**job, "variant": variant} for variant in variants]


def time_kernels(context, command):
    """Rows of the launches of a step, each timed by itself, and why there are none."""
    if context.report.left() < KERNEL_SECONDS + 60:
        return [], "no time is left"
    try:
        facts = runner.run(context.program, command, timeout=KERNEL_SECONDS)
    except runner.Failure as failure:  # the step has been timed: that counts
        return [], str(failure)
    return next(rows for key, rows in facts.items() if key.startswith("kernels_")), None


def describe_kernels(facts):
    """Where most of a step goes."""
    rows = facts["kernels"]
    if not rows:
        return f"its kernels were not timed: {facts['kernels_missing']}"
    first = max(rows, key=lambda row: row["times"] * row["us"])
    return f"{sum(row['times'] * row['us'] for row in rows) / 1e3:.2f} ms in kernels, most in {first['kernel']}, {first['times']:g} x {first['us']:.1f} us"


def measure_apart(some, others):
    """The largest relative difference of two rows of losses; infinite where one is not finite."""
    if len(some) != len(others) or not all(map(math.isfinite, [*some, *others])):
        return math.inf
    return max(abs(a - b) / abs(b) for a, b in zip(some, others))


def judge_training(context, name, ours, theirs, copies):
    """Losses, memory, milliseconds a step, and the speed of the update where it could be measured."""
    torch = context.facts["speed"][name]["torch"]
    text, figures, status = [f"{ours['ms_train']:.2f} ms a step"], {"ms": ours["ms_train"], "losses": ours["losses"]}, "ok"
    for job, facts in theirs:
        if "error" in facts:
            text.append(f"PyTorch {job['variant']}: {facts['error']}")
            continue
        figures[f"torch_{job['variant']}"] = facts
        text.append(f"PyTorch {job['variant']} {facts['ms']:.2f} ms")
        if job["variant"] == "eager":
            apart = measure_apart(ours["losses"], facts["losses"])
            figures["losses_apart"] = apart
            text.append(f"{STEPS} losses within {apart:.1e} of PyTorch's")
            status = status if apart <= LOSS_TOLERANCE else "FAILED"
        elif job["variant"] == "channels_last" and "torch_eager" in figures:
            # How far only rounding takes the losses of this model.
            figures["torch_apart"] = measure_apart(facts["losses"], figures["torch_eager"]["losses"])
            text.append(f"whose other layout's are within {figures['torch_apart']:.1e}")
    figures["kernels"] = ours["kernels"]
    text.append(describe_kernels(ours))
    found = checks.count_memory(ours)
    figures.update(found)
    text.append(f"{sum(ours['regions'].values()) / 2**20:.0f} MiB of regions, {found['beside_regions'] / 2**20:.2f} MiB above them, "
                f"{found['code_and_graphs'] / 2**20:.2f} MiB for code and graphs")
    status = "FAILED" if checks.is_beyond(found, ours["launches"]) else status
    if "ms_update" in ours and copies:
        moved = 7 * 4 * sum(math.prod(item["shape"]) for item in context.facts["speed"][name]["tensors"])
        share = moved / ((ours["ms_update"] - ours["ms_gradients"]) * 1e-3) / copies
        figures.update(ms_gradients=ours["ms_gradients"], ms_update=ours["ms_update"], update_share_of_copies=share)
        text.append(f"{torch['optimizer']['kind']} at {share:.0%} of copies")
        status = "slow" if status == "ok" and share < COPY_GOAL else status
    return status, "; ".join(text), figures


def judge_kernel(context, name, ours, theirs, copies):
    """A product in FLOP/s beside PyTorch's, or a layer normalisation in bytes a second beside copies."""
    torch, facts = context.facts["speed"][name]["torch"], theirs[0][1] if theirs else {"error": "PyTorch was not asked"}
    seconds, figures, goal = ours["ms_predict"] * 1e-3, {"ms": ours["ms_predict"]}, None
    if torch["kind"] == "product":
        rate = 2 * torch["size"] ** 3 * torch["chain"] / seconds
        text = [f"{rate / 1e12:.1f} TFLOP/s"]
        if "ms" in facts:
            share, goal = facts["ms"] / ours["ms_predict"], PRODUCT_GOAL
            text.append(f"{share:.0%} of PyTorch's")
    else:
        rate, goal = 2 * 4 * torch["rows"] * torch["width"] / seconds, COPY_GOAL
        text = [f"{rate / 1e9:.0f} GB/s"]
        share = rate / copies if copies else None
        text.append(f"{share:.0%} of copies" if copies else "copies were not measured")
        if "ms" in facts:
            text.append(f"PyTorch's {facts['ms'] / ours['ms_predict']:.2f} times its time")
        goal = goal if copies else None
    if "error" in facts:
        text.append(facts["error"])
    else:
        figures["torch_ms"] = facts["ms"]
    figures.update(rate=rate, kernels=ours["kernels"], **({"share": share} if goal else {}))
    text.append(describe_kernels(ours))
    return "slow" if goal and share < goal else "ok", "; ".join(text), figures


def measure_copies(context, work):
    """Bytes a second that copies within the device read and write, by an artifact of any model; None without one."""
    for name, described in context.facts["speed"].items():
        row = context.newest(described["artifacts"]) if described["torch"]["kind"] != "train" else None
        if row:
            artifact = runner.unpack(context.pack / "speed" / name / row["artifact"], work)
            command = [artifact, "copy", str(min(COPY_BYTES, context.device["memory"] // 16))]
            return runner.run(context.program, command, timeout=60)["copy_bytes_per_second"]
    return None


def check_speeds(context, python, device):
    report, models = context.report, context.facts["speed"]
    for name in workloads.WORKLOADS:
        if name not in models:
            report.add(f"speed {name}", "SKIPPED", "it is not in the pack")
    if not models:
        return
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as work:
        copies, ours, jobs = None, {}, {}

        def measure():
            nonlocal copies
            copies = measure_copies(context, work)
            return ("ok", f"{copies / 1e9:.0f} GB/s", {"rate": copies}) if copies else ("SKIPPED", "no small model is in the pack", {})

        report.attempt("speed of copies", 30, measure)
        for name in models:
            if report.left() < 60:
                report.add(f"speed {name}", "SKIPPED", f"less than 60 s of {report.limit:.0f} s are left")
                continue
            folder = f"{work}/{name}"
            Path(folder).mkdir()
            try:
                ours[name], jobs[name] = run_workload(context, name, folder)
            except runner.Failure as failure:
                report.add(f"speed {name}", "FAILED", str(failure))
        compare_with_torch(context, python, device, ours, jobs, copies, work)


def compare_with_torch(context, python, device, ours, jobs, copies, work):
    """Asks PyTorch for the same work, all in one process, and adds the rows of all models."""
    report, torch = context.report, None
    version, reason = ask_torch(python, device) if ours else (None, "nothing was measured")
    if version:
        # The short jobs first, and those that compile last.
        todo = [(name, job) for name in ours for job in jobs[name]]
        todo.sort(key=lambda item: (item[1]["variant"] == "compile", item[1]["kind"] == "train"))
        torch = Torch(python, device, [job for _, job in todo], context.pack / "benchmarks/train-step", work)
        theirs = {name: [] for name in ours}
        for name, job in todo:
            theirs[name].append((job, torch.answer(min(TORCH_SECONDS, report.left()))))
        torch.close()
    else:
        report.add("PyTorch", "SKIPPED", reason)
        theirs = {name: [] for name in ours}
    for name, facts in ours.items():
        judge = judge_training if context.facts["speed"][name]["torch"]["kind"] == "train" else judge_kernel
        report.attempt(f"speed {name}", -math.inf, lambda: judge(context, name, facts, theirs[name], copies))
