#!/usr/bin/env bash
# LLVM 22.1.0 (llvmlite 0.50.0): a masked store of numbers that were truncated, with a constant mask of one lane, is a store of the number before
# the truncation.
#
# For a processor with AVX-512, llvm.masked.store of <16 x i16> that is a trunc of <16 x i32>, with only lane 0 in its mask, becomes vmovss to
# memory: four bytes where two were asked for, so that the neighbour is overwritten. One expects what two lanes get (vpmovdw with a mask) or what
# numbers of 16 bits get that were not truncated just before (vpextrw, two bytes); both are right. Code that stores the rest of a row of bf16
# numbers this way changes the first number of the next row.
#
# Exits with 0 when all is as stated.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q llvmlite==0.50.0
"$folder/venv/bin/python" - <<'PY'
import llvmlite.binding as llvm

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
assert llvm.llvm_version_info == (22, 1, 0), llvm.llvm_version_info
machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(cpu="x86-64-v4", opt=3)


def store(live, truncates):
    """The instruction that writes to memory."""
    mask = ", ".join(f"i1 {int(lane < live)}" for lane in range(16))
    given = "<16 x i32> %v" if truncates else "<16 x i16> %v"
    stored = "%t" if truncates else "%v"
    text = f"""
declare void @llvm.masked.store.v16i16.p0(<16 x i16>, ptr, <16 x i1>)
define void @f(ptr %p, {given}) {{
  {"%t = trunc <16 x i32> %v to <16 x i16>" if truncates else ""}
  call void @llvm.masked.store.v16i16.p0(<16 x i16> {stored}, ptr align 2 %p, <16 x i1> <{mask}>)
  ret void
}}"""
    code = machine.emit_assembly(llvm.parse_assembly(text))
    return next(line.split()[0] for line in code.splitlines() if "(%rdi)" in line)


found = {(live, truncates): store(live, truncates) for live in (1, 2) for truncates in (True, False)}
print(found)
assert found[1, True] == "vmovss", "four bytes of one lane"
assert found[2, True] == "vpmovdw", "two bytes a lane"
assert found[1, False] == "vpextrw", "two bytes of one lane"
PY
