"""`python -m ortc.doctor`: what is installed here, and whether it trains.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Exit status 0, or 1 with the reason on the last line.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import ortc
from ortc import _compile, _runtime

if TYPE_CHECKING:
    from numpy.typing import NDArray

# enum ortc_architecture and enum ortc_x86_feature of ortc/format.h
_ARCHITECTURES = ("none", "x86-64", "aarch64", "riscv64", "armv7", "wasm32", "ptx", "amdgpu", "cortex-m")
_X86_64 = 1
_LEVELS = ((7, "x86-64-v2"), (15, "x86-64-v3"), (20, "x86-64-v4"))
_EXTRAS = {23: "avx512vnni", 26: "avx512bf16", 27: "avx512fp16", 29: "avxvnni", 30: "amx-bf16"}


def describe_processor() -> str:
    """The level that the runtime has found, and what it has above."""
    architecture, features = _runtime.host()
    if architecture != _X86_64:
        return f"{_ARCHITECTURES[architecture]}, features {features:#x}"
    level = "x86-64"
    for bits, name in _LEVELS:
        if features & (1 << bits) - 1 == (1 << bits) - 1:
            level = name
    extras = [name for bit, name in _EXTRAS.items() if features >> bit & 1]
    return f"{level}{' with ' if extras else ''}{', '.join(extras)}, {os.cpu_count()} threads"


def describe_driver(device: str) -> str:
    """Whether sessions could be on a GPU."""
    try:
        _runtime.check_device(device)
    except ortc.Error as error:
        return str(error)
    return "can be used"


def describe_compiler() -> str:
    path = _compile.find_compiler()
    if path is None:
        return "none: pip install ortc"
    return f"{_compile.run_compiler(['--version'])[0].strip()}, {path}"


def describe_torch() -> str:
    if importlib.util.find_spec("torch") is None:
        return "none"
    return importlib.metadata.version("torch")


def make_digits(rows: int) -> dict[str, NDArray[np.generic]]:
    """Ten patterns of 8 x 8, the same for any number of rows, with noise."""
    patterns = np.random.default_rng(1).random((10, 64), np.float32)
    random = np.random.default_rng(rows)
    label = random.integers(0, 10, rows)
    noise = random.normal(0, 0.2, (rows, 64))
    return {"pixels": (patterns[label] + noise).astype(np.float32), "label": label.astype(np.int64)}


def train_digits() -> str:
    """Compiles and trains the model of this package. Raises what fails."""
    started = time.perf_counter()
    model = Path(__file__).parent / "digits.onnx"
    artifact = ortc.compile(model, shapes={"batch": 64}, optimizer="adamw:lr=3e-3", target="native")
    print(f"compiled     in {time.perf_counter() - started:.2f} s for {artifact.program().target}")
    trainer = ortc.Trainer(artifact, train=make_digits(1280), eval=make_digits(640), metrics=["accuracy"])
    started = time.perf_counter()
    events = trainer.fit(epochs=10)
    seconds = time.perf_counter() - started
    accuracy = [event["accuracy"] for event in events if event.get("event") == "eval"][-1]
    text = f"{trainer.step} steps in {seconds:.2f} s on {trainer.session.threads} threads, accuracy {accuracy:.1%}"
    if not accuracy > 0.95:
        raise ortc.Error(f"training does not work here: {text}, which should be above 95%")
    return text


def main() -> int:
    print(f"ortc         {ortc.__version__}, {Path(ortc.__file__).parent}")
    print(f"python       {platform.python_version()}, {sys.executable}")
    print(f"numpy        {np.__version__}")
    print(f"torch        {describe_torch()}")
    print(f"processor    {describe_processor()}")
    for device in ("cuda", "hip"):
        print(f"{device:<12} {describe_driver(device)}")
    folder = tempfile.gettempdir()
    print(f"artifacts    in {folder}, where {shutil.disk_usage(folder).free / 2**30:.1f} GiB are free")
    try:
        print(f"compiler     {describe_compiler()}")
        print(f"trained      {train_digits()}")
    except (ortc.Error, OSError) as error:
        print(f"failed: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
