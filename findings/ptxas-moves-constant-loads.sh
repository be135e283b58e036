#!/usr/bin/env bash
# ptxas 13.5 moves loads that PTX marks as of constants (ld.global.nc) across a barrier, and after the products of a loop.
#
# A loop stores numbers that it has loaded to shared memory, loads those of the next iteration, meets at bar.sync, and multiplies with mma.sync: the
# loads are to arrive while tensor cores work. With ld.global they stay before the barrier. With ld.global.nc, which compilers write for a pointer that is
# read only and has no alias (const __restrict__ in C), all twelve are moved across the barrier and after most of the 64 products, so that
# the next iteration waits for them.
#
# As seen (sm_90), positions in the loop's machine code:
#   ld.global.nc  loads 86 to 111, barrier 13, products 24 to 112
#   ld.global     loads 13 to 24, barrier 26, products 41 to 110
#
# Exits with 0 when all is as stated.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
bin=$(dirname "$(find "$folder/venv" -name ptxas -type f)")
"$folder/venv/bin/python" - "$bin" "$folder" <<'PY'
import pathlib
import re
import subprocess
import sys

BIN, FOLDER = map(pathlib.Path, sys.argv[1:])
LOADS, TILES, STRIDE = 12, 16, 2048


def write(load):
    """PTX of the loop. %f0 to %f47: what is loaded; %f100 to %f163: sums."""
    vectors = ["{" + ", ".join(f"%f{4 * i + j}" for j in range(4)) + "}" for i in range(LOADS)]
    loads = [f"{load}.v4.f32 {vector}, [%rd3+{STRIDE * i}];" for i, vector in enumerate(vectors)]
    lines = [".version 7.8", ".target sm_90", ".address_size 64",
             ".visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n) .maxntid 128, 1, 1 {",
             ".reg .pred %p<4>; .reg .b32 %r<100>; .reg .b64 %rd<8>; .reg .f32 %f<200>;",
             ".shared .align 16 .b8 s[32768];",
             "ld.param.u64 %rd0, [p]; cvta.to.global.u64 %rd0, %rd0;",
             "ld.param.u64 %rd1, [q]; cvta.to.global.u64 %rd1, %rd1; ld.param.u32 %r0, [n];",
             "mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 4; cvt.u64.u32 %rd2, %r2; add.s64 %rd3, %rd0, %rd2;",
             "mov.u32 %r3, s; add.u32 %r4, %r3, %r2; mov.u32 %r5, 0;"]
    lines += [f"mov.f32 %f{100 + i}, 0f00000000;" for i in range(4 * TILES)]
    lines += [*loads, "L:"]
    lines += [f"st.shared.v4.f32 [%r4+{STRIDE * i}], {vector};" for i, vector in enumerate(vectors)]
    lines += [f"add.s64 %rd3, %rd3, {STRIDE * LOADS};", *loads, "bar.sync 0;"]
    for t in range(TILES):
        registers = ", ".join(f"%r{10 + 4 * t + j}" for j in range(4))
        lines.append(f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{registers}}}, [%r4+{512 * t}];")
    for r in range(4):
        for t in range(TILES):
            a, b = 10 + 4 * ((t + r) % TILES), 10 + 4 * ((3 * t + r) % TILES)
            sums = ", ".join(f"%f{100 + 4 * t + j}" for j in range(4))
            rows = ", ".join(f"%r{a + j}" for j in range(4))
            lines.append(f"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {{{sums}}}, {{{rows}}}, {{%r{b}, %r{b + 1}}}, {{{sums}}};")
    lines += ["bar.sync 0;", "add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r0; @%p1 bra L;"]
    lines += [f"st.global.f32 [%rd1+{4 * i}], %f{100 + i};" for i in range(4 * TILES)]
    return "\n".join([*lines, "ret; }"])


def places(load):
    """Positions of loads, of the first barrier, and of products, in the code of the loop."""
    (FOLDER / "k.ptx").write_text(write(load))
    subprocess.run([BIN / "ptxas", "-arch=sm_90", "-o", FOLDER / "k.cubin", FOLDER / "k.ptx"], check=True)
    text = subprocess.run([BIN / "nvdisasm", FOLDER / "k.cubin"], check=True, capture_output=True, text=True).stdout
    code = [line for line in text.splitlines() if re.match(r"\s*/\*[0-9a-f]{4,}\*/", line) or re.match(r"\.L_x_\d+:", line)]
    start = next(i for i, line in enumerate(code) if line.startswith(".L"))
    end = next(i for i, line in enumerate(code) if "BRA" in line and code[start][:-1] in line)
    loop = code[start:end]
    found = lambda word: [i for i, line in enumerate(loop) if re.search(rf"\b{word}\b", line)]
    return found("LDG"), found("BAR")[0], found("HMMA")


for load in ("ld.global.nc", "ld.global"):
    loads, barrier, products = places(load)
    print(f"{load:13} loads {loads[0]} to {loads[-1]}, barrier {barrier}, products {products[0]} to {products[-1]}")
    assert len(loads) == LOADS and len(products) == 4 * TILES
    if load.endswith("nc"):
        assert loads[0] > barrier and loads[0] > products[len(products) // 2], "they stay now"
    else:
        assert loads[-1] < barrier < products[0], "they move now"
PY
