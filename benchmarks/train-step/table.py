"""The results as a markdown table, and its place in a document.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import math

BEGIN, END = "<!-- train-step: begin -->", "<!-- train-step: end -->"
TOLERANCE = 1e-4  # of the largest of the five losses: float32 sums in another order, five steps long
DISTURBED = 2  # a median this many times the fastest step says that something else ran on these cores

COLUMNS = [
    "entry", "threads", "ortc ms", "eager ms", "eager untuned ms", "torch.compile ms", "eager / ortc", "torch.compile / ortc",
    "compile s: ortc", "torch.compile", "peak MiB: ortc", "eager",
]  # fmt: skip
SYSTEMS = ["ortc", "torch eager", "torch compile", "torch stock"]


def digits(value, count=3):
    """`count` significant digits, never in scientific notation."""
    if not value:
        return "0"
    return f"{value:.{max(0, count - 1 - math.floor(math.log10(abs(value))))}f}"


def disagreement(losses, wanted):
    """How far `losses` are from `wanted`, where that is too far."""
    if len(losses) != len(wanted) or not all(map(math.isfinite, losses)):
        return f"losses {losses}"
    worst = max(abs(a - b) for a, b in zip(losses, wanted)) / max(map(abs, wanted))
    return f"losses differ by {worst:.1e}" if worst > TOLERANCE else None


def best(lines, kind):
    """The fastest line of a kind (layouts compete); one with an error when all failed; None when it was not tried."""
    lines = [line for line in lines if line["system"].startswith(kind)]
    return min(lines, key=lambda line: line.get("median_ms", math.inf)) if lines else None


def cell(line):
    if line is None:
        return "–"
    return f"**{line['error']}**" if "error" in line else digits(line["median_ms"]) + ("" if is_quiet(line) else "?")


def is_quiet(line):
    return line["median_ms"] < DISTURBED * line["min_ms"]


def ratio(line, ortc):
    """None where a time is missing or was disturbed."""
    if not line or "median_ms" not in line or "median_ms" not in ortc or not is_quiet(line) or not is_quiet(ortc):
        return None
    return line["median_ms"] / ortc["median_ms"]


def memory(line):
    if line is None or "peak_mib" not in line:
        return "–"
    return f"{line['peak_mib']:.0f}" + (f" ({line['base_mib']:.0f})" if line.get("base_mib") else "")


def cells(values):
    return "| " + " | ".join(map(str, values)) + " |"


def row(entry, threads, lines, ratios):
    """One line of the table; its ratios are added to `ratios`."""
    ortc, eager, compiled, stock = (best(lines, system) for system in SYSTEMS)
    compared = []
    for line in (eager, compiled):
        value = ratio(line, ortc)
        compared.append(digits(value) if value else "–")
        if value:
            ratios.setdefault((line["system"].split()[1], threads), []).append(value)
    seconds = [
        digits(line[key], 2) if line and key in line else "–"
        for line, key in ((ortc, "compile_s"), (compiled, "first_step_s"))
    ]
    times = [cell(line) for line in (ortc, eager, stock, compiled)]
    return cells([entry, threads, *times, *compared, *seconds, memory(ortc), memory(stock)])


def geometric_mean(values):
    return digits(math.exp(sum(map(math.log, values)) / len(values))) if values else "–"


def markdown(lines):
    """`lines`: the run's JSON objects, first the machine."""
    machine, *rest = lines
    groups, ratios = {}, {}
    for line in rest:
        groups.setdefault((line["entry"], line["threads"]), []).append(line)
    rows = [row(*key, group, ratios) for key, group in groups.items()]
    for threads in sorted({threads for _, threads in ratios}):
        means = [geometric_mean(ratios.get((mode, threads), [])) for mode in ("eager", "compile")]
        rows.append(cells(["geometric mean", threads, *[""] * 4, *means, *[""] * 4]))
    title = f"{machine['machine']}, {machine['date']}, PyTorch {machine['torch']}, {machine['seconds']:g} s a system."
    return "\n".join([title, "", cells(COLUMNS), cells(["---"] * len(COLUMNS)), *rows, ""])


def write(path, table):
    """Replaces what is between the two markers of the document."""
    text = path.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise SystemExit(f"{path}: needs the lines '{BEGIN}' and '{END}', once each, in this order")
    path.write_text(f"{text[:text.index(BEGIN)]}{BEGIN}\n{table}{text[text.index(END):]}")
