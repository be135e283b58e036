"""ortc.compile: flags, files, messages, and the memory plan.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import gc
import json
import os
import pathlib
import stat
import sys
import tempfile
import unittest
import warnings
import xml.etree.ElementTree

import ortc
from ortc import _compile
from ortc._flags import Flags
from support import DIGITS, WORK, compile_digits, make_batch, run_tool

OPTIONS = {"shapes": {"batch": 64}, "target": "x86-64-v3", "max_workers": 1}


class Proto:
    """What onnx.ModelProto has of it."""

    def SerializeToString(self):
        return DIGITS.read_bytes()


class CompileTest(unittest.TestCase):
    def test_keywords_become_flags(self):
        found = _compile.format_flags({"max_workers": 2, "gradients": True, "no_source": False, "clip_norm": None,
                                       "group": ["a:lr_scale=2", "b:weight_decay=0"], "tune_cache": pathlib.Path("t.json")})
        self.assertEqual(found, ["--max-workers", "2", "--gradients", "--group", "a:lr_scale=2", "--group", "b:weight_decay=0",
                                 "--tune-cache", "t.json"])

    def test_keywords_with_names_and_patterns(self):
        found = _compile.format_flags({"loss": {"a": "mse@x:weight=2", "b": "l1@y"}, "ema": 0.99, "swa": 5,
                                       "group": {".*bias": {"weight_decay": 0, "lr": 1e-4}, "x": "lr_scale=2"}, "freeze": ("a", "b"),
                                       "schedule": {"lr": "cosine:total=5"}, "train": {"w": ""}})
        self.assertEqual(found, ["--loss", "a=mse@x:weight=2", "--loss", "b=l1@y", "--ema", "decay=0.99", "--swa", "start=5",
                                 "--group", ".*bias:weight_decay=0,lr=0.0001", "--group", "x:lr_scale=2", "--freeze", "a", "--freeze", "b",
                                 "--schedule", "lr=cosine:total=5", "--train", "w"])
        self.assertEqual(_compile.format_flags({"ema": {"decay": 0.9, "warmup": True}}), ["--ema", "decay=0.9,warmup=1"])

    def test_every_flag_is_a_keyword(self):
        """With its type, for editors and mypy; tools/update-docs writes them."""
        flags = {flag["name"] for flag in json.loads(run_tool("flags", "train", "--json"))["commands"][0]["flags"]}
        self.assertEqual({name.replace("_", "-") for name in Flags.__annotations__}, flags - {"shape", "binding", "output", "quiet", "write-config"})
        self.assertEqual(_compile.list_flags("train"), {f"--{flag}" for flag in flags})
        self.assertIn("--fit", _compile.list_flags("plan"))

    def test_recipes(self):
        recipe = WORK / "recipe.toml"
        recipe.write_text("[train]\nshape = 'batch=64'\ntarget = 'x86-64'\noptimizer = 'adam'\n")
        artifact = ortc.compile(DIGITS, config=recipe, clip_norm=1)
        wanted = ortc.compile(DIGITS, shapes={"batch": 64}, target="x86-64", optimizer="adam", clip_norm=1)
        self.assertEqual(artifact.path.read_bytes(), wanted.path.read_bytes())
        self.assertIn("train/default", str(artifact.plan))
        recipe.write_text("[train]\nlos = 'mse'\n")
        with self.assertRaisesRegex(ortc.CompileError, "recipe.toml:2: 'los' is no flag of ortc train; did you mean 'loss'[?]"):
            ortc.compile(DIGITS, config=recipe)

    def test_artifacts_are_those_of_the_tool(self):
        folder = WORK / "tool"
        run_tool("train", DIGITS, "-o", folder, "--quiet", "--binding", "train", "--shape", "batch=64", "--binding", "single", "--shape",
                 "pixels=1x64", "--target", "x86-64-v3", "--target", "x86-64", "--gradients", "--clip-norm", "1.5",
                 "--group", ".*bias:lr_scale=2", "--group", ".*:weight_decay=0")
        wanted = (folder / "model.ortc").read_bytes()
        for model in (str(DIGITS), DIGITS.read_bytes(), Proto()):
            artifact = ortc.compile(model, bindings={"train": {"batch": 64}, "single": {"pixels": (1, 64)}}, gradients=True,
                                    target=["x86-64-v3", "x86-64"], clip_norm=1.5, group=[".*bias:lr_scale=2", ".*:weight_decay=0"])
            self.assertEqual(artifact.path.read_bytes(), wanted)
            self.assertIn("for x86-64, x86-64-v3", repr(artifact))

    def test_folders(self):
        place = WORK / "mine"
        artifact = ortc.compile(DIGITS, output=place, **OPTIONS)
        self.assertEqual(artifact.path, place / "model.ortc")
        self.assertEqual(json.loads((place / "manifest.json").read_text()), artifact.manifest)
        artifact = ortc.compile(DIGITS, **OPTIONS)
        path = artifact.path
        session = ortc.Session(artifact)
        del artifact
        gc.collect()
        self.assertTrue(path.exists())
        session.train_step(**make_batch())
        del session
        gc.collect()
        self.assertFalse(path.parent.parent.exists())

    def test_refusals_have_the_words_of_the_tool(self):
        place = WORK / "temporary"
        place.mkdir()
        self.addCleanup(setattr, tempfile, "tempdir", tempfile.tempdir)
        tempfile.tempdir = str(place)
        for text, options in {
            "unknown flag '--optimiser'; did you mean '--optimizer'?": {"optimiser": "sgd"},
            "batch": {"shapes": {}},
            "no-such-loss": {"loss": "no-such-loss"},
        }.items():
            with self.assertRaises(ortc.CompileError) as caught:
                ortc.compile(DIGITS, **{**OPTIONS, **options})
            self.assertIn(text, str(caught.exception))
            self.assertNotIn("ortc: error", str(caught.exception))
        with self.assertRaisesRegex(ortc.CompileError, "no-such-file"):
            ortc.compile("no-such-file.onnx", **OPTIONS)
        self.assertEqual(os.listdir(place), [])

    def test_warnings_are_warnings(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ortc.compile(DIGITS, freeze="nothing.*", **OPTIONS)
        self.assertEqual([each.category for each in caught], [ortc.CompileWarning])
        self.assertIn("nothing.*", str(caught[0].message))
        self.assertEqual(caught[0].filename, __file__)

    def test_a_compiler_that_is_missing_or_dies(self):
        kept = os.environ["ORTC_COMPILER"]
        try:
            os.environ["ORTC_COMPILER"] = str(WORK / "none")
            with self.assertRaisesRegex(ortc.CompileError, "cannot be run"):
                ortc.compile(DIGITS, **OPTIONS)
            dying = WORK / "dying"
            dying.write_text("#!/bin/sh\necho last words >&2\nkill -SEGV $$\n")
            dying.chmod(dying.stat().st_mode | stat.S_IXUSR)
            os.environ["ORTC_COMPILER"] = str(dying)
            with self.assertRaisesRegex(ortc.CompileError, "signal 11 has ended the compiler; its last words: last words"):
                ortc.compile(DIGITS, **OPTIONS)
        finally:
            os.environ["ORTC_COMPILER"] = kept

    def test_a_compiler_beside_the_packages(self):
        """As pip install --target leaves it: the record of the wheel says where the program would be otherwise."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=WORK)) / "lib" / "python"
        (folder / "bin").mkdir(parents=True)
        about = folder / "ortc-9.9.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ortc\nVersion: 9.9\n")
        (about / "RECORD").write_text("../../bin/ortc,,\nortc-9.9.dist-info/RECORD,,\n")
        program = folder / "bin" / "ortc"
        program.write_text("#!/bin/sh\n")
        named, path = os.environ.pop("ORTC_COMPILER", None), os.environ["PATH"]
        sys.path.insert(0, str(folder))
        try:
            self.assertEqual(_compile.find_compiler(), str(program.resolve()))
            recorded = folder.parent.parent / "bin" / "ortc"  # of an installation that is as its record says
            recorded.parent.mkdir()
            recorded.write_text("#!/bin/sh\n")
            self.assertEqual(_compile.find_compiler(), str(recorded.resolve()))
            recorded.unlink()
            program.unlink()
            os.environ["PATH"] = "/nowhere"
            self.assertIsNone(_compile.find_compiler())
        finally:
            sys.path.remove(str(folder))
            os.environ["PATH"] = path
            if named is not None:
                os.environ["ORTC_COMPILER"] = named


class PlanTest(unittest.TestCase):
    def test_plans_are_those_of_the_tool(self):
        # no_source and emit are no flags of ortc plan.
        artifact = ortc.compile(DIGITS, no_source=True, emit="static:name=digits", gradients=True,
                                **{**OPTIONS, "target": "cortex-m7", "numerics": "portable"})
        wanted = run_tool("plan", DIGITS, "--shape", "batch=64", "--target", "cortex-m7", "--max-workers", 1, "--numerics", "portable",
                          "--gradients")
        self.assertEqual(str(artifact.plan), wanted.rstrip())
        artifact.plan.save_html(WORK / "plan.html")
        self.assertIn("<svg", (WORK / "plan.html").read_text())

    def test_pictures_have_every_buffer(self):
        artifact = ortc.compile(DIGITS, **OPTIONS)
        report = artifact.plan.report["entries"][0]
        picture = xml.etree.ElementTree.fromstring(artifact.plan.svg("train/default"))
        shapes = picture.findall("{http://www.w3.org/2000/svg}rect")
        self.assertEqual(len(shapes), len(report["buffers"]))
        top, steps = 320, len(report["steps"])
        size = max(each["offset"] + each["bytes"] for each in report["buffers"])
        for shape, each in zip(shapes, report["buffers"]):
            self.assertIn(each["name"], shape[0].text)
            self.assertAlmostEqual(float(shape.get("height")), each["bytes"] / size * top, 1)
            self.assertAlmostEqual(float(shape.get("x")), each["first"] / steps * 720, 1)
        self.assertIn("<svg", artifact.plan._repr_html_())

    def test_loaded_artifacts_show_their_peak(self):
        plan = ortc.load(compile_digits()).plan
        self.assertIn("transient  train/default: 36 KiB", str(plan))
        self.assertIn("relu", str(plan))
        self.assertIn("relu", plan.svg())
        with self.assertRaisesRegex(ortc.CompileError, "loaded"):
            plan.report


if __name__ == "__main__":
    unittest.main()
