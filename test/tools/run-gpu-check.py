"""tools/gpu-pack and tools/gpu-check on the emulator, with small models and stand-ins for PyTorch: run-gpu-check.py SOURCE BUILD FOLDER.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

A pack is checked as it is and once more with everything spoiled that a check looks at, where exactly these checks must fail.
"""
import contextlib
import gzip
import json
import os
import pathlib
import re
import runpy
import subprocess
import sys

MODELS = "mlp-digits,lstm-dynamo"
# Answers with the losses in losses.json, or with none that fit.
TORCH_STEP = """
import json, pathlib, sys
losses = pathlib.Path(__file__).with_name("losses.json")
for job in json.load(open(sys.argv[1])):
    print(json.dumps({"torch": "0", "ms": 1.0, "losses": json.loads(losses.read_text()) if losses.exists() else [0.5] * 20}), flush=True)
"""
TORCH = """
__version__ = "0"
class cuda:
    is_available = staticmethod(lambda: True)
"""


def make_pack(source, build, pack):
    """Packs with models to be timed that the emulator runs in little time."""
    sys.path.insert(0, str(source / "tools/gpu"))
    import workloads

    workloads.WORKLOADS = {
        "gpt2-small": lambda: workloads.gpt2(batch=1, sequence=8, layers=1, width=64, vocabulary=50, positions=16),
        "product-1024": lambda: workloads.product(16),
        "layer-norm": lambda: workloads.layer_norm(rows=16, width=32),
    }
    sys.argv = ["gpu-pack", "-o", str(pack), "--build", str(build), "--target", "sm_80", "--target", "sm_90", "--zoo", MODELS]
    with contextlib.suppress(SystemExit):
        runpy.run_path(str(source / "tools/gpu-pack"), run_name="__main__")


def check(pack, emulator, status):
    """Runs the pack's own gpu-check; rows by the name of the check."""
    # Another order of blocks and warps than the pack was made with; memory so small that copies take little time.
    env = {**os.environ, "ORTC_CUDA_DRIVER": emulator, "ORTC_EMULATOR_ORDER": "reverse", "ORTC_EMULATOR_MEMORY": str(64 << 20),
           "PYTHONPATH": str(pack / "stand-in")}
    done = subprocess.run([sys.executable, pack / "gpu-check", "--measure", "0.05"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == status, f"status {done.returncode}, not {status}: {done.stderr}"
    return {row["check"]: row for row in json.loads(done.stdout)["checks"]}


def spoil(pack):
    """Changes one bit that the emulator gave, and makes one tolerance smaller than any rounding."""
    path = pack / "zoo/mlp-digits/adamw-sm_80.safetensors.gz"
    data = bytearray(gzip.decompress(path.read_bytes()))
    data[-1] ^= 1
    path.write_bytes(gzip.compress(data))
    path = pack / "zoo/lstm-dynamo/recipe.json"
    recipe = path.read_text()
    path.write_text(re.sub(r'"loss/sgd": [^,\n]+', '"loss/sgd": 1e-30', recipe))


def main():
    source, build, pack = (pathlib.Path(path).resolve() for path in sys.argv[1:])
    emulator = str(build / "test/gpu/emulator/libcuda.so.1")
    make_pack(source, build, pack)
    kept = {path: path.read_bytes() for path in (pack / "zoo").rglob("*") if path.is_file()}
    (pack / "stand-in").mkdir()
    (pack / "stand-in/torch.py").write_text(TORCH)
    (pack / "tools/gpu/torch_step.py").write_text(TORCH_STEP)

    spoil(pack)
    rows = check(pack, emulator, status=1)
    failed = {name for name, row in rows.items() if row["status"] == "FAILED"}
    assert failed == {"mlp-digits adamw sm_80", "lstm-dynamo sgd sm_80", "speed gpt2-small"}, failed
    bits = rows["mlp-digits adamw sm_80"]["text"]
    assert re.search(r"1 of \d+ arrays differ, first .*: 1 of \d+ numbers, by at most \d+ steps of the type", bits), bits
    assert "loss/sgd" in rows["lstm-dynamo sgd sm_80"]["text"], rows["lstm-dynamo sgd sm_80"]

    for path, data in kept.items():
        path.write_bytes(data)
    (pack / "tools/gpu/losses.json").write_text(json.dumps(rows["speed gpt2-small"]["losses"]))
    rows = found = check(pack, emulator, status=0)
    for name in MODELS.split(","):
        for optimizer in ("sgd", "adamw"):
            assert rows[f"{name} {optimizer} sm_80"]["status"] == "ok", rows
            assert rows[f"{name} {optimizer} sm_90"]["status"] == "SKIPPED", rows
    assert rows["memory of the device"]["status"] == "ok", rows
    assert rows["memory of the device"]["most_beside_regions"] < 4096, rows  # the emulator counts to the byte,
    assert rows["memory of the device"]["most_for_code_and_graphs"] == 0, rows  # and gives code and graphs none of it
    assert rows["compute-sanitizer"]["status"] == "SKIPPED", rows
    assert rows["speed gpt2-small"]["losses_apart"] == 0, rows
    kernels = rows["speed gpt2-small"]["kernels"]
    launches = json.loads((pack / "pack.json").read_text())["speed"]["gpt2-small"]["artifacts"][0]["launches"]
    assert sum(row["times"] for row in kernels) >= launches, (launches, kernels)  # a kernel of the plan is one launch or more
    assert all(row["us"] > 0 and row["blocks"] > 0 and row["threads"] % 32 == 0 for row in kernels), kernels
    assert "ms in kernels, most in kernel_" in rows["speed gpt2-small"]["text"], rows
    assert rows["speed product-1024"]["kernels"], rows
    assert rows["speed of copies"]["rate"] > 0 and rows["speed product-1024"]["rate"] > 0, rows
    rows = check(pack, "no-such-driver", status=77)
    assert rows["device"]["status"] == "SKIPPED", rows
    print(f"{len(found)} checks, {len(failed)} of them spoiled and found")


if __name__ == "__main__":
    main()
