#!/usr/bin/env python3
"""The Android library as a file: what is in it, and what its native libraries are. Nothing of it is run.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: check_aar.py ortc.aar SOURCE
"""
import json
import pathlib
import re
import struct
import sys
import xml.etree.ElementTree
import zipfile

API, PAGE = 24, 16384
ABIS = {"arm64-v8a": 183, "armeabi-v7a": 40, "x86_64": 62}  # e_machine
LIBRARIES = {"ortc": ["libc.so"], "ortc_threads": ["libc.so"], "ortc_jni": ["libc.so", "libortc.so", "libortc_threads.so"]}
CLASSES = ["EntryInfo", "OrtcException", "Program", "Session", "TensorInfo", "Text"]
# Of bionic's libc.map.txt: no later than API level 24.
LIBC = set("""__errno clock_gettime close free fstat fsync getauxval madvise malloc memchr memcmp memcpy memmove memset mmap mprotect munmap
open posix_memalign pthread_create pthread_join rename sched_yield snprintf strchr strcmp strlen strncmp strrchr syscall sysconf unlink
write""".split())
ARM_LIBC = {f"__aeabi_{name}" for name in ("memclr", "memclr4", "memclr8", "memcpy", "memcpy4", "memcpy8", "memmove", "memmove4",
                                           "memmove8", "memset")}
LOAD, DYNAMIC, STACK, RELRO = 1, 2, 0x6474E551, 0x6474E552
EXECUTE, WRITE = 1, 2
NEEDED, STRTAB, SYMTAB, SONAME, RPATH, TEXTREL, RUNPATH, HASH = 1, 5, 6, 14, 15, 22, 29, 0x6FFFFEF5


class Elf:
    """A little-endian shared library, by its program headers."""

    def __init__(self, data):
        self.data = data
        self.is64 = data[4] == 2
        self.machine = struct.unpack_from("<H", data, 18)[0]
        offset, = struct.unpack_from("<Q", data, 32) if self.is64 else struct.unpack_from("<I", data, 28)
        size, count = struct.unpack_from("<HH", data, 54 if self.is64 else 42)
        self.segments = []
        for at in range(offset, offset + size * count, size):
            if self.is64:
                kind, flags, place, address, _, stored, _, align = struct.unpack_from("<IIQQQQQQ", data, at)
            else:
                kind, place, address, _, stored, _, flags, align = struct.unpack_from("<IIIIIIII", data, at)
            self.segments.append({"kind": kind, "flags": flags, "offset": place, "address": address, "bytes": stored, "align": align})
        word = "<qQ" if self.is64 else "<iI"
        part = next(each for each in self.segments if each["kind"] == DYNAMIC)
        self.dynamic = list(struct.iter_unpack(word, data[part["offset"]:part["offset"] + part["bytes"]]))

    def locate(self, address):
        part = next(each for each in self.segments if each["kind"] == LOAD and 0 <= address - each["address"] < each["bytes"])
        return part["offset"] + address - part["address"]

    def values(self, tag):
        return [value for each, value in self.dynamic if each == tag]

    def text(self, offset):
        start = self.locate(self.values(STRTAB)[0]) + offset
        return self.data[start:self.data.index(0, start)].decode()

    def symbols(self):
        """Names of what is imported and of what is exported."""
        size = 24 if self.is64 else 16
        start = self.locate(self.values(SYMTAB)[0])
        count = (self.locate(self.values(STRTAB)[0]) - start) // size  # an upper bound; ends where names do
        found = {True: set(), False: set()}
        for at in range(start + size, start + size * self.count_symbols(count), size):
            name, section = struct.unpack_from("<I", self.data, at)[0], struct.unpack_from("<H", self.data, at + (6 if self.is64 else 14))[0]
            found[section != 0].add(self.text(name))
        return found[False], found[True]

    def count_symbols(self, most):
        """From the hash table, which lists exports after imports."""
        at = self.locate(self.values(HASH)[0])
        buckets, first, bloom, _ = struct.unpack_from("<IIII", self.data, at)
        start = at + 16 + bloom * (8 if self.is64 else 4)
        last = max(struct.unpack_from(f"<{buckets}I", self.data, start))
        if last < first:
            return first
        while not struct.unpack_from("<I", self.data, start + 4 * (buckets + last - first))[0] & 1:
            last += 1
        return min(last + 1, most) if most > 0 else last + 1


def declared(path, macro):
    text = path.read_text()
    return set(re.findall(r"\n" + macro + r" [^(;]*?(\w+)\(", text))


def check_library(path, data, source, natives):
    """What is wrong with one library, as sentences."""
    abi, name = path.split("/")[-2].removeprefix("android."), pathlib.Path(path).stem.removeprefix("lib")
    elf = Elf(data)
    if elf.machine != ABIS[abi]:
        yield f"machine {elf.machine}"
    loads = [each for each in elf.segments if each["kind"] == LOAD]
    if any(each["align"] != PAGE or (each["address"] - each["offset"]) % PAGE for each in loads):
        yield f"segments are not aligned to pages of {PAGE}: {loads}"
    if any(each["flags"] & EXECUTE and each["flags"] & WRITE for each in elf.segments if each["kind"] in (LOAD, STACK)):
        yield "a segment can be written and executed"
    if not any(each["kind"] == RELRO for each in elf.segments) or not any(each["kind"] == STACK for each in elf.segments):
        yield "no GNU_RELRO or no GNU_STACK"
    if elf.values(RPATH) or elf.values(RUNPATH) or elf.values(TEXTREL):
        yield "a path for libraries, or relocated code"
    if [elf.text(each) for each in elf.values(SONAME)] != [f"lib{name}.so"]:
        yield "another soname"
    if sorted(elf.text(each) for each in elf.values(NEEDED)) != LIBRARIES[name]:
        yield f"needs {[elf.text(each) for each in elf.values(NEEDED)]}"
    include = source / "runtime/include/ortc"
    own = {"ortc": declared(include / "ortc.h", "ORTC_API"), "ortc_threads": declared(include / "threads.h", "ORTC_THREADS_API"),
           "ortc_jni": natives}
    imported, exported = elf.symbols()
    allowed = LIBC | (ARM_LIBC if abi == "armeabi-v7a" else set()) | (own["ortc"] | own["ortc_threads"] if name == "ortc_jni" else set())
    if imported - allowed or not imported:
        yield f"imports {sorted(imported - allowed)}, which Android may not have"
    if exported != own[name] or not exported:
        yield f"exports {sorted(exported ^ own[name])} or not"


def check(path, source):
    with zipfile.ZipFile(path) as archive:
        if archive.testzip():
            yield "the file is damaged"
        files = {name: archive.read(name) for name in archive.namelist()}
    expected = {"AndroidManifest.xml", "LICENSE", "R.txt", "classes.jar", "proguard.txt", "prefab/prefab.json"}
    for module, headers in {"ortc": "call.h device.h export.h format.h ortc.h ortc.hpp threads.h", "ortc_threads": "call.h export.h threads.h"}.items():
        expected |= {f"prefab/modules/{module}/include/ortc/{name}" for name in headers.split()} | {f"prefab/modules/{module}/module.json"}
        for abi in ABIS:
            expected |= {f"prefab/modules/{module}/libs/android.{abi}/{name}" for name in ("abi.json", f"lib{module}.so")}
    expected |= {f"jni/{abi}/lib{name}.so" for abi in ABIS for name in LIBRARIES}
    if set(files) != expected:
        yield f"other files: {sorted(set(files) ^ expected)}"
        return

    manifest = xml.etree.ElementTree.fromstring(files["AndroidManifest.xml"])
    if manifest.get("package") != "dev.ortc" or manifest.find("uses-sdk").get("{http://schemas.android.com/apk/res/android}minSdkVersion") != str(API):
        yield "the manifest has another package or version"
    pathlib.Path("classes.jar").write_bytes(files["classes.jar"])
    with zipfile.ZipFile("classes.jar") as jar:
        classes = {name: jar.read(name) for name in jar.namelist() if name.endswith(".class")}
    if sorted(classes) != [f"dev/ortc/{name}.class" for name in CLASSES]:
        yield f"other classes: {sorted(classes)}"
    if any(struct.unpack_from(">H", data, 6)[0] > 55 for data in classes.values()):  # Java 11
        yield "the classes are of a Java that Android's tools may not read"
    natives = {name for each in ("Program", "Session")
               for name in re.findall(r"native \S+ (\w+)\(", (source / f"bindings/java/dev/ortc/{each}.java").read_text())
               for name in [f"Java_dev_ortc_{each}_{name}"]}

    version = re.search(r"project\(ortc VERSION ([0-9.]+)", (source / "CMakeLists.txt").read_text())[1]
    prefab = json.loads(files["prefab/prefab.json"])
    if prefab != {"schema_version": 2, "name": "ortc", "version": version, "dependencies": []}:
        yield f"prefab.json says {prefab}"
    for name, data in files.items():
        if name.endswith("module.json") and json.loads(data)["library_name"] != f"lib{name.split('/')[2]}":
            yield f"{name} names another library"
        if name.endswith("abi.json") and (json.loads(data)["abi"], json.loads(data)["api"]) != (name.split("/")[-2].removeprefix("android."), API):
            yield f"{name} says {data}"
        if name.endswith(".so"):
            for text in check_library(name, data, source, natives):
                yield f"{name}: {text}"
            if name.startswith("prefab/") and data != files["jni/" + "/".join(name.split("/")[-2:]).removeprefix("android.")]:
                yield f"{name} is not the one below jni"
        if "/include/" in name and data != (source / "runtime/include/ortc" / name.split("/")[-1]).read_bytes():
            yield f"{name} is another header"


def main():
    failures = list(check(sys.argv[1], pathlib.Path(sys.argv[2])))
    for text in failures:
        print(f"FAILED {text}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
