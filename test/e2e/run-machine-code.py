#!/usr/bin/env python3
"""Reads the machine code of large models for NVIDIA's processors: run-machine-code.py ORTC ROOT [TARGET ...].

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Kernels spill next to nothing and have no other local memory, the assembler warns of nothing (C75xx: products that wait for each other), every large
product multiplies on tensor cores, and a share of its main loop are such instructions. The main loop is the one that multiplies most. The
shares are a little below what ptxas 13 makes, to be raised with it. Exit status 77 without ptxas and nvdisasm.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ORTC, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
sys.path.insert(0, str(ROOT / "tools/gpu"))
import workloads
from predict import artifact, sass

TARGETS = sys.argv[3:] or ["sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]
# Of instructions of the main loop, at least: of contractions, of convolutions, and of convolutions whose channels fill no access.
SHARES = {"f32": {"dot": 0.23, "conv": 0.19, "odd": 0.15}, "bf16": {"dot": 0.20, "conv": 0.14, "odd": 0.045}}
# Bytes of a thread at most. None are wanted: tiles of 128 x 128 in f32 have all 255 registers and spill 4 bytes for sm_80 to sm_89.
SPILLED = 16
LEAST_SIDE = 64  # of a product on tensor cores


def compile_model(name, precision, work):
    workload = workloads.WORKLOADS[name]()
    model = work / f"{name}.onnx"
    model.write_bytes(workload.graph)
    targets = [word for target in TARGETS for word in ("--target", target)]
    subprocess.run([ORTC, "train", model, "-o", work / name, "--quiet", "--no-weights", "--precision", precision, *workload.flags, *targets], check=True)
    return work / name


def kind_of(work):
    """Of a kernel's work, as `ortc inspect` tells it; None where it is no product for tensor cores."""
    if not work:
        return None
    sizes = [[int(size) for size in re.findall(r"\d+", shape.split("xbf16")[0])] for shape in re.split(r" \* | -> ", work.get("shape", ""))]
    if work["work"].startswith("dot"):
        isLarge = work["flops"] >= 2 * LEAST_SIDE**3 and all(min(size[-2:]) >= LEAST_SIDE for size in sizes)
        return "dot" if isLarge else None
    if not work["work"].startswith("conv"):
        return None
    return "odd" if min(sizes[0][-1], sizes[1][-1], sizes[1][-2]) % 8 else "conv"


def main_loop(function):
    return max(function.regions, key=lambda region: (sum(region.matrix.values()), region.multiplications))


def check_function(name, function, work, shares):
    """What is wrong with it, as sentences."""
    if max(function.spilled, function.local) > SPILLED:
        yield f"{name} ({work.get('work')} {work.get('shape')}) spills {function.spilled} bytes and has {function.local} of local memory"
    kind = kind_of(work)
    if not kind:
        return
    loop = main_loop(function)
    share = sum(loop.matrix.values()) / loop.instructions
    if share < shares[kind]:
        yield f"{name} ({work['work']} {work['shape']}): {share:.3f} of {loop.instructions} instructions of the main loop multiply matrices, at least {shares[kind]}"
    if kind == "dot" and loop.narrow and all(int(size) % 8 == 0 for size in re.findall(r"\d+", work["shape"].replace("bf16", ""))):
        yield f"{name} ({work['work']} {work['shape']}): {loop.narrow} loads of the main loop have less than 16 bytes"


def check(path, target, precision):
    code = artifact.read_artifact(path, target)
    told, text = sass.run_assembler(code.ptx, target, None)
    works = {row["name"]: row for row in code.manifest["kernels"]}
    wrong = [line for line in told.splitlines() if re.search(r"C75\d\d", line)]
    least, spilled = {}, {}
    for name, function in sass.read_functions(told, text, sass.find_first_parameter(target)).items():
        work = works.get(name, {})  # of other launches of a kernel nothing is told
        wrong += check_function(name, function, work, SHARES[precision])
        if function.spilled:
            spilled[name] = function.spilled
        if kind := kind_of(work):
            loop = main_loop(function)
            least[kind] = min(least.get(kind, 1), sum(loop.matrix.values()) / loop.instructions)
    print(f"{path.name} {precision} {target}: least shares {', '.join(f'{kind} {share:.3f}' for kind, share in sorted(least.items()))}; spilled bytes: {spilled or 0}", flush=True)
    for line in wrong:
        print(f"  {line}", flush=True)
    return bool(wrong)


def main():
    if not shutil.which("ptxas") or not shutil.which("nvdisasm"):
        print("SKIPPED: ptxas and nvdisasm are not on PATH (pip install nvidia-cuda-nvcc nvidia-cuda-nvdisasm)")
        return 77
    failed = False
    for name in ("gpt2-small", "resnet18-224"):
        for precision in SHARES:
            with tempfile.TemporaryDirectory(prefix="machine-code-") as folder:
                path = compile_model(name, precision, pathlib.Path(folder))
                for target in TARGETS:
                    failed |= check(path, target, precision)
    return failed


if __name__ == "__main__":
    sys.exit(main())
