"""Models of Keras: what they predict, how they train, and weights that go back, with both backends.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Keras has one backend in a process: this one has PyTorch's, unless KERAS_BACKEND says otherwise, and a process of its own the one of JAX.
"""

from __future__ import annotations

import os
import subprocess
import sys
import unittest
from typing import Any

import numpy as np
from optional import needs

import ortc

ROUNDING = 2e-6
"""Of float32 sums of some hundred terms."""
TRAINED = 2e-5
"""Of the same, over some steps, where normalisations divide and add rounding up."""


def distance(wanted: Any, got: Any) -> float:
    wanted, got = np.asarray(wanted, np.float64), np.asarray(got, np.float64)
    return float(np.abs(wanted - got).max() / max(np.abs(wanted).max(), 1e-3))


@needs("keras", "onnx", "torch")
class KerasTest(unittest.TestCase):
    def setUp(self) -> None:
        os.environ.setdefault("KERAS_BACKEND", "torch")
        import keras

        if keras.config.backend() not in ("torch", "jax"):
            self.skipTest(f"Keras has begun with its backend {keras.config.backend()}")
        self.is_torch = keras.config.backend() == "torch"
        if self.is_torch:
            import torch

            torch.set_num_threads(1)
        keras.utils.set_random_seed(0)
        self.rng = np.random.default_rng(0)

    def train(self, model: Any, x: Any, y: Any, loss: str, optimizer: str, eager_optimizer: Any, **options: Any) -> ortc.Session:
        import keras

        before = model.get_weights()
        eager = keras.models.clone_model(model)
        eager.set_weights(before)
        artifact = ortc.compile(model, inputs=tuple(each[:8] for each in x), loss=loss, optimizer=optimizer, target="native", **options)
        for mine, old in zip(model.get_weights(), before, strict=True):
            np.testing.assert_array_equal(mine, old)  # the export has changed nothing
        session = ortc.Session(artifact, threads=1)
        names = [name for name, _, _ in session.program.steps()["default"]["predict"][0]]
        losses = {"cross_entropy": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "mse": keras.losses.MeanSquaredError()}
        eager.compile(optimizer=eager_optimizer, loss=losses[loss])
        for i in range(6):
            at = slice(i % 2 * 8, i % 2 * 8 + 8)
            given = [each[at] for each in x]
            wanted = eager.train_on_batch(given if len(given) > 1 else given[0], y[at])
            self.assertAlmostEqual(session.train_step(*given, y[at]), float(wanted), delta=TRAINED)
        self.assertIs(ortc.sources.update(model, session), model)
        for variable, wanted in zip(model.weights, eager.get_weights(), strict=True):
            self.assertLessEqual(distance(wanted, variable.numpy()), TRAINED, variable.path)
        given = [each[:8] for each in x]
        got = session.predict(**dict(zip(names, given, strict=True)))
        wanted = model.predict(given if len(given) > 1 else given[0], verbose=0)
        self.assertLessEqual(distance(wanted, next(iter(got.values()))), ROUNDING)
        return session

    def test_convolutions(self) -> None:
        import keras
        from keras import layers

        x, y = self.rng.random((16, 8, 8, 1), np.float32), self.rng.integers(10, size=16)
        for norms in (False, True) if self.is_torch else (False,):
            norm = [layers.BatchNormalization(momentum=0.9)] if norms else []
            model = keras.Sequential(
                [
                    keras.Input((8, 8, 1), name="pixels"),
                    layers.Conv2D(4, 3, padding="same", activation="relu"),
                    *norm,
                    layers.MaxPooling2D(2),
                    layers.DepthwiseConv2D(3),
                    *([layers.BatchNormalization(scale=False, trainable=False)] if norms else []),
                    layers.AveragePooling2D(2, padding="same"),
                    layers.Flatten(),
                    layers.Dense(10),
                ]
            )
            session = self.train(model, (x,), y, "cross_entropy", "sgd:lr=0.1,momentum=0.9", keras.optimizers.SGD(0.1, momentum=0.9))
            self.assertEqual(len([name for name in session.state if name.endswith("moving_mean")]), int(norms))

    def test_two_inputs_and_tokens(self) -> None:
        import keras
        from keras import layers

        tokens, numbers = keras.Input((5,), dtype="int32", name="tokens"), keras.Input((3,), name="numbers")
        table = layers.Embedding(11, 8)
        h = layers.LayerNormalization()(table(tokens))
        h = layers.MultiHeadAttention(2, 4)(h, h)
        side = layers.Flatten()(layers.Dense(4, activation="gelu")(layers.Reshape((3, 1))(numbers)))
        h = layers.Concatenate()([layers.GlobalAveragePooling1D()(h), side])
        model = keras.Model([tokens, numbers], layers.Dense(2)(h))
        x = self.rng.integers(11, size=(16, 5)).astype(np.int32), self.rng.random((16, 3), np.float32)
        y = self.rng.random((16, 2), np.float32)
        self.train(model, x, y, "mse", "sgd:lr=0.1,momentum=0.9", keras.optimizers.SGD(0.1, momentum=0.9))
        bindings = {"many": {"batch": 4}, "one": {"batch": 1}}
        session = ortc.Session(ortc.compile(model, loss="mse", bindings=bindings, target="native"), threads=1)
        for rows in (4, 1):
            got = session.predict(tokens=x[0][:rows], numbers=x[1][:rows])["output"]
            self.assertLessEqual(distance(model.predict([each[:rows] for each in x], verbose=0), got), ROUNDING)

    def test_recurrence(self) -> None:
        import keras
        from keras import layers

        x, y = self.rng.random((16, 6, 3), np.float32), self.rng.random((16, 2), np.float32)
        for layer in (layers.LSTM(5), layers.Bidirectional(layers.LSTM(5)), layers.Bidirectional(layers.GRU(4, return_sequences=True))):
            last = [layers.Flatten()] if getattr(layer, "return_sequences", False) else []
            model = keras.Sequential([keras.Input((6, 3)), layer, *last, layers.Dense(2)])
            # An epsilon of the size of gradients: Keras adds it before the correction of bias.
            flags = "adam:lr=1e-2,epsilon=1e-2,epsilon_hat=1"
            self.train(model, (x,), y, "mse", flags, keras.optimizers.Adam(1e-2, epsilon=1e-2))
        model = keras.Sequential([keras.Input((6, 3)), layers.GRU(5, go_backwards=True), layers.Dense(2)])
        flags = "adamw:lr=1e-2,epsilon=1e-2,epsilon_hat=1,weight_decay=0.1,amsgrad=1"
        self.train(model, (x,), y, "mse", flags, keras.optimizers.AdamW(1e-2, epsilon=1e-2, weight_decay=0.1, amsgrad=True))

    def test_layers_that_train_otherwise(self) -> None:
        import keras
        from keras import layers

        def build(layer: Any) -> Any:
            return keras.Sequential([keras.Input((64,), name="x"), layer, layers.Dense(256, use_bias=False)])

        model, x = build(layers.Dropout(0.5)), np.ones((8, 64), np.float32)
        if not self.is_torch:
            with self.assertRaisesRegex(ortc.CompileError, r"\(Dropout\) does in training .*; start with KERAS_BACKEND=torch"):
                ortc.compile(model, inputs=(x,))
            return
        session = ortc.Session(ortc.compile(model, shapes={"batch": 8}, loss="mse", optimizer="sgd:lr=0", target="native"), threads=1)
        label = np.zeros((8, 256), np.float32)
        losses = {session.train_step(x, label) for _ in range(4)}
        self.assertEqual(len(losses), 4)  # other masks in every step
        self.assertNotIn(session.eval_step(x, label), losses)
        with self.assertRaisesRegex(ortc.CompileError, r"\(GaussianNoise\) does in training what is not written"):
            ortc.compile(build(layers.GaussianNoise(0.1)), inputs=(x,))
        with self.assertRaisesRegex(ortc.CompileError, "no weights yet"):
            ortc.compile(keras.Sequential([layers.Dense(2)]), inputs=(x,))

    @needs("jax", "jax2onnx")
    @unittest.skipIf(os.environ.get("KERAS_BACKEND") == "jax", "this process has the backend JAX")
    def test_with_jax(self) -> None:
        environment = {**os.environ, "KERAS_BACKEND": "jax"}
        done = subprocess.run(
            [sys.executable, "-B", "-m", "unittest", "keras_test"],
            env=environment,
            capture_output=True,
            text=True,
            cwd=os.path.dirname(os.path.abspath(__file__)),
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"Ran 5 tests")


if __name__ == "__main__":
    unittest.main()
