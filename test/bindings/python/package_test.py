"""The package itself: how long it takes to load, its types, its doctor.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import ast
import os
import subprocess
import sys
import unittest

import ortc
from ortc import _runtime
from optional import needs
from support import BUILD, SOURCE, run_tool

MOST_SECONDS = 0.030  # to import the package, beyond numpy; all of it may take twice that


def run_python(*arguments, **environment):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env={**os.environ, **environment})


class PackageTest(unittest.TestCase):
    def test_loading_takes_little(self):
        code = ("import numpy, time; begin = time.process_time(); import ortc; first = time.process_time() - begin\n"
                "ortc.Session; print(first, time.process_time() - begin)")
        runs = [[float(word) for word in run_python("-c", code).stdout.split()] for _ in range(5)]
        self.assertLess(min(run[0] for run in runs), MOST_SECONDS)
        self.assertLess(min(run[1] for run in runs), 2 * MOST_SECONDS)

    def test_loading_needs_no_numpy_nor_torch(self):
        code = "import sys, ortc; print([name for name in ('numpy', 'torch', 'subprocess') if name in sys.modules])"
        self.assertEqual(run_python("-c", code).stdout, "[]\n")

    def test_names(self):
        for name in ortc.__all__:
            getattr(ortc, name)
        self.assertIn("compile", dir(ortc))
        with self.assertRaisesRegex(AttributeError, "has no attribute 'nothing'"):
            ortc.nothing
        self.assertIn(f" {ortc.__version__}", run_tool("--version"))

    def test_stubs_have_what_the_module_has(self):
        tree = ast.parse((SOURCE / "bindings/python/ortc/_runtime.pyi").read_text())
        said = {"": set()}
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                said[node.name] = {each.name for each in node.body if isinstance(each, ast.FunctionDef)} - {"__init__"}
            name = node.target.id if isinstance(node, ast.AnnAssign) else getattr(node, "name", "_")
            said[""] |= {name} if not name.startswith("_") else set()
        self.assertEqual(said[""], {name for name in dir(_runtime) if not name.startswith("_")})
        for name in ("Program", "Session"):
            own = vars(getattr(_runtime, name))
            self.assertEqual(said[name], {each for each in own if not each.startswith("__")}, name)

    @needs("mypy")
    def test_types(self):
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", BUILD / "mypy", "--config-file", SOURCE / "bindings/python/pyproject.toml", "-p", "ortc"], capture_output=True,
                              text=True, cwd=SOURCE / "bindings/python", env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_doctor(self):
        done = run_python("-m", "ortc.doctor")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for word in ("ortc  ", "python  ", "numpy  ", "torch  ", "processor    x86-64", "compiler     ortc ", "cuda  ", "hip  ", "artifacts    in /", "trained      200 steps"):
            self.assertIn(word, done.stdout)
        done = run_python("-m", "ortc.doctor", ORTC_COMPILER="/bin/false")
        self.assertEqual(done.returncode, 1)
        self.assertIn("\nfailed: the compiler has failed with status 1\n", done.stdout)


if __name__ == "__main__":
    unittest.main()
