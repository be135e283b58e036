"""Models that were exported in training mode, for evaluation and inference: onnxruntime computes what PyTorch's eval() does.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import unittest
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from optional import need
from torch import nn

need("onnx", "onnxruntime")
import onnx
import onnxruntime

from ortc.compat.ort_training import api, artifacts, onnxblock

NEAR = 1e-5
ROWS = 6


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.drop, self.last = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.drop(torch.relu(self.norm(self.first(x)))))


class CrossEntropy(onnxblock.TrainingBlock):
    def __init__(self) -> None:
        super().__init__()
        self.loss = onnxblock.loss.CrossEntropyLoss()

    def build(self, *names: str) -> Any:
        return self.loss(*names)


class EvaluationTest(unittest.TestCase):
    def setUp(self) -> None:
        place = TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name)
        torch.manual_seed(0)
        self.net = Net().train()
        for _ in range(5):
            self.net(torch.randn(16, 4) * 2 + 1)
        self.x, self.label = torch.randn(ROWS, 4), torch.tensor([0, 2, 1, 1, 2, 0])
        self.path = self.folder / "net.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                self.net, (self.x,), str(self.path), input_names=["x"], output_names=["y"], dynamo=False,
                training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, dynamic_axes={"x": {0: "n"}, "y": {0: "n"}},
            )  # fmt: skip
        self.names = [name for name, _ in self.net.named_parameters()]

    def run_model(self, model: Any, **inputs: torch.Tensor) -> list[Any]:
        source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model)
        session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
        return list(session.run(None, {name: each.numpy() for name, each in inputs.items()}))

    def check(self, found: list[Any], net: nn.Module) -> None:
        """The last of what was found are logits, the first is the loss where there are two."""
        with torch.no_grad():
            logits = net.eval()(self.x)
        np.testing.assert_allclose(found[-1], logits.numpy(), rtol=0, atol=NEAR)
        if len(found) > 1:
            self.assertAlmostEqual(float(found[0]), float(F.cross_entropy(logits, self.label)), delta=NEAR)

    def generate(self, loss: Any) -> None:
        artifacts.generate_artifacts(
            self.path, self.names, loss=loss, optimizer=artifacts.OptimType.SGD, artifact_directory=self.folder, shapes={"n": ROWS}, target="native",
            frozen_params=["norm.running_mean", "norm.running_var"],
        )  # fmt: skip

    def test_evaluation_models(self) -> None:
        for loss in (artifacts.LossType.CrossEntropyLoss, onnxblock.loss.CrossEntropyLoss()):
            self.generate(loss)
            found = self.run_model(self.folder / "eval_model.onnx", x=self.x, labels=self.label)
            self.assertEqual(len(found), 2)
            self.check(found, self.net)
        for loss in ("cross_entropy", {"y": "cross_entropy@y"}):  # which are no operators of a model
            self.generate(loss)
            found = self.run_model(self.folder / "eval_model.onnx", x=self.x)
            self.assertEqual(len(found), 1)
            self.check(found, self.net)

    def test_blocks(self) -> None:
        block = CrossEntropy()
        for name in self.names:
            block.requires_grad(name)
        with onnxblock.base(onnx.load(self.path)):
            block("y")
            training, evaluated = block.to_model_proto()
        self.assertIn(1, [each.i for node in training.graph.node for each in node.attribute if each.name == "training_mode"])
        found = self.run_model(evaluated, x=self.x, labels=self.label)
        self.assertEqual(len(found), 2)
        self.check(found, self.net)

    def test_exports_for_inference(self) -> None:
        """Before a step, and after some: with the statistics that steps have moved."""
        self.generate(artifacts.LossType.CrossEntropyLoss)
        state = api.CheckpointState.load_checkpoint(self.folder / "checkpoint")
        module = api.Module(self.folder / "training_model.onnx", state, self.folder / "eval_model.onnx")
        optimizer, target = api.Optimizer(self.folder / "optimizer_model.onnx", module), self.folder / "inference.onnx"
        module.export_model_for_inferencing(target, ["y"])
        self.check(self.run_model(target, x=self.x), self.net)
        for _ in range(3):
            module(self.x.numpy(), self.label.numpy())
            optimizer.step()
            module.lazy_reset_grad()
        module.export_model_for_inferencing(target, ["y"])
        weights = {each.name: onnx.numpy_helper.to_array(each).copy() for each in onnx.load(target).graph.initializer}
        trained = copy.deepcopy(self.net)
        trained.load_state_dict({name: torch.from_numpy(weights[name]) for name in trained.state_dict() if name in weights}, strict=False)
        self.assertGreater(float((trained.norm.running_mean - self.net.norm.running_mean).abs().max()), 1e-3)
        self.check(self.run_model(target, x=self.x), trained)
        for row in range(ROWS):  # which batch statistics would change
            alone = self.run_model(target, x=self.x[row : row + 1])
            np.testing.assert_allclose(alone[0], trained(self.x).detach().numpy()[row : row + 1], rtol=0, atol=NEAR)


if __name__ == "__main__":
    unittest.main()
