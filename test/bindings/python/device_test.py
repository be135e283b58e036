"""Sessions on a GPU: that of ORTC_CUDA_DRIVER, which stands in for one, or the machine's.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import ctypes
import os
import unittest

import numpy as np
import ortc
from ortc import callbacks
from support import TRAIN, WORK, OnDevice, compile_model, make_batch, read_checkpoint, read_steps, run_tool


class DeviceTest(unittest.TestCase):
    def setUp(self):
        flags = ("--shape", "batch=64", "--optimizer", "adamw:lr=3e-3", "--target", "sm_80", "--gradients")
        self.folder = compile_model("mlp-digits", *flags)
        self.session = ortc.Session(self.folder, device="cuda")

    def test_numbers_are_those_of_the_tool(self):
        run_tool("run", self.folder, "--data", TRAIN, "--steps", 3, "--device", "cuda", "--quiet", "--metrics", WORK / "tool.jsonl",
                 "--save", WORK / "tool.safetensors")
        trainer = ortc.Trainer(self.folder, TRAIN, device="cuda", callbacks=[callbacks.JSONL(WORK / "python.jsonl")])
        trainer.fit(steps=3)
        trainer.save(WORK / "python.safetensors")
        self.assertEqual(read_steps(WORK / "python.jsonl"), read_steps(WORK / "tool.jsonl"))
        self.assertEqual(read_checkpoint(WORK / "python.safetensors")[2], read_checkpoint(WORK / "tool.safetensors")[2])

    def test_tensors_of_the_device_are_read_in_place(self):
        driver = ctypes.CDLL(os.environ.get("ORTC_CUDA_DRIVER", "libcuda.so.1"))
        batch, place = make_batch(), ctypes.c_uint64()
        size = batch["pixels"].nbytes

        def put(values):
            source = ctypes.c_void_p(values.ctypes.data)
            self.assertEqual(driver.cuMemcpyHtoDAsync_v2(place, source, ctypes.c_size_t(size), None), 0)
            self.assertEqual(driver.cuCtxSynchronize(), 0)

        wanted = [self.session.eval_step(**batch), self.session.eval_step(batch["pixels"] * 0, batch["label"])]
        self.assertEqual(driver.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(size)), 0)
        for way in ("DLPack", "address"):
            put(batch["pixels"])
            if way == "DLPack":
                self.session.bind(pixels=OnDevice(batch["pixels"], 0, place.value), label=batch["label"])
            else:
                self.session.bind_address("pixels", place.value)
            first = self.session.eval_step()
            put(batch["pixels"] * 0)
            self.assertEqual([first, self.session.eval_step()], wanted, way)
        with self.assertRaisesRegex(ortc.ShapeError, "'pixels' is on cuda:1, but the session is on cuda:0"):
            self.session.bind(pixels=OnDevice(batch["pixels"], 1, place.value))
        self.session.bind_address("pixels", 0)
        self.assertEqual(driver.cuMemFree_v2(place), 0)

    def test_parameters_are_copies(self):
        with self.assertRaises(ValueError):
            self.session.parameters["0.bias"][:] = 0
        self.session.parameters["0.bias"] = np.arange(64, dtype=np.float32)
        np.testing.assert_array_equal(self.session.parameters["0.bias"], np.arange(64))
        for refused in (self.session.view, self.session.tensor, self.session.locate):
            with self.assertRaisesRegex(ortc.StateError, "'0.bias' is on a device; read\\(\\) copies it"):
                refused("0.bias")

    def test_steps(self):
        batch = make_batch()
        host = ortc.Session(self.folder)
        # Sums are in another order than on a processor: some units of the last place.
        self.assertAlmostEqual(self.session.eval_step(**batch), host.eval_step(**batch), 5)
        np.testing.assert_allclose(self.session.predict(batch["pixels"])["output"], host.predict(batch["pixels"])["output"],
                                   rtol=1e-5, atol=1e-6)
        loss = self.session.gradients_step(**batch)
        np.testing.assert_allclose(self.session.gradients["2.bias"].sum(), 0, atol=1e-5)
        self.session.update_step()
        self.assertLess(self.session.train_step(**batch), loss)

    def test_artifacts_without_code_for_it_are_refused(self):
        with self.assertRaises(ortc.TargetError):
            ortc.Session(compile_model("mlp-digits", "--shape", "batch=64"), device="cuda")


if __name__ == "__main__":
    unittest.main()
