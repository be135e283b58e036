"""The on-device classes of ortc.compat.ort_training, on the digits, beside AdamW in float64.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unittest
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import ort_training_reference
from numpy.typing import NDArray
from optional import need, needs

import ortc
from ortc.compat.ort_training import api, artifacts
from ortc.compat.ort_training._notes import note

need("onnx")
import onnx

SOURCE = Path(__file__).resolve().parents[4]
DIGITS = SOURCE / "test/zoo/mlp-digits/model.onnx"
NAMES = ["0.weight", "0.bias", "2.weight", "2.bias"]
BATCH = 32
# Products of 64 float32 numbers in another order, over 20 steps of Adam.
TWENTY_STEPS = 1e-4


def digits(count: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    with np.load(SOURCE / "test/data/digits/train.npz") as data:
        arrays = {name: data[name] for name in data.files}
    pixels = next(each for each in arrays.values() if each.ndim > 1).reshape(-1, 64)[:count]
    label = next(each for each in arrays.values() if each.ndim == 1)[:count]
    return pixels.astype(np.float32), label.astype(np.int64)


class Reference:
    """The perceptron in float64, with AdamW as transformers had it, or gradient descent."""

    def __init__(self, weights: dict[str, NDArray[Any]]) -> None:
        self.weights = {name: each.astype(np.float64) for name, each in weights.items()}
        self.moments = {name: (np.zeros(each.shape), np.zeros(each.shape)) for name, each in self.weights.items()}
        self.count = 0

    def forward(self, x: NDArray[Any], y: NDArray[Any]) -> tuple[float, dict[str, NDArray[Any]]]:
        w = self.weights
        hidden = np.maximum(x.astype(np.float64) @ w["0.weight"].T + w["0.bias"], 0)
        logits = hidden @ w["2.weight"].T + w["2.bias"]
        shares = np.exp(logits - logits.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        loss = -np.log(shares[np.arange(len(y)), y]).mean()
        d = shares.copy()
        d[np.arange(len(y)), y] -= 1
        d /= len(y)
        dh = (d @ w["2.weight"]) * (hidden > 0)
        return loss, {"0.weight": dh.T @ x, "0.bias": dh.sum(0), "2.weight": d.T @ hidden, "2.bias": d.sum(0)}

    def adamw(self, gradients: dict[str, NDArray[Any]], rate: float, names: list[str]) -> None:
        self.count += 1
        for name in names:
            g, (m, v) = gradients[name], self.moments[name]
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            self.moments[name] = m, v
            rate_now = rate * np.sqrt(1 - 0.999**self.count) / (1 - 0.9**self.count)
            self.weights[name] -= rate_now * m / (np.sqrt(v) + 1e-6)


class ReferenceTest(unittest.TestCase):
    """The same script over ONNX Runtime Training 1.19.2, whose numbers are in a file."""

    def compare(self, wanted: Any, got: Any, where: str) -> None:
        if isinstance(wanted, dict):
            self.assertEqual(wanted.keys(), got.keys(), where)
            for key, each in wanted.items():
                self.compare(each, got[key], f"{where}.{key}")
        elif isinstance(wanted, float) or (isinstance(wanted, list) and isinstance(wanted[0], float)):
            self.assertEqual(np.shape(wanted), np.shape(got), where)
            difference = np.abs(np.asarray(wanted) - np.asarray(got)).max() / np.abs(wanted).max()
            self.assertLess(difference, 1e-12 if where.startswith("all.rates") else TWENTY_STEPS, where)
        elif isinstance(wanted, list) and isinstance(wanted[0], list):
            self.assertEqual(len(wanted), len(got), where)
            for i, each in enumerate(wanted):
                self.compare(each, got[i], f"{where}.{i}")
        else:
            self.assertEqual(wanted, got, where)

    def test_one_script(self) -> None:
        wanted = json.loads(Path(__file__).with_name("ort_training_reference.json").read_text())
        self.compare(wanted, ort_training_reference.run("ortc.compat.ort_training"), "all")


class DeviceTest(unittest.TestCase):
    def setUp(self) -> None:
        place = TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name)
        self.pixels, self.label = digits(8 * BATCH)

    def generate(self, trained: list[str] | None = NAMES, frozen: list[str] | None = None, **options: Any) -> None:
        defaults = {"loss": artifacts.LossType.CrossEntropyLoss, "optimizer": artifacts.OptimType.AdamW, "target": "native"}
        artifacts.generate_artifacts(str(DIGITS), trained, frozen, **(defaults | {"artifact_directory": self.folder} | options))

    def load(self, checkpoint: str = "checkpoint") -> tuple[api.CheckpointState, api.Module, api.Optimizer]:
        state = api.CheckpointState.load_checkpoint(self.folder / checkpoint)
        module = api.Module(self.folder / "training_model.onnx", state, self.folder / "eval_model.onnx")
        return state, module, api.Optimizer(self.folder / "optimizer_model.onnx", module)

    def batch(self, step: int, size: int = BATCH) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        at = step * BATCH % len(self.pixels)
        return self.pixels[at : at + size], self.label[at : at + size]

    def reference(self, state: api.CheckpointState) -> Reference:
        return Reference({name: each.data for name, each in state.parameters})

    def assert_near(self, wanted: Any, got: Any, what: str = "") -> None:
        largest = max(float(np.abs(wanted).max()), 1e-3)
        self.assertLess(float(np.abs(np.asarray(wanted) - np.asarray(got)).max()) / largest, TWENTY_STEPS, what)

    def test_several_losses_and_another_optimizer(self) -> None:
        """Those of ortc.compile, compiled ahead and when first called; each loss by itself is an output."""
        loss = {"digit": "cross_entropy:sample_weight=1@output", "hidden": "mse@relu:weight=0.1"}
        weights, hidden = np.linspace(0.5, 1.5, BATCH, dtype=np.float32), np.ones((BATCH, 64), np.float32)
        wanted = ortc.Session(
            ortc.compile(DIGITS, shapes={"batch": BATCH}, loss=loss, optimizer="lion:lr=3e-3", gradients=True, target="native")
        )
        pixels, label = self.batch(0)
        batch = {"pixels": pixels, "label.digit": label, "sample_weight.digit": weights, "label.hidden": hidden}
        expected = []
        for _ in range(4):
            expected.append(wanted.gradients_step(**batch))
            wanted.update_step()
        for shapes in ({"batch": BATCH}, None):
            self.generate(shapes=shapes, loss=loss, optimizer="lion:lr=3e-3", additional_output_names=["loss.digit"])
            state, module, optimizer = self.load()
            self.assertEqual(optimizer.get_learning_rate(), 3e-3)
            if shapes is None:
                with self.assertRaisesRegex(ortc.StateError, "is known when it is compiled"):
                    module.input_names()
            found = []
            for _ in range(4):
                total, digit = module(*batch.values())
                found.append(float(total))
                self.assertLess(float(digit), float(total))
                optimizer.step()
                module.lazy_reset_grad()
            self.assertEqual(found, expected)
            self.assertEqual(module.input_names(), list(batch))
            self.assertTrue(np.array_equal(state.parameters["2.bias"].data, wanted.parameters["2.bias"]))
        with self.assertRaisesRegex(ortc.ArgumentError, "must have its rate, such as 'lion:lr=1e-3'"):
            self.generate(optimizer="lion")

    def test_the_adamw_of_pytorch(self) -> None:
        """Given as a flag, its epsilon is that of PyTorch, and not that of transformers."""
        for rest in ("epsilon=1e-2,weight_decay=0", "beta1=0.9,beta2=0.999,epsilon=1e-2,weight_decay=0.0"):
            self.generate(shapes={"batch": BATCH}, optimizer=f"adamw:lr=0.001,{rest}")
            state, module, optimizer = self.load()
            before = state.parameters["2.bias"].data.astype(np.float64)
            module(*self.batch(0))
            g = module._gradient("2.bias").astype(np.float64)
            optimizer.step()
            self.assert_near(before - 0.001 * g / (np.abs(g) + 1e-2), state.parameters["2.bias"].data)

    def test_twenty_steps(self) -> None:
        """Compiled ahead and when first called: losses, gradients, a schedule, and the weights at the end."""
        for shapes in ({"batch": BATCH}, None):
            self.generate(shapes=shapes)
            self.assertEqual((self.folder / "training_model.ortc").exists(), shapes is not None)
            state, module, optimizer = self.load()
            self.assertEqual(module.input_names(), ["pixels", "labels"])
            reference = self.reference(state)
            scheduler = api.LinearLRScheduler(optimizer, 4, 20, 0.02)
            self.assertEqual(optimizer.get_learning_rate(), 0)
            for step in range(20):
                module.train()
                loss = module(*self.batch(step))
                self.assertEqual((loss.dtype, loss.shape), (np.float32, ()))
                wanted, gradients = reference.forward(*self.batch(step))
                self.assert_near(wanted, loss)
                for name, each in state.parameters:
                    self.assert_near(gradients[name], each.grad, name)
                rate = 0.02 * (step / 4 if step < 4 else (20 - step) / 16)
                self.assertAlmostEqual(optimizer.get_learning_rate(), rate)
                reference.adamw(gradients, rate, NAMES)
                optimizer.step()
                scheduler.step()
                module.lazy_reset_grad()
            for name, each in state.parameters:
                self.assertEqual(np.abs(each.grad).max(), 0, name)
                self.assert_near(reference.weights[name], each.data, name)
            module.eval()
            self.assert_near(reference.forward(*self.batch(0))[0], module(*self.batch(0)))
            self.assertLess(float(module(*self.batch(0))), 1.0)

    def test_frozen_and_accumulated(self) -> None:
        """Gradients add up until lazy_reset_grad; what is frozen stays."""
        trained = ["2.weight", "2.bias"]
        self.generate(trained, ["0.weight", "0.bias"], shapes={"batch": BATCH})
        state, module, optimizer = self.load()
        reference = self.reference(state)
        optimizer.set_learning_rate(0.05)
        for step in range(0, 6, 2):
            gradients = [reference.forward(*self.batch(step + k))[1] for k in range(2)]
            for k in range(2):
                module(*self.batch(step + k))
            sums = {name: gradients[0][name] + gradients[1][name] for name in trained}
            for name in trained:
                self.assert_near(sums[name], state.parameters[name].grad, name)
            optimizer.step()
            module.lazy_reset_grad()
            reference.adamw(sums, 0.05, trained)
        for name, each in state.parameters:
            self.assertEqual(each.requires_grad, name in trained)
            self.assert_near(reference.weights[name], each.data, name)
        with self.assertRaisesRegex(ortc.ArgumentError, "frozen"):
            state.parameters["0.bias"] = np.ones(64, np.float32)

    def test_order_of_calls(self) -> None:
        self.generate(shapes={"batch": BATCH})
        _, module, optimizer = self.load()
        with self.assertRaisesRegex(ortc.StateError, "there are no gradients"):
            optimizer.step()
        module(*self.batch(0))
        module.eval()
        with self.assertRaisesRegex(ortc.StateError, "do not outlive an evaluation"):
            module(*self.batch(0))
        optimizer.step()
        module.train()
        with self.assertRaisesRegex(ortc.StateError, "lazy_reset_grad"):
            module(*self.batch(1))
        module.lazy_reset_grad()
        module(*self.batch(1))
        with self.assertRaises(ortc.RangeError):
            module(self.batch(1)[0], np.full(BATCH, 10))
        with self.assertRaisesRegex(ortc.StateError, "there are no gradients"):
            optimizer.step()
        module(*self.batch(1))
        with self.assertRaisesRegex(ortc.StateError, "another Module"):
            api.Module(self.folder / "training_model.onnx", module._state)
        state = api.CheckpointState.load_checkpoint(self.folder / "checkpoint")
        alone = api.Module(self.folder / "training_model.onnx", state).eval()
        with self.assertRaisesRegex(ortc.StateError, "eval_model_uri"):
            alone(*self.batch(0))

    def test_inputs_that_give_arrays(self) -> None:
        """Values of ONNX Runtime have numpy()."""

        class Value:
            def __init__(self, values: NDArray[Any]) -> None:
                self.numpy = lambda: values

        with self.assertWarnsRegex(UserWarning, "no initializer gone"):
            self.generate(frozen=["gone"], shapes={"batch": BATCH})
        _, module, _ = self.load()
        first = module(*self.batch(0))
        module.lazy_reset_grad()
        self.assertEqual(module(*map(Value, self.batch(0))), first)

    @needs("onnxruntime")
    def test_ort_values(self) -> None:
        """In and out; where one argument is of numpy, so are results, as there."""
        import onnxruntime

        make = onnxruntime.OrtValue.ortvalue_from_numpy
        hidden = onnx.load(str(DIGITS)).graph.node[1].output[0]
        self.generate(shapes={"batch": BATCH}, additional_output_names=[hidden])
        state, module, _ = self.load()
        pixels, label = self.batch(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = module(pixels, label)
            for values, kind in (((make(pixels), make(label)), onnxruntime.OrtValue), ((make(pixels), label), np.ndarray)):
                module.lazy_reset_grad()
                got = module(*values)
                for one, other in zip(got, wanted, strict=True):
                    self.assertIsInstance(one, kind)
                    self.assertTrue(np.array_equal(one if kind is np.ndarray else one.numpy(), other))
        module.lazy_reset_grad()
        module.eval()
        self.assertEqual(module(make(pixels), make(label))[0].shape(), [])
        state.parameters["2.bias"] = make(np.full(10, 2, np.float32))
        self.assertEqual(state.parameters["2.bias"].data.tolist(), [2.0] * 10)
        module.copy_buffer_to_parameters(make(np.full(4810, 3, np.float32)))
        self.assertEqual(state.parameters["2.bias"].data.tolist(), [3.0] * 10)

    def test_gradients_before_a_step(self) -> None:
        """Are zeros, and so are those after lazy_reset_grad; without a Module there are none."""
        self.generate(["2.bias"], ["0.bias"], shapes={"batch": BATCH})
        state = api.CheckpointState.load_checkpoint(self.folder / "checkpoint")
        self.assertIsNone(state.parameters["2.bias"].grad)
        state, module, optimizer = self.load()
        self.assertIsNone(state.parameters["0.bias"].grad)
        for _ in range(2):
            self.assertEqual(state.parameters["2.bias"].grad.tolist(), [0.0] * 10)
            module(*self.batch(0))
            self.assertGreater(np.abs(state.parameters["2.bias"].grad).max(), 0)
            optimizer.step()
            self.assertIsNone(state.parameters["2.bias"].grad)
            module.lazy_reset_grad()

    def test_without_requires_grad(self) -> None:
        """What `ortc train` trains is trained."""
        for frozen, trained in ((None, NAMES), (["0.weight", "0.bias"], ["2.weight", "2.bias"])):
            for shapes in (None, {"batch": BATCH}):
                note.cache_clear()
                with self.assertWarnsRegex(UserWarning, f"requires_grad is not given: {', '.join(trained)} are trained"):
                    self.generate(None, frozen, shapes=shapes)
                self.assertEqual({each.name for each in self.folder.iterdir()} & {"model.onnx", "artifact"}, set())
                state, module, _ = self.load()
                self.assertEqual({name for name, each in state.parameters if each.requires_grad}, {*trained})
                module(*self.batch(0))
                self.assertEqual({*module._current.gradients}, {*trained})
        with self.assertRaisesRegex(ortc.ArgumentError, "nothing is left to train beside frozen_params"):
            self.generate(None, NAMES)

    def test_other_shapes(self) -> None:
        """A last batch that is smaller is compiled when it comes, and goes on with the same state."""
        self.generate(shapes={"batch": BATCH})
        state, module, optimizer = self.load()
        reference = self.reference(state)
        for step, size in enumerate((BATCH, 7, BATCH, 7)):
            module(*self.batch(step, size))
            gradients = reference.forward(*self.batch(step, size))[1]
            optimizer.step()
            module.lazy_reset_grad()
            reference.adamw(gradients, 0.001, NAMES)
        for name, each in state.parameters:
            self.assert_near(reference.weights[name], each.data, name)
        parts = [self.batch(0, 7), self.batch(1)]
        sums = [reference.forward(*each)[1]["2.bias"] for each in parts]
        for each in parts:
            module(*each)
        self.assert_near(sums[0] + sums[1], state.parameters["2.bias"].grad)
        with self.assertRaisesRegex(ortc.ArgumentError, "takes pixels, labels, but was given 1"):
            module(self.pixels[:5])

    def test_checkpoints(self) -> None:
        self.generate(shapes={"batch": BATCH})
        state, module, optimizer = self.load()
        for step in range(3):
            module(*self.batch(step))
            optimizer.set_learning_rate(0.01 / (step + 1))
            optimizer.step()
            module.lazy_reset_grad()
        for name, value in (("epoch", 3), ("best", 0.5), ("note", "mid")):
            state.properties[name] = value
        with self.assertRaisesRegex(ortc.ArgumentError, "an int, a float or a str"):
            state.properties["list"] = [1]
        api.CheckpointState.save_checkpoint(state, self.folder / "whole", include_optimizer_state=True)
        api.CheckpointState.save_checkpoint(state, self.folder / "weights")
        other, other_module, other_optimizer = self.load("whole")
        self.assertEqual(dict(other.properties), {"epoch": 3, "best": 0.5, "note": "mid"})
        self.assertEqual(other_optimizer.get_learning_rate(), optimizer.get_learning_rate())
        fresh, fresh_module, fresh_optimizer = self.load("weights")
        self.assertEqual(fresh_optimizer.get_learning_rate(), 0.001)
        for each_module, each in ((module, optimizer), (other_module, other_optimizer), (fresh_module, fresh_optimizer)):
            each.set_learning_rate(0.01)
            each_module(*self.batch(3))
            each.step()
        self.assertTrue(np.array_equal(state.parameters["2.bias"].data, other.parameters["2.bias"].data))
        self.assertFalse(np.array_equal(state.parameters["2.bias"].data, fresh.parameters["2.bias"].data))
        # The file is a checkpoint of ortc.
        session = ortc.Session(self.folder / "training_model.ortc")
        self.assertFalse(session.load(self.folder / "whole").fresh_state)
        self.assertTrue(session.load(self.folder / "weights").fresh_state)
        with self.assertRaises(ortc.FormatError):
            api.CheckpointState.load_checkpoint(DIGITS)

    def test_checkpoints_replace_regular_files_alone(self) -> None:
        self.generate(shapes={"batch": BATCH})
        state, _, _ = self.load()
        pipe, link, file = (self.folder / name for name in ("pipe", "link", "file"))
        os.mkfifo(pipe)
        link.symlink_to(file)
        with self.assertRaisesRegex(ortc.ArgumentError, "pipe: is no regular file, which is not replaced"):
            api.CheckpointState.save_checkpoint(state, pipe)
        self.assertTrue(pipe.is_fifo())
        for _ in range(2):
            api.CheckpointState.save_checkpoint(state, link)
            self.assertTrue(link.is_symlink() and file.is_file())
        self.assertFalse(list(self.folder.glob("*.tmp")))

    def test_parameters_and_buffers(self) -> None:
        """Before the first step, and after it."""
        self.generate(["2.bias", "2.weight"], ["0.bias"], shapes={"batch": BATCH})
        state, module, _ = self.load()
        self.assertEqual([name for name, _ in state.parameters], ["0.bias", "2.bias", "2.weight"])
        self.assertEqual((module.get_parameters_size(), module.get_parameters_size(False), len(state.parameters)), (650, 714, 3))
        for _ in range(2):
            state.parameters["2.bias"] = np.arange(10, dtype=np.float32)
            self.assertEqual(state.parameters["2.bias"].data.tolist(), list(range(10)))
            buffer = module.get_contiguous_parameters(trainable_only=True)
            self.assertEqual(float(buffer.numpy().sum()), float(buffer.sum()))
            module.copy_buffer_to_parameters(buffer * 2)
            self.assertEqual(state.parameters["2.bias"].data.tolist(), list(range(0, 20, 2)))
            whole = module.get_contiguous_parameters()
            order = [each.name for each in onnx.load(str(DIGITS)).graph.initializer if each.name != "0.weight"]
            wanted = np.concatenate([state.parameters[name].data.ravel() for name in order])
            self.assertTrue(np.array_equal(whole, wanted))
            module.copy_buffer_to_parameters(whole, trainable_only=False)
            with self.assertRaisesRegex(ortc.ArgumentError, "frozen"):
                module.copy_buffer_to_parameters(whole + 1, trainable_only=False)
            with self.assertRaisesRegex(ortc.ArgumentError, r"must be float32 \(650,\)"):
                module.copy_buffer_to_parameters(whole)
            with self.assertRaisesRegex(ortc.ArgumentError, "float64"):
                state.parameters["2.bias"] = np.zeros(10)
            module(*self.batch(0))
        with self.assertRaisesRegex(KeyError, "there is no parameter"):
            state.parameters["3.bias"]

    def test_export(self) -> None:
        """What is left computes the same, with the weights of now; of two outputs one can be asked for."""
        hidden = onnx.load(str(DIGITS)).graph.node[1].output[0]
        self.generate(shapes={"batch": BATCH}, additional_output_names=[hidden])
        state, module, optimizer = self.load()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loss, values = module(*self.batch(0))
        self.assertEqual(module.output_names(), ["loss", hidden])
        self.assertEqual((loss.shape, values.shape), ((), (BATCH, 64)))
        optimizer.step()
        module.lazy_reset_grad()
        module.export_model_for_inferencing(self.folder / "inference.onnx", ["output"])
        model = onnx.load(str(self.folder / "inference.onnx"))
        onnx.checker.check_model(model)
        self.assertEqual([each.name for each in model.graph.output], ["output"])
        from onnx.reference import ReferenceEvaluator

        (got,) = ReferenceEvaluator(model).run(None, {"pixels": self.pixels[:BATCH]})
        w = {name: each.data for name, each in state.parameters}
        wanted = np.maximum(self.pixels[:BATCH] @ w["0.weight"].T + w["0.bias"], 0) @ w["2.weight"].T + w["2.bias"]
        self.assert_near(wanted, got)

    def test_export_before_a_step(self) -> None:
        """Where shapes are known, and where nothing is compiled yet; the step afterwards has its own."""
        from onnx.reference import ReferenceEvaluator

        for shapes in ({"batch": BATCH}, None):
            with self.subTest(shapes=shapes):
                self.generate(shapes=shapes)
                state, module, optimizer = self.load()
                state.parameters["2.bias"] = np.arange(10, dtype=np.float32)
                module.export_model_for_inferencing(self.folder / "inference.onnx", ["output"])
                (got,) = ReferenceEvaluator(onnx.load(str(self.folder / "inference.onnx"))).run(None, {"pixels": self.pixels[:5]})
                w = {name: each.data for name, each in state.parameters}
                wanted = np.maximum(self.pixels[:5] @ w["0.weight"].T + w["0.bias"], 0) @ w["2.weight"].T + w["2.bias"]
                self.assert_near(wanted, got)
                reference = self.reference(state)
                loss, gradients = reference.forward(*self.batch(0))
                self.assert_near(loss, module(*self.batch(0)))
                optimizer.step()
                reference.adamw(gradients, 0.001, NAMES)
                self.assert_near(reference.weights["2.bias"], state.parameters["2.bias"].data)

    def test_losses_and_sgd(self) -> None:
        """Of a linear layer: every LossType, and a loss that the graph computes, with plain gradient descent."""
        rng = np.random.default_rng(1)
        weight = rng.standard_normal((5, 3)).astype(np.float32)
        x, target = rng.standard_normal((4, 5)).astype(np.float32), rng.random((4, 3)).astype(np.float32)
        z = x.astype(np.float64) @ weight
        s = 1 / (1 + np.exp(-z))
        rules = {
            artifacts.LossType.MSELoss: (((z - target) ** 2).mean(), 2 * (z - target) / 12),
            artifacts.LossType.L1Loss: (np.abs(z - target).mean(), np.sign(z - target) / 12),
            artifacts.LossType.BCEWithLogitsLoss: (-(target * np.log(s) + (1 - target) * np.log(1 - s)).mean(), (s - target) / 12),
            None: ((z**2).mean(), 2 * z / 12),
        }
        f32 = onnx.TensorProto.FLOAT
        for loss, (wanted, gradient) in rules.items():
            nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["z"])]
            outputs = [onnx.helper.make_tensor_value_info("z", f32, [4, 3])]
            if loss is None:
                nodes += [onnx.helper.make_node("Mul", ["z", "z"], ["q"]), onnx.helper.make_node("ReduceMean", ["q"], ["own"], keepdims=0)]
                outputs.append(onnx.helper.make_tensor_value_info("own", f32, []))
            graph = onnx.helper.make_graph(
                nodes, "g", [onnx.helper.make_tensor_value_info("x", f32, [4, 5])], outputs, [onnx.numpy_helper.from_array(weight, "w")]
            )
            model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
            artifacts.generate_artifacts(
                model, ["w"], None, loss, artifacts.OptimType.SGD, self.folder, "p_", loss_input_names=["own"] if loss is None else None
            )
            state = api.CheckpointState.load_checkpoint(self.folder / "p_checkpoint")
            module = api.Module(self.folder / "p_training_model.onnx", state)
            optimizer = api.Optimizer(self.folder / "p_optimizer_model.onnx", module)
            optimizer.set_learning_rate(0.1)
            inputs = (x,) if loss is None else (x, target)
            self.assertEqual(module.input_names(), ["x"] if loss is None else ["x", "target"])
            self.assert_near(wanted, module(*inputs), str(loss))
            optimizer.step()
            self.assert_near(weight - 0.1 * x.T @ gradient, state.parameters["w"].data, str(loss))

    def test_batch_normalization(self) -> None:
        """Normalises with the batch and moves running statistics, as there, also in a graph for inference."""
        rng = np.random.default_rng(2)
        f32 = onnx.TensorProto.FLOAT
        tensors = {"w": rng.standard_normal((5, 3)), "scale": np.ones(3), "shift": np.zeros(3), "mean": np.zeros(3), "var": np.ones(3)}
        weights = [onnx.numpy_helper.from_array(each.astype(np.float32), name) for name, each in tensors.items()]
        nodes = [
            onnx.helper.make_node("MatMul", ["x", "w"], ["h"]),
            onnx.helper.make_node("BatchNormalization", ["h", "scale", "shift", "mean", "var"], ["z"], momentum=0.9),
        ]
        values = [onnx.helper.make_tensor_value_info(name, f32, shape) for name, shape in (("x", ["n", 5]), ("z", ["n", 3]))]
        graph = onnx.helper.make_graph(nodes, "g", values[:1], values[1:], weights)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
        artifacts.generate_artifacts(
            model, ["w", "scale", "shift"], ["mean", "var"], artifacts.LossType.MSELoss, artifacts.OptimType.SGD, self.folder
        )
        state, module, optimizer = self.load()
        x, target = rng.standard_normal((6, 5)).astype(np.float32), np.zeros((6, 3), np.float32)
        h = x.astype(np.float64) @ tensors["w"].astype(np.float32)
        wanted = (((h - h.mean(0)) / np.sqrt(h.var(0) + 1e-5)) ** 2).mean()
        self.assert_near(wanted, module(x, target))
        optimizer.step()
        self.assert_near(0.1 * h.mean(0), state.parameters["mean"].data)
        self.assertFalse(state.parameters["mean"].requires_grad)

    def test_no_pytorch(self) -> None:
        """With an artifact that is compiled ahead, neither PyTorch nor onnx nor the compiler is asked for."""
        self.generate(shapes={"batch": BATCH})
        script = (
            "import sys\n"
            "sys.modules.update(torch=None, onnx=None)\n"
            "import numpy as np\n"
            "from ortc.compat.ort_training.api import CheckpointState, Module, Optimizer\n"
            "state = CheckpointState.load_checkpoint('checkpoint')\n"
            "module = Module('training_model.onnx', state, 'eval_model.onnx')\n"
            "optimizer = Optimizer('optimizer_model.onnx', module)\n"
            f"x, y = np.ones(({BATCH}, 64), np.float32), np.zeros({BATCH}, np.int64)\n"
            "for _ in range(3):\n"
            "    loss = module.train()(x, y)\n"
            "    optimizer.step()\n"
            "    module.lazy_reset_grad()\n"
            "assert module.eval()(x, y) < loss\n"
        )
        subprocess.run([sys.executable, "-c", script], cwd=self.folder, check=True, env={**os.environ, "ORTC_COMPILER": "/none"})

    def test_refusals(self) -> None:
        from ortc.compat.ort_training import onnxblock

        class Mine:
            pass

        for options, message in (
            ({"loss": Mine()}, "the loss .*Mine.* loss=None, loss_input_names"),
            ({"optimizer": Mine()}, "the optimizer .*Mine"),
            ({"loss_input_names": ["output", "pixels"]}, "loss_input_names of 2"),
            ({"trained": []}, "nothing would be trained"),
            ({"trained": ["none"]}, "no initializer none"),
            ({"frozen": ["0.bias"]}, "both have 0.bias"),
            ({"train": [".*"]}, "'train' is no flag"),
        ):
            with self.assertRaisesRegex(ortc.ArgumentError, message):
                self.generate(**options)
        for name in ("custom_op_library", "load_checkpoint_to_model"):
            with self.assertRaisesRegex(ortc.ArgumentError, f"onnxblock.{name} .*generate_artifacts takes blocks of onnxblock, loss="):
                getattr(onnxblock, name)
        self.generate(shapes={"batch": BATCH})
        _, module, _ = self.load()
        self.generate(optimizer=artifacts.OptimType.SGD)
        with self.assertRaisesRegex(ortc.ArgumentError, "another optimizer, adamw"):
            api.Optimizer(self.folder / "optimizer_model.onnx", module)

    def test_what_is_refused_leaves_nothing(self) -> None:
        """No file, no folder that was not there, and of an earlier call all as it was."""
        from ortc.compat.ort_training import onnxblock

        class Nothing(onnxblock.Block):
            def __init__(self, given: Any) -> None:
                self.given = given

            def build(self, name: str) -> Any:
                return self.given

        optim, loss = onnxblock.optim, onnxblock.loss
        self.generate(shapes={"batch": BATCH})
        before = {path: path.read_bytes() for path in sorted(Path(self.folder).rglob("*")) if path.is_file()}
        self.assertEqual(len(before), 6)
        new = Path(self.folder) / "new"
        for options, message in (
            ({"loss": loss.CrossEntropyLoss(reduction="none")}, "training_model.onnx"),
            ({"optimizer": optim.AdamW(betas=(1.0, 0.9))}, "beta1"),
            ({"loss": Nothing(None)}, "`build` of a block has given None, but must give the name of a value"),
            ({"loss": Nothing(())}, "`build` of a block has given .., but must give the name of a value"),
            ({"loss": Nothing(3)}, "`build` of a block has given 3, but must give the name of a value"),
        ):
            for folder in (self.folder, new):
                with self.subTest(message), self.assertRaisesRegex(ortc.Error, message) as caught:
                    self.generate(**options, shapes={"batch": BATCH}, artifact_directory=folder)
                self.assertNotIn(".ortc-", str(caught.exception))
                self.assertEqual({path: path.read_bytes() for path in sorted(Path(self.folder).rglob("*")) if path.is_file()}, before)
                self.assertFalse(new.exists())
        with self.assertRaisesRegex(ortc.ArgumentError, "clip_grad is 3, but must be a ClipGradNorm"):
            optim.AdamW(clip_grad=3)
        new.mkdir()
        os.mkfifo(new / "checkpoint")
        with self.assertRaisesRegex(ortc.ArgumentError, "checkpoint: is no regular file"):
            self.generate(artifact_directory=new)
        self.assertEqual([path.name for path in new.iterdir()], ["checkpoint"])


if __name__ == "__main__":
    unittest.main()
