#!/usr/bin/env python3
"""Writes the data files beside it with numpy, gzip, zipfile and safetensors: files that our own writers did not make.
SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import gzip
import io
import pathlib
import struct
import zipfile

import numpy as np
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).resolve().parent


def arrays():
    x = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
    kinds = ["bool", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]
    result = {"all_" + k: np.arange(6).reshape(2, 3).astype(k) for k in kinds}
    result["fortran"] = np.asfortranarray(x)
    result["big"] = x.astype(">f4")
    result["big_fortran"] = np.asfortranarray(x.astype(">i2"))
    result["scalar"] = np.float64(2.5)
    result["text"] = np.array(["not", "a", "number"])
    return result


def main():
    np.savez(HERE / "stored.npz", **arrays())
    np.savez_compressed(HERE / "deflated.npz", **arrays())
    with zipfile.ZipFile(HERE / "versions.npz", "w", zipfile.ZIP_DEFLATED) as out:
        for version in [(1, 0), (2, 0), (3, 0)]:
            stream = io.BytesIO()
            np.lib.format.write_array(stream, np.arange(5, dtype=np.int64), version=version)
            with out.open(zipfile.ZipInfo(f"v{version[0]}.npy"), "w", force_zip64=version[0] == 2) as member:
                member.write(stream.getvalue())
        out.comment = b"a comment"
    save_file({"x": np.arange(6, dtype=np.float32).reshape(2, 3), "label": np.array([1, 0])}, HERE / "small.safetensors", metadata={"a": "b"})
    images = struct.pack(">IIII", 0x803, 5, 2, 3) + bytes(range(30))
    labels = struct.pack(">II", 0x801, 5) + bytes([3, 1, 4, 1, 5])
    (HERE / "t-images-idx3-ubyte").write_bytes(images)
    (HERE / "t-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels, mtime=0))
    (HERE / "z-images-idx3-ubyte.gz").write_bytes(gzip.compress(images, mtime=0))
    (HERE / "shorts-idx").write_bytes(struct.pack(">IIhhh", 0xb01, 3, 1, -2, 300))


if __name__ == "__main__":
    main()
