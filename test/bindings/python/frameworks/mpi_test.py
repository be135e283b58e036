"""docs/examples/mpi/train.py: processes that add up their gradients with MPI are one with all samples.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import ortc
from optional import needs

SOURCE = pathlib.Path(__file__).resolve().parents[4]
EXAMPLE = SOURCE / "docs/examples/mpi"
MODEL = SOURCE / "test/zoo/mlp-digits/model.onnx"
BUILD = os.environ.get("ORTC_TEST_BUILD", "")
STEPS, BATCH = 20, 32
# Open MPI on a small machine, and in a container.
ALLOWED = dict.fromkeys(("OMPI_MCA_rmaps_base_oversubscribe", "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1")


@needs("mpi4py")
@unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun")
class MpiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.work = pathlib.Path(folder.name)
        random = np.random.default_rng(0)
        cls.records = np.zeros(640, np.dtype([("pixels", np.float32, 64), ("label", np.int64)]))
        cls.records["pixels"] = random.random((640, 64))
        cls.records["label"] = cls.records["pixels"][:, :10].argmax(1)
        cls.records.tofile(cls.work / "once")
        np.repeat(cls.records.reshape(-1, BATCH), 2, axis=0).tofile(cls.work / "twice")  # both processes have the same
        cls.half = cls.compile("half", BATCH, gradients=True, bind="gradients")

    @classmethod
    def compile(cls, name: str, batch: int, **flags: object) -> pathlib.Path:
        path = cls.work / name
        ortc.compile(MODEL, shapes={"batch": batch}, optimizer="sgd:lr=0.05,momentum=0.9", output=path, **flags)
        return path

    def train(self, processes: int, program: list[object], artifact: pathlib.Path, samples: str, out: str) -> list[float]:
        """The losses; checkpoints are in `out`.RANK."""
        command = ["mpirun", "-np", processes, *program, artifact, self.work / samples, STEPS, self.work / out]
        done = subprocess.run([str(each) for each in command], env=os.environ | ALLOWED, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [float(loss) for loss in re.findall(r"^step \d+ loss (\S+)$", done.stdout, re.M)]

    def python(self, processes: int, artifact: pathlib.Path, samples: str, out: str) -> list[float]:
        return self.train(processes, [sys.executable, "-B", EXAMPLE / "train.py"], artifact, samples, out)

    def read(self, out: str) -> bytes:
        return (self.work / out).read_bytes()

    def test_two_processes_are_one_with_all_samples(self) -> None:
        losses = self.python(2, self.half, "once", "two")
        self.assertEqual(self.read("two.0"), self.read("two.1"))
        whole = ortc.Session(self.compile("whole", 2 * BATCH))
        batches = [self.records[2 * BATCH * (i % 10) :][: 2 * BATCH] for i in range(STEPS)]
        wanted = [whole.train_step(pixels=each["pixels"], label=each["label"]) for each in batches]
        # Sums of float32 in another order: a last bit of the loss in each step.
        np.testing.assert_array_less(np.abs(np.divide(losses, wanted) - 1), np.arange(1, STEPS + 1) * 2.0**-23)
        self.assertLess(losses[-1], 0.99 * losses[0])

    def test_processes_draw_masks_of_their_own(self) -> None:
        """Two with the same samples are one, since a + a is exact; with dropout they are not."""
        self.assertEqual(self.python(2, self.half, "twice", "same"), self.python(1, self.half, "once", "alone"))
        self.assertEqual(self.read("same.1"), self.read("alone.0"))
        dropout = self.compile("dropout", BATCH, gradients=True, bind="gradients", lora=".*weight:rank=4,dropout=0.5")
        self.assertNotEqual(self.python(2, dropout, "twice", "masks"), self.python(1, dropout, "once", "mask"))

    @unittest.skipUnless(shutil.which("mpicc") and BUILD, "there is no mpicc, or ORTC_TEST_BUILD names no build")
    def test_bits_are_those_of_the_c_program(self) -> None:
        libraries = [f"{BUILD}/lib/lib{name}.a" for name in ("ortc_parameters", "ortc")]
        command = ["mpicc", "-std=c99", "-I", SOURCE / "runtime/include", EXAMPLE / "train.c", *libraries, "-o", self.work / "train"]
        subprocess.run(command, check=True)
        losses = self.train(2, [self.work / "train"], self.half / "model.ortc", "once", "c")
        self.assertEqual(self.python(2, self.half, "once", "python"), losses)
        for rank in range(2):
            self.assertEqual(self.read(f"python.{rank}"), self.read(f"c.{rank}"))


if __name__ == "__main__":
    unittest.main()
