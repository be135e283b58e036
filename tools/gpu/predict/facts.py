"""All that a prediction needs of an artifact, as a file that machines without NVIDIA's assembler read.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import dataclasses
import gzip
import json
import pathlib
import re
from typing import Any

from predict import artifact, sass


@dataclasses.dataclass
class Facts:
    """An artifact's code for one target."""

    name: str
    target: str
    kernels: dict[str, artifact.Kernel]
    functions: dict[str, sass.Function]
    entries: dict[str, dict[artifact.Launch, int]]
    works: dict[str, dict[str, Any]]  # kernels of the plan by name: work, shape, flops, bytes
    steps: dict[str, int]  # of main loops, by function


def find(path: pathlib.Path, target: str | None, tools: pathlib.Path | None) -> Facts:
    """`path`: an artifact, or a file that `write` wrote."""
    if path.name.endswith((".json", ".json.gz")):
        return read(path)
    code = artifact.read_artifact(path, target)
    works = {row["name"]: {key: row[key] for key in ("work", "shape", "flops", "bytes") if key in row} for row in code.manifest["kernels"]}
    own = next((row for row in code.manifest["targets"] if row["name"] == code.target), {})
    functions = sass.assemble(code.ptx, code.target, tools)
    return Facts(code.manifest["name"], code.target, code.kernels, functions, code.entries, works, own.get("steps", {}))


def work_of(facts: Facts, function: str) -> tuple[dict[str, Any], int]:
    """The kernel of the plan that a function belongs to, and its number among the functions of it."""
    if function in facts.works:
        return facts.works[function], 0
    match = re.fullmatch(r"(.+)_(\d+)", function)
    return (facts.works.get(match[1], {}), int(match[2])) if match else ({}, 0)


def prune(value: Any) -> Any:
    """Without fields that have the value they have anyway."""
    usual = dataclasses.asdict(sass.Region())
    return {key: item for key, item in value.items() if item != usual[key]}


def write(facts: Facts, path: pathlib.Path) -> None:
    launched = {launch.kernel for launches in facts.entries.values() for launch in launches}
    functions = {name: dataclasses.asdict(each) for name, each in facts.functions.items() if name in launched}
    for each in functions.values():
        each["regions"] = [prune(region) for region in each["regions"]]
    data = {"name": facts.name, "target": facts.target, "kernels": {name: [each.threads, each.shared, each.arguments] for name, each in facts.kernels.items()},
            "functions": functions, "works": facts.works, "steps": facts.steps,
            "entries": {name: [[launch.kernel, launch.blocks, list(launch.arguments), times] for launch, times in launches.items()]
                        for name, launches in facts.entries.items()}}
    text = json.dumps(data, separators=(",", ":")).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)


def read(path: pathlib.Path) -> Facts:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise artifact.Unusable(f"{path}: {error.strerror}") from None
    data = json.loads(gzip.decompress(text) if path.suffix == ".gz" else text)
    functions = {name: sass.Function(**{**each, "regions": [sass.Region(**region) for region in each["regions"]]}) for name, each in data["functions"].items()}
    entries = {name: {artifact.Launch(kernel, blocks, tuple(arguments)): times for kernel, blocks, arguments, times in rows}
               for name, rows in data["entries"].items()}
    kernels = {name: artifact.Kernel(name, *row) for name, row in data["kernels"].items()}
    return Facts(data["name"], data["target"], kernels, functions, entries, data["works"], data["steps"])
