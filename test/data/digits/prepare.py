#!/usr/bin/env python3
"""Writes train.npz and test.npz, what mlp-digits reads, from the images as they are distributed.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
Needs numpy. Run it in this folder; running it again gives the same bytes.
"""
import io
import zipfile

import numpy as np

for part in "train", "test":
    images = np.load(f"images/{part}.npz")
    arrays = {"pixels": images["image"].reshape(-1, 64).astype(np.float32) / 16, "label": images["label"]}
    with zipfile.ZipFile(f"{part}.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in arrays.items():
            contents = io.BytesIO()
            np.lib.format.write_array(contents, np.ascontiguousarray(array))
            entry = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, contents.getvalue())
