"""Sessions: bits of the C program, arrays in place, messages, threads.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import gc
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock

import numpy as np
import ortc
from support import BUILD, WORK, Exported, OnDevice, compile_digits, compile_model, make_batch, read_checkpoint


class BitsTest(unittest.TestCase):
    def test_steps_are_those_of_the_c_program(self):
        folder = compile_digits()
        wanted = subprocess.run([BUILD / "bin/train_loop", folder / "model.ortc", WORK / "c.safetensors"], check=True,
                                capture_output=True, text=True).stdout
        for threads in (1, 2):
            session = ortc.Session(folder, threads=threads)
            batch = make_batch()
            found = "".join(f"step {i} loss {session.train_step(**batch):.6f}\n" for i in range(1, 11))
            self.assertEqual(found, wanted)
            session.save(WORK / "python.safetensors")
            self.assertEqual((WORK / "python.safetensors").read_bytes(), (WORK / "c.safetensors").read_bytes())
            self.assertEqual(session.to_bytes(), (WORK / "c.safetensors").read_bytes())

    def test_every_way_to_give_inputs_gives_the_same_bits(self):
        batch = make_batch()
        wide = np.repeat(batch["pixels"], 2, 1)
        ways = {
            "positional": lambda s: s.train_step(batch["pixels"], batch["label"]),
            "dlpack": lambda s: s.train_step(Exported(batch["pixels"]), label=Exported(batch["label"])),
            "strided": lambda s: s.train_step(wide[:, ::2], batch["label"]),
            "addresses": lambda s: (s.bind_address("pixels", batch["pixels"].ctypes.data), s.bind_address("label", batch["label"].ctypes.data),
                                    s.step())[2],
            "bound": lambda s: (s.bind(**batch), s.step())[1],
            "written": lambda s: (s.write("pixels", batch["pixels"]), s.write("label", batch["label"]), s.train_step())[2],
        }
        wanted = ortc.Session(compile_digits())
        losses = [wanted.train_step(**batch) for _ in range(3)]
        for name, way in ways.items():
            session = ortc.Session(compile_digits())
            self.assertEqual([way(session) for _ in range(3)], losses, name)

    def test_gradients_and_update_are_a_training_step(self):
        folder = compile_digits("--gradients")
        whole, cut, batch = ortc.Session(folder), ortc.Session(folder), make_batch()
        loss = whole.train_step(**batch)
        self.assertEqual(cut.gradients_step(**batch), loss)
        gradient = cut.gradients["2.bias"]
        # Of the mean cross entropy with one label for all: softmax of the mean row less the label, so its sum is zero.
        self.assertAlmostEqual(float(gradient.sum()), 0, 5)
        self.assertLess(gradient[0], -0.5)
        cut.gradients["2.bias"] = gradient
        cut.update_step()
        self.assertEqual(cut.to_bytes(), whole.to_bytes())
        cut.gradients_step(**batch)
        cut.gradients["2.bias"] = np.zeros_like(gradient)
        cut.update_step()
        whole.train_step(**batch)
        self.assertNotEqual(cut.read("2.bias").tobytes(), whole.read("2.bias").tobytes())

    def test_accumulated_steps_update_once(self):
        session = ortc.Session(compile_digits("--accumulate", "2"))
        before = session.read("0.weight")
        session.accumulate_step(**make_batch())
        self.assertEqual(session.read("0.weight").tobytes(), before.tobytes())
        session.train_step(**make_batch())
        self.assertNotEqual(session.read("0.weight").tobytes(), before.tobytes())


class InputsTest(unittest.TestCase):
    def setUp(self):
        self.session = ortc.Session(compile_digits())
        self.batch = make_batch()

    def refuse(self, error, text, **arrays):
        """A refused step changes nothing, and the next one runs."""
        self.session.bind(**self.batch)
        before = self.session.to_bytes()
        with self.assertRaises(error) as caught:
            self.session.train_step(**arrays)
        self.assertIn(text, str(caught.exception))
        self.assertEqual(self.session.to_bytes(), before)
        self.session.train_step(**self.batch)

    def test_wrong_arrays_are_named(self):
        pixels = self.batch["pixels"]
        must = ", but must be float32 [64, 64]"
        self.refuse(ortc.ShapeError, "'pixels' is float64 [64, 64]" + must, pixels=pixels.astype(np.float64))
        self.refuse(ortc.ShapeError, "'pixels' is float32 [32, 64]" + must, pixels=pixels[:32])
        self.refuse(ortc.ShapeError, "'pixels' is float32 [4096]" + must, pixels=pixels.reshape(-1))
        self.refuse(ortc.ShapeError, "'pixels' is of another type [64, 64]" + must, pixels=pixels.astype(">f4"))
        self.refuse(ortc.ShapeError, "'pixels' is of another type [64, 64]" + must, pixels=pixels.astype(complex))
        self.refuse(TypeError, "list is no array", pixels=[1, 2])
        self.refuse(TypeError, "there is no input 'pixel'; there are pixels, label, output", pixel=pixels)
        with self.assertRaisesRegex(TypeError, "takes 2 inputs, but 3 were given"):
            self.session.train_step(pixels, self.batch["label"], pixels)

    def test_arrays_on_a_device_are_refused(self):
        with self.assertRaisesRegex(ortc.ShapeError, "'pixels' is on cuda:1, but the session is on cpu"):
            self.session.train_step(OnDevice(self.batch["pixels"], 1), self.batch["label"])

    def test_misaligned_arrays_are_refused(self):
        pixels = np.frombuffer(bytearray(64 * 64 * 4 + 1), np.float32, offset=1).reshape(64, 64)
        before = self.session.train_step(**self.batch)
        self.session.reset()
        with self.assertRaisesRegex(ortc.ShapeError, "'pixels' does not lie at a multiple of the size of its elements; copy it"):
            self.session.bind(label=self.batch["label"] + 1, pixels=pixels)
        self.assertEqual(self.session.step(), before)  # the label is not bound either

    def test_inputs_that_were_never_given_are_named(self):
        with self.assertRaisesRegex(ortc.StateError, "pixels"):
            self.session.train_step()

    def test_labels_out_of_range_update_nothing(self):
        label = self.batch["label"].copy()
        label[5] = 10
        self.refuse(ortc.RangeError, "index 10 in 'label' is out of range [0, 10)", label=label)

    def test_bound_arrays_are_read_in_place(self):
        self.session.lr = 0.0
        self.session.bind(**self.batch)
        first = self.session.step()
        self.batch["label"][:] = 3
        second = self.session.step()
        self.assertNotEqual(first, second)
        self.batch["label"][:] = 0
        self.assertEqual(self.session.step(), first)

    def test_bound_arrays_are_kept_and_let_go(self):
        import weakref

        class Owner(np.ndarray):
            pass

        array = self.batch["pixels"].view(Owner)
        dead = weakref.ref(array)
        self.session.bind(pixels=array, label=self.batch["label"])
        del array
        gc.collect()
        self.assertIsNotNone(dead())
        self.session.step()
        self.session.bind(pixels=self.batch["pixels"])
        gc.collect()
        self.assertIsNone(dead())

    def test_what_cannot_be_bound_in_place_is_refused(self):
        wide = np.repeat(self.batch["pixels"], 2, 1)
        with self.assertRaisesRegex(ortc.ShapeError, "not dense and row-major"):
            self.session.bind(pixels=wide[:, ::2])
        output = np.zeros((64, 10), np.float32)
        output.flags.writeable = False
        with self.assertRaisesRegex(ortc.ShapeError, "read-only"):
            self.session.bind(output=output)

    def test_outputs(self):
        found = self.session.predict(self.batch["pixels"])["output"]
        weights = [self.session.read(name) for name in ("0.weight", "0.bias", "2.weight", "2.bias")]
        hidden = np.maximum(self.batch["pixels"] @ weights[0].T + weights[1], 0)
        # Products of 64 terms in another order: some units of the last place.
        np.testing.assert_allclose(found, hidden @ weights[2].T + weights[3], rtol=1e-5, atol=1e-6)
        self.session.eval_step(**self.batch)
        np.testing.assert_array_equal(self.session.outputs["output"], found)
        mine = np.zeros((64, 10), np.float32)
        self.session.bind(output=mine)
        self.assertIs(self.session.predict(self.batch["pixels"])["output"], mine)
        np.testing.assert_array_equal(mine, found)

    def test_shapes_choose_the_binding(self):
        flags = ("--binding", "train", "--shape", "batch=64", "--binding", "single", "--shape", "batch=1")
        session = ortc.Session(compile_model("mlp-digits", *flags))
        self.assertEqual(session.artifact.bindings, ["train", "single"])
        whole = session.predict(self.batch["pixels"])["output"]
        self.assertEqual(session.binding, "train")
        one = session.predict(self.batch["pixels"][3:4])["output"]
        self.assertEqual((session.binding, one.shape), ("single", (1, 10)))
        np.testing.assert_allclose(one[0], whole[3], rtol=1e-5, atol=1e-6)  # another order of sums
        with self.assertRaisesRegex(ortc.ShapeError, r"\[64, 64\] \(binding train\) or float32 \[1, 64\] \(binding single\)"):
            session.predict(self.batch["pixels"][:2])


class TensorsTest(unittest.TestCase):
    def test_parameters_are_live_with_their_strides(self):
        session = ortc.Session(compile_model("resnet-tiny", "--shape", "batch=4"))
        dense = 0
        for name in session.parameters:
            view = session.parameters[name]
            np.testing.assert_array_equal(view, session.read(name), name)
            dense += view.flags.c_contiguous
            view += 1
            np.testing.assert_array_equal(view, session.read(name), name)
            self.assertEqual(session.locate(name)[0], view.__array_interface__["data"][0])
            np.testing.assert_array_equal(np.from_dlpack(session.tensor(name)), view)
        self.assertLess(dense, len(session.parameters), "no parameter has a layout of its own: the test shows nothing")

    def test_parameters_outlive_their_session(self):
        session = ortc.Session(compile_digits())
        view = session.parameters["0.bias"]
        wanted = view.copy()
        del session
        gc.collect()
        np.testing.assert_array_equal(view, wanted)

    def test_writing(self):
        session = ortc.Session(compile_digits())
        session.parameters["0.bias"] = np.arange(64, dtype=np.float32)
        np.testing.assert_array_equal(session.parameters["0.bias"], np.arange(64))
        with self.assertRaisesRegex(ortc.ShapeError, r"'0.bias' is float32 \[64\], but the values are float32 \[63\]"):
            session.parameters["0.bias"] = np.zeros(63, np.float32)
        with self.assertRaisesRegex(ortc.NotFoundError, "there is no 'nothing'; there are 0.weight, "):
            session.parameters["nothing"]

    def test_hyper_parameters(self):
        session = ortc.Session(compile_digits())
        self.assertEqual((session.lr, session["lr"], session["step"]), (0.003, 0.003, 0))
        session.lr = 0.5
        session["beta1"] = 0.25
        self.assertEqual((session.scalars["lr"], session.beta1), (0.5, 0.25))
        with self.assertRaisesRegex(AttributeError, "'learning_rate' is no hyper-parameter of the artifact; it has beta1"):
            session.learning_rate = 1
        with self.assertRaises(AttributeError):
            session.learning_rate
        session.reset()
        self.assertEqual(session.lr, 0.003)

    def test_bfloat16(self):
        session = ortc.Session(compile_digits("--parameters", "bf16:stochastic"))
        bits = session.parameters["0.weight"]
        if bits.dtype != np.uint16:  # ml_dtypes is installed
            session.parameters["2.weight"] = session.read("2.weight") * 2
            np.testing.assert_array_equal(session.parameters["2.weight"], 2 * ortc.Session(session.artifact).read("2.weight"))
            bits = bits.view(np.uint16)
        values = (bits.astype(np.uint32) << 16).view(np.float32)
        exact = ortc.Session(compile_digits()).read("0.weight")
        np.testing.assert_allclose(values, exact, rtol=2**-8)  # half a unit of bfloat16's 8 bits
        with unittest.mock.patch.dict(sys.modules, ml_dtypes=None):  # not installed
            other, read = ortc.Session(compile_digits("--parameters", "bf16:nearest")), session.read("0.weight")
            self.assertEqual(read.dtype, np.uint16)
            other.write("0.weight", read)
            other.parameters["2.weight"] = session.parameters["2.weight"]
            for name in ("0.weight", "2.weight"):
                self.assertEqual(other.read(name).tobytes(), session.read(name).tobytes())
            with self.assertRaisesRegex(ortc.ShapeError, r"'0.bias' is float32 .64., but the values are uint16"):
                ortc.Session(compile_digits()).write("0.bias", np.zeros(64, np.uint16))


class CheckpointTest(unittest.TestCase):
    def test_checkpoints_go_round(self):
        first, second = ortc.Session(compile_digits()), ortc.Session(compile_digits())
        first.train_step(**make_batch())
        path = WORK / "round.safetensors"
        first.save(path, {"epoch": "3"})
        loaded = second.load(path)
        self.assertEqual((loaded.fresh_state, loaded.metadata["epoch"], loaded.ignored), (False, "3", 0))
        self.assertEqual(second.from_bytes(path.read_bytes()).loaded, loaded.loaded)
        self.assertEqual(second.train_step(**make_batch()), first.train_step(**make_batch()))
        self.assertEqual(read_checkpoint(path)[0]["epoch"], "3")

    def test_failures_have_classes(self):
        session = ortc.Session(compile_digits())
        with self.assertRaises(ortc.Error) as caught:
            session.load(WORK / "none.safetensors")
        self.assertIn("none.safetensors", str(caught.exception))
        with self.assertRaises(ortc.FormatError):
            session.from_bytes(b"nothing of the kind")
        with self.assertRaisesRegex(ortc.ArgumentError, "compile it with max_workers=3"):
            ortc.Session(compile_digits(), threads=3)
        damaged = bytearray((compile_digits() / "model.ortc").read_bytes())
        damaged[len(damaged) // 2] ^= 1
        place = pathlib.Path(WORK / "damaged.ortc")
        place.write_bytes(damaged)
        with self.assertRaises(ortc.FormatError):
            ortc.Session(place)
        place.write_bytes(b"ORTC")
        with self.assertRaisesRegex(ortc.FormatError, "is no artifact"):
            ortc.load(place)
        with self.assertRaisesRegex(ValueError, "none of cpu, cuda, cuda:N, hip and hip:N"):
            ortc.Session(compile_digits(), device="tpu")
        session = ortc.Session(compile_digits(), stop_on_not_finite=True)
        before = session.to_bytes()
        with self.assertRaises(ortc.NotFiniteError):
            session.train_step(np.full((64, 64), np.nan, np.float32), make_batch()["label"])
        self.assertEqual(session.to_bytes(), before)


class ParametersTest(unittest.TestCase):
    """All parameters as one array."""

    def test_they_are_the_tensors_one_after_the_other(self):
        session, other = ortc.Session(compile_digits()), ortc.Session(compile_digits())
        session.train_step(**make_batch())
        names = session.artifact.manifest["trained"]
        values = session.read_parameters()
        self.assertEqual(values.dtype, np.float32)
        self.assertEqual(values.tobytes(), b"".join(session.read(name).tobytes() for name in names))
        other.write_parameters(values)
        for name in names:
            self.assertEqual(other.read(name).tobytes(), session.read(name).tobytes(), name)
        self.assertEqual(other["step"], 0)
        for wrong in (values[:-1], values.astype(np.float64), values.reshape(2, -1)):
            with self.assertRaisesRegex(ortc.ShapeError, f"are {values.size} numbers of float32 in one row, but"):
                other.write_parameters(wrong)

    def test_running_statistics_are_no_parameters_but_weights(self):
        folder = compile_model("resnet-tiny", "--shape", "batch=2", "--batch-norm", "train", "--optimizer", "sgd:lr=0.1,momentum=0.9")
        session, other = ortc.Session(folder), ortc.Session(folder)
        inputs = {each["name"]: each for each in session.artifact.manifest["bindings"][0]["inputs"]}
        session.train_step(**{name: np.ones(each["shape"], each["dtype"]) for name, each in inputs.items()})
        trained, everything = session.read_parameters(), session.read_parameters(trainable=False)
        statistics = [name for name in session.state if "running" in name]
        self.assertEqual(everything.size, trained.size + sum(session.read(name).size for name in statistics))
        other.write_parameters(trained)
        self.assertNotEqual(other.read(statistics[0]).tobytes(), session.read(statistics[0]).tobytes())
        other.write_parameters(everything, trainable=False)
        for name in [*statistics, *session.parameters]:
            self.assertEqual(other.read(name).tobytes(), session.read(name).tobytes(), name)

    def test_bfloat16_is_widened_and_rounded_to_the_nearest(self):
        session = ortc.Session(compile_digits("--parameters", "bf16:nearest"))
        values = session.read_parameters()
        self.assertEqual(int(np.bitwise_or.reduce(values.view(np.uint32)) & 0xFFFF), 0)
        session.write_parameters(values)
        self.assertEqual(session.read_parameters().tobytes(), values.tobytes())
        values[:4] = 1.00390625, 1.01171875, 1.00390637, np.finfo(np.float32).max
        session.write_parameters(values)
        np.testing.assert_array_equal(session.read_parameters()[:4], np.float32([1, 1.015625, 1.0078125, np.inf]))

    def test_float64_is_rounded(self):
        session = ortc.Session(compile_digits("--precision", "f64"))
        values = session.read_parameters()
        session.write_parameters(values / 3)
        np.testing.assert_array_equal(session.read("2.bias"), (values[-10:] / 3).astype(np.float64))


class ThreadsTest(unittest.TestCase):
    """Of a step that takes some tens of milliseconds."""

    def setUp(self):
        self.session = ortc.Session(compile_model("mlp-digits", "--shape", "batch=65536"), threads=1)
        self.session.bind(**make_batch(65536))
        begin = time.perf_counter()
        self.session.step()
        self.seconds = time.perf_counter() - begin

    def test_other_threads_run_during_a_step_and_may_not_enter(self):
        errors, counts = [], []
        go, end = threading.Event(), threading.Event()

        def enter():
            go.wait()
            count = 0
            while not end.is_set():
                count += 1
                try:
                    self.session.get_scalar("lr")
                except ortc.StateError as error:
                    errors.append(str(error))
            counts.append(count)

        thread = threading.Thread(target=enter)
        thread.start()
        go.set()
        for _ in range(20):
            try:
                self.session.step()
            except ortc.StateError:  # the other one was faster
                pass
        end.set()
        thread.join()
        self.assertGreater(len(errors), 100)  # each of them ran while a step did
        self.assertIn("another thread is in this session", errors[0])
        self.session.step()

    def test_an_interrupt_acts_after_the_step(self):
        before = self.session["step"]
        timer = threading.Timer(self.seconds / 2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            while True:
                self.session.step()
        timer.join()
        self.assertGreater(self.session["step"], before)
        self.session.step()


if __name__ == "__main__":
    unittest.main()
