#!/usr/bin/env python3
"""The XCFramework as files: what is in it, and what its libraries are. Nothing of it is run.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: check_xcframework.py ortc.xcframework SOURCE
"""
import pathlib
import plistlib
import re
import subprocess
import sys

# Platform of LC_BUILD_VERSION, oldest version, and what Info.plist says.
SLICES = {"ios-arm64": ("ios", "16.0", "ios", None), "ios-arm64-simulator": ("iossimulator", "16.0", "ios", "simulator"), "macos-arm64": ("macos", "13.0", "macos", None)}
HEADERS = ["call.h", "device.h", "export.h", "format.h", "ortc.h", "static.h"]
# Of libSystem, as long as there is arm64.
SYSTEM = {f"_{name}" for name in """__error bzero close fstat fsync madvise memchr memcmp memcpy memmove memset mmap mprotect munmap open rename snprintf
strchr strcmp strlen strncmp strrchr sys_icache_invalidate unlink write""".split()}


def run(*words):
    return subprocess.run([*map(str, words)], check=True, capture_output=True, text=True).stdout


def symbols(library, kind):
    return set(re.findall(r"^_\w+$", run("llvm-nm-22", "--just-symbol-name", "--extern-only", f"--{kind}-only", library), re.M))


def check_library(path, platform, oldest, wanted):
    headers = run("llvm-objdump-22", "--macho", "--private-headers", path)
    magics = re.findall(r"^\s*(MH_\w+)\s+(\S+).*?\b(OBJECT|EXECUTE|DYLIB)\b", headers, re.M)
    if len(magics) < 10 or any(each != ("MH_MAGIC_64", "ARM64", "OBJECT") for each in magics):
        yield f"other objects: {magics}"
    platforms = re.findall(r"platform (\S+)", headers)
    if platforms != [platform] * len(magics):
        yield f"other platforms: {set(platforms)}"
    if set(re.findall(r"minos (\S+)", headers)) != {oldest}:
        yield "another oldest version"
    defined, undefined = symbols(path, "defined"), symbols(path, "undefined")
    if not wanted <= defined:
        yield f"lacks {sorted(wanted - defined)}"
    if undefined - defined - SYSTEM or not undefined & SYSTEM:
        yield f"needs {sorted(undefined - defined - SYSTEM)}, which the system may not have"


def check(folder, source):
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    expected = {"Info.plist"}
    for name in SLICES:
        expected |= {f"{name}/libortc.a", f"{name}/Headers/module.modulemap"} | {f"{name}/Headers/ortc/{header}" for header in HEADERS}
    if files != expected:
        yield f"other files: {sorted(files ^ expected)}"
        return
    info = plistlib.loads((folder / "Info.plist").read_bytes())
    if info["CFBundlePackageType"] != "XFWK" or info["XCFrameworkFormatVersion"] != "1.0":
        yield "Info.plist is of no XCFramework"
    said = {each["LibraryIdentifier"]: each for each in info["AvailableLibraries"]}
    if set(said) != set(SLICES):
        yield f"Info.plist has {sorted(said)}"
        return
    include = source / "runtime/include/ortc"
    wanted = {f"_{name}" for name in re.findall(r"\nORTC_API [^(;]*?(\w+)\(", (include / "ortc.h").read_text())}
    for name, (platform, oldest, system, variant) in SLICES.items():
        each = said[name]
        if (each["SupportedPlatform"], each.get("SupportedPlatformVariant"), each["SupportedArchitectures"]) != (system, variant, ["arm64"]):
            yield f"Info.plist says {each}"
        if not (folder / name / each["LibraryPath"]).exists() or not (folder / name / each["HeadersPath"] / "ortc/ortc.h").exists():
            yield f"Info.plist names files of {name} that are not there"
        for text in check_library(folder / name / "libortc.a", platform, oldest, wanted):
            yield f"{name}: {text}"
        for header in HEADERS:
            if (folder / name / "Headers/ortc" / header).read_bytes() != (include / header).read_bytes():
                yield f"{name}: {header} is another"


def main():
    failures = list(check(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
    for text in failures:
        print(f"FAILED {text}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
