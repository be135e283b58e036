"""What tests of the package share: artifacts of models of test/zoo, each compiled once, and the programs of the build.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import atexit
import ctypes
import functools
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np

SOURCE = pathlib.Path(os.environ["ORTC_TEST_SOURCE"])
BUILD = pathlib.Path(os.environ["ORTC_TEST_BUILD"])
TOOL = BUILD / "bin/ortc"
DIGITS = SOURCE / "test/zoo/mlp-digits/model.onnx"
TRAIN = SOURCE / "test/data/digits/train.npz"
TEST = SOURCE / "test/data/digits/test.npz"

_work = tempfile.TemporaryDirectory()
atexit.register(_work.cleanup)
WORK = pathlib.Path(_work.name)


def run_tool(*arguments):
    """What `ortc ARGUMENTS` prints."""
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"ortc {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


@functools.cache
def compile_model(name, *flags):
    """The folder of an artifact of test/zoo."""
    folder = WORK / f"{name}-{len(list(WORK.iterdir()))}"
    run_tool("train", SOURCE / "test/zoo" / name / "model.onnx", "-o", folder, "--target", "native", "--quiet", *flags)
    return folder


def compile_digits(*flags):
    return compile_model("mlp-digits", "--shape", "batch=64", "--optimizer", "adamw:lr=3e-3", *flags)


def make_batch(batch=64):
    """The inputs of docs/examples/train_loop.c."""
    pixels = np.arange(batch * 64) % 17 / np.float32(17)
    return {"pixels": pixels.astype(np.float32).reshape(batch, 64), "label": np.zeros(batch, np.int64)}


def read_checkpoint(path):
    """Metadata, header and data of a safetensors file."""
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    return header.pop("__metadata__", {}), header, data[8 + size :]


def read_steps(path):
    """Metrics of steps and evaluations, without what depends on the clock; losses as float32, which they are."""
    events = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
    return [
        {key: np.float32(value) if isinstance(value, float) else value for key, value in event.items() if key != "ms"}
        for event in events
        if event.get("event", "eval") == "eval"
    ]


class Exported:
    """An array that has DLPack and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OnDevice(Exported):
    """Of the type and shape of an array, on a GPU of NVIDIA: at `address` where that is given."""

    def __init__(self, array, device, address=None):
        super().__init__(array)
        self.device = device
        self.address = address

    def __dlpack__(self, **options):
        capsule = self.array.__dlpack__()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        # struct DLManagedTensor begins with a pointer to the data, and the device.
        tensor = get(capsule, b"dltensor")
        if self.address is not None:
            ctypes.cast(tensor, ctypes.POINTER(ctypes.c_uint64))[0] = self.address
        place = ctypes.cast(tensor + 8, ctypes.POINTER(ctypes.c_int32))
        place[0], place[1] = 2, self.device
        return capsule
