"""docs/migrating-from-onnxruntime.md: its blocks run, and its table has every argument, as the code and ONNX Runtime have it.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import enum
import inspect
import io
import os
import re
import shutil
import unittest
import unittest.mock
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import modules
import torch
from optional import needs
from ort_training_test import setUpModule  # noqa: F401 - a cache of its own

import ortc
import ortc.torch
from ortc.compat import ort_training
from ortc.compat.ort_training import _notes
from ortc.compat.ort_training._missing import MISSING
from ortc.compat.ort_training.orttrainer_options import OPTIONS

SOURCE = Path(__file__).resolve().parents[4]
PAGE = SOURCE / "docs/migrating-from-onnxruntime.md"
HOME = "ortc.compat.ort_training"

# Names and defaults in the sources of ONNX Runtime: 1.19 for what its last packages have, before them for ORTTrainer.
# `()` stands for an empty list as a default, and None for an empty dict.
THERE = {
    "ORTModule": "module, debug_options=None",
    "ortmodule.DebugOptions": "log_level=WARNING, save_onnx=False, onnx_prefix='', save_path='', config=None",
    "ORTTrainer": "model, model_desc, optim_config, loss_fn=None, options=None",
    "ORTTrainer.train_step": "*args, **kwargs",
    "ORTTrainer.eval_step": "*args, **kwargs",
    "ORTTrainer.state_dict": "pytorch_format=False",
    "ORTTrainer.load_state_dict": "state_dict, strict=True",
    "ORTTrainer.save_checkpoint": "path, user_dict=None, include_optimizer_states=True",
    "ORTTrainer.load_checkpoint": "*paths, strict=True",
    "ORTTrainer.save_as_onnx": "path",
    "TrainStepInfo": "optimizer_config, all_finite=True, fetches=None, optimization_step=0, step=0",
    "ORTTrainerOptions": "options=None",
    "optim.SGDConfig": "params=(), lr=0.001",
    "optim.AdamConfig": "params=(), lr=0.001, alpha=0.9, beta=0.999, lambda_coef=0.0, epsilon=1e-08, max_norm_clip=1.0, "
    "do_bias_correction=True, weight_decay_mode=BEFORE_WEIGHT_UPDATE",
    "optim.LambConfig": "params=(), lr=0.001, alpha=0.9, beta=0.999, lambda_coef=0.0, ratio_min=-inf, ratio_max=inf, epsilon=1e-06, "
    "max_norm_clip=1.0, do_bias_correction=False",
    "optim.ConstantWarmupLRScheduler": "total_steps, warmup=0.002",
    "optim.CosineWarmupLRScheduler": "total_steps, cycles=0.5, warmup=0.002",
    "optim.LinearWarmupLRScheduler": "total_steps, warmup=0.002",
    "optim.PolyWarmupLRScheduler": "total_steps, lr_end=1e-07, power=1.0, warmup=0.002",
    "optim.FusedAdam": "params, lr=0.001, bias_correction=True, betas=(0.9, 0.999), eps=1e-06, adam_w_mode=ADAMW_TRANSFORMERS, "
    "weight_decay=0.0, set_grad_none=True",
    "optim.FP16_Optimizer": "optimizer, **kwargs",
    "artifacts.generate_artifacts": "model, requires_grad=None, frozen_params=None, loss=None, optimizer=None, artifact_directory=None, "
    "prefix='', ort_format=False, custom_op_library=None, additional_output_names=None, nominal_checkpoint=False, loss_input_names=None",
    "onnxblock.base": "model",
    "onnxblock.empty_base": "opset_version=None",
    "onnxblock.TrainingBlock.requires_grad": "argument_name, value=True",
    "onnxblock.save_checkpoint": "parameters, path_to_checkpoint",
    "onnxblock.loss.MSELoss": "reduction='mean'",
    "onnxblock.loss.L1Loss": "reduction='mean'",
    "onnxblock.loss.MSELoss.build": "loss_input_name, target_name='target'",
    "onnxblock.loss.L1Loss.build": "loss_input_name, target_name='target'",
    "onnxblock.loss.BCEWithLogitsLoss.build": "loss_input_name, target_name='target'",
    "onnxblock.loss.CrossEntropyLoss": "weight=None, reduction='mean', ignore_index=None",
    "onnxblock.loss.CrossEntropyLoss.build": "scores_input_name, labels_name='labels'",
    "onnxblock.loss.BCEWithLogitsLoss": "weight=None, reduction='mean', pos_weight=None",
    "onnxblock.blocks.Constant": "value_float",
    "onnxblock.blocks.Pow": "exponent",
    "onnxblock.blocks.Clip": "clip_min=None, clip_max=None",
    "onnxblock.blocks.Cast": "to",
    "onnxblock.blocks.InputLike": "like",
    "onnxblock.blocks.Linear": "in_features, out_features, bias=True, alpha=1.0, beta=1.0",
    "onnxblock.optim.AdamW": "bias_correction=True, betas=(0.9, 0.999), eps=1e-06, weight_decay=0.0, clip_grad=None",
    "onnxblock.optim.SGD": "clip_grad=None",
    "onnxblock.optim.ClipGradNorm": "max_norm",
    "api.CheckpointState.load_checkpoint": "checkpoint_uri",
    "api.CheckpointState.save_checkpoint": "state, checkpoint_uri, include_optimizer_state=False",
    "api.Module": "train_model_uri, state, eval_model_uri=None, device='cpu', session_options=None",
    "api.Module.__call__": "*user_inputs",
    "api.Module.train": "mode=True",
    "api.Module.get_contiguous_parameters": "trainable_only=False",
    "api.Module.get_parameters_size": "trainable_only=True",
    "api.Module.copy_buffer_to_parameters": "buffer, trainable_only=True",
    "api.Module.export_model_for_inferencing": "inference_model_uri, graph_output_names",
    "api.Optimizer": "optimizer_uri, module",
    "api.Optimizer.set_learning_rate": "learning_rate",
    "api.LinearLRScheduler": "optimizer, warmup_step_count, total_step_count, initial_lr",
    "utils.data.LoadBalancingDistributedSampler": "dataset, complexity_fn, world_size=None, rank=None, shuffle=True, group_size=None, "
    "seed=0, drop_last=False, random_level=0",
    "utils.data.LoadBalancingDistributedBatchSampler": "sampler, batch_fn, drop_last=False",
}
OURS = {"ORTTrainer": {"**flags"}, "artifacts.generate_artifacts": {"shapes=None", "**flags"}}


class Row(NamedTuple):
    works: set[str]
    ignored: set[str]
    refused: set[str]


def find(name: str) -> Any:
    """The class or function of a name on the page."""
    value: Any = ort_training
    for part in name.split("."):
        value = getattr(value, part)
    return value


def write_out(function: Any) -> list[str]:
    """Its arguments, as the page has them."""
    if isinstance(function, type):
        function = function.__init__
    out = []
    for each in inspect.signature(function).parameters.values():
        if each.name in ("self", "cls"):
            continue
        default = each.default
        text = "" if default is each.empty else "=" + (default.name if isinstance(default, enum.Enum) else repr(default))
        out.append({each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "") + each.name + text)
    return out


def read_table() -> dict[str, Row]:
    text = PAGE.read_text().partition("<!-- arguments: begin -->")[2].partition("<!-- arguments: end -->")[0]
    rows = {}
    for line in text.strip().splitlines()[2:]:
        names, *cells = [re.findall(r"`([^`]*)`", cell) for cell in line.strip("|").split("|")]
        for name in names:
            rows[name] = Row(*map(set, cells))
    return rows


class PageTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        shutil.copy(SOURCE / "test/zoo/mlp-digits/model.onnx", self.folder)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        _notes.note.cache_clear()

    @needs("onnx")
    def test_blocks_run(self) -> None:
        """Of a difference, what is there after it."""
        names: dict[str, Any] = {}
        blocks = list(re.finditer(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.M | re.S))
        self.assertEqual([block[1] for block in blocks], ["diff", "diff", "diff", "python", "diff"])
        for block in blocks:
            code = block[2]
            if block[1] == "diff":
                self.assertIn("-from onnxruntime.training", code)
                code = "".join(line[1:] if line.strip() else line for line in code.splitlines(True) if not line.startswith("-"))
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(code, str(PAGE), "exec"), names)
        self.assertLess(float(names["loss"]), 2.4)
        for file in ("trainer.safetensors", "device/trained", "device/training_model.ortc/model.ortc"):
            self.assertTrue((self.folder / file).exists(), file)

    def test_flags_run(self) -> None:
        """Of the switches: what the page gives compile_ is compiled."""
        flags = re.findall(r"`compile_\(model, ([^`]*)\)`", PAGE.read_text())
        self.assertGreater(len(flags), 4)
        for each in flags:
            module = modules.Mlp()
            eval(f"ortc.torch.compile_(model, **({{'wait': True, 'fallback': 'error'}} | dict({each})))", {"ortc": ortc, "model": module})
            module(torch.ones(2, 6)).sum().backward()
            self.assertEqual(ortc.torch.report(module).compiled, 1, each)

    def test_signatures(self) -> None:
        """The code has what was there, in that order and with those defaults, then what is ours; and so has the table."""
        rows = read_table()
        self.assertEqual(set(rows), set(THERE))
        for name, there in THERE.items():
            wanted = re.findall(r"(?:[^,(]|\([^)]*\))+", there)
            got = write_out(find(name))
            ours = [each for each in got if each in OURS.get(name, ())]
            self.assertEqual([each for each in got if each not in ours], [each.strip() for each in wanted], name)
            self.assertEqual(len(ours), len(OURS.get(name, ())), name)
            names = {each.partition("=")[0] for each in got}
            listed = [each for cell in rows[name] for each in cell if each.partition("=")[0] in names]
            self.assertEqual(sorted(listed), sorted(got), name)

    def test_options(self) -> None:
        row = read_table()["ORTTrainerOptions"]
        for fate in Row._fields:
            keys = {f"{name}={option.default!r}" for name, option in OPTIONS.items() if option.fate == fate}
            self.assertEqual(keys, getattr(row, fate) - {"options=None"}, fate)

    def test_public_names(self) -> None:
        """Every class and function that is not an enumeration is in the table."""
        for part in ("optim", "api"):
            for each in find(part).__all__:
                if each == "_LRScheduler":  # a base for schedules of one's own
                    continue
                name = f"{part}.{each}"
                is_enum = isinstance(find(name), enum.EnumType)
                self.assertTrue(is_enum or any(row == name or row.startswith(name + ".") for row in THERE), name)

    def test_names_that_are_not_there(self) -> None:
        """Each says what is instead, as the page does, whether it is imported or asked for."""
        text = PAGE.read_text().partition("<!-- missing: begin -->")[2].partition("<!-- missing: end -->")[0]
        rows = {line.split("`")[1]: line.split(" | ")[1].removesuffix(" |") for line in text.strip().splitlines()[2:]}
        self.assertEqual(rows, MISSING)
        for path, instead in MISSING.items():
            parent, _, name = f"{HOME}.{path}".rpartition(".")
            for line in (f"from {parent} import {name}", f"import {HOME}.{path}"):
                if line.startswith("import") and not name.islower():
                    continue  # no module
                with self.subTest(line), self.assertRaisesRegex(ImportError, "is not supported: ") as caught:
                    exec(line, {})
                if parent == HOME or path.rpartition(".")[0] not in MISSING:
                    self.assertIn(instead, str(caught.exception))
            if path.rpartition(".")[0] not in MISSING:
                owner = find(path.rpartition(".")[0]) if "." in path else ort_training
                self.assertFalse(hasattr(owner, name), path)
        for part in ("", "api.", "optim.", "utils.", "ortmodule.", "orttrainer.", "artifacts."):
            with self.assertRaisesRegex(AttributeError, "docs/migrating-from-onnxruntime.md lists what there is"):
                find(f"{part}Unheard")

    def test_switches(self) -> None:
        """One warning names those of the environment, which have no effect."""
        names = set(re.findall(r"`(ORTMODULE_\w+)`", PAGE.read_text()))
        self.assertGreater(len(names), 20)
        for given in ({"ORTMODULE_CACHE_DIR": "a", "ORTMODULE_UNHEARD": "1"}, {name: "1" for name in names}, {}):
            _notes.note.cache_clear()
            with unittest.mock.patch.dict(os.environ, given), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                for _ in range(2):
                    ort_training.ORTModule(modules.Mlp())
            said = [str(each.message) for each in caught if "of the environment" in str(each.message)]
            self.assertEqual(len(said), bool(given))
            for name in given:
                self.assertIn(name, said[0])
            if given:
                self.assertIn("set ORTC_CACHE_DIR", said[0])

    # ---- What is refused and ignored.

    def calls(self) -> dict[str, Callable[..., Any]]:
        """With what a call needs, and the argument in question."""
        description = {"inputs": [("x", [2, 6]), ("y", [2])], "outputs": [("loss", [], True), ("p", [2, 3])]}
        trainer = ort_training.ORTTrainer(modules.Mlp(), description, ort_training.optim.SGDConfig(), torch.nn.functional.cross_entropy)
        adam = torch.optim.Adam(modules.Mlp().parameters())

        def module(**options: Any) -> Any:
            self.generate()
            state = ort_training.api.CheckpointState.load_checkpoint("checkpoint")
            return ort_training.api.Module("training_model.onnx", state, **options)

        return {
            "ortmodule.DebugOptions": ort_training.ortmodule.DebugOptions,
            "ORTTrainer.save_as_onnx": trainer.save_as_onnx,
            "optim.SGDConfig": ort_training.optim.SGDConfig,
            "optim.FP16_Optimizer": lambda optimizer=adam, **kwargs: ort_training.optim.FP16_Optimizer(optimizer, **kwargs),
            "artifacts.generate_artifacts": self.generate,
            "onnxblock.optim.AdamW": ort_training.onnxblock.optim.AdamW,
            "api.Module": module,
            "ORTTrainerOptions": lambda **key: ort_training.ORTTrainerOptions(nest(key)),
        }

    @staticmethod
    def generate(**options: Any) -> None:
        loss = ort_training.artifacts.LossType.CrossEntropyLoss
        ort_training.artifacts.generate_artifacts("model.onnx", ["2.bias"], loss=loss, **options)

    @needs("onnx")
    def test_refused(self) -> None:
        calls = self.calls()
        seen = 0
        for name, row in read_table().items():
            for each in row.refused:
                key, _, default = each.partition("=")
                value = other_than(default)
                with self.assertRaises(ortc.ArgumentError, msg=f"{name}: {key}={value!r}") as caught:
                    calls[name](**({"rank": value} if key.startswith("**") else {key: value}))
                self.assertRegex(str(caught.exception), "not supported: |must be empty", f"{name}: {key}")
                seen += 1
        self.assertGreater(seen, 30)

    @needs("onnx")
    def test_ignored(self) -> None:
        """Warns once."""
        calls = self.calls()
        seen = 0
        for name, row in read_table().items():
            for each in row.ignored:
                key, _, default = each.partition("=")
                if not default and name != "optim.FP16_Optimizer":
                    continue
                argument = {key: other_than(default)} if default else {}
                _notes.note.cache_clear()
                for expected in (1, 0):
                    with warnings.catch_warnings(record=True) as caught:
                        warnings.simplefilter("always")
                        calls[name](**argument)
                    said = [each for each in caught if str(each.message).startswith("ortc.compat.ort_training: ")]
                    self.assertEqual(len(said), expected, f"{name}: {key}")
                seen += 1
        self.assertGreater(seen, 10)


def other_than(default: str) -> Any:
    """A value that is not the default."""
    return {
        "False": True,
        "True": False,
        "None": "some",
        "''": "some",
        "()": [{"params": ["w"], "lr": 1.0}],
        "[]": ["some"],
        "{}": {"some": 1},
        "'cpu'": "cuda:0",
        "WARNING": ort_training.ortmodule.LogLevel.INFO,
        "": "some",
    }.get(default) if not default.isdigit() else int(default) + 1


def nest(key: dict[str, Any]) -> dict[str, Any]:
    """{"a.b": 1} as {"a": {"b": 1}}."""
    (name, value), = key.items()
    for part in reversed(name.split(".")):
        value = {part: value}
    return value


if __name__ == "__main__":
    unittest.main()
