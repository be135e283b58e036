"""What NVIDIA's assembler makes of the kernels of a model: spills, local memory, and what main loops consist of.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

The main loop of a product is the one that multiplies most. Its share is that of instructions which multiply matrices. A HGMMA does the work of
many HMMA for four warps, so it counts as what each of them would need instead: as an instruction it would be a small share of a fast loop.
"""
import dataclasses
import json
import math
import pathlib
import re
import subprocess
from typing import Any

import workloads
from predict import artifact, sass

TARGETS = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120")
PRECISIONS = ("f32", "bf16", "tf32")
MODELS = ("gpt2-small", "resnet18-224", "bert-tiny", "mobilenetv2-tiny", "vit-tiny-slim")
LEAST_SIDE = 64  # of a product on tensor cores
WARPS_OF_A_GROUP = 4
MULTIPLICATIONS = 16 * 8 * 16  # of the HMMA that others are measured in


@dataclasses.dataclass
class Code:
    """A function of the device's code."""

    name: str
    work: dict[str, Any]  # of its kernel, as `ortc inspect` tells it; empty for a kernel's further launches
    function: sass.Function
    kind: str | None  # see `kind_of`; None without matrices: sides or depth are small

    def title(self) -> str:
        return " ".join(word for word in (self.name, self.work.get("work", ""), self.work.get("shape", "")) if word)

    def main_loop(self) -> sass.Region:
        return max(self.function.regions, key=lambda region: (count_matrix(region), region.multiplications))

    def has_loop(self) -> bool:
        """Else the depth is that of one step."""
        return self.main_loop() is not self.function.regions[0]

    def share(self) -> float:
        loop = self.main_loop()
        return count_matrix(loop) / (loop.instructions - sum(loop.matrix.values()) + count_matrix(loop))


@dataclasses.dataclass
class MachineCode:
    model: str
    precision: str
    target: str
    codes: list[Code]
    warnings: list[str]  # C75xx: products that wait for each other

    def products(self) -> list[Code]:
        return [code for code in self.codes if code.kind]

    def tell_least(self) -> str:
        """The least share of each kind of product, as text."""
        kinds = sorted({code.kind for code in self.products()})
        return ", ".join(f"{kind} {min(code.share() for code in self.products() if code.kind == kind):.3f}" for kind in kinds)

    def spilling(self) -> list[Code]:
        return [code for code in self.codes if code.function.spilled or code.function.local]


def count_matrix(region: sass.Region) -> float:
    """Instructions that multiply matrices, in HMMA of a warp."""
    total = 0.0
    for name, count in region.matrix.items():
        shape = re.match(r"HGMMA\.(\d+)x(\d+)x(\d+)", name)
        rows, columns, depth = map(int, shape.groups()) if shape else (0, 0, 0)
        total += count * (rows * columns * depth / MULTIPLICATIONS / WARPS_OF_A_GROUP if shape else 1)
    return total


def sides_of_conv(name: str, image: list[int], filters: list[int], result: list[int]) -> tuple[int, int, int]:
    """Rows, columns and depth of a convolution as a product, of one group. Images have channels last; filters are HxWxIxO, with I channels of a group."""
    if name.startswith("conv filter gradient"):
        *taps, inputs, outputs = result[-4:]  # the result may have parts before these
        return math.prod(taps) * inputs, outputs * inputs // image[-1], math.prod(filters[:-1])
    *taps, inputs, outputs = filters
    if name.startswith("conv input gradient"):
        return math.prod(result[:-1]), inputs, math.prod(taps) * outputs * inputs // result[-1]
    return math.prod(result[:-1]), outputs * inputs // image[-1], math.prod(taps) * inputs


def kind_of(work: dict[str, Any]) -> str | None:
    """Of a kernel that multiplies on tensor cores: `dot`, `conv` (also of input gradients), `filter` (gradients of filters, whose places are
    computed anew for each step of the depth) or `attention`; `odd` where numbers of a side do not fill an access of 16 bytes, so that each is
    loaded by itself. None of others.
    """
    name = work.get("work", "")
    if work.get("kind") == "attention":
        return "attention"
    shapes = re.split(r" \* | -> ", work.get("shape", ""))
    sizes = [[int(size) for size in re.findall(r"\d+", shape.split("xbf16")[0])] for shape in shapes]
    if name.startswith("dot"):
        isLarge = work["flops"] >= 2 * LEAST_SIDE**3 and all(min(size[-2:]) >= LEAST_SIDE for size in sizes)
        isOdd = any(size % 8 for each in sizes[:2] for size in each[-2:])
    elif name.startswith("conv"):
        isFilter = name.startswith("conv filter gradient")
        isLarge = min(sides_of_conv(name, *sizes)) >= LEAST_SIDE
        isOdd = any(size % 8 for size in (sizes[0][-1], sizes[1][-1], *([] if isFilter else [sizes[1][-2]])))
    else:
        return None
    if not isLarge:
        return None
    return "odd" if isOdd else "dot" if name.startswith("dot") else "filter" if isFilter else "conv"


def compile_model(ortc: pathlib.Path, root: pathlib.Path, name: str, precision: str, targets: list[str], folder: pathlib.Path) -> pathlib.Path:
    """The artifact of a workload, or of an entry of test/zoo."""
    if name in workloads.WORKLOADS:
        workload = workloads.WORKLOADS[name]()
        model, flags = folder / f"{name}.onnx", workload.flags
        model.write_bytes(workload.graph)
    else:
        model = root / "test/zoo" / name / "model.onnx"
        recipe = json.loads((model.parent / "recipe.json").read_text())
        flags = [*recipe["flags"], "--optimizer", recipe["optimizers"]["adamw"]]
    words = [word for target in targets for word in ("--target", target)]
    path = folder / f"{name}-{precision}"
    subprocess.run([ortc, "train", model, "-o", path, "--quiet", "--no-weights", "--precision", precision, *flags, *words], check=True)
    return path


def read(path: pathlib.Path, model: str, precision: str, target: str, tools: pathlib.Path | None) -> MachineCode:
    """Of an artifact's code for `target`."""
    code = artifact.read_artifact(path, target)
    told, text = sass.run_assembler(code.ptx, target, tools)
    works = {row["name"]: row for row in code.manifest["kernels"]}
    functions = sass.read_functions(told, text, sass.find_first_parameter(target))
    codes = [Code(name, works.get(name, {}), function, kind_of(works.get(name, {}))) for name, function in functions.items()]
    return MachineCode(model, precision, target, codes, [line for line in told.splitlines() if re.search(r"C75\d\d", line)])
