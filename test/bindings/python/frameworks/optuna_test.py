"""A search by Optuna: rates are scalars of a session, so that a hundred trials need one compilation.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import pathlib
import unittest
import unittest.mock
from typing import Any

from optional import needs

import ortc
from ortc import _compile

SOURCE = pathlib.Path(__file__).parents[4]
DIGITS, TRAIN, TEST = (SOURCE / "test" / each for each in ("zoo/mlp-digits/model.onnx", "data/digits/train.npz", "data/digits/test.npz"))
TRIALS = 100


class Prune(ortc.callbacks.Callback):
    """Tells a trial of every evaluation, and ends what is not worth its time."""

    def __init__(self, trial: Any) -> None:
        self.trial = trial

    def on_eval(self, trainer: ortc.Trainer, event: dict[str, Any]) -> None:
        self.trial.report(event["eval_loss"], event["epoch"])
        if self.trial.should_prune():
            trainer.stop()


@needs("optuna")
class OptunaTest(unittest.TestCase):
    def test_a_hundred_trials(self) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        runs = []

        def run(arguments: list[str]) -> tuple[str, str]:
            runs.append(arguments)
            return compiler(arguments)

        compiler = _compile.run_compiler
        with unittest.mock.patch("ortc._compile.run_compiler", run):
            artifact = ortc.compile(DIGITS, shapes={"batch": 64}, optimizer="adamw:lr=1e-3,weight_decay=1e-2", target="native")
            steps = []

            def objective(trial: Any) -> float:
                session = ortc.Session(artifact, threads=1)
                session.lr = trial.suggest_float("lr", 1e-5, 1.0, log=True)
                session.weight_decay = trial.suggest_float("weight_decay", 1e-4, 1.0, log=True)
                session.beta1 = trial.suggest_float("beta1", 0.5, 0.99)
                trainer = ortc.Trainer(session, TRAIN, TEST, callbacks=[Prune(trial)])
                trainer.fit(epochs=4)
                steps.append(trainer.step)
                if trainer.epoch < 4:
                    raise optuna.TrialPruned
                return trainer.evaluate()["loss"]

            study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0), pruner=optuna.pruners.MedianPruner())
            study.optimize(objective, n_trials=TRIALS)
        self.assertEqual([each[0] for each in runs], ["train"])
        self.assertEqual(len(study.trials), TRIALS)
        pruned = [each for each in study.trials if each.state is optuna.trial.TrialState.PRUNED]
        self.assertGreater(len(pruned), 10)
        self.assertLess(sum(steps), TRIALS * max(steps))
        # The rates have been there: with those of the best trial compiled in, the same numbers come.
        best = study.best_params
        spec = f"adamw:lr={best['lr']!r},weight_decay={best['weight_decay']!r},beta1={best['beta1']!r}"
        fixed = ortc.Trainer(ortc.compile(DIGITS, shapes={"batch": 64}, optimizer=spec, target="native"), TRAIN, threads=1)
        fixed.fit(epochs=4)
        self.assertEqual(fixed.evaluate(TEST)["loss"], study.best_value)
        self.assertLess(study.best_value, 0.2)


if __name__ == "__main__":
    unittest.main()
