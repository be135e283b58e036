"""A host in C, over an artifact that was compiled with --cotangents: its inputs, outputs, and what is bound, are the host's memory.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import ctypes
import functools
import pathlib
import subprocess

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = SOURCE / "build"


@functools.cache
def load_steps(folder):
    """The functions of steps.c, which is compiled into `folder`."""
    library = f"{folder}/steps.so"
    sources = [f"-I{SOURCE}/runtime/include", SOURCE / "benchmarks/python/steps.c", BUILD / "lib/libortc.a"]
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", *sources, "-o", library], check=True)
    steps = ctypes.CDLL(library)
    number = ctypes.POINTER(ctypes.c_double)
    steps.time_steps.restype, steps.time_steps.argtypes = ctypes.c_double, [ctypes.c_void_p, ctypes.c_long]
    steps.open_host.restype, steps.open_host.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
    steps.freeze.argtypes = [ctypes.c_void_p]
    steps.time_roles.restype, steps.time_roles.argtypes = ctypes.c_double, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_long]
    steps.sum_values.restype, steps.sum_values.argtypes = None, [ctypes.c_void_p, number, number]
    return steps


class Host:
    """`artifact`: the folder of one. `scratch`: a folder for what is compiled here."""

    def __init__(self, artifact, scratch):
        self.artifact, self.steps = artifact, load_steps(scratch)
        self.handle = self.steps.open_host(f"{artifact}/model.ortc".encode())
        if not self.handle:
            raise SystemExit(f"{artifact}: cannot be opened by a host with all memory its own")

    def freeze(self):
        """From now on updates change nothing, and every step does the same work."""
        if self.steps.freeze(self.handle):
            raise SystemExit(f"{self.artifact}: has no learning rate")

    def time_roles(self, roles, count=1):
        """Seconds of processor time of `count` times these steps, each a letter: forward, backward, update."""
        seconds = self.steps.time_roles(self.handle, roles.encode(), count)
        if seconds < 0:
            raise SystemExit(f"{self.artifact}: a step of '{roles}' failed")
        return seconds

    def sum_values(self):
        """Sums of absolute values after a backward step: of outputs, and of gradients of parameters."""
        sums = ctypes.c_double(), ctypes.c_double()
        self.steps.sum_values(self.handle, *map(ctypes.byref, sums))
        return tuple(each.value for each in sums)
