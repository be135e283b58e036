#!/usr/bin/env python3
"""Compares compiler/frontend/onnx.proto and dialects/onnx/OperatorTable.inc with the onnx and onnxruntime Python packages.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

    check-onnx-proto.py [PROTOC]

Every message, field (name, number, type, label, packing, oneof) and enum value of the package has to be in our file and
the other way round, and the operator table has to be what make-operator-table.py writes.
"""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test/python"))
from optional import need

need("onnx", "onnxruntime", "google")  # make-operator-table.py reads onnxruntime
import onnx
from google.protobuf import descriptor_pb2
from onnx import onnx_ml_pb2

FRONTEND = os.path.join(ROOT, "compiler", "frontend")


def facts(file, package):
    """The set of facts a file states, as strings."""
    out = set()

    def enum(path, e):
        out.update(f"{path}.{e.name}: {v.name} = {v.number}" for v in e.value)

    def message(path, m):
        path = f"{path}.{m.name}"
        out.add(path)
        for f in m.field:
            oneof = m.oneof_decl[f.oneof_index].name if f.HasField("oneof_index") else ""
            kind = f.type_name.replace("." + package + ".", "") or f.type
            packed = f.options.packed
            out.add(f"{path}: {f.name} = {f.number}, type {kind}, label {f.label}, packed {packed}, oneof '{oneof}'")
        for e in m.enum_type:
            enum(path, e)
        for n in m.nested_type:
            message(path, n)

    for e in file.enum_type:
        enum("", e)
    for m in file.message_type:
        message("", m)
    return out


def main():
    protoc = sys.argv[1] if len(sys.argv) > 1 else "protoc"
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "set")
        subprocess.run([protoc, "--proto_path=" + FRONTEND, "--descriptor_set_out=" + out, "onnx.proto"], check=True)
        with open(out, "rb") as file:
            ours = descriptor_pb2.FileDescriptorSet.FromString(file.read()).file[0]
    theirs = descriptor_pb2.FileDescriptorProto()
    onnx_ml_pb2.DESCRIPTOR.CopyToProto(theirs)
    mine, reference = facts(ours, ours.package), facts(theirs, theirs.package)
    for missing in sorted(reference - mine):
        print("missing:", missing)
    for extra in sorted(mine - reference):
        print("not in onnx:", extra)
    written = subprocess.run([sys.executable, os.path.join(ROOT, "tools/scripts/make-operator-table.py")],
                             check=True, capture_output=True, text=True).stdout
    with open(os.path.join(ROOT, "dialects", "onnx", "OperatorTable.inc")) as file:
        table = file.read() == written
    if not table:
        print("OperatorTable.inc is not what make-operator-table.py writes")
    print(f"onnx {onnx.__version__}: {len(reference)} facts compared, {len(written.splitlines()) - 2} operator definitions")
    return 0 if mine == reference and table else 1


if __name__ == "__main__":
    sys.exit(main())
