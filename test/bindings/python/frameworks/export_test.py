"""Files of ortc.torch.export: what they say, and that training from them is training with PyTorch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import os
import pathlib
import subprocess
import tempfile
import unittest
import unittest.mock
import warnings
from typing import Any

import nets
import numpy as np
import torch
import torch.nn.functional as F
from modules import use_own_cache
from optional import is_there, need, needs
from tolerance import distance, limit, nudge
from torch import nn

import ortc.torch

need("onnx", "onnxruntime", "safetensors")
import onnx
import onnxruntime

STEPS, ROWS, RATE = 20, 4, 0.02


def setUpModule() -> None:
    use_own_cache()


def train(model: nn.Module, data: tuple[torch.Tensor, ...], dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Parameters after all steps of PyTorch."""
    model = copy.deepcopy(model).to(dtype)
    optimizer = torch.optim.SGD([each for each in model.parameters() if each.requires_grad], lr=RATE, momentum=0.9)
    for step in range(STEPS):
        rows = [each[step * ROWS : (step + 1) * ROWS] for each in data]
        optimizer.zero_grad()
        model(*(each.to(dtype) if each.is_floating_point() else each for each in rows))["loss"].backward()
        optimizer.step()
    return {name: each.detach().double() for name, each in model.named_parameters()}


class ExportTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(3)
        warnings.simplefilter("ignore", DeprecationWarning)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "model.onnx"

    def run_ortc(self, *arguments: Any) -> str:
        program = os.environ["ORTC_COMPILER"]
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout + done.stderr

    def test_training_is_that_of_pytorch(self) -> None:
        """Through the command line, in float32, within eight times PyTorch's own distance from float64."""
        from safetensors.torch import load_file

        for name, (make, data) in nets.TRAINED.items():
            with self.subTest(name):
                model = make()
                ortc.torch.export(model, tuple(each[:ROWS] for each in data), self.path, verbose=False)
                names = [each.name for each in onnx.load(self.path).graph.input]
                np.savez(self.folder / "data.npz", **{key: each.numpy() for key, each in zip(names, data, strict=True)})
                artifact, saved = self.folder / name, self.folder / "trained.safetensors"
                flags = ["--shape", f"batch={ROWS}", "--loss", "output:loss", "--optimizer", f"sgd:lr={RATE},momentum=0.9"]
                self.run_ortc("train", self.path, "-o", artifact, *flags, "--target", "native")
                self.run_ortc("run", artifact, "--data", self.folder / "data.npz", "--no-shuffle", "--steps", STEPS, "--save", saved)
                wanted = train(model, data, torch.float64)
                runs = [train(model, data, torch.float32), *(train(nudge(copy.deepcopy(model), i), data, torch.float32) for i in (1, 2))]
                trained = load_file(saved)
                for key, values in wanted.items():
                    if key not in trained:
                        self.assertTrue(torch.equal(values, dict(model.named_parameters())[key].double()), f"{key} is not trained")
                        continue
                    self.assertLessEqual(distance(values, trained[key].double()), limit(values, [run[key] for run in runs]), key)
                for key, each in model.named_parameters():
                    self.assertEqual(each.requires_grad, key in trained or "teacher" in key, key)

    def test_nets(self) -> None:
        """Tables of checked exports, and files that onnxruntime runs with the numbers of the module."""
        for name, (make, args, kwargs) in nets.NETS.items():
            with self.subTest(name):
                model = make()
                found = ortc.torch.export(model, args, self.path, kwargs=kwargs, verbose=False)
                self.assertTrue(found.passed)
                proto = onnx.load(self.path)
                onnx.checker.check_model(proto, full_check=True)
                self.assertEqual({each.domain for each in proto.opset_import}, {""})
                names = {name for name, each in model.named_parameters() if each.requires_grad}
                said = {each.key: each.value for each in proto.metadata_props}["ortc.trainable"].split("\n")
                self.assertEqual(set(said), names)
                if not any("random" in each for each in found.notes):
                    self.run_onnxruntime(proto, model, args, kwargs)

    def run_onnxruntime(self, proto: Any, model: nn.Module, args: Any, kwargs: Any) -> None:
        if any(each.dtype == torch.bfloat16 for each in model.parameters()):  # which it has no kernels for
            return
        leaves = [each for each in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
        got = session.run(None, {each.name: leaf.numpy() for each, leaf in zip(proto.graph.input, leaves, strict=True)})
        with torch.no_grad():
            wanted = [each for each in torch.utils._pytree.tree_leaves(model(*args, **kwargs)) if isinstance(each, torch.Tensor)]
        for mine, other in zip(wanted, got, strict=True):
            self.assertLessEqual(float((mine - torch.from_numpy(other)).abs().max()), 1e-5 * max(1.0, float(mine.abs().max())))

    def test_marks(self) -> None:
        model = nets.VectorQuantized()
        ortc.torch.export(model, (torch.randn(4, 6),), self.path, verbose=False)
        proto = onnx.load(self.path)
        said = {each.key: each.value for each in proto.metadata_props}
        makers = {each.output[0]: each.op_type for each in proto.graph.node}
        self.assertEqual({makers[each] for each in said["ortc.detached"].split("\n")}, {"Identity"})
        self.assertEqual([each.name for each in proto.graph.input], ["x"])
        self.assertEqual([each.name for each in proto.graph.output], ["loss", "places"])
        ortc.torch.export(nets.Padded(-3), (nets.integers(11, 4, 5),), self.path, verbose=False)
        proto = onnx.load(self.path)
        said = {each.key: each.value for each in proto.metadata_props}
        value, row = said["ortc.padding"].split("=")
        self.assertEqual(({each.output[0]: each.op_type for each in proto.graph.node}[value], row), ("Gather", "8"))
        ortc.torch.export(nets.Rounding(nets.Round.apply), (torch.randn(4, 6),), self.path, verbose=False)
        proto = onnx.load(self.path)
        said = {each.key: each.value for each in proto.metadata_props}
        output, source = said["ortc.straight_through"].split("=")
        makers = {each.output[0]: each.op_type for each in proto.graph.node}
        self.assertEqual((makers[output], makers[source]), ("Identity", "Mul"))

    def test_names_of_nested_arguments(self) -> None:
        make, args, kwargs = nets.NETS["attention"]
        ortc.torch.export(make(), args, self.path, kwargs=kwargs, verbose=False)
        graph = onnx.load(self.path).graph
        self.assertEqual([each.name for each in graph.input], ["batch.x", "batch.hidden", "shift"])
        self.assertEqual([each.name for each in graph.output], ["y", "parts.0", "parts.1.0"])

    def test_batch(self) -> None:
        model = nets.mlp(6, 8, 3)
        x = torch.randn(4, 6)
        for batch, wanted in ((None, "batch"), (False, 4), (True, "batch")):
            ortc.torch.export(model, (x,), self.path, batch=batch, verbose=False)
            size = onnx.load(self.path).graph.input[0].type.tensor_type.shape.dim[0]
            self.assertEqual(size.dim_param or size.dim_value, wanted)
        fixed = nets.Function(lambda x: x.reshape(4, 2, 4).sum((1, 2)) / 4)
        found = ortc.torch.export(fixed, (x,), self.path, verbose=False)
        self.assertTrue(any(each.startswith("the batch is fixed: ") for each in found.notes), found.notes)
        self.assertEqual(onnx.load(self.path).graph.input[0].type.tensor_type.shape.dim[0].dim_value, 4)
        with self.assertRaises(ortc.CompileError):
            ortc.torch.export(fixed, (x,), self.path, batch=True, verbose=False)
        with self.assertRaisesRegex(ortc.ArgumentError, "no leading dimension"):
            ortc.torch.export(nets.Graph(), (torch.randn(5, 4), nets.integers(5, 2, 9)), self.path, batch=True, verbose=False)

    def test_batch_with_padding(self) -> None:
        """PyTorch compares the sizes of masks, which are no numbers while the batch is open."""
        model = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        hidden = torch.tensor([[False] * 5, [False, True, True, True, True]] * 2)
        args = {"src": torch.randn(4, 5, 8), "src_key_padding_mask": hidden}
        found = ortc.torch.export(model, args, self.path, verbose=False)
        self.assertFalse(any("batch" in each for each in found.notes), found.notes)

    def test_what_is_refused(self) -> None:
        """With one message, and without a file."""
        looks = nets.Function(lambda x: x if x.sum() > 0 else -x)
        grad = nets.Function(lambda x: torch.autograd.grad((x * x).sum(), x, create_graph=True)[0])
        for model, text in (
            (nets.Function(nets.Clipped.apply), "a gradient of its own .Clipped. that is neither"),
            (looks, "looks at numbers of a tensor"),
            (grad, "computes gradients in forward"),
            (nets.Function(torch.lgamma), "calls lgamma, for which PyTorch's exporter to ONNX has no rule$"),
        ):
            with self.assertRaisesRegex(ortc.CompileError, text):
                ortc.torch.export(model, (torch.randn(4, 6),), self.path, verbose=False)
            self.assertEqual(list(self.folder.iterdir()), [])
        with self.assertRaisesRegex(ortc.ArgumentError, "does not take these arguments"):
            ortc.torch.export(nets.mlp(6, 3), (), self.path)
        with unittest.mock.patch("ortc.torch._export_file._MOST_BYTES", 80), self.assertRaisesRegex(ortc.CompileError, "take 84 bytes"):
            ortc.torch.export(nets.mlp(6, 3), (torch.randn(4, 6),), self.path)
        with self.assertRaisesRegex(ortc.ArgumentError, "is a folder: name the file"):
            ortc.torch.export(nets.mlp(6, 3), (torch.randn(4, 6),), self.folder)
        with self.assertRaisesRegex(ortc.ArgumentError, "and must be a torch.nn.Module"):
            ortc.torch.export(torch.sin, (torch.randn(4, 6),), self.path)
        with self.assertRaisesRegex(ortc.ArgumentError, "there is no folder"):
            ortc.torch.export(nets.mlp(6, 3), (torch.randn(4, 6),), self.folder / "none" / "model.onnx")

    def test_the_module_stays_as_it_is(self) -> None:
        model = nets.Images(0.5)
        before, state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
        ortc.torch.export(model, (torch.randn(4, 2, 6, 6, generator=torch.Generator().manual_seed(0)),), self.path, verbose=False)
        self.assertTrue(torch.equal(state, torch.get_rng_state()))
        self.assertTrue(model.training)
        for key, each in model.state_dict().items():
            self.assertTrue(torch.equal(each, before[key]), key)

    # ---- Files of other exporters.

    def export_otherwise(self, model: nn.Module, args: Any, how: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if how == "TorchScript":
                torch.onnx.export(model, args, self.path, dynamo=False, do_constant_folding=True, training=torch.onnx.TrainingMode.PRESERVE)
            else:
                torch.onnx.export(model, args, self.path, dynamo=True, optimize=how == "default", verbose=False, external_data=False)

    def test_files_of_other_exporters(self) -> None:
        x = torch.randn(4, 6)
        for how in (("default", "plain", "TorchScript") if is_there("onnxscript") else ("TorchScript",)):
            with self.subTest(how):
                model = nets.mlp(6, 8, 3)
                self.export_otherwise(model, (x,), how)
                found = ortc.torch.check(model, self.path, (x,), verbose=False)
                self.assertEqual({row.what for row in found.rows}, {"output", "gradient", "gradient of input"})
                self.assertEqual({row.name for row in found.rows if row.what == "gradient"}, {name for name, _ in model.named_parameters()})

    @needs("onnxscript")
    def test_masks_that_an_exporter_writes(self) -> None:
        """Those of dropout are left out as the module's are; those that the module draws are numbers."""
        x = torch.randn(4, 6)
        drawn = nets.Function(lambda x: x * (torch.rand_like(x) < 0.75) / 0.75)
        for model in (
            nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3, inplace=True), nn.Linear(8, 3)),
            nn.Sequential(nn.Linear(6, 8), nn.AlphaDropout(0.3), nn.Linear(8, 3)),
            drawn,
        ):
            self.export_otherwise(model, (x,), "plain")
            self.assertTrue({"RandomUniform", "RandomUniformLike"} & {node.op_type for node in onnx.load(self.path).graph.node})
            self.assertTrue(ortc.torch.check(model, self.path, (x,), verbose=False).passed)
        pooled = nets.Function(lambda x: F.fractional_max_pool2d(x.reshape(4, 1, 2, 4), 2, (1, 2)))
        with self.assertRaisesRegex(ortc.CompileError, "draws random numbers within a function of PyTorch"):
            ortc.torch.check(pooled, self.path, (x,))
        self.export_otherwise(nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3, inplace=True)), (x,), "plain")
        with self.assertRaises(ortc.DifferenceError):
            ortc.torch.check(drawn, self.path, (x,), verbose=False)

    def test_modules_that_train_nothing(self) -> None:
        """Gradients of their inputs are compared all the same."""
        model, x = nets.Function(lambda x: x + (x.round() - x).detach()).requires_grad_(False), torch.randn(4, 6)
        found = ortc.torch.export(model, (x,), self.path, verbose=False)
        self.assertIn("gradient of input", {row.what for row in found.rows})
        self.export_otherwise(model, (x,), "TorchScript")
        with self.assertRaises(ortc.DifferenceError) as caught:
            ortc.torch.check(model, self.path, (x,), verbose=False)
        self.assertIn("gradient of input", {row.what for row in caught.exception.comparison.rows if not row.passed})

    def test_weights_that_an_exporter_turns(self) -> None:
        class Turned(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.weight = nn.Parameter(torch.randn(3, 6))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return torch.tanh(x @ self.weight.t())

        model, x = Turned(), torch.randn(4, 6)
        self.export_otherwise(model, (x,), "TorchScript")
        found = ortc.torch.check(model, self.path, (x,), verbose=False)
        self.assertTrue(any("weight is '" in each and "transposed" in each for each in found.notes), found)
        self.assertIn("weight", {row.name for row in found.rows if row.what == "gradient"})

    def test_what_other_exporters_lose(self) -> None:
        """Each is named: gradients through detach() and no_grad, of a padding row, of a frozen table."""
        for model, args, name in (
            (nets.SimSiam(), (torch.randn(4, 6), torch.randn(4, 6)), "gradient encode.0.weight"),
            (nets.Padded(), (nets.integers(11, 4, 5),), "gradient tokens.weight"),
            (nets.Positions(), (nets.integers(11, 4, 7),), "tensor positions"),
            (nets.Rounding(nets.Round.apply), (torch.randn(4, 6),), "gradient first.weight"),
        ):
            with self.subTest(name):
                self.export_otherwise(model, args, "TorchScript")
                with self.assertRaises(ortc.DifferenceError) as caught:
                    ortc.torch.check(model, self.path, args, verbose=False)
                rows = [f"{row.what} {row.name}" for row in caught.exception.comparison.rows if not row.passed]
                self.assertIn(name, rows)
                self.assertIn("DIFFERS", str(caught.exception))
                self.assertRegex(str(caught.exception), r"note: (outputs are equal and gradients are not|tensors differ): .*; ortc.torch.export")

    def test_a_file_of_other_weights(self) -> None:
        model, x = nets.mlp(6, 8, 3), torch.randn(4, 6)
        ortc.torch.export(model, (x,), self.path, verbose=False)
        with torch.no_grad():
            model[0].weight += 0.1
        with self.assertRaisesRegex(ortc.DifferenceError, "0.weight"):
            ortc.torch.check(model, self.path, (x,), verbose=False)
        with self.assertRaisesRegex(ortc.CompileError, r"has 'output' as \[4, 3\], the module's call as \[4, 5\]"):
            ortc.torch.check(nets.mlp(6, 8, 5), self.path, (x,))

    def test_a_file_that_differs_at_a_point(self) -> None:
        """A Max has half of the gradient where both are equal, and relu none: no argument that is drawn shows that."""
        model, x = nn.Sequential(nn.Linear(6, 8), nn.ReLU()), torch.randn(4, 6)
        ortc.torch.export(model, (x,), self.path, verbose=False)
        proto = onnx.load(self.path)
        (relu,) = (each for each in proto.graph.node if each.op_type == "Relu")
        relu.op_type = "Max"
        relu.input.append("zero")
        del relu.metadata_props[:]
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros((), np.float32), "zero"))
        onnx.save(proto, self.path)
        with self.assertRaises(ortc.DifferenceError) as raised:
            ortc.torch.check(model, self.path, (x,), verbose=False)
        rows = [each for each in raised.exception.comparison.rows if not each.passed]
        self.assertTrue(rows)
        self.assertNotIn("arguments", {each.where for each in rows})

    def test_the_table(self) -> None:
        text = str(ortc.torch.export(nets.mlp(6, 8, 3), (torch.randn(4, 6),), self.path, verbose=False))
        self.assertRegex(text, r"what +where +difference +tolerance\n")
        self.assertRegex(text, r"gradient 0.weight +[a-z ,]+ +[0-9.e-]+ +[0-9.e-]+ +1e-05 of ")


if __name__ == "__main__":
    unittest.main()
