"""Functions of Python that come back to the trainer that calls them, and other threads that do.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os
import signal
import threading
import time
import unittest
import warnings

import ortc
from ortc import callbacks
from support import TEST, TRAIN, WORK, compile_digits, make_batch

FIT = "a fit of this trainer goes on; until its end only callbacks may evaluate and save, and stop ends it"
EVALUATION = "an evaluation of this trainer goes on"


class AtStep(callbacks.Callback):
    def __init__(self, step, function):
        self.step = step
        self.function = function

    def on_step(self, trainer, event):
        if event["step"] == self.step:
            self.function(trainer)


class ReentryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = compile_digits("--ema", "decay=0.5")
        cls.start = WORK / "reentry.safetensors"
        trainer = ortc.Trainer(cls.folder, TRAIN)
        trainer.fit(steps=2)
        trainer.save(cls.start)
        cls.undisturbed = cls.train()

    @classmethod
    def train(cls, *watch, **options):
        trainer = ortc.Trainer(cls.folder, TRAIN, TEST, callbacks=watch, **options)
        trainer.fit(steps=8)
        return [event["loss"] for event in trainer.history if "event" not in event], trainer.session.to_bytes()

    def refuses(self, text, *functions):
        """A function that finds all of these refused."""

        def call(trainer):
            for function in functions:
                with self.assertRaisesRegex(ortc.StateError, text):
                    function(trainer)
            self.calls += 1

        self.calls = 0
        return call

    def begin_anew(self):
        return (lambda trainer: trainer.fit(steps=1), lambda trainer: trainer.fit(epochs=0), lambda trainer: trainer.load(self.start))

    def test_callbacks_begin_nothing_anew(self):
        call = self.refuses(FIT, *self.begin_anew())
        self.assertEqual(self.train(AtStep(3, call)), self.undisturbed)
        self.assertEqual(self.calls, 1)

    def test_callbacks_evaluate_and_save(self):
        other = make_batch()
        watch = AtStep(3, lambda trainer: (trainer.evaluate(), trainer.evaluate([other]), trainer.save(WORK / "between.safetensors")))
        self.assertEqual(self.train(watch, eval_weights="ema"), self.undisturbed)
        again = ortc.Trainer(self.folder, TRAIN)
        again.load(WORK / "between.safetensors")
        again.fit(steps=5)
        self.assertEqual(again.session.to_bytes(), self.undisturbed[1])

    def test_rates_and_data_begin_nothing_anew(self):
        batch = make_batch()
        call = self.refuses(FIT, *self.begin_anew())

        def rate(step):
            call(trainer)
            return 1e-3

        def load(epoch):
            call(trainer)
            yield batch

        for options in ({"train": TRAIN, "lr": rate}, {"train": load}):
            trainer = ortc.Trainer(self.folder, **options)
            trainer.fit(steps=2)
            self.assertEqual((trainer.step, self.calls), (2, 2))
            self.calls = 0

    def test_metrics_begin_nothing_anew(self):
        """Parameters may be averages there."""
        call = self.refuses(EVALUATION, *self.begin_anew(), lambda trainer: trainer.evaluate(), lambda trainer: trainer.save(self.start))

        def measure(outputs, inputs):
            call(trainer)
            return 1.0, 1.0

        trainer = ortc.Trainer(self.folder, TRAIN, TEST, metrics=[("mine", measure)], eval_weights="ema")
        trainer.fit(steps=8)
        self.assertEqual(trainer.session.to_bytes(), self.undisturbed[1])
        self.assertGreater(self.calls, 1)
        self.calls = 0
        trainer.evaluate()
        self.assertGreater(self.calls, 1)

    def test_other_threads_wait_for_the_end(self):
        call = self.refuses(FIT, *self.begin_anew(), lambda trainer: trainer.evaluate(), lambda trainer: trainer.save(self.start))

        def ask(trainer):
            thread = threading.Thread(target=call, args=(trainer,))
            thread.start()
            thread.join()

        self.assertEqual(self.train(AtStep(3, ask)), self.undisturbed)
        self.assertEqual(self.calls, 1)

    def wait_for_child(self):
        """Its status, also where it hangs."""
        for _ in range(200):
            done, status = os.waitpid(self.child, os.WNOHANG)
            if done:
                return status
            time.sleep(0.1)
        os.kill(self.child, signal.SIGKILL)
        return os.waitpid(self.child, 0)[1]

    def test_a_forked_child_has_no_part_in_the_fit(self):
        """It does not wait for threads that are its parent's, and saves nothing. The parent goes on, and saves, only after it."""
        for options in ({}, {"threads": 1}):
            saved = WORK / f"forked-{len(options)}.safetensors"
            saved.unlink(missing_ok=True)

            def fork(trainer):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DeprecationWarning)  # of processes with threads
                    self.child = os.fork()
                if self.child:
                    self.status = self.wait_for_child()

            trainer = ortc.Trainer(self.folder, TRAIN, callbacks=[AtStep(3, fork)], save=saved, **options)
            self.child = -1
            try:
                trainer.fit(steps=8)
            except ortc.StateError as error:
                if self.child == 0:
                    is_fine = "a forked child makes a trainer of its own" in str(error) and not saved.exists()
                    del trainer
                    os._exit(0 if is_fine else 1)
                raise
            finally:
                if self.child == 0:
                    os._exit(2)
            self.assertEqual(self.status, 0)
            self.assertEqual(trainer.step, 8)
            self.assertTrue(saved.exists())

    def test_a_failure_leaves_the_trainer_free(self):
        def fail(outputs, inputs):
            raise ValueError("mine")

        trainer = ortc.Trainer(self.folder, TRAIN, TEST, metrics=[("mine", fail)])
        for call in (lambda: trainer.evaluate(), lambda: trainer.fit(steps=1), lambda: trainer.evaluate()):
            with self.assertRaisesRegex(ValueError, "mine"):
                call()
        trainer.load(self.start)


if __name__ == "__main__":
    unittest.main()
