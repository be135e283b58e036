"""The results as markdown tables, and their place in a document.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import math
import statistics

from performance_set import BATCH_NORM

DISTURBED = 2  # a median this many times the fastest step says that something else ran on these cores
SYSTEMS = {
    "ortc": "ortc",
    "tuned": "ortc tuned",
    "ortc-torch": "ortc.torch",
    "ortc-trainer": "ortc.torch.Trainer",
    "stock": "eager as it comes",
    "eager": "eager",
    "compile": "torch.compile",
    "whole": "torch.compile, whole step",
    "ort": "ORT",
    "jax": "JAX",
}
TOOL, FROM_PYTHON = ("ortc", "tuned"), ("ortc-torch", "ortc-trainer")
OWN = TOOL + FROM_PYTHON
OTHERS = [system for system in SYSTEMS if system not in OWN]
COMPARED = {"best of all": OTHERS, "eager": ["eager"], "ORT": ["ort"]}
COMPARED_FROM_PYTHON = [("eager", "ortc-torch"), ("compile", "ortc-torch"), ("ortc", "ortc-trainer")]

# How far losses of a system may be from the median of all systems, as a share of the largest of the five.
# The first is a forward pass: float32 sums in another order, through at most some fifty layers.
FIRST_LOSS = 5e-5
# AdamW's first update divides every gradient by its own size, so one that is nothing but rounding moves its parameter by
# all of lr, in a direction that no two systems share.
LATER_LOSSES = 2e-3
# In front of batch norm such gradients are the rule (scale and shift of the weights do nothing), and the normalisation
# hands what they did on in full: mobilenetv2 is 3e-3 to 8e-3 from PyTorch in every other system, from the second step on.
LATER_LOSSES_BATCH_NORM = 2e-2


def digits(value, count=3):
    """`count` significant digits, never in scientific notation."""
    if not value:
        return "0"
    return f"{value:.{max(0, count - 1 - math.floor(math.log10(abs(value))))}f}"


def disagreement(losses, wanted, later):
    """How `losses` are too far from `wanted`, or None."""
    if len(losses) != len(wanted) or not all(map(math.isfinite, losses)):
        return f"losses {losses}"
    apart = [abs(a - b) / max(map(abs, wanted)) for a, b in zip(losses, wanted)]
    if apart[0] > FIRST_LOSS:
        return f"first loss off by {apart[0]:.1e}"
    return f"losses off by {max(apart):.1e}" if max(apart) > later else None


def judge(lines):
    """The lines, with an error in those whose losses are not those of the others: of the median of all systems."""
    groups, judged = {}, []
    for line in lines:
        if "losses" in line and (line["system"] == "ortc" or line["system"] not in OWN):  # all of ortc have one opinion
            groups.setdefault(line["name"], {}).setdefault(line["system"], []).append(line["losses"])
    wanted = {
        # A system counts once, however many variants and numbers of threads it ran with.
        name: [statistics.median(step) for step in zip(*(runs[0] for runs in systems.values()))]
        for name, systems in groups.items()
    }
    for line in lines:
        later = LATER_LOSSES_BATCH_NORM if line["name"] in BATCH_NORM else LATER_LOSSES
        compared = "losses" in line and line["name"] in wanted
        wrong = disagreement(line["losses"], wanted[line["name"]], later) if compared else None
        judged.append({**line, "error": wrong, "wrong": True} if wrong else line)
    return judged


def best(lines, systems):
    """The fastest line of these systems (variants compete); one without a time when all failed; None when none was tried."""
    lines = [line for line in lines if line["system"] in systems]
    return min(lines, key=lambda line: (line.get("error") is not None, line.get("median_ms", math.inf)), default=None)


def has_time(line):
    return bool(line) and "median_ms" in line and "error" not in line


def is_quiet(line):
    return line["median_ms"] < DISTURBED * line["min_ms"]


def in_turns(line, ortc):
    """Whether the two were measured in one run, in turns."""
    return ortc is None or line.get("taken") == ortc.get("taken")


def time_cell(line, ortc=None):
    if line is None:
        return "–"
    if has_time(line):
        return digits(line["median_ms"]) + ("" if is_quiet(line) else "?") + ("" if in_turns(line, ortc) else " \\*")
    if line.get("wrong"):
        return f"**{line['error']}**"
    return "too slow to compile" if line.get("too_slow") else "failed"


def ratio(line, ortc):
    """None where a time is missing or was disturbed."""
    if not has_time(line) or not has_time(ortc) or not is_quiet(line) or not is_quiet(ortc):
        return None
    return line["median_ms"] / ortc["median_ms"]


def worst_turn(lines, ortc):
    """The least that the fastest other system took in a turn, as a multiple of ortc's median step in the same turn."""
    if not has_time(ortc):
        return None
    own = ortc.get("turns_ms", {})
    return min(
        (
            ms / own[turn]
            for line in lines
            if line["system"] in OTHERS and has_time(line) and in_turns(line, ortc)
            for turn, ms in line.get("turns_ms", {}).items()
            if turn in own
        ),
        default=None,
    )


def share(amount, ortc, rate):
    """`amount` a step as a share of `rate` a second; None where one of them is not known."""
    if not has_time(ortc) or amount is None or not rate:
        return None
    return amount / (ortc["median_ms"] * 1e-3) / rate


def shares(ortc):
    """Of peak arithmetic and of the copy rate."""
    if not ortc:
        return None, None
    moved = ortc["bytes_read"] + ortc["bytes_written"] if "bytes_read" in ortc else None
    return (
        share(ortc.get("flops"), ortc, ortc.get("fma_gflops", 0) * 1e9),
        share(moved, ortc, ortc.get("copy_gbs", 0) * 1e9),
    )


def origin(line):
    """When a line was measured, and what was checked out."""
    return (line.get("taken") or "–").partition("T")[0], line.get("commit") or "–"


def percent(value):
    return "–" if value is None else f"{100 * value:.0f} %"


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def ratio_cell(value):
    return digits(value) if value else "–"


def cells(values):
    return "| " + " | ".join(map(str, values)) + " |"


def table(columns, rows):
    return "\n".join([cells(columns), cells(["---"] * len(columns)), *map(cells, rows), ""])


def time_table(groups, seen):
    ratios, rows = {}, []
    for (name, threads), lines in groups.items():
        ortc = best(lines, ["ortc"])
        row = [name, threads, *(time_cell(best(lines, [system]), ortc) for system in seen)]
        values = {label: ratio(best(lines, systems), ortc) for label, systems in COMPARED.items()}
        for label, value in values.items():
            if value:
                ratios.setdefault((label, threads), []).append(value)
        first, *rest = map(ratio_cell, values.values())
        row += [first, ratio_cell(worst_turn(lines, ortc)), *rest]
        rows.append([*row, *map(percent, shares(ortc)), *origin(ortc or lines[0])])
    for threads in sorted({threads for _, threads in groups}):
        means = [ratio_cell(geometric_mean(ratios.get((label, threads), []))) for label in COMPARED]
        rows.append(["geometric mean", threads, *[""] * len(seen), means[0], "", *means[1:], *[""] * 4])
    units, compared = [f"{SYSTEMS[system]} ms" for system in seen], [f"{label} / ortc" for label in COMPARED]
    return table(
        ["model", "threads", *units, compared[0], "in the worst turn", *compared[1:], "peak FLOP/s", "copy rate", "date", "commit"],
        rows,
    )


def python_table(groups):
    """What compiled steps of PyTorch's modules are beside PyTorch's own, and beside the same step without Python."""
    ratios, rows = {}, []
    for (name, threads), lines in groups.items():
        row = [name, threads]
        for above, below in COMPARED_FROM_PYTHON:
            upper, lower = best(lines, [above]), best(lines, [below])
            value = ratio(upper, lower)
            row.append(ratio_cell(value) + (" \\*" if value and not in_turns(upper, lower) else ""))
            if value:
                ratios.setdefault((above, below, threads), []).append(value)
        rows.append([*row, *origin(next(line for line in lines if line["system"] in FROM_PYTHON))])
    for threads in sorted({threads for _, threads in groups}):
        means = [ratio_cell(geometric_mean(ratios.get((*pair, threads), []))) for pair in COMPARED_FROM_PYTHON]
        rows.append(["geometric mean", threads, *means, "", ""])
    return table(
        ["model", "threads", *(f"{SYSTEMS[above]} / {SYSTEMS[below]}" for above, below in COMPARED_FROM_PYTHON), "date", "commit"],
        rows,
    )


def memory_cell(line):
    if line is None or "peak_mib" not in line:
        return "–"
    return f"{line['peak_mib']:.0f}" + (f" ({line['base_mib']:.0f})" if line.get("base_mib") else "")


def cost_table(groups, seen):
    compiled = [system for system in seen if system not in ("stock", "eager")]
    rows = []
    for (name, threads), lines in groups.items():
        seconds = [best(lines, [system]) for system in compiled]
        seconds = [digits(line["compile_s"], 2) if line and "compile_s" in line else "–" for line in seconds]
        ortc = best(lines, ["ortc"]) or lines[0]
        rows.append([name, threads, *seconds, *(memory_cell(best(lines, [system])) for system in seen), *origin(ortc)])
    return table(
        [
            "model",
            "threads",
            *(f"{SYSTEMS[system]}, compile s" for system in compiled),
            *(f"{SYSTEMS[system]}, peak MiB" for system in seen),
            "date",
            "commit",
        ],
        rows,
    )


def markdown(machine, lines):
    """`lines`: the run's JSON objects, judged."""
    groups = {}
    for line in lines:
        groups.setdefault((line["name"], line["threads"]), []).append(line)
    present = {line["system"] for line in lines}
    seen = [system for system in SYSTEMS if system in present]
    versions = sorted({line["version"] for line in lines if "version" in line})
    title = ", ".join([machine["machine"], machine["date"], *versions, f"{machine['seconds']:g} s a system"]) + "."
    failed = [
        f"- {line['name']}, threads {line['threads']}, {SYSTEMS[line['system']]} {line['variant']}".rstrip()
        + f": {line['error']}"
        for line in lines
        if "error" in line
    ]
    parts = [title, "", time_table(groups, seen)]
    if any(not in_turns(line, best(group, ["ortc"])) for group in groups.values() for line in group):
        parts.append("\\* not in turns with ortc: measured in another run (`--again`).\n")
    if from_python := {key: group for key, group in groups.items() if any(line["system"] in FROM_PYTHON for line in group)}:
        parts.append(python_table(from_python))
    parts.append(cost_table(groups, seen))
    return "\n".join(parts + (["Without a result:", "", *failed, ""] if failed else []))


def write(path, text, name="train-step"):
    """Replaces what is between the two markers of that name in the document."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    old = path.read_text()
    if old.count(begin) != 1 or old.count(end) != 1 or old.index(begin) > old.index(end):
        raise SystemExit(f"{path}: needs the lines '{begin}' and '{end}', once each, in this order")
    path.write_text(f"{old[:old.index(begin)]}{begin}\n{text}{old[old.index(end):]}")
