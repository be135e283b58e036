"""ortc.compat.ort_training: steps beside PyTorch's, rates and samplers beside the rules of ONNX Runtime Training.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import math
import os
import pathlib
import pickle
import unittest
import warnings
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import modules
import torch
import torch.nn.functional as F
from modules import distance
from optional import needs
from torch import nn

import ortc
import ortc.torch
from ortc.compat.ort_training import ORTModule, ORTTrainer, ORTTrainerOptions, optim
from ortc.compat.ort_training.ortmodule import DebugOptions
from ortc.compat.ort_training.utils.data import LoadBalancingDistributedBatchSampler, LoadBalancingDistributedSampler

# Sums of at most some hundred float32 products in another order: a few units of 6e-8 for each of them.
FLOAT32 = 1e-5
# 20 steps carry such differences on; Adam divides by roots of squares that are small at first.
TWENTY_STEPS = 2e-4


def setUpModule() -> None:
    modules.use_own_cache()
    torch.set_num_threads(1)
    unittest.addModuleCleanup(wait_for_children)


def wait_for_children() -> None:
    """They write into the cache: steps are compiled again when it is known which outputs get no gradient. What MPI has started
    in this process is no Python, and stays."""
    for task in pathlib.Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            with suppress(OSError):  # it has ended
                if os.path.samefile(f"/proc/{child}/exe", "/proc/self/exe"):
                    os.waitpid(int(child), 0)


def compiled(module: nn.Module) -> ORTModule:
    """An ORTModule that runs compiled steps from its first call on."""
    wrapped = ORTModule(module)
    ortc.torch.compile_(wrapped.module, wait=True)
    return wrapped


class WithMethods(modules.Mlp):
    def __init__(self) -> None:
        super().__init__()
        self.config = {"layers": 2}
        self.register_buffer("scale", torch.ones(1))
        self.calls = 0

    def train(self, mode: bool = True) -> WithMethods:
        self.calls += 1
        return super().train(mode)

    def describe(self) -> str:
        return f"{len(self.config)} settings"


class ModuleTest(unittest.TestCase):
    def test_outputs_and_gradients(self) -> None:
        torch.manual_seed(0)
        plain = modules.ConvNorm()
        wrapped = compiled(copy.deepcopy(plain))
        for _ in range(3):
            x, y = torch.randn(4, 2, 6, 6), torch.randint(3, (4,))
            results = []
            for each in (plain, wrapped):
                each.zero_grad()
                result = each(x)
                F.cross_entropy(result, y).backward()
                results.append(result.detach())
            self.assertLess(distance(*results), FLOAT32)
            for (name, one), (other_name, other) in zip(plain.named_parameters(), wrapped.named_parameters(), strict=True):
                self.assertEqual(name, other_name)
                self.assertLess(distance(one.grad, other.grad), FLOAT32, name)
        self.assertLess(distance(plain.norm.running_var, wrapped.norm.running_var), FLOAT32)
        self.assertEqual(ortc.torch.report(wrapped).compiled, 3)
        plain.eval(), wrapped.eval()
        with torch.no_grad():
            self.assertLess(distance(plain(x), wrapped(x)), FLOAT32)

    def test_is_the_module(self) -> None:
        module = WithMethods()
        keys = list(module.state_dict())
        wrapped = ORTModule(module, DebugOptions())
        self.assertIsInstance(wrapped, ORTModule)
        self.assertIsInstance(wrapped, WithMethods)
        self.assertIs(wrapped.module, module)
        self.assertEqual(list(wrapped.state_dict()), keys)
        self.assertEqual(wrapped.config, {"layers": 2})
        self.assertEqual(wrapped.describe(), "1 settings")
        self.assertIs(wrapped.eval(), wrapped)
        self.assertEqual((module.training, module.first.training, module.calls), (False, False, 1))
        wrapped.extra = nn.Parameter(torch.zeros(2))
        self.assertIn("extra", dict(module.named_parameters()))
        wrapped.load_state_dict({name: each + 1 for name, each in module.state_dict().items()})
        self.assertEqual(module.extra.tolist(), [1, 1])
        with self.assertRaises(AttributeError):
            wrapped.nothing

    def test_copies(self) -> None:
        wrapped = ORTModule(modules.Mlp())
        for twin in (copy.deepcopy(wrapped), pickle.loads(pickle.dumps(wrapped))):
            self.assertIsInstance(twin, ORTModule)
            self.assertIsNot(twin.first.weight, wrapped.first.weight)
            self.assertEqual(list(twin.state_dict()), list(wrapped.state_dict()))
            self.assertTrue(torch.equal(twin.first.weight, wrapped.first.weight))
            twin(torch.ones(2, 6)).sum().backward()
            self.assertIsNone(wrapped.first.weight.grad)

    def test_subclass(self) -> None:
        class Mine(ORTModule):
            def size(self) -> int:
                return sum(each.numel() for each in self.parameters())

        twin = copy.deepcopy(Mine(modules.Mlp()))
        self.assertEqual(twin.size(), 6 * 8 + 8 + 8 * 3 + 3)

    @needs("transformers")
    def test_transformers(self) -> None:
        """A model of theirs saves a model of theirs, of its own class."""
        import transformers

        config = transformers.BertConfig(
            vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, max_position_embeddings=8
        )
        wrapped = ORTModule(transformers.BertForSequenceClassification(config))
        self.assertIsInstance(wrapped, transformers.PreTrainedModel)
        wrapped(input_ids=torch.ones(2, 4, dtype=torch.long), labels=torch.tensor([0, 1])).loss.backward()
        self.assertIsNotNone(wrapped.classifier.weight.grad)
        with TemporaryDirectory() as folder:
            wrapped.save_pretrained(folder)
            twin = transformers.BertForSequenceClassification.from_pretrained(folder)
            self.assertEqual(twin.config.architectures, ["BertForSequenceClassification"])
        for (name, one), (other_name, other) in zip(wrapped.state_dict().items(), twin.state_dict().items(), strict=True):
            self.assertEqual(name, other_name)
            self.assertTrue(torch.equal(one, other), name)

    def test_data_parallel_is_refused(self) -> None:
        with self.assertRaisesRegex(ortc.ArgumentError, "DistributedDataParallel"):
            ORTModule(modules.Mlp())._replicate_for_data_parallel()


def describe(batch: int | str = "batch") -> dict[str, Any]:
    return {
        "inputs": [("x", [batch, 6]), ("label", [batch])],
        "outputs": [("loss", [], True), ("prediction", [batch, 3])],
    }


def reference_adam(model: nn.Module, t: int, lr: float, config: optim.AdamConfig, state: dict[str, Any]) -> None:
    """AdamW in float64, by the formulas of both modes of decay."""
    for name, each in model.named_parameters():
        s = config.settings(name)
        g, w = each.grad.double(), each.data.double()
        m, v = state.get(name, (torch.zeros_like(g), torch.zeros_like(g)))
        m, v = s["alpha"] * m + (1 - s["alpha"]) * g, s["beta"] * v + (1 - s["beta"]) * g * g
        state[name] = m, v
        first, second = (1 - s["alpha"] ** t, 1 - s["beta"] ** t) if s["do_bias_correction"] else (1.0, 1.0)
        if s["weight_decay_mode"] == 0:
            w = w - lr * ((m / first) / ((v / second).sqrt() + s["epsilon"]) + s["lambda_coef"] * w)
        else:
            w = w - lr * math.sqrt(second) / first * m / (v.sqrt() + s["epsilon"])
            w = w - lr * s["lambda_coef"] * w
        each.data.copy_(w)


def reference_lamb(model: nn.Module, t: int, lr: float, config: optim.LambConfig, state: dict[str, Any]) -> None:
    for name, each in model.named_parameters():
        s = config.settings(name)
        g, w = each.grad.double(), each.data.double()
        m, v = state.get(name, (torch.zeros_like(g), torch.zeros_like(g)))
        m, v = s["alpha"] * m + (1 - s["alpha"]) * g, s["beta"] * v + (1 - s["beta"]) * g * g
        state[name] = m, v
        first, second = (1 - s["alpha"] ** t, 1 - s["beta"] ** t) if s["do_bias_correction"] else (1.0, 1.0)
        d = m / first / ((v / second).sqrt() + s["epsilon"]) + s["lambda_coef"] * w
        ratio = float(w.norm() / d.norm()) if w.norm() > 0 and d.norm() > 0 else 1.0
        each.data.copy_(w - lr * min(max(ratio, s["ratio_min"]), s["ratio_max"]) * d)


def reference_sgd(model: nn.Module, t: int, lr: float, config: optim.SGDConfig, state: dict[str, Any]) -> None:
    for each in model.parameters():
        each.data.sub_(lr * each.grad)


class TrainerTest(unittest.TestCase):
    def train(self, config: Any, reference: Any, clip: bool, every: int = 1, scheduler: Any = None) -> ORTTrainer:
        """20 steps of a trainer beside a loop of PyTorch."""
        torch.manual_seed(1)
        plain = modules.Mlp()
        model = copy.deepcopy(plain)
        options = ORTTrainerOptions(
            {
                "batch": {"gradient_accumulation_steps": every},
                "utils": {"grad_norm_clip": clip},
                "lr_scheduler": scheduler,
            }
        )
        trainer = ORTTrainer(model, describe(), config, F.cross_entropy, options, wait=True, fallback="error")
        state: dict[str, Any] = {}
        clipped = updates = 0
        for step in range(1, 21):
            # Rates of the first steps clip: their gradients are long.
            x, y = 4 * torch.randn(5, 6), torch.randint(3, (5,))
            loss, prediction = trainer.train_step(x, y)
            wanted = plain(x)
            wanted_loss = F.cross_entropy(wanted, y)
            self.assertLess(distance(wanted.detach(), prediction), TWENTY_STEPS)
            self.assertLess(distance(wanted_loss.detach(), loss), TWENTY_STEPS)
            (wanted_loss / every).backward()
            if step % every:
                continue
            norm = math.sqrt(sum(float(each.grad.double().square().sum()) for each in plain.parameters()))
            for name, each in plain.named_parameters():
                most = config.settings(name)["max_norm_clip"] if clip else math.inf
                if norm > most:
                    clipped += 1
                    each.grad *= most / norm
            rate = config.lr if scheduler is None else config.lr * max(0.0, 1 - updates / scheduler.total_steps)
            updates += 1
            reference(plain, updates, rate, config, state)
            plain.zero_grad()
        if clip:
            self.assertGreater(clipped, 0)
        for one, other in zip(plain.parameters(), model.parameters(), strict=True):
            self.assertLess(distance(one.data, other.data), TWENTY_STEPS)
        return trainer

    def test_adam(self) -> None:
        groups = [{"params": ["first.bias"], "max_norm_clip": 0.5}]
        self.train(optim.AdamConfig(groups, lr=0.01), reference_adam, clip=True)

    def test_adam_with_groups(self) -> None:
        mode = optim.AdamConfig.DecayMode.AFTER_WEIGHT_UPDATE
        groups = [{"params": ["first.bias", "second.bias"], "lambda_coef": 0.0, "alpha": 0.8}]
        config = optim.AdamConfig(groups, lr=0.01, lambda_coef=0.1, epsilon=1e-3, weight_decay_mode=mode)
        self.train(config, reference_adam, clip=False)

    def test_adam_without_correction(self) -> None:
        self.train(optim.AdamConfig(lr=1e-3, lambda_coef=0.1, do_bias_correction=False), reference_adam, clip=False)

    def test_lamb(self) -> None:
        self.train(optim.LambConfig(lr=0.01, lambda_coef=0.01, ratio_max=2.0), reference_lamb, clip=True)
        self.train(optim.LambConfig(lr=0.01, do_bias_correction=True), reference_lamb, clip=False)

    def test_sgd(self) -> None:
        self.train(optim.SGDConfig(lr=0.05), reference_sgd, clip=False)

    def test_accumulation_and_schedule(self) -> None:
        scheduler = optim.LinearWarmupLRScheduler(total_steps=10, warmup=0.0)
        trainer = self.train(optim.SGDConfig(lr=0.05), reference_sgd, clip=False, every=4, scheduler=scheduler)
        self.assertEqual(trainer._train_step_info.optimization_step, 5)
        self.assertAlmostEqual(scheduler.get_last_lr()[0], 0.05 * 0.6)

    def test_rate_of_a_step(self) -> None:
        """A learning rate after the inputs is that of the step."""
        torch.manual_seed(2)
        trainer = ORTTrainer(modules.Mlp(), describe(), optim.SGDConfig(lr=0.5), F.cross_entropy)
        before = trainer.state_dict(pytorch_format=True)
        x, y = torch.randn(5, 6), torch.randint(3, (5,))
        trainer.train_step(x, y, 0.0)
        trainer.train_step(x=x, label=y, learning_rate=torch.tensor([0.0]))
        after = trainer.state_dict(pytorch_format=True)
        self.assertTrue(all(torch.equal(before[name], after[name]) for name in before))
        trainer.train_step(x, y)
        self.assertFalse(torch.equal(before["first.weight"], trainer.state_dict(pytorch_format=True)["first.weight"]))

    def test_loss_of_the_model(self) -> None:
        """Without a function, an output of the model is the loss; frozen weights stay."""

        class WithLoss(modules.Mlp):
            def forward(self, x: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
                return F.cross_entropy(super().forward(x), label)

        model = WithLoss()
        frozen = model.first.weight.detach().clone()
        description = {"inputs": describe()["inputs"], "outputs": [("loss", [], True)]}
        options = ORTTrainerOptions({"utils": {"frozen_weights": ["first.weight"]}})
        trainer = ORTTrainer(model, description, optim.AdamConfig(lr=0.01), options=options)
        x, y = torch.randn(5, 6), torch.randint(3, (5,))
        first = trainer.train_step(x, y)
        self.assertEqual(first.shape, ())
        for _ in range(10):
            last = trainer.train_step(x, y)
        self.assertLess(last, first)
        self.assertTrue(torch.equal(model.first.weight, frozen))

    def test_evaluation_and_fetches(self) -> None:
        images = {**describe(), "inputs": [("x", ["n", 2, 6, 6]), ("label", ["n"])]}
        trainer = ORTTrainer(modules.ConvNorm(), images, optim.SGDConfig(), F.cross_entropy, fallback="error")
        model = trainer._model
        x, y = torch.randn(4, 2, 6, 6), torch.randint(3, (4,))
        trainer.train_step(x, y)
        statistics = model.norm.running_mean.clone()
        loss, prediction = trainer.eval_step(x, y)
        model.eval()
        with torch.no_grad():
            wanted = model(x)
        self.assertTrue(torch.equal(wanted, prediction))
        self.assertTrue(torch.equal(F.cross_entropy(wanted, y), loss))
        self.assertTrue(torch.equal(model.norm.running_mean, statistics))
        trainer._train_step_info.fetches = ["prediction"]
        self.assertEqual(trainer.train_step(x, y).shape, (4, 3))

    def test_checkpoints(self) -> None:
        torch.manual_seed(3)
        data = [(torch.randn(5, 6), torch.randint(3, (5,))) for _ in range(6)]
        schedule = {"lr_scheduler": optim.CosineWarmupLRScheduler(total_steps=6, warmup=0.5)}

        def trainer() -> ORTTrainer:
            torch.manual_seed(4)
            return ORTTrainer(modules.Mlp(), describe(), optim.AdamConfig(lr=0.01), F.cross_entropy, ORTTrainerOptions(schedule), wait=True)

        whole, first, second = trainer(), trainer(), trainer()
        losses = [float(whole.train_step(*each)[0]) for each in data]
        for each in data[:3]:
            first.train_step(*each)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "state"
            first.save_checkpoint(path, {"epoch": 1})
            self.assertEqual(second.load_checkpoint(path), {"epoch": 1})
            self.assertEqual([float(second.train_step(*each)[0]) for each in data[3:]], losses[3:])
            first.save_checkpoint(path, include_optimizer_states=False)
            third = trainer()
            third.load_checkpoint(path)
            self.assertTrue(torch.equal(third._model.first.weight, first._model.first.weight))
            self.assertEqual(third.state_dict()["optimizer"], {})
        state = first.state_dict()
        self.assertEqual(set(state["optimizer"]["first.bias"]), {"Moment_1", "Moment_2", "Update_Count"})
        with self.assertRaisesRegex(ortc.ArgumentError, "no optimizer"):
            second.load_state_dict({"model": state["model"]})
        with self.assertRaisesRegex(ortc.ArgumentError, "AdamOptimizer"):
            ORTTrainer(modules.Mlp(), describe(), optim.SGDConfig(), F.cross_entropy).load_state_dict(state)

    def test_wrong_calls(self) -> None:
        config = optim.SGDConfig()
        trainer = ORTTrainer(modules.Mlp(), describe(5), config, F.cross_entropy)
        x, y = torch.randn(5, 6), torch.randint(3, (5,))
        for inputs, message in (
            ((x,), "'label' of model_desc is missing"),
            ((x, y, 0.1, 0.2), "takes the inputs of model_desc"),
            ((x[:4], y[:4]), r"model_desc says \[5, 6\]"),
            ((x.numpy(), y), "must be a tensor"),
        ):
            with self.assertRaisesRegex(ortc.ArgumentError, message):
                trainer.train_step(*inputs)
        with self.assertRaisesRegex(ortc.ArgumentError, r"model_desc says \['batch'\], with \{'batch': 5\}"):
            ORTTrainer(modules.Mlp(), describe(), config, F.cross_entropy).train_step(x, y[:4])
        for description, message in (
            ({"inputs": []}, "'inputs' and 'outputs'"),
            ({"inputs": [("x", [1])], "outputs": [("loss", [])]}, "is the loss"),
            ({"inputs": ["x"], "outputs": []}, "not 'x'"),
        ):
            with self.assertRaisesRegex(ortc.ArgumentError, message):
                ORTTrainer(modules.Mlp(), description, config, F.cross_entropy)
        other = {**describe(), "inputs": [("pixels", ["batch", 6]), ("label", ["batch"])]}
        with self.assertRaisesRegex(ortc.ArgumentError, r"'pixels' of model_desc is no argument of the model's forward \(x\)"):
            ORTTrainer(modules.Mlp(), other, config, F.cross_entropy)
        with self.assertRaisesRegex(ortc.ArgumentError, "no parameter third"):
            ORTTrainer(modules.Mlp(), describe(), optim.AdamConfig([{"params": ["third"], "alpha": 0.5}]), F.cross_entropy)


class FusedAdamTest(unittest.TestCase):
    def test_against_formulas(self) -> None:
        """Each mode with and without correction, a decay, an epsilon that matters, and a parameter that has no gradient at first."""
        for mode in optim.AdamWMode:
            for correction in (True, False):
                torch.manual_seed(5)
                weights = [torch.randn(3, 4), torch.randn(4)]
                trained = [nn.Parameter(each.clone()) for each in weights]
                lr, eps, decay, (b1, b2) = 0.02, 1e-2, 0.1, (0.8, 0.99)
                optimizer = optim.FusedAdam(trained, lr, correction, (b1, b2), eps, mode, decay)
                wanted = [each.double() for each in weights]
                moments = [[torch.zeros_like(each), torch.zeros_like(each)] for each in wanted]
                for t in range(1, 8):
                    optimizer.zero_grad()
                    for i in range(2):
                        if i == 1 and t < 3:
                            continue
                        g = torch.randn_like(weights[i])
                        trained[i].grad = g.clone()
                        w, g = wanted[i], g.double()
                        if mode == 0:
                            g = g + decay * w
                        moments[i] = m, v = b1 * moments[i][0] + (1 - b1) * g, b2 * moments[i][1] + (1 - b2) * g * g
                        first, second = (1 - b1**t, 1 - b2**t) if correction else (1.0, 1.0)
                        if mode == 2:
                            w = w * (1 - lr * decay)
                        if mode == 1:
                            w = w - lr * math.sqrt(second) / first * m / (v.sqrt() + eps)
                            w = w * (1 - lr * decay)
                        else:
                            w = w - lr * (m / first) / ((v / second).sqrt() + eps)
                        wanted[i] = w
                    optimizer.step()
                for one, other in zip(wanted, trained, strict=True):
                    self.assertLess(distance(one, other.detach()), FLOAT32, f"{mode!r}, correction {correction}")

    def test_is_an_optimizer(self) -> None:
        def make() -> tuple[nn.Module, optim.FusedAdam]:
            torch.manual_seed(6)
            model = modules.Mlp()
            groups = [{"params": model.first.parameters(), "lr": 0.1}, {"params": model.second.parameters()}]
            return model, optim.FusedAdam(groups, lr=0.01)

        def step(model: nn.Module, optimizer: optim.FusedAdam) -> torch.Tensor:
            def closure() -> torch.Tensor:
                optimizer.zero_grad(set_to_none=False)
                loss = model(torch.ones(2, 6)).square().sum()
                loss.backward()
                return loss

            return optimizer.step(closure)

        model, optimizer = make()
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
        for _ in range(3):
            step(model, optimizer)
            schedule.step()
        self.assertEqual([group["lr"] for group in optimizer.param_groups], [0.0125, 0.00125])
        other, resumed = make()
        other.load_state_dict(model.state_dict())
        resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        self.assertEqual(step(other, resumed), step(model, optimizer))
        self.assertTrue(torch.equal(other.first.weight, model.first.weight))
        optimizer.zero_grad(set_to_none=False)
        self.assertIsNone(model.first.weight.grad)  # set_grad_none
        twin_model, twin = copy.deepcopy((model, optimizer))
        self.assertEqual(step(twin_model, twin), step(model, optimizer))
        self.assertTrue(torch.equal(twin_model.first.weight, model.first.weight))
        more = nn.Parameter(torch.ones(2))
        optimizer.add_param_group({"params": [more]})
        more.grad = torch.ones(2)
        step_without_closure = optimizer.step()
        self.assertIsNone(step_without_closure)
        self.assertLess(float(more.detach().max()), 1)

    def test_fp16_optimizer(self) -> None:
        adam = torch.optim.Adam(modules.Mlp().parameters())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertIs(optim.FP16_Optimizer(adam), adam)
        with self.assertRaisesRegex(ortc.ArgumentError, "Megatron"):
            optim.FP16_Optimizer(adam, get_tensor_model_parallel_rank=lambda: 0)
        kind = type("FP16_Optimizer", (), {"__module__": "deepspeed.runtime.fp16"})
        with self.assertRaisesRegex(ortc.ArgumentError, "deepspeed.*float32"):
            optim.FP16_Optimizer(kind())
        adam._amp_stash = None
        with self.assertRaisesRegex(ortc.ArgumentError, "GradScaler"):
            optim.FP16_Optimizer(adam)


class SchedulerTest(unittest.TestCase):
    def test_formulas(self) -> None:
        """Of the documentation, at steps of the rise, its end, the fall, its end and after it."""
        base, total, warmup, end, power = 0.4, 40, 0.25, 0.01, 2.0
        rise = warmup * total
        config = optim.SGDConfig(lr=base)
        rules = {
            optim.ConstantWarmupLRScheduler(total, warmup): lambda t: 1.0,
            optim.LinearWarmupLRScheduler(total, warmup): lambda t: max(0, total - t) / (total - rise),
            optim.CosineWarmupLRScheduler(total, 1.5, warmup): lambda t: (
                max(0, 0.5 * (1 + math.cos(math.pi * 1.5 * 2 * (t - rise) / (total - rise))))
            ),
            optim.PolyWarmupLRScheduler(total, end, power, warmup): lambda t: (
                end / base if t > total else ((base - end) * (1 - (t - rise) / (total - rise)) ** power + end) / base
            ),
        }
        from ortc.compat.ort_training import TrainStepInfo

        for scheduler, rule in rules.items():
            for t in (0, 1, 9, 10, 11, 25, 39, 40, 41, 60):
                rate = scheduler._step(TrainStepInfo(config, optimization_step=t))
                self.assertEqual(scheduler.get_last_lr(), rate)
                self.assertAlmostEqual(rate[0], base * (t / rise if t < rise else rule(t)), places=12, msg=f"{scheduler}, {t}")
        with self.assertRaisesRegex(ortc.ArgumentError, "below the learning rate"):
            optim.PolyWarmupLRScheduler(10, lr_end=0.5).get_lr(TrainStepInfo(config))
        with self.assertRaisesRegex(ortc.ArgumentError, "below 1"):
            optim.LinearWarmupLRScheduler(10, warmup=5.0)


class Sentences:
    """Samples whose work is their length."""

    def __init__(self, lengths: list[int]) -> None:
        self.lengths = lengths

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, i: int) -> list[int]:
        return [0] * self.lengths[i]


class SamplerTest(unittest.TestCase):
    WORLD = 4

    def samplers(self, count: int, **options: Any) -> tuple[list[int], list[LoadBalancingDistributedSampler]]:
        lengths = torch.randint(1, 500, (count,), generator=torch.Generator().manual_seed(7)).tolist()
        data = Sentences(lengths)
        return lengths, [LoadBalancingDistributedSampler(data, len, self.WORLD, rank, **options) for rank in range(self.WORLD)]

    def test_rounds_are_balanced(self) -> None:
        lengths, samplers = self.samplers(100)
        order = sorted(range(100), key=lengths.__getitem__)
        wanted = {frozenset(lengths[i] for i in order[k : k + self.WORLD]) for k in range(0, 100, self.WORLD)}
        epochs = []
        for epoch in range(3):
            for each in samplers:
                each.set_epoch(epoch)
            rows = list(zip(*samplers, strict=True))
            self.assertEqual(sorted(i for row in rows for i in row), list(range(100)))  # disjoint, and all
            self.assertEqual({frozenset(lengths[i] for i in row) for row in rows}, wanted)
            epochs.append(rows)
            self.assertEqual(rows, list(zip(*samplers, strict=True)))  # the same again
        self.assertNotEqual(epochs[0], epochs[1])
        self.assertEqual(sorted(epochs[0]), sorted(epochs[1]))

    def test_rounds_that_are_not_full(self) -> None:
        lengths, samplers = self.samplers(102, shuffle=False)
        given = [i for row in zip(*samplers, strict=True) for i in row]
        order = sorted(range(102), key=lengths.__getitem__)
        self.assertEqual([lengths[i] for i in given], [lengths[i] for i in order + order[:2]])
        self.assertEqual([len(each) for each in samplers], [26] * 4)
        _, samplers = self.samplers(102, drop_last=True)
        self.assertEqual(len({i for each in samplers for i in each}), 100)

    def test_groups(self) -> None:
        lengths, samplers = self.samplers(100, group_size=10)
        orders = set()
        for epoch in range(3):
            for each in samplers:
                each.set_epoch(epoch)
            given = [i for row in zip(*samplers, strict=True) for i in row]
            self.assertEqual(sorted(given), list(range(100)))
            groups = [given[k : k + 10] for k in range(0, 100, 10)]
            for group in groups:
                self.assertEqual({i // 10 for i in group}, {group[0] // 10})
                self.assertEqual([lengths[i] for i in group], sorted(lengths[i] for i in group))
            orders.add(tuple(group[0] // 10 for group in groups))
        self.assertEqual(len(orders), 3)

    def test_random_level(self) -> None:
        """Rows are less equal, the more of chance there is."""
        spreads = []
        for level in (0.0, 0.2, 1.0):
            lengths, samplers = self.samplers(100, random_level=level)
            rows = list(zip(*samplers, strict=True))
            self.assertEqual(sorted(i for row in rows for i in row), list(range(100)))
            spreads.append(sum(max(lengths[i] for i in row) - min(lengths[i] for i in row) for row in rows))
        self.assertLess(spreads[0], spreads[1])
        self.assertLess(spreads[1], spreads[2])

    def test_batches(self) -> None:
        def batch(indices: Any) -> list[list[int]]:
            """At most 600 of length together."""
            batches: list[list[int]] = [[]]
            for i in indices:
                if batches[-1] and sum(lengths[k] for k in [*batches[-1], i]) > 600:
                    batches.append([])
                batches[-1].append(i)
            return batches

        for drop in (False, True):
            lengths, samplers = self.samplers(100, random_level=1.0)
            ranks = [LoadBalancingDistributedBatchSampler(each, batch, drop) for each in samplers]
            for epoch in range(2):
                for each in ranks:
                    each.set_epoch(epoch)
                counts = [len(batch(list(each))) for each in samplers]
                self.assertNotEqual(min(counts), max(counts))
                for rank, each in enumerate(ranks):
                    self.assertEqual(len(list(each)), len(each))
                    self.assertEqual(len(each), min(counts) if drop else max(counts))
                    wanted = batch(list(samplers[rank]))
                    self.assertEqual(list(each)[: len(wanted)], wanted[: len(each)])
        loader = torch.utils.data.DataLoader(samplers[0].dataset, batch_sampler=ranks[0], collate_fn=lambda rows: rows)
        self.assertEqual(len(list(loader)), len(ranks[0]))

    def test_wrong_arguments(self) -> None:
        data = Sentences([1, 2])
        for options in ({"rank": 4}, {"rank": -1}, {"rank": 0, "random_level": 1.5}):
            with self.assertRaises(ortc.ArgumentError):
                LoadBalancingDistributedSampler(data, len, 4, **options)
        with self.assertRaisesRegex(ortc.ArgumentError, "drop_last"):
            LoadBalancingDistributedBatchSampler(LoadBalancingDistributedSampler(data, len, 1, 0, drop_last=True), lambda rows: [rows])


if __name__ == "__main__":
    unittest.main()
