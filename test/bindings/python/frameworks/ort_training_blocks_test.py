"""onnxblock: losses built of blocks, as scripts of ONNX Runtime Training have them, against PyTorch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Losses and parameters of float32 are compared with those of PyTorch in float64.
"""

from __future__ import annotations

import unittest
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from modules import distance, use_own_cache
from optional import need

import ortc
from ortc.compat.ort_training import api, artifacts, onnxblock
from ortc.compat.ort_training.onnxblock import blocks

need("onnx")
import onnx

NEAR = 3e-6
"""Sums of some ten float32 in a few steps, relative to the largest value."""
FLOAT = onnx.TensorProto.FLOAT
PARAMETERS = ["w", "v"]


def setUpModule() -> None:
    use_own_cache()


def make_model(dims: Any = "n") -> onnx.ModelProto:
    """Two heads, "one" and "two", of 4 and 3 columns, over a hidden value."""
    rng = np.random.default_rng(0)
    tensors = {"w": rng.standard_normal((5, 4)), "v": rng.standard_normal((4, 3))}
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "w"], ["one"]),
        onnx.helper.make_node("Tanh", ["one"], ["hidden"]),
        onnx.helper.make_node("MatMul", ["hidden", "v"], ["two"]),
    ]
    values = [onnx.helper.make_tensor_value_info(name, FLOAT, [dims, size]) for name, size in (("x", 5), ("one", 4), ("two", 3))]
    weights = [onnx.numpy_helper.from_array(each.astype(np.float32), name) for name, each in tensors.items()]
    graph = onnx.helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])


def heads(w: torch.Tensor, v: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    one = x @ w
    return one, torch.tanh(one) @ v


class OneLoss(onnxblock.ForwardBlock):
    """On the second of the two outputs."""

    def __init__(self, loss: Any, **names: str) -> None:
        super().__init__()
        self.loss, self.names = loss, names

    def build(self, _: str, output_name: str) -> Any:
        return self.loss(output_name, **self.names)


class WeightedAverage(onnxblock.Block):
    """As the documentation of ONNX Runtime writes it, without a call of the base's __init__."""

    def __init__(self) -> None:
        self._loss1 = onnxblock.loss.MSELoss()
        self._loss2 = onnxblock.loss.CrossEntropyLoss()
        self._w1, self._w2 = onnxblock.blocks.Constant(0.4), onnxblock.blocks.Constant(0.6)
        self._add, self._mul = onnxblock.blocks.Add(), onnxblock.blocks.Mul()

    def build(self, name1: str, name2: str) -> str:
        return self._add(
            self._mul(self._w1(), self._loss1(name1, target_name="target1")),
            self._mul(self._w2(), self._loss2(name2, labels_name="target2")),
        )


class SecondMse(onnxblock.TrainingBlock):
    def __init__(self) -> None:
        super().__init__()
        self.loss = onnxblock.loss.MSELoss()

    def build(self, _: str, name: str) -> Any:
        return self.loss(name)


class Masked(onnxblock.TrainingBlock):
    """A mean over the samples of a mask, which is an input."""

    def __init__(self) -> None:
        super().__init__()
        self.loss = onnxblock.loss.CrossEntropyLoss(reduction="none")
        self.mul, self.sum, self.div = blocks.Mul(), blocks.ReduceSum(), blocks.Div()

    def build(self, _: str, logits: str) -> Any:
        losses = self.loss(logits, "target")
        mask = blocks.InputLike("target")("mask")
        mask = blocks.Cast(FLOAT)(mask)
        return self.div(self.sum(self.mul(losses, mask)), self.sum(mask)), logits


class Own(onnxblock.Block):
    """Nodes of one's own, of a value that is no output."""

    def build(self, *_: str) -> str:
        self.base.graph.node.append(onnx.helper.make_node("ReduceSumSquare", ["hidden"], ["squares"], keepdims=0))
        return blocks.Pow(0.5)("squares")


class BlocksTest(unittest.TestCase):
    def setUp(self) -> None:
        place = TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name)
        rng = np.random.default_rng(1)
        self.x = rng.standard_normal((6, 5)).astype(np.float32)
        self.target1 = rng.standard_normal((6, 4)).astype(np.float32)
        self.chances = rng.random((6, 3)).astype(np.float32)
        self.label = np.array([0, 2, 1, 1, 2, 0])

    def load(self) -> tuple[api.CheckpointState, api.Module, api.Optimizer]:
        state = api.CheckpointState.load_checkpoint(self.folder / "checkpoint")
        module = api.Module(self.folder / "training_model.onnx", state, self.folder / "eval_model.onnx")
        return state, module, api.Optimizer(self.folder / "optimizer_model.onnx", module)

    def compare(self, reference: Callable[..., torch.Tensor], inputs: list[Any], steps: int = 3) -> Any:
        """Steps of plain gradient descent, and an evaluation; gives the outputs of the last one."""
        state, module, optimizer = self.load()
        weights = {each.name: onnx.numpy_helper.to_array(each) for each in make_model().graph.initializer}
        w, v = (torch.tensor(weights[name], dtype=torch.float64, requires_grad=True) for name in PARAMETERS)
        x = torch.tensor(self.x, dtype=torch.float64)
        given = [torch.tensor(each) for each in inputs]
        optimizer.set_learning_rate(0.1)
        for _ in range(steps):
            wanted = reference(*heads(w, v, x), *given)
            gradients = torch.autograd.grad(wanted, (w, v), allow_unused=True)
            got = module(self.x, *inputs)
            first = got[0] if isinstance(got, tuple) else got
            self.assertLess(distance(wanted.detach(), torch.tensor(first).reshape(())), NEAR)
            optimizer.step()
            module.lazy_reset_grad()
            with torch.no_grad():
                for p, gradient in zip((w, v), gradients):
                    p -= 0.1 * gradient if gradient is not None else 0
        for name, p in zip(PARAMETERS, (w, v)):
            self.assertLess(distance(p.detach(), torch.tensor(state.parameters[name].data)), NEAR, name)
        module.eval()
        result = module(self.x, *inputs)
        first = result[0] if isinstance(result, tuple) else result
        self.assertLess(distance(reference(*heads(w, v, x), *given).detach(), torch.tensor(first).reshape(())), NEAR)
        return result

    def generate(self, loss: Any, dims: Any = 6, **options: Any) -> None:
        given = {"optimizer": artifacts.OptimType.SGD, "artifact_directory": self.folder, "target": "native"}
        artifacts.generate_artifacts(make_model(dims), PARAMETERS, loss=loss, **(given | options))

    def test_each_loss(self) -> None:
        loss, factors = onnxblock.loss, np.array([0.5, 2, 1], np.float32)
        own = torch.tensor(factors, dtype=torch.float64)
        cases: list[tuple[Any, Any, Callable[..., torch.Tensor]]] = [
            (loss.CrossEntropyLoss(), self.label, lambda _, z, y: F.cross_entropy(z, y)),
            (loss.CrossEntropyLoss(reduction="sum", ignore_index=2), self.label,
             lambda _, z, y: F.cross_entropy(z, y, reduction="sum", ignore_index=2)),
            (loss.CrossEntropyLoss(weight=factors), self.label, lambda _, z, y: F.cross_entropy(z, y, own)),
            (loss.MSELoss(), self.chances, lambda _, z, y: F.mse_loss(z, y.double())),
            (loss.MSELoss("sum"), self.chances, lambda _, z, y: F.mse_loss(z, y.double(), reduction="sum")),
            (loss.L1Loss(), self.chances, lambda _, z, y: F.l1_loss(z, y.double())),
            (loss.BCEWithLogitsLoss(), self.chances, lambda _, z, y: F.binary_cross_entropy_with_logits(z, y.double())),
            (loss.BCEWithLogitsLoss(weight=factors, reduction="sum", pos_weight=factors[::-1].copy()), self.chances,
             lambda _, z, y: F.binary_cross_entropy_with_logits(z, y.double(), own, reduction="sum", pos_weight=own.flip(0))),
        ]
        for block, label, reference in cases:
            with self.subTest(type(block).__name__):
                self.generate(OneLoss(block))
                self.compare(reference, [label])
                _, module, _ = self.load()
                wanted = "labels" if isinstance(block, loss.CrossEntropyLoss) else "target"
                self.assertEqual(module.input_names(), ["x", wanted])

    def test_logits_of_any_size(self) -> None:
        """Where the logarithm of a sigmoid is none."""

        class First(onnxblock.Block):
            def build(self, one: str, _: str) -> Any:
                return onnxblock.loss.BCEWithLogitsLoss()(one)

        self.generate(First())
        self.x *= 1000
        chances = np.resize(self.chances, (6, 4))
        self.compare(lambda one, _, y: F.binary_cross_entropy_with_logits(one, y.double()), [chances], steps=1)

    def test_a_weighted_sum(self) -> None:
        def reference(one: torch.Tensor, two: torch.Tensor, target: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
            return 0.4 * F.mse_loss(one, target.double()) + 0.6 * F.cross_entropy(two, label)

        for dims in (6, "n"):  # compiled ahead, and when first called
            self.generate(WeightedAverage(), dims)
            self.compare(reference, [self.target1, self.label])
        self.assertEqual(self.load()[1].input_names(), ["x", "target1", "target2"])
        self.generate(WeightedAverage(), additional_output_names=["one", "hidden"])
        outputs = self.compare(reference, [self.target1, self.label])
        self.assertEqual([each.shape for each in outputs[1:]], [(6, 4), (6, 4)])
        # Of numbers below 1: numpy's tanh beside that of the compiler, an error of a few units in the last place each.
        self.assertLess(float(np.abs(np.tanh(outputs[1]) - outputs[2]).max()), 4 * np.finfo(np.float32).eps)

    def test_named_inputs_of_a_loss(self) -> None:
        class Mse(onnxblock.Block):
            loss = onnxblock.loss.MSELoss()

            def build(self, *names: str) -> Any:
                return self.loss(*names)

        self.generate(Mse(), loss_input_names=["hidden", "aim"])
        self.compare(lambda one, two, y: F.mse_loss(torch.tanh(one), y.double()), [self.target1])
        self.generate(Mse(), loss_input_names=["one", "hidden"])  # a target that the model has
        self.compare(lambda one, two: F.mse_loss(one, torch.tanh(one)), [])

    def test_blocks_of_operators(self) -> None:
        mask = np.array([1, 0, 1, 1, 0, 1])

        def masked(_: torch.Tensor, two: torch.Tensor, label: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return (F.cross_entropy(two, label, reduction="none") * mask).sum() / mask.sum()

        self.generate(Masked())
        outputs = self.compare(masked, [self.label, mask])
        self.assertEqual(outputs[1].shape, (6, 3))  # which the block gives beside the loss
        self.generate(Own())
        self.compare(lambda one, two: torch.tanh(one).norm(), [])

        class Chain(onnxblock.Block):
            def build(self, one: str, _: str) -> Any:
                positive = blocks.Clip(0.5)(blocks.Abs()(one))
                value = blocks.Sub()(blocks.Log()(positive), blocks.Sigmoid()(one))
                (value,) = blocks.PassThrough()(value)
                return blocks.Neg()(blocks.ReduceMean()(value))

        self.generate(Chain())
        self.compare(lambda one, _: -(one.abs().clamp(min=0.5).log() - torch.sigmoid(one)).mean(), [])

    def test_a_linear_block(self) -> None:
        with onnxblock.empty_base(18) as accessor:
            accessor.model.graph.input.append(onnx.helper.make_tensor_value_info("x", FLOAT, [6, 5]))
            name = blocks.Linear(5, 2)("x")
        self.assertEqual([list(each.dims) for each in accessor.model.graph.initializer], [[5, 2], [2]])
        self.assertEqual(accessor.model.graph.node[-1].output[0], name)

    def test_blocks_without_generate_artifacts(self) -> None:
        """TrainingBlock, optimizer and checkpoint, each by itself: the numbers of generate_artifacts."""

        class Training(onnxblock.TrainingBlock):
            def __init__(self) -> None:
                super().__init__()
                self.loss = WeightedAverage()

            def build(self, *names: str) -> Any:
                return self.loss(*names), names[1]

        def by_blocks(optimizer: Any) -> None:
            block, model = Training(), make_model()
            for name in PARAMETERS:
                block.requires_grad(name)
            with onnxblock.base(model):
                block(*[each.name for each in model.graph.output])
                training_model, eval_model = block.to_model_proto()
                parameters = block.parameters()
            with onnxblock.empty_base():
                optimizer(parameters)
                optimizer_model = optimizer.to_model_proto()
            self.assertEqual([[each.name for each in part] for part in parameters], [PARAMETERS, []])
            self.assertEqual(len(model.graph.input), 1)  # the model itself is as it was
            onnxblock.save_checkpoint(parameters, self.folder / "checkpoint")
            for proto, name in ((training_model, "training"), (eval_model, "eval"), (optimizer_model, "optimizer")):
                onnx.save(proto, self.folder / f"{name}_model.onnx")

        def run() -> list[Any]:
            state, module, optimizer = self.load()
            found = []
            for _ in range(3):
                loss, logits = module(self.x, self.target1, self.label)
                found += [loss, logits]
                optimizer.step()
                module.lazy_reset_grad()
            return [*found, *(each.data for _, each in state.parameters)]

        clip = onnxblock.optim.ClipGradNorm(0.5)
        for make, kind in (
            (lambda: onnxblock.optim.AdamW(), artifacts.OptimType.AdamW),
            (lambda: onnxblock.optim.SGD(), artifacts.OptimType.SGD),
            (lambda: onnxblock.optim.AdamW(betas=(0.8, 0.9), eps=1e-3, weight_decay=0.1, clip_grad=clip), None),
        ):
            by_blocks(make())
            got = run()
            self.generate(WeightedAverage(), "n", optimizer=kind or make(), additional_output_names=["two"])
            self.assertTrue(all(np.array_equal(a, b) for a, b in zip(got, run(), strict=True)))

    def test_an_optimizer_made_late(self) -> None:
        """Of a module that has no other than the default when it is first called."""
        for make, is_late in ((onnxblock.optim.AdamW, False), (onnxblock.optim.SGD, True),
                              (lambda: onnxblock.optim.AdamW(clip_grad=onnxblock.optim.ClipGradNorm(0.5)), True)):
            training, model, optimizer = SecondMse(), make_model(), make()
            for name in PARAMETERS:
                training.requires_grad(name)
            with onnxblock.base(model):
                training(*[each.name for each in model.graph.output])
                for proto, name in zip(training.to_model_proto(), ("training", "eval")):
                    onnx.save(proto, self.folder / f"{name}_model.onnx")
                onnxblock.save_checkpoint(training.parameters(), self.folder / "checkpoint")
            optimizer([])
            onnx.save(optimizer.to_model_proto(), self.folder / "optimizer_model.onnx")
            state = api.CheckpointState.load_checkpoint(self.folder / "checkpoint")
            module = api.Module(self.folder / "training_model.onnx", state, self.folder / "eval_model.onnx")
            module(self.x, self.chances)
            if is_late:
                with self.assertRaisesRegex(ortc.StateError, "make the Optimizer before the module is first called"):
                    api.Optimizer(self.folder / "optimizer_model.onnx", module)
            else:
                api.Optimizer(self.folder / "optimizer_model.onnx", module).step()

    def test_clipped_adamw(self) -> None:
        """Of transformers, whose epsilon is added before the correction of the bias; norms are limited first."""
        beta1, beta2, epsilon, decay = 0.8, 0.9, 1e-3, 0.1
        optimizer = onnxblock.optim.AdamW(betas=(beta1, beta2), eps=epsilon, weight_decay=decay, clip_grad=onnxblock.optim.ClipGradNorm(0.05))
        self.generate(OneLoss(onnxblock.loss.MSELoss()), optimizer=optimizer)
        state, module, update = self.load()
        weights = {each.name: onnx.numpy_helper.to_array(each) for each in make_model().graph.initializer}
        p = [torch.tensor(weights[name], dtype=torch.float64, requires_grad=True) for name in PARAMETERS]
        averages = [(torch.zeros_like(each), torch.zeros_like(each)) for each in p]
        update.set_learning_rate(0.1)
        for step in range(1, 4):
            loss = F.mse_loss(heads(*p, torch.tensor(self.x, dtype=torch.float64))[1], torch.tensor(self.chances, dtype=torch.float64))
            gradients = torch.autograd.grad(loss, p)
            scalars = [np.float32(each) for each in (0.1, epsilon, decay)]
            scale = min(1.0, 0.05 / (float(torch.stack([each.norm() for each in gradients]).norm()) + 1e-6))
            self.assertLess(scale, 1.0)
            self.assertLess(distance(loss.detach(), torch.tensor(module(self.x, self.chances))), NEAR)
            update.step()
            self.assertEqual([np.float32(module._current[name]) for name in ("lr", "epsilon", "weight_decay")], scalars)
            module.lazy_reset_grad()
            with torch.no_grad():
                for each, g, (m, v) in zip(p, gradients, averages):
                    m.mul_(beta1).add_(g * scale, alpha=1 - beta1)
                    v.mul_(beta2).addcmul_(g * scale, g * scale, value=1 - beta2)
                    rate = 0.1 * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
                    each -= rate * m / (v.sqrt() + epsilon)
                    each -= 0.1 * decay * each
        for name, each in zip(PARAMETERS, p):
            self.assertLess(distance(each.detach(), torch.tensor(state.parameters[name].data)), NEAR, name)

    def test_forward_models(self) -> None:
        class Sum(onnxblock.ForwardBlock):
            def build(self, one: str, _: str) -> str:
                return blocks.ReduceSum()(one)

        block = Sum()
        with self.assertRaisesRegex(ortc.StateError, "has built no model yet"):
            block.to_model_proto()
        with onnxblock.base(make_model()):
            name = block("one", "two")
        self.assertEqual([each.name for each in block.to_model_proto().graph.output], [name])

    def test_what_is_refused(self) -> None:
        self.assertRaisesRegex(ortc.StateError, "a block has no model to add to", onnxblock.loss.MSELoss(), "one")
        with onnxblock.base(make_model()), self.assertRaisesRegex(ortc.StateError, "add to another model"):
            with onnxblock.base(make_model()):
                pass
        for make, message in (
            (lambda: onnxblock.loss.MSELoss("max"), "reduction is 'max', but must be mean, sum or none"),
            (lambda: onnxblock.loss.HuberLoss, "onnxblock.loss.HuberLoss is not supported: there are BCEWithLogitsLoss, .*loss='huber'."),
            (lambda: onnxblock.loss.SmoothL1Loss, "loss='smooth_l1'."),
            (lambda: onnxblock.loss.KLDivLoss, "loss='kl_div'."),
            (lambda: onnxblock.loss.PoissonNLLLoss, "loss='poisson_nll'."),
            (lambda: onnxblock.blocks.LabelEncoder, "onnxblock.blocks.LabelEncoder is not supported: there are Abs, .*self.base.graph"),
            (lambda: onnxblock.optim.AdamWOptimizer, "onnxblock.optim.AdamWOptimizer is not supported: there are SGD"),
            (lambda: onnxblock.custom_op_library, "onnxblock.custom_op_library is not supported: generate_artifacts takes blocks"),
            (lambda: onnxblock.optim.AdamW(bias_correction=False), "AdamW.bias_correction=False. is not supported"),
            (lambda: self.generate(OneLoss(onnxblock.loss.MSELoss()), optimizer=onnxblock.optim.AdamW(weight_decay=0.1), group="v:weight_decay=0"),
             "with a decay and group is not supported: all parameters decay alike there"),
            (lambda: self.generate(OneLoss(onnxblock.loss.MSELoss()), optimizer=onnxblock.optim.AdamW(weight_decay=0.1), no_decay="biases"),
             "with a decay and no_decay is not supported"),
            (lambda: self.generate(OneLoss(onnxblock.loss.MSELoss()), optimizer=onnxblock.optim.AdamW(), group={"v": {"weight_decay": 0.1}}),
             "with a decay and group is not supported"),
            (lambda: self.generate(OneLoss(onnxblock.loss.MSELoss()), loss_input_names=["one", "none"]),
             "the model has no value 'none' of a known shape; its outputs are one, two"),
        ):
            with self.subTest(message), self.assertRaisesRegex(ortc.ArgumentError, message):
                make()
        block = Masked()
        block.requires_grad("u")
        with onnxblock.base(make_model()):
            block("one", "two")
        with self.assertRaisesRegex(ortc.ArgumentError, "no initializer u; it has w, v"):
            block.parameters()


if __name__ == "__main__":
    unittest.main()
