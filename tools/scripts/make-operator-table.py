#!/usr/bin/env python3
"""Writes compiler/frontend/OperatorTable.inc from the operator definitions of the onnx Python package.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

    make-operator-table.py > compiler/frontend/OperatorTable.inc

One row for each definition, sorted by domain, operator and version:
  ORTC_OPERATOR("domain", "Name", since version, "inputs", fewest inputs, "outputs", fewest outputs, "attributes")
Inputs and outputs: one letter each, r required, o optional, v variadic (only the last).
Attributes: name:k separated by spaces, k as in OnnxOperators.h, with ! when required.
"""
import onnx
from onnx import defs

KINDS = {"FLOAT": "f", "INT": "i", "STRING": "s", "TENSOR": "t", "GRAPH": "g", "SPARSE_TENSOR": "p", "TYPE_PROTO": "y",
         "FLOATS": "F", "INTS": "I", "STRINGS": "S", "TENSORS": "T", "GRAPHS": "G", "SPARSE_TENSORS": "P",
         "TYPE_PROTOS": "Y"}


def parameters(formals):
    letters = {"Single": "r", "Optional": "o", "Variadic": "v"}
    return "".join(letters[str(f.option).rsplit(".", 1)[-1]] for f in formals)


def attributes(schema):
    out = []
    for name, a in sorted(schema.attributes.items()):
        kind = KINDS[str(a.type).rsplit(".", 1)[-1]]
        out.append(f"{name}:{kind}{'!' if a.required else ''}")
    return " ".join(out)


def main():
    schemas = sorted(defs.get_all_schemas_with_history(), key=lambda s: (s.domain, s.name, s.since_version))
    newest = defs.onnx_opset_version()
    print("// Operator definitions of ONNX up to opset %d. Written by tools/scripts/make-operator-table.py; do not edit." % newest)
    print("// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception")
    for s in schemas:
        print('ORTC_OPERATOR("%s", "%s", %d, "%s", %d, "%s", %d, "%s")' % (
            s.domain, s.name, s.since_version, parameters(s.inputs), s.min_input,
            parameters(s.outputs), s.min_output, attributes(s)))


if __name__ == "__main__":
    main()
