#!/usr/bin/env python3
"""Writes compiler/frontend/OperatorTable.inc from the operator definitions of the onnx Python package.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

    make-operator-table.py > compiler/frontend/OperatorTable.inc

One row for each definition, sorted by domain, operator and version:
  ORTC_OPERATOR("domain", "Name", since version, "inputs", fewest inputs, "outputs", fewest outputs, "attributes", "types")
Inputs and outputs: one letter each, r required, o optional, v variadic (only the last).
Attributes: name:k separated by spaces, k as in OnnxOperators.h, with ! when required.
Types: for each input a letter and, in hexadecimal, the set of element types (bit i: TensorProto.DataType i) that any version
of the operator takes under that name. Inputs with one letter have one type; - is an input whose types are its own.
"""
import collections
import re

import onnx
from onnx import defs

KINDS = {"FLOAT": "f", "INT": "i", "STRING": "s", "TENSOR": "t", "GRAPH": "g", "SPARSE_TENSOR": "p", "TYPE_PROTO": "y",
         "FLOATS": "F", "INTS": "I", "STRINGS": "S", "TENSORS": "T", "GRAPHS": "G", "SPARSE_TENSORS": "P",
         "TYPE_PROTOS": "Y"}


def parameters(formals):
    letters = {"Single": "r", "Optional": "o", "Variadic": "v"}
    return "".join(letters[str(f.option).rsplit(".", 1)[-1]] for f in formals)


def element_types(schema, formal):
    """Bits of the element types of tensors that the formal input may be."""
    strings = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == formal.type_str), [formal.type_str])
    names = re.findall(r"(?:^|optional\()tensor\((\w+)\)", " ".join(strings).replace(" ", "\n"), re.MULTILINE)
    return {onnx.TensorProto.DataType.Value(n.upper()) for n in names}


def types(schema, union):
    """`union`: (domain, operator, formal) -> the types that all versions take."""
    letters, out = {}, []
    variables = {c.type_param_str for c in schema.type_constraints}
    for f in schema.inputs:
        shared = f.type_str in variables and f.is_homogeneous
        letter = letters.setdefault(f.type_str, chr(ord("a") + len(letters))) if shared else "-"
        out.append("%s%x" % (letter, sum(1 << bit for bit in union[schema.domain, schema.name, f.name])))
    return " ".join(out)


def attributes(schema):
    out = []
    for name, a in sorted(schema.attributes.items()):
        kind = KINDS[str(a.type).rsplit(".", 1)[-1]]
        out.append(f"{name}:{kind}{'!' if a.required else ''}")
    return " ".join(out)


def main():
    schemas = sorted(defs.get_all_schemas_with_history(), key=lambda s: (s.domain, s.name, s.since_version))
    union = collections.defaultdict(set)
    for s in schemas:
        for f in s.inputs:
            union[s.domain, s.name, f.name] |= element_types(s, f)
    newest = defs.onnx_opset_version()
    print("// Operator definitions of ONNX up to opset %d. Written by tools/scripts/make-operator-table.py; do not edit." % newest)
    print("// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception")
    for s in schemas:
        print('ORTC_OPERATOR("%s", "%s", %d, "%s", %d, "%s", %d, "%s", "%s")' % (
            s.domain, s.name, s.since_version, parameters(s.inputs), s.min_input,
            parameters(s.outputs), s.min_output, attributes(s), types(s, union)))


if __name__ == "__main__":
    main()
