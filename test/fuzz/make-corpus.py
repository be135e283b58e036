#!/usr/bin/env python3
"""Writes the files that fuzz targets begin with, test/fuzz/corpus. Needed again when a format changes.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

    make-corpus.py BIN        the folder with `ortc` and `ortc_runtime_write_artifact`

Artifacts are made by the tool from a small model and then cut: of code, which is never run, the tables stay, and of the
manifest one of a kind. Their hashes are right.
"""
import gzip
import hashlib
import io
import json
import os
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = struct.Struct("<8sHHIQIIQQII32s32s")
SECTION = struct.Struct("<IIQQIIQII32s")
MANIFEST, CODE, SIGNATURE, STRINGS = 11, 8, 13, 2


def write(target, name, data):
    folder = os.path.join(HERE, "corpus", target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)


def cut_code(code):
    """The head of a blob, every step at the same place after it, where 16 trapping bytes are."""
    magic, abi, count, row = struct.unpack_from("<4I", code)
    end = 16 + count * row
    head = bytearray(code[:end])
    for i in range(count):
        struct.pack_into("<I", head, 16 + i * row + 12, end)
    return bytes(head) + b"\xcc" * 16


def cut_manifest(text):
    def first(value):
        if isinstance(value, dict):
            return {key: first(item) for key, item in value.items()}
        return [first(item) for item in value[:1]] if isinstance(value, list) else value
    return json.dumps(first(json.loads(text)), separators=(",", ":")).encode()


def pack(image, change):
    """The artifact again with the contents of its sections changed."""
    head = list(HEADER.unpack_from(image))
    rows = [list(SECTION.unpack_from(image, HEADER.size + i * SECTION.size)) for i in range(head[5])]
    out = bytearray(HEADER.size + len(rows) * SECTION.size)
    for row in rows:
        contents = change(row[0], image[row[2]:row[2] + row[3]])
        alignment = 4096 if row[0] == CODE else 64
        out += bytes(-len(out) % alignment)
        row[2], row[3] = len(out), len(contents)
        row[9] = bytes(32) if row[0] == SIGNATURE else hashlib.sha256(contents).digest()
        out += contents
    head[4] = len(out)
    table = b"".join(SECTION.pack(*row) for row in rows)
    first = HEADER.pack(*head)[:-32]
    out[:HEADER.size + len(table)] = first + hashlib.sha256(first + table).digest() + table
    return bytes(out)


def change(kind, contents):
    return cut_code(contents) if kind == CODE else cut_manifest(contents) if kind == MANIFEST and contents else contents


def safetensors(tensors, metadata=None):
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, dtype, shape, contents in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(contents)]}
        data += contents
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + data


def npy(descr, shape, contents, fortran=False, version=1):
    text = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(text) + 1)
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + b"\n" + contents


def npz(arrays, method):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, contents in arrays.items():
            archive.writestr(zipfile.ZipInfo(name + ".npy"), contents, method)
    return file.getvalue()


def npz64(contents):
    """One stored member whose sizes and places stand in the zip64 records."""
    import zlib
    name, crc = b"x.npy", zlib.crc32(contents)
    extra = struct.pack("<HHQQQ", 1, 24, len(contents), len(contents), 0)
    local = struct.pack("<IHHHHHIIIHH", 0x04034b50, 45, 0, 0, 0, 0, crc, 0xffffffff, 0xffffffff, len(name), 0) + name
    central = struct.pack("<IHHHHHHIIIHHHHHII", 0x02014b50, 45, 45, 0, 0, 0, 0, crc, 0xffffffff, 0xffffffff, len(name),
                          len(extra), 0, 0, 0, 0, 0xffffffff) + name + extra
    at = len(local) + len(contents)
    end64 = struct.pack("<IQHHIIQQQQ", 0x06064b50, 44, 45, 45, 0, 0, 1, 1, len(central), at)
    locator = struct.pack("<IIQI", 0x07064b50, 0, at + len(central), 1)
    end = struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, 0xffff, 0xffff, 0xffffffff, 0xffffffff, 0)
    return local + contents + central + end64 + locator + end


def idx(code, shape, contents):
    return bytes([0, 0, code, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + contents


def make_artifacts(binaries, folder):
    ortc = os.path.join(binaries, "ortc")
    model = os.path.join(HERE, "..", "exporters", "sklearn-mlp")
    subprocess.run([ortc, "train", os.path.join(model, "model.onnx"), "-o", folder, "--shape", "X=2x6", "--target", "x86-64",
                    "--loss-input", "add_result1", "--optimizer", "sgd:momentum=0.9", "--gradients", "--quiet"],
                   check=True, stderr=subprocess.DEVNULL)
    with open(os.path.join(folder, "model.ortc"), "rb") as file:
        write("artifact", "small.ortc", pack(file.read(), change))
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        write("manifest", "train.json", cut_manifest(file.read()))
    pairs = os.path.join(folder, "pairs.ortc")
    subprocess.run([os.path.join(binaries, "ortc_runtime_write_artifact"), pairs], check=True)
    with open(pairs, "rb") as file: # two bindings, constants, a signature
        write("artifact", "pairs.ortc", pack(file.read(), lambda kind, data: cut_code(data) if kind == CODE else data))

    saved, data = os.path.join(folder, "saved.safetensors"), os.path.join(folder, "data.safetensors")
    with open(data, "wb") as file:
        file.write(safetensors([("X", "F32", [4, 6], struct.pack("<24f", *range(24))),
                                ("label", "I64", [4], struct.pack("<4q", 0, 1, 2, 1))]))
    subprocess.run([ortc, "run", folder, "--data", data, "--epochs", "1", "--save", saved],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(saved, "rb") as file:
        ours = file.read()
    write("checkpoint", "ours.safetensors", ours)
    # As another program writes it: only the weights, without a checksum, in another order, beside a tensor nobody knows.
    length = struct.unpack_from("<Q", ours)[0]
    header = json.loads(ours[8:8 + length])
    weights = [(name, entry["dtype"], entry["shape"], ours[8 + length + entry["data_offsets"][0]:8 + length + entry["data_offsets"][1]])
               for name, entry in reversed(list(header.items())) if name.startswith(("coefficient", "intercepts")) and "." not in name]
    write("checkpoint", "weights.safetensors", safetensors(weights + [("other \"\\\u00e9", "I64", [1], bytes(8))], {"format": "pt"}))


def make_data():
    floats, counts = struct.pack("<6f", 1, -2, 0.5, 1e30, 0, 3), struct.pack("<3q", 1, -1, 1 << 40)
    write("npy", "float.npy", npy("<f4", (2, 3), floats))
    write("npy", "big-endian.npy", npy(">i8", (3,), counts, version=2))
    write("npy", "fortran.npy", npy("<f4", (1, 3, 2), floats, fortran=True, version=3))
    write("npy", "bool.npy", npy("|b1", (), b"\1"))
    write("npy", "half.npy", npy("<f2", (3, 0, 2), b""))
    arrays = {"x": npy("<f4", (2, 3), floats), "label": npy("<i8", (3,), counts)}
    write("npz", "stored.npz", npz(arrays, zipfile.ZIP_STORED))
    write("npz", "deflated.npz", npz(arrays, zipfile.ZIP_DEFLATED))
    write("npz", "zip64.npz", npz64(arrays["x"]))
    write("idx", "images", idx(0x08, (2, 2, 3), bytes(range(12))))
    write("idx", "floats", idx(0x0d, (3,), struct.pack(">3f", 1, 2, -1)))
    write("idx", "images.gz", gzip.compress(idx(0x08, (2, 2, 3), bytes(range(12))), mtime=0))
    write("safetensors", "pair.safetensors", safetensors([("x", "F32", [2, 3], floats), ("label", "I64", [3], counts)]))
    write("safetensors", "types.safetensors", safetensors(
        [("a", "BOOL", [2], b"\0\1"), ("b", "BF16", [1], b"\x80\x3f"), ("c", "U8", [], b"\7"), ("d", "F64", [0, 4], b""),
         ("e", "F8_E4M3", [1], b"\0")], {"note": "\u00fc"}))


def tar(members, format):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=format) as archive:
        for name, contents in members:
            info = tarfile.TarInfo(name)
            info.size = len(contents)
            archive.addfile(info, io.BytesIO(contents))
    return file.getvalue().rstrip(b"\0") + bytes(1536)  # short, and a whole block of zeros wherever it begins


def make_sets():
    members = [(f"{key}.{column}.npy", npy(descr, shape, contents)) for key in ("d/1", "d/2")
               for column, descr, shape, contents in (("x", "<f4", (2,), bytes(8)), ("label", "<i8", (), bytes(8)))]
    write("tar", "ustar.tar", tar(members, tarfile.USTAR_FORMAT))
    write("tar", "gnu.tar", tar([("n" * 120 + ".x.npy", members[0][1]), ("note.txt", b"text")], tarfile.GNU_FORMAT))
    write("tar", "pax.tar", tar([("n" * 120 + ".x.npy", members[0][1])], tarfile.PAX_FORMAT))
    write("table", "columns.csv", 'x[0],"x[1]",label\r\n1,2.5,0\r\n"-3",+4e2,1\n')
    write("tokens", "raw", struct.pack("<9H", *range(9)))
    write("tokens", "header", struct.pack("<256i", 20240520, 1, 9, *[0] * 253) + struct.pack("<9H", *range(9)))


def make_texts():
    write("csv", "packing.csv", "id,lower,upper,size,alignment,gaps,hint,offset,pool\n"
          "a,0,4,64,1,,,0,0\nb,2,9,32,16,3-5 6-8@0:16,64,,0\n\"c,\"\"d\",5,7,128,64,,-1,,1\n")
    write("csv", "minimalloc.csv", "buffer_id,start,end,size\n0,0,3,10\n1,2,5,20\n2,4,9,30\n")
    write("csv", "plan.csv",
          "problem,1\nbuffer,0,a,64,64,1,0\nbuffer,1,b,64,64,0,0\nbuffer,2,c,32,64,0,1\n"
          "buffer,3,d,32,32,0,0\nview,3,1,32\nstep,0,s,0,0,1,,16\ninplace,0,0,1\n"
          "step,1,t,0,3,2,0,0\n"
          "plan,1,128,64,96,96,96\nstep,0,0,64,\ninplace,0,0,1\nstep,1,1,,\n"
          "buffer,0,0,0\nbuffer,1,0,0\nbuffer,2,2,64\nbuffer,3,0,32\n")
    write("csv", "body.csv", "problem,1\nbuffer,0,a,64,64,1,0\nstep,0,s,0,0,,,0\ninner,0\nbuffer,0,x,8,8,0,0\n"
          "step,0,u,0,,0,,8\nend\n")
    write("tune", "tuned.json", json.dumps({"format": "ortc tuned kernels", "version": 1, "kernels": {
        "native, 8 lanes": {"dot f32 8x8x8": {"choice": {"rows": 4, "vectors": 2}, "table_ns": 120, "tuned_ns": 100},
                            "dot f32 1x8x8": {"choice": None, "table_ns": 12, "tuned_ns": 12}}}}, indent=1))


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        make_artifacts(sys.argv[1], folder)
    make_data()
    make_sets()
    make_texts()
    return 0


if __name__ == "__main__":
    sys.exit(main())
