"""Functions of PyTorch at special points, through compiled modules and through exported files.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import unittest
import warnings
from typing import Any

import torch
from exported_functions import OTHERWISE, UNEXPORTED
from functions import CASES, REFUSED, Case
from modules import use_own_cache
from optional import needs
from sweep import Group, Results, collect, differences, restore, run, warm

import ortc.torch

AT_ONCE = 40
CHOSEN = [case for case in CASES if case.name not in REFUSED]


def setUpModule() -> None:
    use_own_cache()


def groups(cases: list[Case]) -> list[list[Case]]:
    return [cases[i : i + AT_ONCE] for i in range(0, len(cases), AT_ONCE)]


EXPORTS: dict[str, dict[str, Any]] = {
    "dynamo": {"dynamo": True, "optimize": False, "verbose": False},
    "torchscript": {
        "dynamo": False,
        "do_constant_folding": False,
        "training": torch.onnx.TrainingMode.TRAINING,
        "opset_version": 20,
    },
}


def export(module: Group, exporter: str, folder: str) -> str:
    """With one of PyTorch's exporters, or ours."""
    if exporter == "ortc":
        from ortc.sources.torch import describe_call, write_call

        return write_call(module, describe_call(module, (torch.ones(1),), {}), None, folder).path
    path = os.path.join(folder, "model.onnx")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        torch.onnx.export(module, (torch.ones(1),), path, input_names=["x"], **EXPORTS[exporter])
    return path


def run_file(cases: list[Case], exporter: str) -> tuple[list[Results], list[Results]]:
    """PyTorch's results and those of a file, in float64."""
    from ortc.torch._examine.file import File, FileStep

    module = Group(cases)
    with tempfile.TemporaryDirectory() as folder:
        path = export(module, exporter, folder)
        file = File(path)
        module.double()
        wanted, cotangents = collect(module)
        given = {name: each for name, each in zip(file.outputs, cotangents, strict=True) if each is not None}
        step = FileStep(path, os.path.join(folder, "step"), {}, list(given), [], {})
        own = {name: each.detach() for name, each in module.named_parameters()}
        bound = {name: own[name] if name in own else torch.from_numpy(file.value(name)) for name in step.bound}
        outputs, gradients, _, _ = step.run({"x": torch.ones(1)}, bound, given)
    rest = [outputs[name] for name in file.outputs]
    got: list[Results] = []
    for i, (results, parameters) in enumerate(wanted):
        found = [gradients.get(f"values.{i}.{k}") for k in range(len(parameters))]
        got.append(([rest.pop(0) for _ in results], found))
    return wanted, got


class FunctionsTest(unittest.TestCase):
    def setUp(self) -> None:
        warnings.simplefilter("ignore")

    def compare(self, cases: list[Case], wanted: list[Results], got: list[Results]) -> None:
        for case, mine, other in zip(cases, wanted, got, strict=True):
            with self.subTest(case.name):
                self.assertEqual(differences(mine, other, case), [])

    def test_compiled(self) -> None:
        """compile_ compares near its arguments, which are nothing special; then these are."""
        for cases in groups(CHOSEN):
            wanted = run(Group(cases))
            module = Group(cases)
            ortc.torch.compile_(module, wait=True)
            warm(module)
            run(module), run(module)
            restore(module)
            got = run(module)
            self.assertGreater(ortc.torch.report(module).compiled, 0, str(ortc.torch.report(module)))
            self.compare(cases, wanted, got)

    @needs("onnx")
    def test_files(self) -> None:
        for cases in groups([case for case in CHOSEN if not case.has_bounds]):
            self.compare(cases, *run_file(cases, "ortc"))

    @needs("onnxscript")
    def test_files_of_exporters(self) -> None:
        for exporter in EXPORTS:
            left_out = UNEXPORTED[exporter] | OTHERWISE[exporter]
            for cases in groups([case for case in CASES if not case.has_bounds and case.name not in left_out]):
                with self.subTest(exporter):
                    self.compare(cases, *run_file(cases, exporter))

    @needs("onnxscript")
    def test_what_exporters_write_otherwise(self) -> None:
        """As docs/exporters.md says; what is right one day leaves the list."""
        for exporter, names in OTHERWISE.items():
            for cases in groups([case for case in CASES if case.name in names]):
                for case, mine, other in zip(cases, *run_file(cases, exporter), strict=True):
                    with self.subTest(f"{exporter}: {case.name}"):
                        self.assertNotEqual(differences(mine, other, case), [])

    def test_what_is_refused(self) -> None:
        """Without a wrong number: the calls are PyTorch's own."""
        for case in CASES:
            if case.name not in REFUSED:
                continue
            with self.subTest(case.name):
                module = ortc.torch.compile_(Group([case]), wait=True)
                warm(module)
                run(module), run(module)
                report = ortc.torch.report(module)
                self.assertEqual(report.compiled, 0)
                self.assertRegex(str(report), REFUSED[case.name])


if __name__ == "__main__":
    unittest.main()
