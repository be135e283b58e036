"""Functions of PyTorch at special points, through compiled modules and through exported files.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
import unittest
import warnings

import torch
from functions import CASES, REFUSED, Case
from modules import use_own_cache
from sweep import Group, Results, collect, differences, restore, run, warm

import ortc.torch

AT_ONCE = 40
CHOSEN = [case for case in CASES if case.name not in REFUSED]


def setUpModule() -> None:
    use_own_cache()


def groups(has_bounds: bool = True) -> list[list[Case]]:
    chosen = [case for case in CHOSEN if has_bounds or not case.has_bounds]
    return [chosen[i : i + AT_ONCE] for i in range(0, len(chosen), AT_ONCE)]


class FunctionsTest(unittest.TestCase):
    def setUp(self) -> None:
        warnings.simplefilter("ignore")

    def compare(self, cases: list[Case], wanted: list[Results], got: list[Results]) -> None:
        for case, mine, other in zip(cases, wanted, got, strict=True):
            with self.subTest(case.name):
                self.assertEqual(differences(mine, other, case), [])

    def test_compiled(self) -> None:
        """compile_ compares near its arguments, which are nothing special; then these are."""
        for cases in groups():
            wanted = run(Group(cases))
            module = Group(cases)
            ortc.torch.compile_(module, wait=True)
            warm(module)
            run(module), run(module)
            restore(module)
            got = run(module)
            self.assertGreater(ortc.torch.report(module).compiled, 0, str(ortc.torch.report(module)))
            self.compare(cases, wanted, got)

    @unittest.skipUnless(importlib.util.find_spec("onnx"), "onnx is not installed")
    def test_files(self) -> None:
        """In float64."""
        from ortc.sources.torch import describe_call, write_call
        from ortc.torch._examine.file import File, FileStep

        for cases in groups(has_bounds=False):
            module = Group(cases)
            with tempfile.TemporaryDirectory() as folder:
                written = write_call(module, describe_call(module, (torch.ones(1),), {}), None, folder)
                names = File(written.path).outputs
                module.double()
                wanted, cotangents = collect(module)
                sources = [name for name, each in zip(names, cotangents, strict=True) if each is not None]
                step = FileStep(written.path, os.path.join(folder, "step"), {}, sources, [], {})
                given = {name: each for name, each in zip(names, cotangents, strict=True) if each is not None}
                bound = {name: each.detach() for name, each in module.named_parameters()}
                outputs, gradients, _, _ = step.run({"x": torch.ones(1)}, bound, given)
            rest = [outputs[name] for name in names]
            got: list[Results] = []
            for i, (results, own) in enumerate(wanted):
                found = [gradients.get(f"values.{i}.{k}") for k in range(len(own))]
                got.append(([rest.pop(0) for _ in results], found))
            self.compare(cases, wanted, got)

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
