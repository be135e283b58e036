"""Fused steps, the cache of artifacts, and the page on PyTorch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings

import torch
import torch.nn.functional as F
from modules import ConvNorm, Mlp, distance, total, use_own_cache
from pages import run_page

import ortc.torch


def setUpModule() -> None:
    use_own_cache()


class TrainerTest(unittest.TestCase):
    """The fused step, against PyTorch's optimizers."""

    def test_optimizers(self) -> None:
        kinds = [
            lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3, nesterov=True),
            lambda p: torch.optim.Adam(p, lr=1e-2, betas=(0.8, 0.99), eps=1e-6),
            lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.1),
        ]
        for make in kinds:
            torch.manual_seed(0)
            model = ConvNorm()
            eager = copy.deepcopy(model)
            mine, other = make(model.parameters()), make(eager.parameters())
            schedules = [torch.optim.lr_scheduler.StepLR(each, 2, 0.5) for each in (mine, other)]
            trainer = ortc.torch.Trainer(model, F.cross_entropy, mine)
            x, y = torch.randn(4, 2, 7, 7), torch.randint(3, (4,))
            for rows in (4, 4, 3, 4, 3):  # of each number of rows there is one artifact
                loss = trainer.step(x[:rows], y[:rows])
                other.zero_grad()
                wanted = F.cross_entropy(eager(x[:rows]), y[:rows])
                wanted.backward()
                other.step()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the compiled optimizer has not stepped
                    for schedule in schedules:
                        schedule.step()
                self.assertAlmostEqual(loss, wanted.item(), places=5)
            for (name, got), expected in zip(model.state_dict().items(), eager.state_dict().values(), strict=True):
                self.assertLessEqual(distance(expected.float(), got.float()), 1e-4, f"{name} of {type(mine).__name__}")

    def test_what_changes_between_steps(self) -> None:
        torch.manual_seed(0)
        model = Mlp()
        eager = copy.deepcopy(model)
        mine, other = (torch.optim.SGD(each.parameters(), lr=0.1, momentum=0.9) for each in (model, eager))
        trainer = ortc.torch.Trainer(model, F.cross_entropy, mine)
        x, y = torch.randn(4, 6), torch.randint(3, (4,))
        first = next(iter(dict(model.named_parameters())))

        def step() -> None:
            loss = trainer.step(x, y)
            other.zero_grad()
            wanted = F.cross_entropy(eager(x), y)
            wanted.backward()
            other.step()
            self.assertAlmostEqual(loss, wanted.item(), places=5)

        step()
        for each in (model, eager):
            each.get_parameter(first).requires_grad_(False)
        step()
        for each in (model, eager):  # what is frozen is in the artifact
            with torch.no_grad():
                each.get_parameter(first).mul_(0.5)
        step()
        step()
        model.get_parameter(first).requires_grad_(True)
        with self.assertRaisesRegex(ortc.CompileError, "was not trained in the step before"):
            trainer.step(x, y)
        model.get_parameter(first).requires_grad_(False)
        step()
        for each in (mine, other):
            each.param_groups[0]["momentum"] = 0.5
        step()
        mine.param_groups[0]["nesterov"] = True
        with self.assertRaisesRegex(ortc.CompileError, "nesterov of the optimizer has changed"):
            trainer.step(x, y)


class PageTest(unittest.TestCase):
    def test_blocks_run(self) -> None:
        names = run_page("torch.md")
        self.assertLess(float(F.cross_entropy(names["model"](names["pixels"]), names["label"])), 1.0)


class CacheTest(unittest.TestCase):
    SCRIPT = """
import sys, torch, ortc.torch
torch.manual_seed(0)
m = ortc.torch.compile_(torch.nn.Linear(3, 2), wait=len(sys.argv) < 2)
m(torch.ones(1, 3)).sum().backward()
r = ortc.torch.report(m)
print(r.compiled, len(r.failures))
"""

    def run_script(self, folder: str, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", self.SCRIPT, *arguments], env={**os.environ, "ORTC_CACHE_DIR": folder}, capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_processes_share_artifacts(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.run_script(folder), "1 0")
            self.assertEqual(self.run_script(folder, "nowait"), "1 0")

    def test_warm_starts(self) -> None:
        """What was compiled in the background, for the outputs that had gradients, is there in the first step of the next run."""
        script = """
import sys, time, torch, ortc.torch
torch.manual_seed(0)
m = ortc.torch.compile_(torch.nn.LSTM(3, 2))
r = ortc.torch.report(m)
for i in range(1000):
    m(torch.ones(4, 1, 3))[0].sum().backward()
    if r.compiled: break
    time.sleep(0.1)
print(i, r.artifacts)
"""
        with tempfile.TemporaryDirectory() as folder:
            first, second = (
                subprocess.run([sys.executable, "-c", script], env={**os.environ, "ORTC_CACHE_DIR": folder}, capture_output=True, text=True)
                for _ in range(2)
            )
            self.assertGreater(int(first.stdout.split()[0]), 0, first.stderr)
            self.assertEqual(second.stdout.split(), ["0", "1"], second.stderr)

    def test_two_at_once(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "ORTC_CACHE_DIR": folder}
            both = [
                subprocess.Popen([sys.executable, "-c", self.SCRIPT], env=environment, stdout=subprocess.PIPE, text=True)
                for _ in range(2)
            ]
            self.assertEqual([each.communicate()[0].strip() for each in both], ["1 0", "1 0"])
            self.assertEqual([name for name in os.listdir(folder) if name.endswith(".tmp")], [])

    def test_damaged_entries(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.run_script(folder)
            (entry,) = (name for name in os.listdir(folder) if "." not in name and name != "kernels")
            path = os.path.join(folder, entry, "artifact", "model.ortc")
            with open(path, "r+b") as file:
                file.seek(os.path.getsize(path) // 2)
                file.write(b"damage" * 100)
            self.assertEqual(self.run_script(folder), "1 1")
            self.assertEqual(self.run_script(folder), "1 0")

    def test_kernels_are_kept(self) -> None:
        """Beside the artifacts, and a compilation takes them; not where ORTC_KERNEL_CACHE is empty."""
        with tempfile.TemporaryDirectory() as folder:
            kernels = os.path.join(folder, "kernels")
            self.run_script(folder)
            before = {name: os.stat(os.path.join(kernels, name)).st_ino for name in os.listdir(kernels) if name.startswith("llvmcache-")}
            self.assertGreater(len(before), 0)
            self.assertEqual(os.stat(kernels).st_mode & 0o777, 0o700)
            for name in os.listdir(folder):
                if name != "kernels" and os.path.isdir(os.path.join(folder, name)):
                    shutil.rmtree(os.path.join(folder, name))
            self.assertEqual(self.run_script(folder), "1 0")
            after = {name: os.stat(os.path.join(kernels, name)).st_ino for name in os.listdir(kernels) if name.startswith("llvmcache-")}
            self.assertEqual(after, before)
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, ORTC_KERNEL_CACHE=""):
            self.assertEqual(self.run_script(folder), "1 0")
            self.assertFalse(os.path.exists(os.path.join(folder, "kernels")))

    def test_places_that_cannot_be_written(self) -> None:
        with tempfile.NamedTemporaryFile() as file:
            self.assertEqual(self.run_script(os.path.join(file.name, "cache")), "0 1")

    def test_full_disks(self) -> None:
        """Files of more than some bytes cannot be written, by the child and the compiler too."""
        limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (%d, %d))\n"
        for most in (100, 5000):
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(
                    [sys.executable, "-c", limited % (most, most) + self.SCRIPT], env={**os.environ, "ORTC_CACHE_DIR": folder},
                    capture_output=True, text=True,
                )
                self.assertEqual((done.returncode, done.stdout.strip()), (0, "0 1"), done.stderr)
                self.assertLessEqual({*os.listdir(folder)}, {"kernels"})

    def test_children_that_are_killed(self) -> None:
        """While they compile, in the background."""
        module = ortc.torch.compile_(Mlp())
        x = torch.randn(3, 6)
        for _ in range(2):
            module(x)
        (entry,) = module.__dict__["forward"].entries.values()
        os.kill(entry.job.child, signal.SIGKILL)
        with self.assertWarnsRegex(UserWarning, "signal 9 has ended the process that compiles"):
            while not ortc.torch.report(module).failures:
                total(module(x)).backward()
        self.assertIsNotNone(module.first.weight.grad)

    def test_fifty_shapes(self) -> None:
        """Few are compiled at once, few are kept, and no child stays."""
        module = Mlp()
        eager = copy.deepcopy(module)
        ortc.torch.compile_(module)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for rows in range(1, 51):
                x = torch.randn(rows, 6)
                for _ in range(2):
                    self.assertLess(distance(eager(x), module(x)), 2e-5)
        compiled = module.__dict__["forward"]
        self.assertLessEqual(len(compiled.entries), 8)
        self.assertLessEqual(sum(entry.job is not None for entry in compiled.entries.values()), 2)
        ortc.torch.restore_(module)
        with self.assertRaises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)

    def test_modules_that_are_gone(self) -> None:
        """Deleted within the forward step, and before the backward step."""
        module = Mlp()
        weight = module.first.weight
        holder = [ortc.torch.compile_(module, wait=True, fallback="error")]
        module.register_forward_pre_hook(lambda *_: holder.clear())
        del module
        result = holder[0](torch.randn(3, 6))
        gc.collect()
        total(result).backward()
        self.assertIsNotNone(weight.grad)

    def test_compilers_that_are_killed(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "ortc")
            with open(program, "w") as file:
                file.write("#!/bin/sh\nkill -9 $$\n")
            os.chmod(program, 0o755)
            real = os.environ.get("ORTC_COMPILER", "")
            try:
                os.environ["ORTC_COMPILER"] = program
                self.assertEqual(self.run_script(os.path.join(folder, "cache")), "0 1")
            finally:
                os.environ["ORTC_COMPILER"] = real


if __name__ == "__main__":
    unittest.main()
