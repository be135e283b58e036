"""Runs the commands of a recipe's page, and compares what they print and learn: run-recipes.py ORTC SOURCE NAME.

The blocks of docs/examples/recipes/NAME/README.md that begin with ```sh are run in their order, beside a copy of the recipe's files. Every line of the
other blocks must be printed, up to the last digits of numbers: on another processor the same training rounds in other places. metrics.jsonl must
have the curves of curve.json, PyTorch's, within the tolerances that stand there (docs/examples/recipes/curves.py). Skipped without numpy.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from optional import need

NUMBER = re.compile(r"(?<![\w.])[0-9]+(?:[.][0-9]+)?(?:e[-+][0-9]+)?(?![\w.]*\w)")
SHOWN = 0.1  # of a number on the page; what it learns is compared with the curves


def read_curves(path):
    """Numbers of all steps and evaluations by their keys."""
    curves = {}
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        if entry.get("event", "eval") == "eval":
            for key, value in entry.items():
                curves.setdefault(key, []).append(value)
    return curves


def compare_curves(curves, expected):
    for name, curve in expected.items():
        values = curves.get(name, [])
        assert len(values) == len(curve["values"]), f"{len(values)} numbers '{name}', PyTorch has {len(curve['values'])}"
        shares = [abs(a - b) / tolerance for a, b, tolerance in zip(values, curve["values"], curve["tolerances"])]
        worst = shares.index(max(shares))
        print(f"{name}: {len(values)} numbers, at most {max(shares):.3g} of a tolerance (number {worst})")
        assert max(shares) <= 1, f"{name}, number {worst}: {values[worst]}, PyTorch has {curve['values'][worst]}, more than {curve['tolerances'][worst]} away"


def is_shown(line, printed):
    """The same words, and numbers that are near."""
    numbers = [float(number) for number in NUMBER.findall(line)]
    for other in printed:
        if NUMBER.sub("N", other) == NUMBER.sub("N", line):
            if all(abs(float(a) - b) <= SHOWN * abs(b) for a, b in zip(NUMBER.findall(other), numbers)):
                return True
    return False


def main(ortc, source, name):
    need("numpy")  # the commands' programs import it
    recipe = pathlib.Path(source).resolve() / "docs/examples/recipes" / name
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", (recipe / "README.md").read_text(), re.S | re.M)
    commands = "".join(text for language, text in blocks if language == "sh")
    shown = [line for language, text in blocks if not language for line in text.splitlines() if line != "..."]
    assert commands.count("\nortc ") >= 3 and shown, "the page has commands and what they print"
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder) / name
        shutil.copytree(recipe, work)
        path = os.pathsep.join([os.path.dirname(os.path.abspath(ortc)), os.path.dirname(sys.executable), os.environ["PATH"]])
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands], cwd=work, env={**os.environ, "PATH": path}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        print(ended.stdout)
        assert ended.returncode == 0, f"the commands end with {ended.returncode}"
        compare_curves(read_curves(work / "metrics.jsonl"), json.loads((recipe / "curve.json").read_text()))
    missing = [line for line in shown if not is_shown(line, ended.stdout.splitlines())]
    assert not missing, "the page shows what is not printed:\n" + "\n".join(missing)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
