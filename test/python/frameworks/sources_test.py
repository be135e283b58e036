"""Models of other libraries: what they predict, how they train, and weights that go back.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import importlib.util
import unittest
from typing import Any

import numpy as np

import ortc


def is_there(*packages: str) -> bool:
    return all(importlib.util.find_spec(each) for each in packages)


def distance(wanted: Any, got: Any) -> float:
    """The largest difference, as a share of the largest number."""
    wanted, got = np.asarray(wanted, np.float64), np.asarray(got, np.float64)
    return float(np.abs(wanted - got).max() / np.abs(wanted).max())


ROUNDING = 2e-6
"""Of float32 sums of tens of terms, over tens of steps: some units of 2^-24."""
SMALL = 1e-12
"""An epsilon of Adam. scikit-learn and Keras add it to the divisor before the correction of bias, which is a larger one in the first
steps: where gradients are far above it, there is no difference."""


@unittest.skipUnless(is_there("sklearn", "onnx"), "scikit-learn is not installed")
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
            hidden_layer_sizes=(16, 8), random_state=0, alpha=0.01, batch_size=self.ROWS, epsilon=SMALL, **settings
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

    def test_what_is_refused(self) -> None:
        from sklearn.neural_network import MLPClassifier, MLPRegressor

        x, y, _ = self.make_data("number")
        fitted = MLPRegressor(hidden_layer_sizes=(4,)).partial_fit(x, y)
        for model, text in (
            (MLPClassifier(), "has no weights yet: call its partial_fit"),
            (fitted, "rows of a batch are not known"),
            (MLPRegressor(hidden_layer_sizes=(4,), batch_size=4, loss="poisson").partial_fit(x, abs(y)), "the loss 'poisson' of a MLPRegressor"),
            (copy.deepcopy(fitted).set_params(batch_size=4, solver="lbfgs"), "the solver 'lbfgs' of a MLPRegressor"),
        ):
            with self.assertRaisesRegex(ortc.CompileError, text):
                ortc.compile(model)


if __name__ == "__main__":
    unittest.main()
