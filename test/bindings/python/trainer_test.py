"""Trainer: the numbers of `ortc run` and `ortc eval`, and what callbacks are told.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import gc
import json
import os
import unittest
import weakref

import numpy as np
import ortc
from ortc import callbacks
from optional import is_there
from support import SOURCE, TEST, TRAIN, WORK, compile_digits, compile_model, make_batch, read_checkpoint, read_steps, run_tool


def load_arrays(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


class SameNumbersTest(unittest.TestCase):
    def compare(self, folder, tool_flags, **options):
        """Three epochs of the tool and of a Trainer."""
        run_tool("run", folder, "--data", TRAIN, "--eval-data", TEST, "--epochs", 3, "--quiet", "--metrics", WORK / "tool.jsonl",
                 "--save", WORK / "tool.safetensors", *tool_flags)
        trainer = ortc.Trainer(folder, TRAIN, TEST, metrics=["accuracy"], callbacks=[callbacks.JSONL(WORK / "python.jsonl")],
                               **options)
        trainer.fit(epochs=3)
        trainer.save(WORK / "python.safetensors")
        wanted = read_steps(WORK / "tool.jsonl")
        self.assertGreater(len(wanted), 60)
        self.assertEqual(read_steps(WORK / "python.jsonl"), wanted)
        self.assertEqual(read_checkpoint(WORK / "python.safetensors")[2], read_checkpoint(WORK / "tool.safetensors")[2])

    def test_a_rate_that_changes(self):
        flags = ["--lr", "0.01", "--lr-schedule", "linear:total=66"]
        self.compare(compile_digits(), flags, lr=lambda step: 0.01 * (1 - step * (1 / 66)))

    def test_schedules_go_on(self):
        """Of the tool, of a Trainer, and refused where nothing but a rate of 0 would be left."""
        folder, spec, part, whole = compile_digits(), "cosine:warmup=4,total=40", WORK / "part.safetensors", WORK / "whole.safetensors"
        run_tool("run", folder, "--data", TRAIN, "--steps", 40, "--lr", 0.02, "--lr-schedule", spec, "--save", whole, "--quiet")
        run_tool("run", folder, "--data", TRAIN, "--steps", 10, "--lr", 0.02, "--lr-schedule", spec, "--save", part, "--quiet")
        for _ in range(2):
            trainer = ortc.Trainer(folder, TRAIN)
            trainer.load(part)
            trainer.fit(steps=10)
            trainer.save(part)
        run_tool("run", folder, "--data", TRAIN, "--steps", 10, "--load", part, "--save", part, "--quiet")
        self.assertEqual(read_checkpoint(part)[2], read_checkpoint(whole)[2])
        self.assertEqual(read_checkpoint(part)[0], read_checkpoint(whole)[0])
        trainer.load(part)
        with self.assertRaisesRegex(ortc.ArgumentError, "ends at step 40, and this run begins at step 40"):
            trainer.fit()
        for spec, text in {"square": "there are constant, linear, step, .* and wsd", "linear:gamma=1": "it has no option 'gamma'",
                           "constant:total=3": "total 3 has no effect on a constant rate",
                           "linear:warmup=3,total=3": "must be more than the 3 steps of warmup", "linear:total=x": "total must be a number of steps",
                           "linear:total=1_0": "total must be a number", "exponential:gamma= 0.5": "gamma must be a number from 1e-12 to 1",
                           "step": "it needs step_size", "multistep:milestones=3/3": "must be rising",
                           "multistep:milestones=3/1_0/x": "must be rising numbers",
                           "wsd:decay=3,anneal=sine": "anneal is 'sine' but must be one of linear, cosine and sqrt",
                           "wsd:decay=5,warmup=2,total=6": "at most the 4 steps behind"}.items():
            with self.assertRaisesRegex(ortc.ArgumentError, text):
                ortc.Trainer(folder, TRAIN, lr_schedule=spec)
        with self.assertRaisesRegex(ortc.ArgumentError, "needs a total"):
            ortc.Trainer(folder, [make_batch()], lr_schedule="linear").fit()

    def test_other_data_begin_the_next_epoch(self):
        folder, path = compile_digits(), WORK / "other.safetensors"
        first = ortc.Trainer(folder, TRAIN)
        first.fit(steps=3)
        first.save(path)
        for data, place in ((TEST, (3, 1, 0)), (TRAIN, (3, 0, 3))):
            second = ortc.Trainer(folder, data)
            second.load(path)
            self.assertEqual((second.step, second.epoch, second._training.slice), place)

    def test_both_resume_what_the_other_has_left(self):
        folder, whole = compile_digits(), WORK / "whole.safetensors"
        run_tool("run", folder, "--data", TRAIN, "--steps", 50, "--seed", 2, "--save", whole, "--quiet")
        part = WORK / "part.safetensors"
        first = ortc.Trainer(folder, TRAIN, seed=2)
        first.fit(steps=30)
        first.save(part)
        run_tool("run", folder, "--data", TRAIN, "--steps", 20, "--load", part, "--save", WORK / "end.safetensors", "--quiet")
        self.assertEqual(read_checkpoint(WORK / "end.safetensors")[2], read_checkpoint(whole)[2])
        run_tool("run", folder, "--data", TRAIN, "--steps", 22, "--seed", 2, "--save", part, "--quiet")  # a whole epoch
        second = ortc.Trainer(folder, TRAIN)
        second.load(part)
        second.fit(steps=28)
        second.save(part)
        self.assertEqual(read_checkpoint(part)[2], read_checkpoint(whole)[2])
        self.assertEqual((second.step, second.epoch), (50, 2))

    def test_evaluation_of_a_short_batch(self):
        """Of labels that can be ignored, and of a mean over rows whose repeated part is taken out."""
        found = ortc.Trainer(compile_digits(), TRAIN, metrics=["accuracy"]).evaluate(TEST)
        wanted = json.loads(run_tool("eval", compile_digits(), "--data", TEST, "--json"))
        self.assertEqual(np.float32(found["loss"]), np.float32(wanted["loss"]))
        self.assertEqual(found["accuracy"], wanted["accuracy"])
        recipe = json.loads((SOURCE / "test/zoo/autoencoder-conv/recipe.json").read_text())
        folder = compile_model("autoencoder-conv", *recipe["flags"])
        data = load_arrays(SOURCE / "test/zoo/autoencoder-conv/data.npz")
        batch = len(data["label"])
        data = {name: np.concatenate([values, values[: batch // 2 - 1] * 0.5]) for name, values in data.items()}
        np.savez(WORK / "short.npz", **data)
        found = ortc.Trainer(folder, data).evaluate(WORK / "short.npz")
        wanted = json.loads(run_tool("eval", folder, "--data", WORK / "short.npz", "--json"))
        self.assertEqual(np.float32(found["loss"]), np.float32(wanted["loss"]))


class DataTest(unittest.TestCase):
    def test_batches_and_functions_give_what_arrays_give(self):
        folder, arrays = compile_digits(), load_arrays(TRAIN)
        pixels, label = arrays["pixels"].astype(np.float32), arrays["label"].astype(np.int64)
        pairs = [(pixels[i : i + 64], label[i : i + 64]) for i in range(0, 64 * 22, 64)]
        dicts = [{"pixels": x, "label": y} for x, y in pairs]
        results = []
        for data in (arrays, pairs, dicts, lambda epoch: iter(pairs)):
            trainer = ortc.Trainer(folder, data, shuffle=False)
            events = trainer.fit(epochs=2)
            results.append([event["loss"] for event in events])
            self.assertEqual(trainer.epoch, 2)
        self.assertEqual(results[0][-1:], results[1][-1:])
        self.assertTrue(all(each == results[0] for each in results))

    def test_files_are_those_of_the_tool(self):
        """Shards, which a Trainer that had to read files by itself would not know."""
        arrays, folder = load_arrays(TRAIN), compile_digits()
        shards = [WORK / "first.npz", WORK / "second.npz"]
        for path, rows in zip(shards, (slice(0, 700), slice(700, None))):
            np.savez(path, **{name: values[rows] for name, values in arrays.items()})
        events = [ortc.Trainer(folder, data, shuffle=False).fit() for data in (arrays, ",".join(map(str, shards)))]
        self.assertEqual(*[[event["loss"] for event in each] for each in events])
        with self.assertRaisesRegex(ortc.ArgumentError, "would overwrite train .*second.npz; name another file"):
            ortc.Trainer(folder, ",".join(map(str, shards))).save(shards[1])

    def test_an_iterator_is_used_up(self):
        trainer = ortc.Trainer(compile_digits(), iter([make_batch()]))
        with self.assertRaisesRegex(ortc.ArgumentError, "only once"):
            trainer.fit(epochs=2)

    def test_what_does_not_fit_is_refused(self):
        arrays = load_arrays(TRAIN)
        for text, data in {
            "has no array 'pixels'": {"a": arrays["pixels"], "b": arrays["pixels"], "label": arrays["label"]},
            "all dimensions after the first must be equal": {**arrays, "pixels": arrays["pixels"][:, :32]},
            "array 'label' has 1436 samples but 'pixels' has 1437": {**arrays, "label": arrays["label"][1:]},
            "train: has 63 samples but a batch takes 64": {name: values[:63] for name, values in arrays.items()},
        }.items():
            with self.assertRaises(ortc.Error) as caught:
                ortc.Trainer(compile_digits(), data)
            self.assertIn(text, str(caught.exception))
        with self.assertRaisesRegex(ortc.ShapeError, "array 'label' is float64 but the graph wants int64"):
            ortc.Trainer(compile_digits(), {**arrays, "label": arrays["label"] * 0.5}).fit()

    def test_numbers_of_other_types_are_converted(self):
        arrays = load_arrays(TRAIN)
        folder = compile_digits()
        wanted = ortc.Trainer(folder, arrays).fit(steps=5)[-1]["loss"]
        other = {"pixels": arrays["pixels"].astype(np.float64), "label": arrays["label"].astype(np.uint8)}
        self.assertEqual(ortc.Trainer(folder, other).fit(steps=5)[-1]["loss"], wanted)


class CallbacksTest(unittest.TestCase):
    def test_early_stopping_and_the_best_checkpoint(self):
        class Rates(callbacks.Callback):
            """The third epoch and those after it make it worse."""

            def on_step(self, trainer, event):
                trainer.session.lr = 0.003 if trainer.epoch < 2 else 0.5

        best = WORK / "best.safetensors"
        watch = [Rates(), callbacks.Checkpoint(best, monitor="accuracy", mode="max"),
                 callbacks.EarlyStopping("accuracy", patience=2, mode="max")]
        trainer = ortc.Trainer(compile_digits(), TRAIN, TEST, metrics=["accuracy"], callbacks=watch)
        trainer.fit(epochs=20)
        found = [event["accuracy"] for event in trainer.history if event.get("event") == "eval"]
        at = found.index(max(found))
        self.assertEqual(len(found), at + 3, found)
        other = ortc.Trainer(compile_digits(), TRAIN, TEST, metrics=["accuracy"])
        other.load(best)
        self.assertEqual(other.evaluate()["accuracy"], max(found))
        self.assertEqual(other.epoch, at + 1)

    def test_checkpoints_after_steps(self):
        path = WORK / "every.safetensors"
        trainer = ortc.Trainer(compile_digits(), TRAIN, callbacks=[callbacks.Checkpoint(path, every=7)])

        class Watch(callbacks.Callback):
            seen = []

            def on_step(self, trainer, event):
                if path.exists():
                    self.seen.append(read_checkpoint(path)[0]["run.step"])

        trainer.callbacks.append(Watch())
        trainer.fit(steps=10)
        self.assertEqual(Watch.seen, ["7"] * 4)
        self.assertEqual(read_checkpoint(path)[0]["run.step"], "10")

    def test_files_of_events(self):
        """A new fit replaces them, one that goes on adds to them; the folder is that of the beginning."""
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(WORK)
        log = callbacks.JSONL("events.jsonl")
        os.chdir("/")
        trainer = ortc.Trainer(compile_digits(), TRAIN, callbacks=[log])
        trainer.fit(steps=2)
        trainer.fit(steps=3)
        self.assertEqual(len(read_steps(WORK / "events.jsonl")), 5)
        ortc.Trainer(compile_digits(), TRAIN, callbacks=[log]).fit(steps=1)
        self.assertEqual(len(read_steps(WORK / "events.jsonl")), 1)

    def test_those_that_have_begun_are_ended(self):
        """Also where another one fails to begin, or to end."""
        told = []

        class Tells(callbacks.Callback):
            def __init__(self, name, fails=""):
                self.name = name
                self.fails = fails

            def tell(self, what):
                told.append(what + self.name)
                if self.fails == what:
                    raise ValueError(what)

            def on_begin(self, trainer):
                self.tell("begin ")

            def on_end(self, trainer):
                self.tell("end ")

        for fails, wanted in (("begin ", ["begin a", "begin b", "end a"]), ("end ", ["begin a", "begin b", "begin c", "end a", "end b", "end c"])):
            told.clear()
            with self.assertRaisesRegex(ValueError, fails):
                ortc.Trainer(compile_digits(), TRAIN, callbacks=[Tells("a"), Tells("b", fails), Tells("c")]).fit(steps=1)
            self.assertEqual(told, wanted)

    def test_a_failed_fit_ends_its_callbacks(self):
        arrays = load_arrays(TRAIN)
        arrays["label"][100] = 12
        path = WORK / "failed.jsonl"
        trainer = ortc.Trainer(compile_digits(), arrays, shuffle=False, callbacks=[callbacks.JSONL(path)])
        with self.assertRaises(ortc.RangeError):
            trainer.fit()
        self.assertEqual(len(read_steps(path)), 1)

    def test_metrics(self):
        def mean_of_logits(outputs, inputs):
            return float(outputs["output"].sum()), outputs["output"].size

        trainer = ortc.Trainer(compile_digits(), TRAIN, TEST, metrics=[("mean", mean_of_logits)])
        result = trainer.evaluate()
        logits = np.concatenate([trainer.predict(np.resize(x, (64, 64)))["output"][: len(x)]
                                 for x in np.split(load_arrays(TEST)["pixels"].astype(np.float32), range(64, 360, 64))])
        self.assertAlmostEqual(result["mean"], float(logits.mean()), 5)
        with self.assertRaisesRegex(ortc.ArgumentError, "there is no metric 'f2'; there are accuracy, topk"):
            ortc.Trainer(compile_digits(), TRAIN, metrics=["f2"])
        with self.assertRaisesRegex(ortc.ArgumentError, "'accuracy' needs labels that are .* and those of the loss 'mse' are values; it fits mae"):
            recipe = json.loads((SOURCE / "test/zoo/autoencoder-conv/recipe.json").read_text())
            data = load_arrays(SOURCE / "test/zoo/autoencoder-conv/data.npz")
            ortc.Trainer(compile_model("autoencoder-conv", *recipe["flags"]), data, metrics=["accuracy"])

    def test_a_loss_that_is_not_finite_is_no_improvement(self):
        class Stops:
            count = 0

            def stop(self):
                self.count += 1

        stopping, trainer, stops = callbacks.EarlyStopping(patience=2), Stops(), []
        for loss in (float("nan"), 3.0, float("nan"), 2.5, float("nan"), 2.5):
            stopping.on_eval(trainer, {"eval_loss": loss})
            stops.append(trainer.count)
        self.assertEqual(stops, [0] * 5 + [1])
        with self.assertRaisesRegex(ortc.ArgumentError, "has no 'accuracy'; it has eval_loss"):
            callbacks.EarlyStopping("accuracy").on_eval(trainer, {"eval_loss": 1.0})

    def test_nothing_keeps_a_trainer_that_its_functions_know(self):
        def train():
            trainer = ortc.Trainer(compile_digits(), lambda epoch: [make_batch()] * (trainer.step + 2), TEST, lr=lambda step: 1e-3 / (trainer.step + 1),
                                   metrics=[("steps", lambda outputs, inputs: (float(trainer.step), 1.0))])
            trainer.fit(epochs=2)
            self.assertEqual(trainer.evaluate()["steps"], 6)
            return weakref.ref(trainer)

        kept = train()
        gc.collect()
        self.assertIsNone(kept())

    def test_tensorboard(self):
        if not is_there("tensorboard"):
            with self.assertRaisesRegex(ImportError, "pip install tensorboard"):
                callbacks.TensorBoard(WORK / "runs")
            return
        board = callbacks.TensorBoard(WORK / "runs")
        ortc.Trainer(compile_digits(), TRAIN, TEST, callbacks=[board]).fit(steps=3)
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(WORK / "runs"))
        events.Reload()
        self.assertEqual([event.step for event in events.Scalars("train/loss")], [1, 2, 3])
        self.assertEqual(len(events.Scalars("eval/loss")), 1)


class RefusedTest(unittest.TestCase):
    def test_what_is_no_regular_file_is_not_replaced(self):
        """Before the training: a pipe, a link to one, a folder, the artifact, and the data."""
        folder, files = compile_digits("--seed", "3"), WORK / "files"
        files.mkdir()
        pipe, link, data = files / "pipe", files / "link", files / "data.npz"
        os.mkfifo(pipe)
        link.symlink_to(pipe)
        data.write_bytes(TRAIN.read_bytes())
        artifact = (folder / "model.ortc").read_bytes()
        session = ortc.Session(folder)

        class Never(callbacks.Callback):
            def on_step(self, trainer, event):
                raise AssertionError("the training has begun")

        for path, text in ((pipe, "pipe: is no regular file, which is not replaced; name another file"), (link, "is no regular file"),
                           (files, "is a folder"), (folder / "model.ortc", "would overwrite the artifact's"),
                           (folder / "manifest.json", "would overwrite the artifact's")):
            for save in (session.save, ortc.Trainer(session, TRAIN).save, lambda each: ortc.Trainer(folder, TRAIN, save=each),
                         lambda each: ortc.Trainer(folder, TRAIN, TEST, save_best=each),
                         lambda each: ortc.Trainer(folder, TRAIN, callbacks=[callbacks.Checkpoint(each), Never()]).fit(),
                         lambda each: ortc.Trainer(folder, TRAIN, callbacks=[callbacks.JSONL(each), Never()]).fit()):
                with self.assertRaisesRegex(ortc.ArgumentError, text):
                    save(path)
        with self.assertRaisesRegex(ortc.ArgumentError, "would overwrite train .*data.npz"):
            ortc.Trainer(folder, data).save(data)
        with self.assertRaisesRegex(ortc.ArgumentError, "is a folder"):
            ortc.Trainer(folder, TRAIN, save="")
        for callback in (callbacks.JSONL(data), callbacks.Checkpoint(data)):
            with self.assertRaisesRegex(ortc.ArgumentError, "would overwrite train .*data.npz; name another file"):
                ortc.Trainer(folder, data, callbacks=[callback, Never()]).fit()
        missing = files / "none" / "metrics.jsonl"
        with self.assertRaisesRegex(ortc.ArgumentError, "metrics.jsonl: cannot be written: there is no folder .*none"):
            ortc.Trainer(folder, TRAIN, callbacks=[callbacks.JSONL(missing), Never()]).fit()
        with self.assertRaisesRegex(ortc.ArgumentError, "path of JSONL is 3, but must be the path of a file"):
            callbacks.JSONL(3)
        for options in ({"eval": data, "save": data}, {"eval": data, "save_best": data}):
            with self.assertRaisesRegex(ortc.ArgumentError, "would overwrite eval .*data.npz; name another file"):
                ortc.Trainer(folder, TRAIN, **options)
        self.assertTrue(pipe.is_fifo() and link.is_symlink())
        self.assertEqual((folder / "model.ortc").read_bytes(), artifact)
        self.assertEqual(data.read_bytes(), TRAIN.read_bytes())
        session.save(files / "new.safetensors")
        session.save(files / "new.safetensors")  # a regular file is

    def test_numbers_that_cannot_be(self):
        folder = compile_digits()
        whole, rate = "but must be a whole number from", "but must be a number from 0 to 3.4e38"
        for text, options in (
            (f"patience is 1.5, {whole} 1", {"patience": 1.5}), (f"patience is True, {whole} 1", {"patience": True}),
            (f"patience is '3', {whole} 1", {"patience": "3"}), (f"eval_every is 2.5, {whole} 1", {"eval_every": 2.5}),
            (f"seed is -1, {whole} 0", {"seed": -1}), (f"seed is 1.5, {whole} 0", {"seed": 1.5}),
            (f"seed is {2**64}, {whole} 0 to {2**64 - 1}", {"seed": 2**64}), (f"threads is -1, {whole} 0", {"threads": -1}),
            (f"lr is nan, {rate}", {"lr": float("nan")}), (f"lr is -1.0, {rate}", {"lr": -1.0}), (f"lr is 1e.40, {rate}", {"lr": 1e40}),
            (f"lr is 'x', {rate}", {"lr": "x"}), ("callbacks has 3, which has no on_begin", {"callbacks": [3]}),
            ("callbacks has 3, which has no on_begin", {"callbacks": 3}),
            ("best is 3, but must be a text", {"best": 3}), ("lr_schedule is 3, but must be a text", {"lr_schedule": 3}),
            ("device is 3, but must be a text", {"device": 3}), ("a metric is 3, but must be a text", {"metrics": [3]}),
            ("metrics is 'f1', but must be a list", {"metrics": "f1"}), ("metrics is 3, but must be a list", {"metrics": 3}), ("the data are of type int", {"train": 5}),
        ):
            with self.assertRaisesRegex(ortc.ArgumentError, text):
                ortc.Trainer(folder, **{"train": TRAIN, "eval": TEST, **options})
        with self.assertRaisesRegex(ortc.ArgumentError, rf"lr\(0\) is -0.5, {rate}"):
            ortc.Trainer(folder, TRAIN, lr=lambda step: -0.5).fit()
        taken = ortc.Trainer(folder, TRAIN, TEST, seed=2**64 - 1, lr=np.float32(0.5), eval_every=np.int64(9))
        taken.fit(steps=1)
        self.assertEqual(taken.session.lr, 0.5)

    def test_fits_of_whole_numbers(self):
        batch = make_batch()
        for data in (TRAIN, [batch] * 4):
            trainer = ortc.Trainer(compile_digits(), data)
            for name, value in (("steps", -1), ("steps", 2.5), ("steps", "3"), ("epochs", -1), ("epochs", 1.5), ("epochs", 0.1),
                                ("epochs", None), ("epochs", True)):
                with self.assertRaisesRegex(ortc.ArgumentError, f"{name} is .* must be a whole number from 0"):
                    trainer.fit(**{name: value})
            trainer.fit(epochs=0)
            trainer.fit(steps=0)
            self.assertEqual(trainer.step, 0)
            trainer.fit(steps=np.int64(2))
            self.assertEqual(trainer.step, 2)

    def test_data_that_are_cut(self):
        """By another program, while steps or evaluations read them."""
        for cut in ("train", "eval"):
            path = WORK / f"cut-{cut}.npz"
            with np.load(TRAIN) as file:
                np.savez(path, **{name: np.tile(file[name], (40,) + (1,) * (file[name].ndim - 1)) for name in file.files})

            class Cut(callbacks.Callback):
                def on_step(self, trainer, event, path=path):
                    if event["step"] == 3:
                        os.truncate(path, 4096)

            trainer = ortc.Trainer(compile_digits(), **{"train": TRAIN, "eval": TEST, cut: path}, callbacks=[Cut()])
            with self.assertRaisesRegex(ortc.Error, "npz: has changed since it was opened; while a file is in use, write a new one"):
                trainer.fit(epochs=2)

    def test_batches_that_are_none(self):
        batch, take = make_batch(), "but must be a dict of arrays by name, or a tuple of pixels, label"
        pixels = {"pixels": batch["pixels"]}
        for error, text, batches in (
            (ortc.NotFoundError, "a batch has no 'label', which the STEP step takes", [batch, pixels]),
            (TypeError, "the name of an input is 1, but must be a text", [batch, {**batch, 1: batch["label"]}]),
            (TypeError, r"the name of an input is '\\ud800', but must be a text", [{**batch, "\ud800": batch["label"]}]),
            (ortc.ArgumentError, f"a batch is 1 arrays, {take}", [(batch["pixels"],)]),
            (ortc.ArgumentError, f"a batch is 3 arrays, {take}", [(batch["pixels"], batch["label"], 1)]),
            (ortc.ArgumentError, f"a batch is of type int, {take}", b"abc"),
            (ortc.ArgumentError, f"a batch is of type ndarray, {take}", batch["pixels"]),
            (ortc.ArgumentError, "have no batch.*; an iterator gives its batches only once", []),
        ):
            with self.assertRaisesRegex(error, text.replace("STEP", "train")):
                ortc.Trainer(compile_digits(), batches).fit()
            with self.assertRaisesRegex(error, text.replace("STEP", "eval")):
                ortc.Trainer(compile_digits(), TRAIN).evaluate(batches)
        with self.assertRaisesRegex(ortc.ArgumentError, "the name of an array is 1, but must be a text"):
            ortc.Trainer(compile_digits(), {**batch, 1: batch["label"]})
        with self.assertRaisesRegex(ortc.ShapeError, "'label' is datetime64.ns., but must be of numbers"):
            ortc.Trainer(compile_digits(), {**batch, "label": batch["label"].astype("M8[ns]")})

    def test_options_that_are_changed(self):
        trainer = ortc.Trainer(compile_digits(), TRAIN, TEST)
        for name, value, text in (("eval_every", -1, "eval_every is -1, but must be a whole number from 1"), ("eval_every", "x", "eval_every is 'x'"),
                                  ("eval_weights", 3, "eval_weights is 3, but must be a text"), ("lr", float("nan"), "lr is nan")):
            setattr(trainer, name, value)
            with self.assertRaisesRegex(ortc.ArgumentError, text):
                trainer.fit(steps=1)
            setattr(trainer, name, None)

    def test_numbers_of_metrics(self):
        for value in (None, (1,), ("3", "4"), (1j, 1), (1.0, -1.0), (1.0, float("nan")), (10**400, 1), (np.ones(3), 1)):
            with self.assertRaisesRegex(ortc.ArgumentError, "a metric's function has given .*, but must give a sum and a count"):
                ortc.Trainer(compile_digits(), TRAIN, TEST, metrics=[("mine", lambda outputs, inputs, value=value: value)]).evaluate()
        for value in ((3, 2), (np.float32(3), np.int64(2)), (np.array(3.0), True + True)):
            trainer = ortc.Trainer(compile_digits(), TRAIN, TEST, metrics=[("mine", lambda outputs, inputs, value=value: value)])
            self.assertEqual(trainer.evaluate()["mine"], 1.5)

    def test_metrics_of_taken_names(self):
        def measure(outputs, inputs):
            return 1.0, 1.0

        for name in ("loss", "eval_loss", "step", "epoch", "event", "lr", "ms", "seconds", "weights"):
            with self.assertRaisesRegex(ortc.ArgumentError, f"the metric '{name}' has a name that is taken; there are epoch, "):
                ortc.Trainer(compile_digits(), TRAIN, TEST, metrics=[(name, measure)])
        with self.assertRaisesRegex(ortc.ArgumentError, "the metric 'accuracy' has a name that is taken"):
            ortc.Trainer(compile_digits(), TRAIN, TEST, metrics=["accuracy", ("accuracy", measure)])
        with self.assertRaisesRegex(ortc.ArgumentError, "a metric's function has given 3.0, but must give a sum and a count"):
            ortc.Trainer(compile_digits(), TRAIN, TEST, metrics=[("mine", lambda outputs, inputs: 3.0)]).evaluate()
        for pair in (("a", None), ("a",), (3, measure)):
            with self.assertRaisesRegex(ortc.ArgumentError, "must be a pair of a name and a function"):
                ortc.Trainer(compile_digits(), TRAIN, TEST, metrics=[pair])


if __name__ == "__main__":
    unittest.main()
