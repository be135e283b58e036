"""Recipes that `ortc run` and ortc.Trainer train alike: the lines of metrics, and the checkpoints by their SHA-256. Both are one engine;
what is tested is that arguments, arrays and callbacks come to it, and its events to callbacks, as flags and files do.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import hashlib
import os
import pathlib
import re
import tempfile
import unittest

import numpy as np
import ortc
from ortc import callbacks
from losses_test import compile_two, make_data
from support import TEST, TRAIN, WORK, compile_digits, run_tool

FLAGS = {"eval_weights": "eval-weights", "eval_every": "eval-every", "lr_schedule": "lr-schedule", "save_every": "save-every"}


def make_flags(options):
    """Those of `ortc run` for arguments of ortc.Trainer."""
    flags = []
    for name, value in options.items():
        if name == "metrics":
            flags += [flag for metric in value if metric != "accuracy" for flag in ("--metric", metric)]
        elif name == "shuffle":
            flags += [] if value else ["--no-shuffle"]
        else:
            flags += [f"--{FLAGS.get(name, name)}", value]
    return flags


def read_lines(path):
    """Without the milliseconds."""
    return re.sub(r',"ms":[^,}]*', "", pathlib.Path(path).read_text()).splitlines()


def hash_checkpoints(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.safetensors")}


class RunsTest(unittest.TestCase):
    def compare(self, artifact, train, evaluation, steps, arrays=None, **options):
        """In folders of their own, so that files have the same names; a second run goes on from the checkpoint of the first.
        `arrays`: what the Trainer has in place of the files. Gives the lines and the checkpoints."""
        options["save"], saves = "last.safetensors", ["--save", "last.safetensors"]
        if evaluation is not None and options.pop("saves_best", True):
            options["save_best"], saves = "best.safetensors", [*saves, "--save-best", "best.safetensors"]
        given = {name: value for name, value in options.items() if name not in ("save", "save_best")}
        folders = [pathlib.Path(tempfile.mkdtemp(dir=WORK)) for _ in range(2)]
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        files = ["--data", train, *(["--eval-data", evaluation] if evaluation is not None else [])]
        found = []
        for part, count in enumerate(steps):
            os.chdir(folders[0])
            load = ["--load", "last.safetensors"] if part else []
            run_tool("run", artifact, *files, "--steps", count, "--metrics", "metrics.jsonl", "--quiet", *saves, *load, *make_flags(given))
            os.chdir(folders[1])
            data = arrays or (train, evaluation)
            trainer = ortc.Trainer(artifact, *data, callbacks=[callbacks.JSONL("metrics.jsonl")], **options)
            if part:
                trainer.load("last.safetensors")
            trainer.fit(steps=count)
            found = [(read_lines(folder / "metrics.jsonl"), hash_checkpoints(folder)) for folder in folders]
            self.assertEqual(found[1][0], found[0][0])
            self.assertEqual(found[1][1], found[0][1])
        os.chdir(before)
        return found[0]

    def test_schedules_and_the_best_step(self):
        """The first one ends early."""
        digits = {"train": TRAIN, "evaluation": TEST, "metrics": ["accuracy", "f1", "perplexity"]}
        lines, checkpoints = self.compare(compile_digits(), **digits, steps=[40, 500], lr=0.01, lr_schedule="cosine:warmup=7,min=1e-5,total=800",
                                          best="accuracy:max", patience=3, eval_every=5)
        self.assertTrue(any('"early_stop"' in line for line in lines), "the recipe must end early for a test of that")
        self.assertEqual(set(checkpoints), {"last.safetensors", "best.safetensors"})
        self.compare(compile_digits(), **digits, steps=[30, 40], lr=0.003, lr_schedule="one_cycle:pct_start=0.1,anneal=linear", seed=5)

    def test_a_plateau_and_kept_checkpoints(self):
        lines, checkpoints = self.compare(
            compile_digits("--accumulate", "4"), TRAIN, TEST, [50, 70], metrics=["accuracy", "topk:k=2"], lr=0.02, shuffle=False, best="topk:k=2:max",
            lr_schedule="plateau:factor=0.3,patience=0,threshold=0.02,threshold_mode=abs,cooldown=2,min=1e-4", eval_every=6, save_every=8, keep=3)
        self.assertGreater(sum('"plateau"' in line for line in lines), 2)
        self.assertEqual(len(checkpoints), 5)

    def test_several_losses_of_arrays(self):
        """With weights of samples, ignored labels, a short last batch, averages and numbers of steps; of arrays beside files."""
        train, evaluation = make_data(TRAIN, 700), make_data(TEST, 150)
        np.savez(WORK / "runs-train.npz", **train)
        np.savez(WORK / "runs-eval.npz", **evaluation)
        two = compile_two(step_outputs="grad_norm", ema={"decay": 0.9, "warmup": True})
        lines, _ = self.compare(two.path.parent, WORK / "runs-train.npz", WORK / "runs-eval.npz", [17, 20], arrays=(train, evaluation),
                                metrics=["accuracy", "rmse:output=relu,label=label.hidden"], eval_weights="ema", best="accuracy.digit:max")
        self.assertIn('"grad_norm"', lines[0])
        self.assertTrue(any('"weights":"ema"' in line and '"accuracy.digit"' in line for line in lines))

    def test_losses_that_are_not_finite(self):
        with np.load(TRAIN) as file:
            arrays = {"pixels": file["pixels"].astype(np.float32), "label": file["label"]}
        arrays["pixels"][64 * 3 : 64 * 4, 0] = np.inf
        np.savez(WORK / "runs-infinite.npz", **arrays)
        folders = [pathlib.Path(tempfile.mkdtemp(dir=WORK)) for _ in range(2)]
        run_tool("run", compile_digits(), "--data", WORK / "runs-infinite.npz", "--steps", 6, "--no-shuffle", "--quiet", "--metrics", folders[0] / "m.jsonl")
        ortc.Trainer(compile_digits(), arrays, shuffle=False, callbacks=[callbacks.JSONL(folders[1] / "m.jsonl")]).fit(steps=6)
        lines = read_lines(folders[0] / "m.jsonl")
        self.assertIn('{"event":"not_finite","step":4}', lines)
        self.assertEqual(read_lines(folders[1] / "m.jsonl"), lines)


if __name__ == "__main__":
    unittest.main()
