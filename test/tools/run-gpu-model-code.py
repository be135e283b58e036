"""tools/gpu-model on an artifact, with NVIDIA's assembler and the emulator's counts: run-gpu-model-code.py SOURCE BUILD FOLDER.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Exit status 77 without ptxas and nvdisasm.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

SOURCE, BUILD, FOLDER = (pathlib.Path(path).resolve() for path in sys.argv[1:])
sys.path.insert(0, str(SOURCE / "tools/gpu"))
import runner
import workloads

SIZE, DEPTH_OF_A_STEP = 256, 32


def predict(artifact: pathlib.Path, *flags: str, env: dict[str, str] | None = None, status: int = 0) -> subprocess.CompletedProcess:
    done = subprocess.run([sys.executable, SOURCE / "tools/gpu-model", artifact, *flags], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == status, done
    return done


def count(artifact: pathlib.Path) -> pathlib.Path:
    """What the emulator counts of a step, with gpu-run as gpu-check builds it."""
    listed = subprocess.run(["ninja", "-C", BUILD, "-t", "inputs", "lib/libortc.a", "lib/libortc_cuda.a"], check=True, capture_output=True, text=True)
    sources = [os.path.relpath(line, SOURCE) for line in listed.stdout.splitlines() if line.endswith(".cpp")]
    program = runner.build(SOURCE, sources + runner.OWN_SOURCES, FOLDER)
    values, counts = FOLDER / "values", FOLDER / "counts.json"
    values.write_bytes(b"\0\0\x80\x3f" * (SIZE * SIZE))
    env = {"ORTC_CUDA_DRIVER": str(BUILD / "test/gpu/emulator/libcuda.so.1"), "ORTC_EMULATOR_SM": "90", "ORTC_EMULATOR_COUNT": str(counts)}
    inputs = [word for name in ("x", "w") for word in ("--input", f"{name}={values}")]
    said = runner.run(program, [str(artifact / "model.ortc"), *inputs, "place", "kernels", "predict", "2"], 300, env)
    timed = said["kernels_predict"]
    assert [(row["kernel"], row["times"]) for row in timed] == [("kernel_0", workloads.CHAIN)] and timed[0]["us"] > 0, timed
    return counts


def main() -> int:
    if not shutil.which("ptxas") or not shutil.which("nvdisasm"):
        print("SKIPPED: ptxas and nvdisasm are not on PATH (pip install nvidia-cuda-nvcc nvidia-cuda-nvdisasm)")
        return 77
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    (FOLDER / "model.onnx").write_bytes(workloads.product(SIZE).graph)
    artifact = FOLDER / "artifact"
    subprocess.run([BUILD / "bin/ortc", "train", FOLDER / "model.onnx", "-o", artifact, "--loss", "none", "--quiet", "--target", "sm_80",
                    "--target", "sm_90", "--report", FOLDER / "report.json"], check=True)

    missing = predict(artifact, "--tools", str(FOLDER), status=2)
    assert "ptxas is not in" in missing.stderr and "--tools" in missing.stderr, missing.stderr
    assert "only for sm_80, sm_90" in predict(artifact, "--target", "sm_89", status=2).stderr

    found = json.loads(predict(artifact, "--json").stdout)
    row = found["kernels"][0]
    manifest = json.loads((artifact / "manifest.json").read_text())
    assert found["target"] == "sm_90" and found["launches"] == workloads.CHAIN and row["registers"] > 60, found
    steps = next(target["steps"]["kernel_0"] for target in manifest["targets"] if target["name"] == "sm_90")
    assert steps == SIZE // DEPTH_OF_A_STEP, steps
    # No less than what tensor cores take with six products; 16 tiles for 132 multiprocessors leave them waiting.
    least = workloads.CHAIN * 6 * SIZE**3 / 2048 * 1.61 / 132 / 1.755e9 * 1e3
    assert least < found["ms"] and row["time"]["bound"] == "latency", (least, found)

    # The compiler's estimate is by the same tiles and constants, without the machine code.
    report = json.loads((FOLDER / "report.json").read_text())
    estimated = next(target["kernels"][0]["estimated_us"] for target in report["targets"] if target["name"] == "sm_90")
    assert abs(estimated / (row["time"]["seconds"] * 1e6) - 1) < 0.5, (estimated, row)

    facts = FOLDER / "facts.json"
    predict(artifact, "--facts", str(facts))
    empty = {**os.environ, "PATH": str(FOLDER)}
    assert json.loads(predict(facts, "--json", env=empty).stdout) == found
    counted = json.loads(predict(facts, "--json", "--counts", str(count(artifact))).stdout)
    # Without bank conflicts, and every byte of the three matrices once.
    assert counted["kernels"][0]["time"]["parts"]["DRAM"] == 3 * 4 * SIZE**2 / 2.24e12, counted
    assert abs(counted["ms"] / found["ms"] - 1) < 0.05, (counted["ms"], found["ms"])
    print(f"{found['ms']:.3f} ms, {counted['ms']:.3f} by the emulator's counts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
