"""The PyTorch recipe of docs/runtime-api.md on a real checkpoint, with stand-ins for torch: run-recipe.py ORTC SOURCE.

The recipe is taken out of the page and run. Its `load_file` is a reader of its own here, and its `model` is one with the names
and shapes that PyTorch's module had: those of golden.npz, which it wrote.
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import contextlib
import io
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import types
import zipfile


def load_file(path):
    """Names to (shape, bytes), as safetensors.torch.load_file gives tensors."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    start = 8 + length
    return {
        name: (tuple(entry["shape"]), data[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]])
        for name, entry in header.items()
    }


def module_arrays(path, kind):
    """Names to (shape, bytes) of the arrays KIND/NAME of an npz file."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if member.startswith(kind + "/"):
                data = archive.read(member)
                (length,) = struct.unpack("<H", data[8:10])
                shape = re.search(rb"'shape': \(([^)]*)\)", data[10 : 10 + length]).group(1)
                shape = tuple(int(size) for size in shape.split(b",") if size.strip())
                arrays[member[len(kind) + 1 : -len(".npy")]] = shape, data[10 + length :]
    return arrays


class Module:
    """What the recipe needs of torch.nn.Module."""

    def __init__(self, state):
        self.state = state

    def state_dict(self):
        return dict(self.state)

    def load_state_dict(self, values, strict=True):
        assert not strict, "the recipe leaves tensors out"
        for name in self.state.keys() & values.keys():
            shape = self.state[name][0]
            assert values[name][0] == shape, f"{name} has shape {values[name][0]}, and the module {shape}"
            self.state[name] = values[name]
        return types.SimpleNamespace(
            missing_keys=[name for name in self.state if name not in values],
            unexpected_keys=[name for name in values if name not in self.state],
        )


def main(ortc, source):
    ortc, source = os.path.abspath(ortc), pathlib.Path(source).resolve()
    zoo = source / "test/zoo/mlp-digits"
    recipe = json.loads((zoo / "recipe.json").read_text())
    page = (source / "docs/runtime-api.md").read_text()
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "load_state_dict" in block]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run = lambda *arguments: subprocess.run([ortc, *arguments, "--quiet"], check=True)
        flags = [*recipe["flags"], "--optimizer", recipe["optimizers"]["adamw"], "--target", "native"]
        run("train", str(zoo / "model.onnx"), "-o", "model", *flags)
        run("run", "model", "--data", str(zoo / "data.npz"), "--steps", "1", "--save", "trained.safetensors")
        saved = load_file("trained.safetensors")
        model = Module(module_arrays(zoo / "golden.npz", "param"))
        before = model.state_dict()
        assert set(saved) > set(before), "the checkpoint has optimizer state, too"
        module = types.ModuleType("safetensors.torch")
        module.load_file = load_file
        sys.modules["safetensors"], sys.modules["safetensors.torch"] = types.ModuleType("safetensors"), module
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, {"model": model})
        assert printed.getvalue() == "[]\n", f"a trained weight is missing: {printed.getvalue()}"
        for name in before:
            assert model.state[name] == saved[name], name
            assert model.state[name] != before[name], f"{name} is as it was"
        os.chdir(source)  # out of what is removed


main(*sys.argv[1:])
