"""Models of other libraries: what they predict, how they train, and weights that go back.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest
from typing import Any

import numpy as np
from optional import need, needs

import ortc


def distance(wanted: Any, got: Any) -> float:
    """The largest difference, as a share of the largest number."""
    wanted, got = np.asarray(wanted, np.float64), np.asarray(got, np.float64)
    return float(np.abs(wanted - got).max() / np.abs(wanted).max())


ROUNDING = 2e-6
"""Of float32 sums of tens of terms, over tens of steps: some units of 2^-24."""
TRAINED = 2e-5
"""Of the same, where normalisations and recurrences divide and add rounding up."""
LARGE = 1e-3
"""An epsilon of Adam, of the size of gradients. scikit-learn and Keras add it to the divisor before the correction of bias, which is
another step."""


@needs("sklearn", "onnx")
class SklearnTest(unittest.TestCase):
    ROWS = 32

    def make_data(self, labels: str) -> tuple[Any, Any, Any]:
        """Inputs, labels as the estimator takes them, and as a session does."""
        rng = np.random.default_rng(0)
        x = rng.normal(size=(self.ROWS * 8, 6)).astype(np.float32)
        scores = np.tanh(x @ rng.normal(size=(6, 3)))
        if labels == "classes":
            y = scores.argmax(1)
            return x, np.array(["ash", "elm", "oak"])[y], y.astype(np.int64)
        if labels == "two":
            y = (scores[:, 0] > 0).astype(np.float32)
            return x, np.array(["no", "yes"])[y.astype(int)], y[:, None]
        if labels == "many":
            return x, (scores > 0).astype(int), (scores > 0).astype(np.float32)
        y = scores[:, : 1 if labels == "number" else 3].astype(np.float32)
        return x, y[:, 0] if labels == "number" else y, y

    def train(self, kind: str, labels: str, **settings: Any) -> tuple[Any, ortc.Session, Any]:
        """Both train from the same weights on the same batches: steps must be the same ones."""
        from sklearn import neural_network

        x, y, given = self.make_data(labels)
        classes = {} if kind == "MLPRegressor" else {"classes": [0, 1, 2] if labels == "many" else sorted(set(y))}
        model = getattr(neural_network, kind)(
            hidden_layer_sizes=(16, 8), random_state=0, alpha=0.01, batch_size=self.ROWS, epsilon=LARGE, **settings
        )
        model.partial_fit(x[: self.ROWS], y[: self.ROWS], **classes)
        del model._optimizer  # its state; a session begins without one
        eager = copy.deepcopy(model)
        session = ortc.Session(ortc.compile(model, target="native"), threads=1)
        scale = 2.0 if kind == "MLPRegressor" else 1 / 3 if labels == "many" else 1.0  # halves of squares; sums over labels
        for i in range(32):
            at = slice(i % 8 * self.ROWS, (i % 8 + 1) * self.ROWS)
            penalty = 0.5 * model.alpha * sum(float((w**2).sum()) for w in eager.coefs_) / self.ROWS  # part of sklearn's loss
            eager.partial_fit(x[at], y[at])
            loss = session.train_step(x=x[at], label=given[at])
            self.assertAlmostEqual(loss, (eager.loss_ - penalty) * scale, delta=ROUNDING * max(1.0, loss))
        self.assertIs(ortc.sources.update(model, session), model)
        for mine, wanted in zip([*model.coefs_, *model.intercepts_], [*eager.coefs_, *eager.intercepts_], strict=True):
            self.assertEqual(mine.dtype, wanted.dtype)
            self.assertLessEqual(distance(wanted, mine), ROUNDING)
        return model, session, x

    def test_classes(self) -> None:
        for settings in ({"solver": "adam"}, {"solver": "sgd", "learning_rate_init": 0.05}, {"activation": "tanh"}):
            model, session, x = self.train("MLPClassifier", "classes", **settings)
            got = session.predict(x=x[: self.ROWS])["probabilities"]
            self.assertLessEqual(distance(model.predict_proba(x[: self.ROWS]), got), 1e-6)
            self.assertEqual(list(model.predict(x[: self.ROWS])), list(model.classes_[got.argmax(1)]))

    def test_two_classes_and_many_labels(self) -> None:
        for labels in ("two", "many"):
            for settings in ({"solver": "adam"}, {"solver": "sgd", "learning_rate_init": 0.05, "nesterovs_momentum": False}):
                model, session, x = self.train("MLPClassifier", labels, **settings)
                got = session.predict(x=x[: self.ROWS])["probabilities"]
                self.assertLessEqual(distance(model.predict_proba(x[: self.ROWS]), got), 1e-6)

    def test_numbers(self) -> None:
        for labels in ("number", "numbers"):
            for settings in ({"solver": "adam", "activation": "logistic"}, {"solver": "sgd", "learning_rate_init": 0.02, "momentum": 0.5}):
                model, session, x = self.train("MLPRegressor", labels, **settings)
                got = session.predict(x=x[: self.ROWS])["output"]
                self.assertLessEqual(distance(model.predict(x[: self.ROWS]), got.squeeze()), 1e-5)

    def test_labels_and_the_default_batch(self) -> None:
        from sklearn.neural_network import MLPClassifier, MLPRegressor

        for labels, kind in (("classes", MLPClassifier), ("two", MLPClassifier), ("many", MLPClassifier), ("number", MLPRegressor)):
            x, y, wanted = self.make_data(labels)
            classes = {"classes": [0, 1, 2] if labels == "many" else np.unique(y)} if kind is MLPClassifier else {}
            model = kind(hidden_layer_sizes=(4,)).partial_fit(x, y, **classes)
            got = ortc.sources.labels(model, y)
            self.assertEqual((got.dtype, got.shape), (wanted.dtype, wanted.shape))
            np.testing.assert_array_equal(got, wanted)
            artifact = ortc.compile(model, target="native")
            trainer = ortc.Trainer(artifact, {"x": x, "label": got})
            trainer.fit(epochs=1)
            self.assertEqual(trainer.session["step"], len(x) // 200)  # the estimator's own batch_size="auto"
            if labels in ("two", "number"):
                with self.assertRaisesRegex(ortc.ShapeError, r"give label\[:, None\]"):
                    ortc.Trainer(artifact, {"x": x, "label": got[:, 0]}).fit(epochs=1)
            if labels == "classes":
                with self.assertRaisesRegex(ortc.ShapeError, "'label' is <U3, but must be int64; number the classes"):
                    ortc.Trainer(artifact, {"x": x, "label": y}).fit(epochs=1)
        with self.assertRaisesRegex(ortc.ArgumentError, "takes labels as they are"):
            ortc.sources.labels(object(), y)

    def test_what_is_refused(self) -> None:
        from sklearn.linear_model import LogisticRegression
        from sklearn.neural_network import MLPClassifier, MLPRegressor
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        x, y, _ = self.make_data("number")
        fitted = MLPRegressor(hidden_layer_sizes=(4,)).partial_fit(x, y)
        for model, text in (
            (MLPClassifier(), "has no weights yet: call its partial_fit"),
            (MLPClassifier(solver="lbfgs").fit(x, y > 0), "the solver 'lbfgs' of MLPClassifier"),
            (make_pipeline(StandardScaler(), MLPRegressor(max_iter=1)).fit(x, y), r"compile model\[-1\], and give it data of model"),
            (LogisticRegression().fit(x, y > 0), "a sklearn.linear_model._logistic.LogisticRegression is no model"),
            (MLPRegressor(batch_size=4, loss="poisson").partial_fit(x, abs(y)), "the loss 'poisson' of MLPRegressor"),
            (copy.deepcopy(fitted).set_params(batch_size=4, solver="lbfgs"), "the solver 'lbfgs' of MLPRegressor"),
        ):
            with self.assertRaisesRegex(ortc.CompileError, text):
                ortc.compile(model)


@needs("torch", "onnx")
class TorchTest(unittest.TestCase):
    """Against PyTorch's own loop."""

    def train(self, model: Any, x: Any, y: Any, optimizer: str, eager_optimizer: Any, **options: Any) -> ortc.Session:
        import torch.nn.functional as F

        eager = copy.deepcopy(model)
        before = copy.deepcopy(model.state_dict())
        loss = "cross_entropy" if y.dtype.is_floating_point is False else "mse"
        artifact = ortc.compile(model, inputs=(x[:4],), loss=loss, optimizer=optimizer, target="native", **options)
        for name, values in model.state_dict().items():
            self.assertTrue((values == before[name]).all(), f"the export has changed {name}")
        session = ortc.Session(artifact, threads=1)
        other = eager_optimizer([each for each in eager.parameters() if each.requires_grad])
        for i in range(8):
            at = slice(i % 2 * 4, i % 2 * 4 + 4)
            other.zero_grad()
            wanted = getattr(F, loss + "_loss" if loss == "mse" else loss)(eager(x[at]), y[at])
            wanted.backward()
            other.step()
            self.assertAlmostEqual(session.train_step(x[at], y[at]), wanted.item(), delta=TRAINED)
        self.assertIs(ortc.sources.update(model, session), model)
        for name, values in eager.state_dict().items():
            if not name.endswith("num_batches_tracked"):
                self.assertLessEqual(distance(values, model.state_dict()[name]), TRAINED, name)
        model.eval()
        got = session.predict(x[:4])["output"]
        self.assertLessEqual(distance(model(x[:4]).detach(), got), ROUNDING)
        return session

    def test_training(self) -> None:
        import modules
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(0)
        sgd = "sgd:lr=0.1,momentum=0.9", lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)
        adam = "adamw:lr=1e-2", lambda p: torch.optim.AdamW(p, lr=1e-2)
        self.train(modules.Mlp(), torch.randn(8, 6), torch.randn(8, 3), *adam)
        self.train(modules.ConvNorm(), torch.randn(8, 2, 7, 7), torch.randint(3, (8,)), *sgd)
        self.train(modules.Lstm(), torch.randn(8, 6, 3), torch.randn(8, 2), *adam)
        self.train(modules.Masked(), torch.randn(8, 4), torch.randn(8, 4), *sgd)
        tied = modules.Tied()
        self.train(tied, torch.randint(11, (8, 5)), torch.randn(8, 5, 11), *sgd)
        self.assertIs(tied.head.weight, tied.embed.weight)

    def test_ctc(self) -> None:
        """Labels of samples with their lengths, which are inputs of the step, beside PyTorch's; by a session and a Trainer."""
        import torch

        class Frames(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.body = torch.nn.Linear(5, 4)

            def forward(self, x: Any) -> Any:
                return self.body(x).log_softmax(-1).transpose(0, 1)  # [frames, samples, classes]

        torch.manual_seed(0)
        model, rng = Frames(), np.random.default_rng(0)
        x = rng.normal(size=(4, 9, 5)).astype(np.float32)
        y = rng.integers(1, 4, (4, 3))
        frames, labels = np.array([9, 7, 8, 9]), np.array([3, 2, 1, 3])
        artifact = ortc.compile(model, inputs=(torch.from_numpy(x),), loss="ctc:labels=3", optimizer="adam:lr=0.01", target="native")
        names = [name for name, _, _ in artifact.program().steps()["default"]["train"][0]]
        batch = dict(zip(names, (x, y, frames, labels), strict=True))
        self.assertEqual(names[1:], ["label", "input_lengths", "target_lengths"])
        kinds = {name: kind for name, kind, _ in artifact.program().steps()["default"]["train"][0]}
        batch = {name: values.astype(kinds[name]) for name, values in batch.items()}
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        wanted = []
        for _ in range(5):
            optimizer.zero_grad()
            given = [torch.from_numpy(each) for each in (y, frames, labels)]
            loss = torch.nn.functional.ctc_loss(model(torch.from_numpy(x)), *given)
            loss.backward()
            optimizer.step()
            wanted.append(loss.item())
        session = ortc.Session(artifact)
        self.assertLess(distance(wanted, [session.train_step(**batch) for _ in range(5)]), TRAINED)
        events = ortc.Trainer(artifact, [batch] * 5).fit()
        self.assertLess(distance(wanted, [event["loss"] for event in events if "event" not in event]), TRAINED)
        arrays = {name: np.concatenate([values, values[:2]]) for name, values in batch.items()}
        trainer = ortc.Trainer(artifact, batch, arrays)
        both = [trainer.session.eval_step(**{n: np.resize(v[:2], v.shape) for n, v in batch.items()}), trainer.session.eval_step(**batch)]
        self.assertAlmostEqual(trainer.evaluate()["loss"], (2 * both[0] + 4 * both[1]) / 6, 5)  # the last two are a short batch

    def test_frozen_parameters_stay(self) -> None:
        import modules
        import torch

        model = modules.Mlp()
        model.first.requires_grad_(False)
        session = self.train(model, torch.randn(8, 6), torch.randn(8, 3), "sgd:lr=0.1", lambda p: torch.optim.SGD(p, lr=0.1))
        self.assertEqual(sorted(session.parameters), ["second.bias", "second.weight"])

    def test_names_and_bindings(self) -> None:
        import modules
        import torch

        model, x = modules.Nested(), torch.randn(6, 4)
        artifact = ortc.compile(
            model,
            inputs={"x": x, "scale": 2.0, "other": torch.ones(6, 4)},
            loss="mse",
            loss_input="pair.1",
            bindings={"many": {"batch": 6}, "one": {"batch": 1}},
            target="native",
        )
        session = ortc.Session(artifact, threads=1)
        for rows in (6, 1):
            got = session.predict(x=x[:rows], other=torch.ones(rows, 4))
            wanted = model(x[:rows], scale=2.0, other=torch.ones(rows, 4))
            self.assertEqual(sorted(got), ["pair.0", "pair.1", "y"])
            self.assertLessEqual(distance(wanted["pair"][1].detach(), got["pair.1"]), ROUNDING)

    def test_sessions_of_files_give_weights_back(self) -> None:
        import modules
        import torch

        model, x = modules.Mlp(), torch.randn(4, 6)
        with tempfile.TemporaryDirectory() as folder:
            ortc.compile(model, inputs=(x,), loss="mse", optimizer="sgd:lr=0.1", output=folder, target="native")
            session = ortc.Session(ortc.load(folder), threads=1)
        session.train_step(x, torch.zeros(4, 3))
        ortc.sources.update(model, session)
        self.assertLessEqual(distance(model(x).detach(), session.predict(x)["output"]), ROUNDING)
        with self.assertRaisesRegex(ortc.ArgumentError, "has trained 'first.weight', which the model does not have"):
            ortc.sources.update(modules.Two(), session)
        with self.assertRaisesRegex(ortc.ShapeError, r"'second.weight' is \[3, 8\] in the session and \[4, 8\] in the model"):
            other = modules.Mlp()
            other.second = torch.nn.Linear(8, 4)
            ortc.sources.update(other, session)

    def test_what_is_refused(self) -> None:
        import modules
        import torch

        class Counting(modules.Mlp):
            calls = 0

            def forward(self, x: Any) -> Any:
                self.calls += 1
                return super().forward(x)

        class Filling(modules.Mlp):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("seen", torch.zeros(6))

            def forward(self, x: Any) -> Any:
                self.seen += x.detach().sum(0)
                return super().forward(x)

        norm, idle = torch.nn.BatchNorm1d(3), torch.nn.Sequential(torch.nn.Linear(3, 3))
        idle[0].norm = norm
        x = torch.ones(2, 3)
        for model, inputs, error, text in (
            (modules.Branching(), (x,), ortc.CompileError, "looks at numbers of a tensor"),
            (Counting(), (torch.ones(2, 6),), ortc.CompileError, "the module changes its attributes or buffers in forward"),
            (torch.nn.Sequential(norm, norm), (x,), ortc.CompileError, "a batch normalisation runs several times in a step, or not at all: '0' 2 times; let it see"),
            (idle, (x,), ortc.CompileError, "or not at all: '0.norm' 0 times$"),
            (Filling(), (torch.ones(2, 6),), ortc.CompileError, r"buffers in forward \('seen'\); let forward give"),
            (modules.Mlp(), None, ortc.CompileError, "needs examples of what it takes"),
            (modules.Mlp(), x, ortc.ArgumentError, "inputs is a tuple of example inputs"),
            (torch.nn.EmbeddingBag(4, 2, max_norm=1.0), (torch.zeros(1, 1, dtype=torch.long),), ortc.CompileError, "an EmbeddingBag has max_norm"),
            (object(), (x,), ortc.CompileError, "a builtins.object is no model"),
            (b"", (x,), ortc.ArgumentError, "inputs goes with models of other libraries"),
        ):
            with self.assertRaisesRegex(error, text):
                ortc.compile(model, inputs=inputs)

    def test_a_package_that_is_missing(self) -> None:
        import modules
        import torch

        self.addCleanup(sys.modules.__setitem__, "onnx", importlib.import_module("onnx"))
        sys.modules["onnx"] = None  # type: ignore[assignment]
        with self.assertRaisesRegex(ortc.CompileError, "a torch.nn.Module needs the package onnx .*: pip install onnx"):
            ortc.compile(modules.Mlp(), inputs=(torch.ones(1, 6),))


@needs("jax", "jax2onnx", "optax")
class JaxTest(unittest.TestCase):
    """Against JAX's gradients and the optimizers of optax. (The first export of a process loads all that jax2onnx knows: ten seconds.)"""

    def train(self, function: Any, parameters: Any, x: Any, optimizer: str, eager_optimizer: Any) -> None:
        import jax
        import optax

        x = x.astype(np.float32) if x.dtype.kind == "f" else x.astype(np.int32)
        y = np.full(jax.eval_shape(function, parameters, x).shape, 0.5, np.float32)
        artifact = ortc.compile((function, parameters), inputs=(x,), loss="mse", optimizer=optimizer, target="native")
        session = ortc.Session(artifact, threads=1)
        step = jax.jit(jax.value_and_grad(lambda each: ((function(each, x) - y) ** 2).mean()))
        eager, state = parameters, eager_optimizer.init(parameters)
        for _ in range(8):
            wanted, gradients = step(eager)
            updates, state = eager_optimizer.update(gradients, state, eager)
            eager = optax.apply_updates(eager, updates)
            self.assertAlmostEqual(session.train_step(x, y), float(wanted), delta=TRAINED * max(1.0, float(wanted)))
        same, trained = ortc.sources.update((function, parameters), session)
        self.assertIs(same, function)
        self.assertEqual(jax.tree.structure(trained), jax.tree.structure(parameters))
        for mine, other in zip(jax.tree.leaves(trained), jax.tree.leaves(eager), strict=True):
            self.assertLessEqual(distance(other, mine), TRAINED)
        self.assertLessEqual(distance(function(trained, x), session.predict(x)["output"]), ROUNDING)

    def draw(self, *shape: int) -> Any:
        import jax.numpy as jnp

        return jnp.asarray(self.rng.normal(size=shape) / max(1, int(np.prod(shape[:-1]))) ** 0.5, jnp.float32)

    def setUp(self) -> None:
        self.rng = np.random.default_rng(0)

    def test_training(self) -> None:
        import jax
        import jax.numpy as jnp
        import optax

        def convolve(p: Any, x: Any) -> Any:
            windows = jax.lax.reduce_window
            h = jax.lax.conv_general_dilated(x, p["conv"]["kernel"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            h = jax.nn.relu(h + p["conv"]["bias"])
            h = windows(h, -jnp.inf, jax.lax.max, (1, 3, 2, 1), (1, 2, 2, 1), "SAME")
            h = windows(h, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 1, 2, 1), "SAME")
            return h.reshape(h.shape[0], -1) @ p["head"][0] + p["head"][1]

        def attend(p: Any, x: Any) -> Any:
            mean = x.mean(-1, keepdims=True)
            h = (x - mean) / jnp.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * p["scale"] + p["shift"]
            q, k, v = jnp.split(h @ p["qkv"], 3, -1)
            return x + jnp.exp(p["rate"]) * jax.nn.gelu(jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k) / 8**0.5) @ v) @ p["out"]

        def recur(p: Any, x: Any) -> Any:
            def step(h: Any, each: Any) -> Any:
                h = jnp.tanh(each @ p[0] + h @ p[1])
                return h, h

            return jax.lax.scan(step, jnp.zeros((x.shape[0], 5)), jnp.swapaxes(x, 0, 1))[0] @ p[2]

        draw, zeros, ones = self.draw, jnp.zeros, jnp.ones
        self.train(
            convolve,
            {"conv": {"kernel": draw(3, 3, 1, 4), "bias": zeros(4)}, "head": (draw(4 * 2 * 4, 3), zeros(3))},
            self.rng.normal(size=(4, 7, 8, 1)),
            "sgd:lr=0.01,momentum=0.9",
            optax.sgd(0.01, momentum=0.9),
        )
        self.train(
            attend,
            {"scale": ones(8), "shift": zeros(8), "qkv": draw(8, 24), "rate": zeros(()), "out": draw(8, 8)},
            self.rng.normal(size=(4, 5, 8)),
            "adamw:lr=1e-2,weight_decay=0.1",
            optax.adamw(1e-2, weight_decay=0.1),
        )
        self.train(recur, [draw(3, 5), draw(5, 5), draw(5, 2)], self.rng.normal(size=(4, 7, 3)), "adam:lr=1e-2", optax.adam(1e-2))
        self.train(
            lambda p, tokens: p["table"][tokens].mean(1) @ p["head"],
            {"table": draw(11, 6), "head": draw(6, 3)},
            self.rng.integers(11, size=(4, 5)),
            "adam:lr=1e-2",
            optax.adam(1e-2),
        )

    def test_names_and_bindings(self) -> None:
        def call(p: Any, x: Any, doubled: bool = False) -> Any:
            y = x @ p["w"] * p["number"]
            return {"y": y * 2 if doubled else y, "x": x + 1}

        p = {"w": np.asarray(self.draw(3, 2)), "number": np.int32(2)}
        x = np.ones((4, 3), np.float32)
        bindings = {"many": {"batch": 4}, "one": {"batch": 1}}
        artifact = ortc.compile((call, p), inputs={"x": x, "doubled": True}, loss_input="y", loss="mse", bindings=bindings, target="native")
        session = ortc.Session(artifact, threads=1)
        self.assertEqual(list(session.parameters), ["w"])
        session.train_step(x=x, label=np.zeros((4, 2), np.float32))
        _, trained = ortc.sources.update((call, p), session)
        self.assertIsInstance(trained["w"], np.ndarray)
        self.assertEqual(trained["number"], 2)
        for rows in (4, 1):
            got = session.predict(x=x[:rows])
            self.assertEqual(sorted(got), ["output.x", "y"])
            self.assertLessEqual(distance(call(trained, x[:rows], True)["y"], got["y"]), ROUNDING)

    def test_what_is_refused(self) -> None:
        import jax

        p, x = {"w": self.draw(3, 2)}, np.ones((4, 3), np.float32)
        for function, inputs, text in (
            (lambda p, x: x @ p["w"], None, "needs examples of what it takes beside its parameters"),
            (lambda p, x: jax.lax.linalg.qr(x @ p["w"])[0], (x,), "jax2onnx cannot export the function"),
        ):
            with self.assertRaisesRegex(ortc.CompileError, text):
                ortc.compile((function, p), inputs=inputs)


class PageTest(unittest.TestCase):
    """Blocks of docs/sources.md, as far as the packages are there that they import."""

    def test_blocks_run(self) -> None:
        root = pathlib.Path(__file__).parents[4]
        text = (root / "docs/sources.md").read_text()
        blocks = list(re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S))
        self.assertEqual([block[1] for block in blocks], ["python"] * 7)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for path in ("zoo/mlp-digits/model.onnx", "data/digits/train.npz", "data/digits/test.npz"):
            shutil.copy(root / "test" / path, folder.name)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        for block in blocks:
            packages = re.findall(r"^(?:import|from) (\w+)", block[2], re.M)
            needed = {"jax": "jax2onnx", "keras": "torch"}
            with self.subTest(packages=packages):
                need(*packages, *(needed[each] for each in packages if each in needed))
                if "keras" in packages and "keras" in sys.modules and sys.modules["keras"].config.backend() != "torch":
                    self.skipTest("Keras has begun with another backend")
                names: dict[str, Any] = {}
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    exec(compile("\n" * text[: block.start(2)].count("\n") + block[2], "docs/sources.md", "exec"), names)
                if "trainer" in names:
                    self.assertGreater(self.measure(names["trainer"].session), 0.95)

    def measure(self, session: ortc.Session) -> float:
        """Accuracy on digits that were not trained on."""
        with np.load("test.npz") as file:
            (name,) = [each for each, _, _ in session.program.steps()["default"]["predict"][0]]
            data = {name: file["pixels"], "label": file["label"]}
        return ortc.Trainer(session, data, metrics=["accuracy"]).evaluate(data)["accuracy"]


if __name__ == "__main__":
    unittest.main()
