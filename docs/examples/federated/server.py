#!/usr/bin/env python3
"""Trains a model on four devices that keep their samples to themselves, and on all samples in one place.

    server.py ORTC DEVICE MODEL.onnx TRAIN.npz TEST.npz [--int8] [--rounds 5] [--epochs 2]

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

DEVICE is the program of device.c; each device is a process of it. In a round all of them begin with the same checkpoint
and send back what has changed; `ortc merge` adds the mean, weighted by their numbers of samples. Needs only Python.
"""
import argparse
import array
import ast
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile

SHARES = (4, 3, 2, 1)  # of ten samples


def read_npz(path):
    """Name -> (numbers of all elements, shape), of uint8, int64 and float32 arrays in C order."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            (length,) = struct.unpack_from("<H", data, 8)
            header = ast.literal_eval(data[10 : 10 + length].decode())
            code = {"|u1": "B", "<i8": "q", "<f4": "f", "<i4": "i"}[header["descr"]]
            arrays[name.removesuffix(".npy")] = (array.array(code, data[10 + length :]), header["shape"])
    return arrays


def write_samples(folder, train):
    """One file of records for each device; returns their numbers of samples."""
    pixels, labels = train["pixels"][0], train["label"][0]
    parts = [bytearray() for _ in SHARES]
    counts = [0] * len(SHARES)
    owner = [device for device, share in enumerate(SHARES) for _ in range(share)]
    for i, label in enumerate(labels):
        device = owner[i % len(owner)]
        parts[device] += struct.pack("<64fq", *pixels[64 * i : 64 * i + 64], label)
        counts[device] += 1
    for device, part in enumerate(parts):
        (folder / f"samples{device}").write_bytes(part)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("ortc", "device", "model", "train", "test"):
        parser.add_argument(name)
    parser.add_argument("--int8", action="store_true", help="changes as int8, a quarter of the bytes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=2, help="over a device's samples, in a round")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        return run(options, pathlib.Path(name))


def run(options, folder):
    ortc = lambda *arguments: subprocess.run([options.ortc, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True).stdout
    artifact = folder / "model"
    ortc("train", options.model, "-o", artifact, "--shape", "batch=16", "--optimizer", "sgd:lr=0.05,momentum=0.9", "--quiet")

    def evaluate(*load):
        return json.loads(ortc("eval", artifact, "--data", options.test, "--json", "--quiet", *load))

    counts = write_samples(folder, read_npz(options.train))
    kind = "int8" if options.int8 else "float"
    print(f"devices with {', '.join(map(str, counts))} samples; changes as {kind}")
    result = evaluate()
    print(f"round 0: loss {result['loss']:.4f}, accuracy {100 * result['accuracy']:.1f} %")
    base, losses = artifact, [result["loss"]]
    for number in range(1, options.rounds + 1):
        deltas = [folder / f"delta{device}" for device in range(len(SHARES))]
        devices = [
            subprocess.Popen([options.device, artifact / "model.ortc", "-" if base == artifact else base, folder / f"samples{i}",
                              str(options.epochs), kind, delta])
            for i, delta in enumerate(deltas)
        ]
        if any([device.wait() for device in devices]):
            return "server.py: a device has failed"
        sent = sum(delta.stat().st_size for delta in deltas)
        ortc("merge", "--base", base, *deltas, "--weights", ",".join(map(str, counts)), "-o", folder / f"round{number}", "--quiet")
        base = folder / f"round{number}"
        result = evaluate("--load", base)
        losses.append(result["loss"])
        print(f"round {number}: loss {result['loss']:.4f}, accuracy {100 * result['accuracy']:.1f} %, {sent} bytes were sent")

    ortc("run", artifact, "--data", options.train, "--epochs", options.rounds * options.epochs, "--save", folder / "central", "--quiet")
    central = evaluate("--load", folder / "central")
    print(f"in one place: loss {central['loss']:.4f}, accuracy {100 * central['accuracy']:.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
