"""Machine code of kernels: registers, loops, and what each loop is made of.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

NVIDIA's ptxas and nvdisasm make the text that is read here. An instruction is counted as executed wherever it stands in a loop that is
executed, branches or not. The functions that divide and take roots of unusual numbers are not counted.
"""
import dataclasses
import math
import pathlib
import re
import shutil
import subprocess
import tempfile

from predict.artifact import Unusable

FIRST_PARAMETER = {8: 0x160, 9: 0x210, 10: 0x380, 12: 0x380}  # where constant bank 0 has them, by major version
INTEGER = {"IADD", "IADD3", "IMAD", "LOP3", "SHF", "ISETP", "SEL", "PRMT", "LEA", "VIADD", "IABS", "IMNMX", "VIMNMX", "FSETP", "FSEL", "FMNMX",
           "F2FP", "VIADDMNMX", "VIMNMX3", "HADD2", "HMUL2", "HFMA2"}
SPECIAL = {"MUFU", "F2F", "F2I", "I2F", "I2FP", "POPC", "FLO", "BREV"}
DOUBLE = {"DFMA", "DADD", "DMUL", "DSETP"}
MATRIX = {"HMMA", "IMMA", "DMMA", "HGMMA"}
SHARED, GLOBAL = {"LDS", "STS", "LDSM", "STSM", "ATOMS"}, {"LDG", "STG", "LDGSTS", "ATOMG", "RED", "LD", "ST"}


@dataclasses.dataclass
class Region:
    """The code of a loop without that of loops in it; the first one of a kernel is what no loop has. Instructions of a thread."""

    parent: int | None = None
    trips: float | None = None  # each time it is entered; None: not known
    instructions: int = 0
    multiplications: int = 0  # FFMA and DFMA
    integers: int = 0
    specials: int = 0
    doubles: int = 0
    matrix: dict[str, int] = dataclasses.field(default_factory=dict)
    wavefronts: float = 0  # of shared memory, without bank conflicts
    share: float = 1.0  # of the blocks that come here: loops that no path connects are other blocks'
    loaded: int = 0  # bytes of global memory
    narrow: int = 0  # loads of global memory of less than 16 bytes
    stored: int = 0
    barriers: int = 0
    copies: int = 0  # that are asynchronous
    ahead: float = 0.0  # share of its multiplications between loading from global memory and using that


@dataclasses.dataclass
class Function:
    """A kernel as the assembler made it."""

    registers: int
    shared: int  # bytes, static
    spilled: int  # bytes
    parameters: list[int]  # numbers of those that it reads
    regions: list[Region]
    local: int = 0  # bytes of a thread's own memory


@dataclasses.dataclass
class Instruction:
    predicate: str
    name: str
    modifiers: list[str]
    operands: list[str]
    text: str


def find_tool(name: str, folder: pathlib.Path | None) -> str:
    found = shutil.which(name, path=str(folder) if folder else None)
    if not found:
        raise Unusable(f"{name} is not {'in ' + str(folder) if folder else 'on PATH'}; machine code is read with NVIDIA's ptxas and nvdisasm "
                       "(pip install nvidia-cuda-nvcc nvidia-cuda-nvdisasm), whose folder --tools names")
    return found


def run_assembler(ptx: str, target: str, tools: pathlib.Path | None) -> tuple[str, str]:
    """What ptxas -v tells, and the text of nvdisasm."""
    ptxas, nvdisasm = find_tool("ptxas", tools), find_tool("nvdisasm", tools)
    with tempfile.TemporaryDirectory(prefix="gpu-model-") as work:
        source, image = pathlib.Path(work) / "code.ptx", pathlib.Path(work) / "code.cubin"
        source.write_text(ptx)
        done = subprocess.run([ptxas, "-v", f"-arch={target}", "-o", image, source], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unusable(f"ptxas: {done.stderr.strip().splitlines()[-1]}")
        text = subprocess.run([nvdisasm, image], capture_output=True, text=True, check=True).stdout
    return done.stderr, text


def assemble(ptx: str, target: str, tools: pathlib.Path | None) -> dict[str, Function]:
    told, text = run_assembler(ptx, target, tools)
    return read_functions(told, text, find_first_parameter(target))


def find_first_parameter(target: str) -> int:
    return FIRST_PARAMETER[int(target.removeprefix("sm_").rstrip("a")) // 10]


def read_functions(told: str, text: str, first_parameter: int) -> dict[str, Function]:
    """`told`: by ptxas -v; `text`: by nvdisasm."""
    functions = {}
    resources = re.compile(r"Compiling entry function '([^']+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores.*?Used (\d+) registers([^\n]*)", re.S)
    facts = {match[1]: (int(match[2]), int(match[3]), int(match[4]), match[5]) for match in resources.finditer(told)}
    for name, (labels, code) in split_kernels(text).items():
        local, spilled, registers, others = facts[name]
        shared = re.search(r"(\d+) bytes smem", others)
        read = {(int(at, 16) - first_parameter) // 8 for at in re.findall(r"c\[0x0\]\[(0x[0-9a-f]+)\]", "\n".join(each.text for each in code))}
        functions[name] = Function(registers, int(shared[1]) if shared else 0, spilled, sorted(k for k in read if k >= 0), find_regions(labels, code), local)
    return functions


def split_kernels(text: str) -> dict[str, tuple[dict[str, int], list[Instruction]]]:
    kernels: dict[str, tuple[dict[str, int], list[Instruction]]] = {}
    labels: dict[str, int] = {}
    code: list[Instruction] | None = None
    for line in text.splitlines():
        line = line.strip()
        if line.startswith(".section") or line.startswith("//---"):
            code = None
        if match := re.match(r"\.text\.(\S+):", line):
            labels, code = {}, []
            kernels[match[1]] = labels, code
        elif code is None:
            continue
        elif match := re.match(r"/\*[0-9a-f]{4,}\*/\s+(@!?\w+\s+)?(\S+?)(\s.*?)?\s*;", line):
            words = match[2].split(".")
            operands = [word.strip() for word in (match[3] or "").split(",")]
            code.append(Instruction((match[1] or "").strip(), words[0], words[1:], operands, line))
        elif match := re.match(r"(\.L_x_\d+|\$\S+):", line):
            labels[match[1]] = len(code)
            if match[1].startswith("$"):  # a function that the kernel calls
                code = None
    return kernels


def find_regions(labels: dict[str, int], code: list[Instruction]) -> list[Region]:
    spans = {}  # first instruction -> last
    for i, each in enumerate(code):
        if each.name == "BRA" and (match := re.search(r"`\((\.L_x_\d+)\)", each.text)):
            first = labels.get(match[1], len(code))
            if first < i or (first == i and each.predicate):
                spans[first] = i
    loops = sorted(spans.items(), key=lambda span: (span[0], -span[1]))
    regions, owner = [Region()], [0] * len(code)
    for number, (first, last) in enumerate(loops, 1):
        regions.append(Region(parent=owner[first], trips=count_trips(code, first, last)))
        owner[first : last + 1] = [number] * (last + 1 - first)
    for each, number in zip(code, owner):
        add(regions[number], each)
    share_out(regions, loops, labels, code)
    for number, (first, last) in enumerate(loops, 1):
        regions[number].ahead = measure_ahead([each for each, mine in zip(code[first : last + 1], owner[first : last + 1]) if mine == number])
    return regions


def find_blocks(labels: dict[str, int], code: list[Instruction]) -> tuple[list[int], list[list[int]]]:
    """The basic block of each instruction, and the blocks that may follow each block."""
    jumps = {i: labels[match[1]] for i, each in enumerate(code) if (match := re.search(r"`\((\.L_x_\d+)\)", each.text)) and match[1] in labels}
    starts = {0, *jumps.values(), *(i + 1 for i in jumps), *(i + 1 for i, each in enumerate(code) if each.name == "EXIT")}
    block_of, number = [], -1
    for i in range(len(code)):
        number += i in starts
        block_of.append(number)
    following: list[list[int]] = [[] for _ in range(number + 1)]
    for i, each in enumerate(code):
        if i + 1 < len(code) and block_of[i + 1] == block_of[i]:
            continue
        if i in jumps and jumps[i] < len(code):
            following[block_of[i]].append(block_of[jumps[i]])
        leaves = each.name in ("EXIT", "BRA", "RET") and not each.predicate and len(each.operands) < 2
        if i + 1 < len(code) and not leaves:
            following[block_of[i]].append(block_of[i + 1])
    return block_of, following


def share_out(regions: list[Region], loops: list[tuple[int, int]], labels: dict[str, int], code: list[Instruction]) -> None:
    """Kernels of loops side by side have other loops for other blocks: each counts for as many of them as take as many."""
    outer = [(number, span) for number, span in enumerate(loops, 1) if regions[number].parent == 0]
    if len(outer) < 2:
        return
    block_of, following = find_blocks(labels, code)
    reached = {}
    for number, (_, last) in outer:
        seen, stack = set(), list(following[block_of[last]])
        while stack:
            block = stack.pop()
            if block not in seen:
                seen.add(block)
                stack += following[block]
        reached[number] = seen
    for number, (first, _) in outer:
        others = sum(block_of[begin] in reached[number] or block_of[first] in reached[other] for other, (begin, _) in outer if other != number)
        regions[number].share = (1 + others) / len(outer)


def width_of(each: Instruction) -> int:
    """Bytes of a thread that an access of memory has."""
    for word, size in (("128", 16), ("64", 8), ("U16", 2), ("S16", 2), ("U8", 1), ("S8", 1)):
        if word in each.modifiers:
            return size
    return 4


def add(region: Region, each: Instruction) -> None:
    if each.name in ("NOP", "EXIT"):
        return
    region.instructions += 1
    region.multiplications += each.name in ("FFMA", "DFMA")
    region.integers += each.name in INTEGER
    region.specials += each.name in SPECIAL
    region.doubles += each.name in DOUBLE
    region.barriers += each.name == "BAR"
    region.copies += each.name == "LDGSTS"
    if each.name in MATRIX:
        kind = ".".join([each.name, *each.modifiers])
        region.matrix[kind] = region.matrix.get(kind, 0) + 1
        if each.name == "HGMMA":
            rows, columns, depth = map(int, each.modifiers[0].split("x"))
            region.wavefronts += (rows + columns) * depth * 2 / 128 / 4  # of 128 bytes, by four warps
    if each.name in ("LDSM", "STSM"):
        region.wavefronts += 4 if "4" in each.modifiers else 2 if "2" in each.modifiers else 1
    elif each.name in SHARED:
        # Half of the lanes of a wide load have the same address in the products that there are.
        region.wavefronts += max(width_of(each) / (8 if each.name == "LDS" and width_of(each) > 4 else 4), 1)
    elif each.name in GLOBAL:
        if each.name in ("LDG", "LD", "LDGSTS"):
            region.loaded += width_of(each)
            region.narrow += width_of(each) < 16
        if each.name in ("STG", "ST"):
            region.stored += width_of(each)


def registers_of(word: str) -> list[str]:
    return re.findall(r"\bU?R\d+\b", word)


def read_number(word: str) -> int | None:
    """An immediate operand or the zero register."""
    if word.removesuffix(".reuse") in ("RZ", "URZ"):
        return 0
    if not re.fullmatch(r"-?0x[0-9a-f]+|-?\d+", word):
        return None
    value = int(word, 0)
    return value - (1 << 32) if value >= 1 << 31 else value


def count_trips(code: list[Instruction], first: int, last: int) -> float | None:
    """How often a loop runs whose counter starts at a constant, grows by constants and is compared with one."""
    predicate = code[last].predicate.lstrip("@!")
    body = code[first : last + 1]
    compared = next((each for each in reversed(body) if each.name in ("ISETP", "UISETP") and each.operands[0] == predicate), None)
    if compared is None and predicate.startswith("P"):
        compared = next((each for each in reversed(body) if each.name == "UISETP" and "U" + predicate == each.operands[0]), None)
    if compared is None or len(compared.operands) < 4:
        return None
    counter, bound = compared.operands[2].removesuffix(".reuse"), read_number(compared.operands[3])
    if bound is None or not registers_of(counter):
        return None
    step = 0
    for each in body:
        if each.operands[0] != counter:
            continue
        numbers = [read_number(word) for word in each.operands[1:]]
        own = [word.removesuffix(".reuse") == counter for word in each.operands[1:]]
        if each.name not in ("IADD3", "VIADD", "UIADD3", "IADD") or not any(own):
            return None
        step += sum(number for number, mine in zip(numbers, own) if number is not None and not mine)
    start = find_start(code[:first], counter)
    if step == 0 or start is None:
        return None
    trips = (bound - start) / step
    return float(max(math.ceil(trips), 1)) if trips < 1 << 24 else None


def find_start(code: list[Instruction], counter: str) -> int | None:
    """The value of a counter before its loop; an index of the thread or block counts as 0."""
    for each in reversed(code):
        if each.operands[0].removesuffix(".reuse") != counter and not (each.name == "CS2R" and is_pair(each.operands[0], counter)):
            continue
        if each.name == "CS2R":
            return 0
        if each.name in ("MOV", "UMOV"):
            return read_number(each.operands[1])
        if each.name == "IMAD" and each.modifiers[:1] == ["MOV"]:
            return read_number(each.operands[3])
        if each.name == "HFMA2":
            return 0
        return 0 if each.name in ("S2R", "S2UR", "LOP3", "SHF", "USHF", "ULOP3", "IMAD") else None
    return None


def is_pair(first: str, counter: str) -> bool:
    match = re.fullmatch(r"R(\d+)", first)
    return bool(match) and counter == f"R{int(match[1]) + 1}"


def measure_ahead(code: list[Instruction]) -> float:
    """The share of a loop's multiplications between a load of global memory and the use of what it brings: the mean of all loads."""
    math_at = [i for i, each in enumerate(code) if each.name in MATRIX or each.name in ("FFMA", "DFMA")]
    loads = [i for i, each in enumerate(code) if each.name == "LDG"]
    if len(math_at) < 32 or not loads:
        return 0.0
    covered = 0.0
    for i in loads:
        target = code[i].operands[0]
        order = [*range(i + 1, len(code)), *range(i)]
        between = 0
        for k in order:
            if any(target in registers_of(word) for word in code[k].operands[(0 if code[k].name in ("STS", "STG") else 1):]):
                break
            between += code[k].name in MATRIX or code[k].name in ("FFMA", "DFMA")
        covered += between / len(math_at)
    return round(covered / len(loads), 3)
