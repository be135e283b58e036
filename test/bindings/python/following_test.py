"""Trainer with what follows evaluations (eval_every, best, patience, save_best, a plateau) and checkpoints of steps: the events,
rates, files and bits of `ortc run`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import os
import pathlib
import signal
import tempfile
import unittest

import numpy as np
import ortc
from ortc import callbacks
from support import SOURCE, TEST, TRAIN, WORK, compile_digits, read_checkpoint, run_tool

FLAGS = {
    "eval_every": "--eval-every",
    "best": "--best",
    "patience": "--patience",
    "lr": "--lr",
    "lr_schedule": "--lr-schedule",
    "save_every": "--save-every",
    "keep": "--keep",
    "seed": "--seed",
}


def read_events(path):
    """Without what depends on the clock and the place of files; losses are of float32."""
    events = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
    return [
        {
            key: pathlib.Path(value).name if key == "file" else np.float32(value) if isinstance(value, float) else value
            for key, value in event.items()
            if key != "ms"
        }
        for event in events
        if event.get("event") != "epoch"
    ]


class Runs:
    """The same runs of the tool and of Trainers, each in a folder of its own."""

    def __init__(self, artifact, train=TRAIN, evaluation=TEST):
        self.artifact, self.train, self.evaluation, self.folders = artifact, train, evaluation, {}
        for name in ("tool", "python"):
            self.folders[name] = pathlib.Path(tempfile.mkdtemp(dir=WORK))

    def files(self, name):
        folder = self.folders[name]
        return {"save": folder / "last.safetensors", "save_best": folder / "best.safetensors"}

    def tool(self, steps, load=None, name="tool", **options):
        flags = [each for key, value in options.items() for each in (FLAGS[key], value)]
        files = self.files(name)
        run_tool("run", self.artifact, "--data", self.train, "--eval-data", self.evaluation, "--steps", steps, "--quiet", "--metrics",
                 self.folders[name] / "metrics.jsonl", "--save", files["save"], "--save-best", files["save_best"],
                 *(["--load", load] if load else []), *flags)

    def python(self, steps, load=None, name="python", **options):
        jsonl = callbacks.JSONL(self.folders[name] / "metrics.jsonl")
        trainer = ortc.Trainer(self.artifact, self.train, self.evaluation, metrics=["accuracy"], callbacks=[jsonl],
                               **self.files(name), **options)
        if load:
            trainer.load(load)
        trainer.fit(steps=steps)
        return trainer

    def events(self, name):
        return read_events(self.folders[name] / "metrics.jsonl")

    def checkpoints(self, name):
        return {path.name: read_checkpoint(path) for path in self.folders[name].iterdir() if path.suffix == ".safetensors"}


class SameRunsTest(unittest.TestCase):
    def test_the_best_step_and_an_early_end(self):
        for options in ({"best": "accuracy:max", "patience": 3, "eval_every": 5},
                        {"best": "loss:min", "patience": 2, "eval_every": 7, "seed": 3},
                        {"best": "topk:k=2:max", "patience": 1}, {"patience": 2}):
            with self.subTest(**options):
                runs = Runs(compile_digits())
                trainer = runs.python(600, lr=0.01, **options)
                events = trainer.history
                ends = [event for event in events if event.get("event") == "early_stop"]
                self.assertEqual(len(ends), 1, "the options must end the training early for a test of that")
                self.assertEqual((trainer.step, trainer.best_step), (ends[0]["step"], ends[0]["best_step"]))
                self.assertLess(trainer.step, 600)
                done = trainer.step
                again = ortc.Trainer(compile_digits(), TRAIN, TEST, patience=options["patience"])
                again.load(runs.files("python")["save"])
                for each in (trainer, again):
                    with self.assertWarnsRegex(UserWarning, f"step {done}: the training has ended early there; a larger patience, or none"):
                        each.fit(steps=100)
                    self.assertEqual(each.step, done)

    def test_each_goes_on_from_the_other(self):
        """In whole epochs, within one, and between evaluations; flags stand in the checkpoint."""
        first = {"best": "accuracy:max", "eval_every": 8, "lr_schedule": "plateau:factor=0.5,patience=0", "lr": 0.02}
        for cuts in ((22, 26, 52), (24, 40, 36), (5, 45, 50)):
            with self.subTest(cuts=cuts):
                whole = Runs(compile_digits())
                whole.tool(sum(cuts), **first)
                runs = Runs(compile_digits())
                last = runs.files("python")["save"]
                runs.python(cuts[0], **first)
                runs.tool(cuts[1], load=last, name="python", eval_every=8)
                runs.python(cuts[2], load=last, eval_every=8)
                wanted, got = whole.checkpoints("tool"), runs.checkpoints("python")
                for name in ("last.safetensors", "best.safetensors"):
                    self.assertEqual(got[name][2], wanted[name][2], name)
                    for key in ("run.best", "run.best.state", "run.plateau", "run.plateau.state", "run.step", "run.epoch", "run.slice"):
                        self.assertEqual((key, got[name][0][key]), (key, wanted[name][0][key]))

    def test_fits_are_runs(self):
        """A Trainer that goes on by itself, from another Trainer's end, and all at once."""
        options = {"best": "accuracy:max", "eval_every": 8, "lr_schedule": "plateau:factor=0.5,patience=0", "lr": 0.02}
        results = []
        for parts in ((64,), (20, 30, 14)):
            trainer = ortc.Trainer(compile_digits(), TRAIN, TEST, **options)
            for part in parts:
                trainer.fit(steps=part)
            results.append((trainer.best_step, trainer.best_value, trainer.session.to_bytes()))
        self.assertEqual(*results)

    def test_losses_that_are_not_finite(self):
        """Told once of a fit, also by the failure of a session that stops there."""
        with np.load(TRAIN) as file:
            arrays = {"pixels": file["pixels"].astype(np.float32), "label": file["label"]}
        arrays["pixels"][64 * 3 : 64 * 4, 0] = np.inf
        session = ortc.Session(ortc.load(compile_digits()), stop_on_not_finite=True)
        stopped = ortc.Trainer(session, arrays, shuffle=False)
        with self.assertRaisesRegex(ortc.NotFiniteError, "step 4, epoch 0, slice 3 of train.*save with save_every N keeps"):
            stopped.fit(steps=6)
        self.assertEqual(stopped.history[-1], {"event": "not_finite", "step": 4})

    def test_an_infinite_statistic_stops_a_fit(self):
        """The loss stays finite, as all is divided by the variance."""
        source = SOURCE / "test/exporters/torch-batchnorm-torchscript-unfolded"
        run_tool("train", source / "model.onnx", "-o", WORK / "norms", "--target", "native", "--quiet")
        arrays = dict(np.load(source / "data.npz"))
        name = next(name for name in arrays if arrays[name].ndim == 4)
        session = ortc.Session(ortc.load(WORK / "norms"), stop_on_not_finite=True)
        batch = session.artifact.tensors[name].shape[0]
        arrays[name][batch] *= 1e30
        with self.assertRaisesRegex(ortc.NotFiniteError, r"after the update of step 2 .*'norm.running_var' has . inf .*statistic"):
            ortc.Trainer(session, arrays, shuffle=False).fit(steps=3)

    def test_an_evaluation_that_is_not_due_counts_for_nothing(self):
        trainer = ortc.Trainer(compile_digits(), TRAIN, TEST, best="loss:min", eval_every=10)
        trainer.fit(steps=13)
        self.assertEqual([event["step"] for event in trainer.history if event.get("event") == "eval"], [10, 13])
        self.assertEqual(trainer.best_step, 10)

    def test_a_failure_saves_what_came_before(self):
        arrays = dict(np.load(TRAIN))
        arrays["label"][64 * 5 + 3] = 12
        path = WORK / "before.safetensors"
        trainer = ortc.Trainer(compile_digits(), arrays, shuffle=False, save=path)
        with self.assertRaises(ortc.RangeError):
            trainer.fit()
        self.assertEqual(read_checkpoint(path)[0]["run.step"], "5")

    def test_an_interrupted_fit_saves(self):
        """Behind a step, or in an evaluation, for which the next fit makes up: bits and best step of a fit without."""
        options = {"best": "accuracy:max", "eval_every": 8, "lr_schedule": "plateau:factor=0.5,patience=0", "lr": 0.02}
        whole = ortc.Trainer(compile_digits(), TRAIN, TEST, **options)
        whole.fit(steps=40)

        class Interrupt(callbacks.Callback):
            def on_step(self, trainer, event):
                if event["step"] == 13:
                    os.kill(os.getpid(), signal.SIGINT)

        def interrupt(outputs, inputs):
            if trainer.step == 16:
                os.kill(os.getpid(), signal.SIGINT)
            return 0.0, 1.0

        for metrics, watch, step in (([], [Interrupt()], 13), ([("interrupt", interrupt)], [], 16)):
            path = WORK / f"interrupted-{step}.safetensors"
            trainer = ortc.Trainer(compile_digits(), TRAIN, TEST, metrics=metrics, callbacks=watch, save=path, **options)
            with self.assertRaises(KeyboardInterrupt):
                trainer.fit(steps=40)
            self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)
            self.assertEqual([event.get("event") for event in trainer.history[-2:]], ["interrupted", "save"])
            self.assertGreater(trainer.evaluate()["loss"] if step == 13 else 1.0, 0.0)
            self.assertEqual(read_checkpoint(path)[0]["run.step"], str(step))
            again = ortc.Trainer(compile_digits(), TRAIN, TEST, **options)
            again.lr = None  # goes on with that of the checkpoint
            again.load(path)
            again.fit(steps=40 - step)
            self.assertEqual((again.best_step, again.session.to_bytes()), (whole.best_step, whole.session.to_bytes()))

    def test_iterables(self):
        arrays = np.load(TRAIN)
        batches = [(arrays["pixels"][i : i + 64].astype(np.float32), arrays["label"][i : i + 64].astype(np.int64)) for i in range(0, 640, 64)]
        trainer = ortc.Trainer(compile_digits(), batches, batches[:2], patience=1, best="loss:max")
        trainer.fit(epochs=5)
        self.assertEqual((trainer.step, trainer.best_step), (20, 10))
        trainer = ortc.Trainer(compile_digits(), batches, batches[:2], eval_every=4, best="loss:min")
        trainer.fit(epochs=2)
        self.assertEqual([event["step"] for event in trainer.history if event.get("event") == "eval"], [4, 8, 12, 16, 20])

    def test_checkpoints_of_iterables(self):
        """Steps, rates and what follows evaluations go on; an epoch that has begun is over."""
        arrays = np.load(TRAIN)
        batches = [(arrays["pixels"][i : i + 64].astype(np.float32), arrays["label"][i : i + 64].astype(np.int64)) for i in range(0, 640, 64)]
        options = {"best": "accuracy:max", "eval_every": 4, "lr_schedule": "plateau:factor=0.5,patience=0", "lr": 0.02}
        path, seen = WORK / "iterable.safetensors", []

        def load(epoch):
            seen.append(epoch)
            return iter(batches)

        whole = ortc.Trainer(compile_digits(), load, TEST, **options)
        whole.fit(epochs=4)
        first = ortc.Trainer(compile_digits(), load, TEST, **options, save=path)
        first.fit(epochs=2)
        self.assertEqual([read_checkpoint(path)[0][f"run.{key}"] for key in ("step", "epoch", "slice", "items")], ["20", "2", "0", "0"])
        second = ortc.Trainer(compile_digits(), load, TEST, eval_every=4)
        second.load(path)
        second.fit(epochs=2)
        self.assertEqual(seen, [0, 1, 2, 3, 0, 1, 2, 3])
        self.assertEqual((second.step, second.best_step, second.best_value), (40, whole.best_step, whole.best_value))
        self.assertEqual(second.session.to_bytes(), whole.session.to_bytes())
        run_tool("run", compile_digits(), "--data", TRAIN, "--eval-data", TEST, "--load", path, "--steps", 3, "--quiet", "--save", path)
        self.assertEqual([read_checkpoint(path)[0][f"run.{key}"] for key in ("step", "epoch", "slice")], ["23", "2", "3"])
        third = ortc.Trainer(compile_digits(), load, TEST, eval_every=4, save=path)
        third.load(path)
        self.assertEqual((third.step, third.epoch, third._training.slice), (23, 3, 0))
        third.fit(steps=3)
        self.assertEqual([read_checkpoint(path)[0][f"run.{key}"] for key in ("step", "epoch")], ["26", "4"])


class RefusalsTest(unittest.TestCase):
    def test_what_cannot_be(self):
        folder = compile_digits()
        for text, given in {
            "patience needs evaluations; give eval": {"patience": 3},
            "eval_every needs evaluations": {"eval_every": 3},
            "best needs evaluations": {"best": "loss:min"},
            "save_best needs evaluations": {"save_best": WORK / "b.safetensors"},
            "lr_schedule 'plateau' needs evaluations": {"lr_schedule": "plateau"},
            "patience is 0, but must be a whole number from 1": {"patience": 0, "eval": TEST},
            "best 'accuracy' must be METRIC:max or METRIC:min": {"best": "accuracy", "eval": TEST},
            "there is no metric 'acuracy'; there are .* did you mean 'accuracy'": {"best": "acuracy:max", "eval": TEST},
            "best loss.digit:min: there is no loss.digit in .*model.ortc; any metric goes, too; there are loss": {
                "best": "loss.digit:min", "eval": TEST},
            "keep is for the checkpoints of save_every": {"keep": 2, "save": WORK / "a.safetensors"},
            "save_every needs save": {"save_every": 2},
            "the folder .* is not there or cannot be written": {"save": "/nowhere/a.safetensors"},
            "save and save_best are both": {"save": WORK / "a.safetensors", "save_best": WORK / "a.safetensors", "eval": TEST},
            "save_best .*a.step-3.safetensors: keep gives such names": {
                "save": WORK / "a.safetensors", "save_best": WORK / "a.step-3.safetensors", "save_every": 3, "keep": 1, "eval": TEST},
            "it has no option 'patiance'; .*; did you mean 'patience'": {"lr_schedule": "plateau:patiance=3", "eval": TEST},
            "factor is '2', but it must be a number from 0 to 1": {"lr_schedule": "plateau:factor=2", "eval": TEST},
            "factor is 1, but it must be below 1": {"lr_schedule": "plateau:factor=1", "eval": TEST},
            "patience is '1.5', but it must be a whole number": {"lr_schedule": "plateau:patience=1.5", "eval": TEST},
            f"patience is '{'9' * 400}', but it must be a whole number from 0 to": {"lr_schedule": f"plateau:patience={'9' * 400}", "eval": TEST},
            "patience is '1_0', but": {"lr_schedule": "plateau:patience=1_0,cooldown= 3", "eval": TEST},
            "cooldown is ' 3', but": {"lr_schedule": "plateau:cooldown= 3", "eval": TEST},
            "factor is ' 0.5', but": {"lr_schedule": "plateau:factor= 0.5", "eval": TEST},
            "min is '1_0', but": {"lr_schedule": "plateau:min=1_0", "eval": TEST},
            "threshold_mode is 'ab'; there are rel and abs; did you mean 'abs'": {"lr_schedule": "plateau:threshold_mode=ab", "eval": TEST},
        }.items():
            with self.subTest(text), self.assertRaisesRegex(ortc.ArgumentError, text):
                ortc.Trainer(folder, TRAIN, **given)

    def test_checkpoints(self):
        folder, path = compile_digits(), WORK / "followed.safetensors"
        trainer = ortc.Trainer(folder, TRAIN, TEST, best="accuracy:max", lr_schedule="plateau", save=path)
        trainer.fit(steps=23)
        with self.assertRaisesRegex(ortc.ArgumentError, "its learning rate follows evaluations, and there are none"):
            ortc.Trainer(folder, TRAIN).load(path)
        ortc.Trainer(folder, TRAIN, lr=1e-3).load(path)
        other = ortc.Trainer(folder, TRAIN, TEST, best="loss:min")
        with self.assertWarnsRegex(UserWarning, "best loss:min replaces the checkpoint's accuracy:max"):
            other.load(path)
        self.assertIsNone(other.best_step)
        metadata, _, _ = read_checkpoint(path)
        for key in ("run.best", "run.best.state", "run.plateau", "run.plateau.state"):
            bad = WORK / "bad.safetensors"
            trainer.session.save(bad, {name: value for name, value in metadata.items() if name.startswith("run.")} | {key: "x"})
            with self.assertRaisesRegex(ortc.FormatError, f"its metadata has '{key}' = 'x', which no training has saved"):
                ortc.Trainer(folder, TRAIN, TEST).load(bad)

    def test_a_checkpoint_that_is_refused_changes_nothing(self):
        folder, path, bad = compile_digits(), WORK / "refused.safetensors", WORK / "refused-bad.safetensors"
        first = ortc.Trainer(folder, TRAIN, TEST, best="accuracy:max", lr_schedule="plateau")
        first.fit(steps=30)
        first.save(path)
        metadata = {name: value for name, value in read_checkpoint(path)[0].items() if name.startswith("run.")}
        undisturbed = ortc.Trainer(folder, TRAIN, seed=3)
        undisturbed.fit(steps=9)
        for change in ({"run.step": "x"}, {"run.slice": "9999"}, {"run.best": "x"}, {"run.schedule": ""}, {}):
            first.session.save(bad, metadata | change)
            trainer = ortc.Trainer(folder, TRAIN, seed=3)
            trainer.fit(steps=5)
            with self.assertRaises(ortc.Error):  # the last one for its plateau, which needs evaluations
                trainer.load(bad)
            self.assertEqual((trainer.step, trainer.seed), (5, 3))
            trainer.fit(steps=4)
            self.assertEqual(trainer.session.to_bytes(), undisturbed.session.to_bytes())


if __name__ == "__main__":
    unittest.main()
