"""Is what a GPU computes right: models of the zoo, their memory, and NVIDIA's compute-sanitizer.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import concurrent.futures
import gzip
import os
import re
import shutil
import subprocess
import tempfile

import arrays
import runner
import zoo

SANITIZED = ("lenet", "gpt2-tiny", "dlrm-tiny")
SANITIZER_TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
SANITIZER_SECONDS = 60  # that a run may take
SANITIZER_STATUS = 86  # what it is told to end with when it has found something
# Bytes of device memory. The driver rounds a session's one allocation up; code is loaded when an artifact is opened, and the graph of an
# entry is made with its first step. An H100 (driver 580) takes 2 MiB for up to 218 launches and 30 MiB for 994.
GRANULE = 2 << 20
MOST_FOR_CODE_AND_GRAPHS, MOST_FOR_LAUNCH = 4 << 20, 36 << 10
PROCESSES = 8  # that share the GPU: most of their time is the driver's, making code


def number_of(target):
    """sm_90a, whose code is for no other processor, has that of sm_90."""
    return int(target.removeprefix("sm_").rstrip("a"))


class Context:
    """A pack, the program built from it, the GPU, and the seconds that measuring a speed takes."""

    def __init__(self, pack, facts, program, device, report, measure):
        self.pack, self.facts, self.program, self.device, self.report, self.measure = pack, facts, program, device, report, measure

    def too_new(self, target):
        """Why the GPU cannot run code for a target, or None."""
        has, wanted = self.device["processor"], number_of(target)
        return f"this GPU is an sm_{has}" if wanted > has or (target.endswith("a") and wanted != has) else None

    def newest(self, rows):
        """The row of the newest target that the GPU runs, or None."""
        rows = [row for row in rows if not self.too_new(row["target"])]
        return max(rows, key=lambda row: (number_of(row["target"]), row["target"]), default=None)


def check_training(context, name, row):
    """One artifact, trained twice: against PyTorch's numbers, against the emulator's bits, and against itself."""
    entry, optimizer = context.pack / "zoo" / name, row["optimizer"]
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as work:
        artifact = runner.unpack(entry / row["artifact"], work)
        found, facts = zoo.train(context.program, artifact, entry, optimizer, work, context.report.left())
        again, _ = zoo.train(context.program, artifact, entry, optimizer, work, context.report.left())
    count, worst, beyond = zoo.compare_golden(entry, optimizer, found)
    wanted = arrays.parse_safetensors(gzip.decompress((entry / row["emulator"]).read_bytes()))
    bits, twice = zoo.compare_bits(wanted, found), zoo.compare_bits(found, again)
    text = [f"{count} arrays, worst {worst:.2f} of its tolerance"]
    text += [f"{len(beyond)} beyond their tolerance, first {beyond[0]}"] if beyond else []
    text += [f"not the emulator's bits: {bits}" if bits else "bits are the emulator's"]
    text += [f"a second run differs: {twice}"] if twice else []
    figures = {"images": row["images"], "arrays": count, "worst": worst, "beyond": beyond, "bits": bits, "twice": twice,
               "open_seconds": facts["open_seconds"]}
    return "FAILED" if beyond or bits or twice else "ok", "; ".join(text), figures


def check_zoo(context):
    with concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:
        for name, rows in context.facts["zoo"].items():
            for row in rows:
                check = f"{name} {row['optimizer']} {row['target']}"
                reason = context.too_new(row["target"])
                if reason:
                    context.report.add(check, "SKIPPED", reason)
                else:
                    pool.submit(context.report.attempt, check, 20, lambda name=name, row=row: check_training(context, name, row))


def check_memory(context):
    """What a session takes of the device, by the driver: one process at a time, as it counts everybody's memory."""
    session, code, count, beyond = 0, 0, 0, []
    for name, rows in context.facts["zoo"].items():
        row = context.newest([row for row in rows if row["optimizer"] == "adamw"])
        if not row:
            continue
        entry = context.pack / "zoo" / name
        with tempfile.TemporaryDirectory(prefix="gpu-check-") as work:
            flags = runner.write_inputs(arrays.read_npz(entry / "data.npz"), work)
            artifact = runner.unpack(entry / row["artifact"], work)
            facts = runner.run(context.program, [artifact, *flags, "steps", "3", "memory"], timeout=context.report.left())
        found = count_memory(facts)
        session, code, count = max(session, found["beside_regions"]), max(code, found["code_and_graphs"]), count + 1
        if is_beyond(found, row["launches"]):
            beyond.append(f"{name} {found}")
    if not count:
        return "SKIPPED", "no model of the pack runs here", {}
    text = f"{count} models, sessions at most {session / 2**20:.2f} MiB above their regions, code and graphs at most {code / 2**20:.2f} MiB"
    text += f"; beyond: {', '.join(beyond)}" if beyond else ""
    return "FAILED" if beyond else "ok", text, {"most_beside_regions": session, "most_for_code_and_graphs": code}


def count_memory(facts):
    """Bytes of device memory that a run took: a session's beside the artifact's regions, and for code and graphs."""
    session = facts["memory_created"] - facts["memory_opened"]
    return {"beside_regions": int(session - sum(facts["regions"].values())),
            "code_and_graphs": int(facts["memory_after"] - facts["memory_before"] - session)}


def is_beyond(found, launches):
    """Whether a session takes more than its regions, rounded up, or code and graphs more than they may for so many launches."""
    return found["beside_regions"] > GRANULE or found["code_and_graphs"] > max(MOST_FOR_CODE_AND_GRAPHS, MOST_FOR_LAUNCH * launches)


def find_sanitizer():
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")


def sanitize(context, sanitizer, name, tool, row):
    entry = context.pack / "zoo" / name
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as work:
        flags = runner.write_inputs(arrays.read_npz(entry / "data.npz"), work)
        artifact = runner.unpack(entry / row["artifact"], work)
        command = [sanitizer, "--tool", tool, "--error-exitcode", str(SANITIZER_STATUS), "--print-limit", "10",
                   *(["--leak-check", "full"] if tool == "memcheck" else []), context.program, artifact, *flags, "steps", "2"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SANITIZER_SECONDS)
        except subprocess.TimeoutExpired:
            return "SKIPPED", f"not done after {SANITIZER_SECONDS} s", {}
    output = done.stdout + done.stderr
    if "Device not supported" in output:
        return "SKIPPED", "compute-sanitizer does not support this device", {}
    said = [line.strip() for line in re.findall(r"^=+ (.*)$", output, re.MULTILINE)]
    summary = next((line for line in said if "SUMMARY" in line), "no summary")
    return "FAILED" if done.returncode else "ok", summary, {"said": said[:40]} if done.returncode else {}


def check_sanitizer(context):
    sanitizer, report = find_sanitizer(), context.report
    reason = "ORTC_CUDA_DRIVER names another driver than the GPU's" if os.environ.get("ORTC_CUDA_DRIVER") else None
    reason = reason or (None if sanitizer else "there is no compute-sanitizer here")
    if reason:
        report.add("compute-sanitizer", "SKIPPED", reason)
        return
    with concurrent.futures.ThreadPoolExecutor(len(SANITIZED) * len(SANITIZER_TOOLS)) as pool:
        for name in SANITIZED:
            row = context.newest([row for row in context.facts["zoo"].get(name, []) if row["optimizer"] == "adamw"])
            if not row:
                report.add(f"compute-sanitizer {name}", "SKIPPED", "the pack has no code of this model for this GPU")
                continue
            for tool in SANITIZER_TOOLS:
                pool.submit(report.attempt, f"{tool} {name}", SANITIZER_SECONDS,
                            lambda name=name, tool=tool, row=row: sanitize(context, sanitizer, name, tool, row))
