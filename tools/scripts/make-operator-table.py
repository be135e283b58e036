#!/usr/bin/env python3
"""Writes dialects/onnx/OperatorTable.inc from the operator definitions of the onnx and onnxruntime Python packages.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

    make-operator-table.py > dialects/onnx/OperatorTable.inc

One row for each definition, sorted by domain, operator and version:
  ORTC_OPERATOR("domain", "Name", since version, "inputs", fewest inputs, "outputs", fewest outputs, "attributes", "types")
Inputs and outputs: one letter each, r required, o optional, v variadic (only the last).
Attributes: name:k separated by spaces, k as in OnnxOperators.h, with ! when required.
Types: for each input a letter and, in hexadecimal, the set of element types (bit i: TensorProto.DataType i) that any version
of the operator takes under that name. Inputs with one letter have one type; - is an input whose types are its own.

Operators that are no part of the standard have version 0: what ONNX Runtime writes into the files that it optimises, and what this
compiler puts into graphs itself.
"""
import collections
import re

import onnx
from onnx import defs
from onnxruntime.capi import onnxruntime_pybind11_state as onnxruntime

# What compiler/legalize/Operators.inc legalises without the standard; ONNX Runtime has one version of each.
CONTRIBUTED = {"": ["LayerNormalization", "SimplifiedLayerNormalization"],
               "com.microsoft": [
                   "Attention", "BiasAdd", "BiasGelu", "BiasSplitGelu", "DequantizeLinear", "EmbedLayerNormalization",
                   "FastGelu", "FusedConv", "FusedGemm", "FusedMatMul", "Gelu", "GroupQueryAttention", "Inverse",
                   "MatMulNBits", "MultiHeadAttention", "QuantizeLinear", "QuickGelu", "RotaryEmbedding",
                   "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"]}
# Files hold it in both domains.
ALIASES = {("", "SimplifiedLayerNormalization"): ("com.microsoft", "SimplifiedLayerNormalization")}

# Of this compiler: domain, operator, and the rest of the line.
OWN = [("ai.ortc", "ByMode", 0, '"rr", 2, "r", 1, "", "a13efe a13efe"'),
       ("ai.ortc", "Detach", 0, '"r", 1, "r", 1, "", "a7fffffe"'),
       ("ai.ortc", "Embedding", 0, '"rr", 2, "r", 1, "padding:i!", "a1fffe bc0"'),
       ("ai.ortc", "StraightThrough", 0, '"rr", 2, "r", 1, "", "a7fffffe a7fffffe"'),
       ("ai.ortc", "FakeQuantize", 0,
        '"rrro", 3, "r", 1, "averaging:f axis:i bits:i! steps:i symmetric:i!", "a10c02 b10c02 b10c02 b10c02"')]

KINDS = {"FLOAT": "f", "INT": "i", "STRING": "s", "TENSOR": "t", "GRAPH": "g", "SPARSE_TENSOR": "p", "TYPE_PROTO": "y",
         "FLOATS": "F", "INTS": "I", "STRINGS": "S", "TENSORS": "T", "GRAPHS": "G", "SPARSE_TENSORS": "P",
         "TYPE_PROTOS": "Y"}


def parameters(formals):
    letters = {"Single": "r", "Optional": "o", "Variadic": "v"}
    return "".join(letters[str(f.option).rsplit(".", 1)[-1]] for f in formals)


def element_types(schema, formal):
    """Bits of the element types of tensors that the formal input may be."""
    strings = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == text_of(formal)), [text_of(formal)])
    names = re.findall(r"(?:^|optional\()tensor\((\w+)\)", " ".join(strings).replace(" ", "\n"), re.MULTILINE)
    return {onnx.TensorProto.DataType.Value(n.upper()) for n in names}


def text_of(formal):
    """The type variable of a formal; the two packages spell it differently."""
    return formal.type_str if hasattr(formal, "type_str") else formal.typeStr


def homogeneous(formal):
    return formal.is_homogeneous if hasattr(formal, "is_homogeneous") else formal.isHomogeneous


def types(schema, union):
    """`union`: (domain, operator, formal) -> the types that all versions take."""
    letters, out = {}, []
    variables = {c.type_param_str for c in schema.type_constraints}
    for f in schema.inputs:
        shared = text_of(f) in variables and homogeneous(f)
        letter = letters.setdefault(text_of(f), chr(ord("a") + len(letters))) if shared else "-"
        out.append("%s%x" % (letter, sum(1 << bit for bit in union[schema.domain, schema.name, f.name])))
    return " ".join(out)


def attributes(schema):
    out = []
    for name, a in sorted(schema.attributes.items()):
        kind = KINDS[str(a.type).rsplit(".", 1)[-1]]
        out.append(f"{name}:{kind}{'!' if a.required else ''}")
    return " ".join(out)


def rows(schemas, versions):
    """(domain, operator, version, the rest of the line) of each; `versions` gives the version of a schema."""
    union = collections.defaultdict(set)
    for s in schemas:
        for f in s.inputs:
            union[s.domain, s.name, f.name] |= element_types(s, f)
    return [(s.domain, s.name, versions(s), '"%s", %d, "%s", %d, "%s", "%s"' % (
        parameters(s.inputs), s.min_input, parameters(s.outputs), s.min_output, attributes(s), types(s, union)))
            for s in schemas]


def main():
    table = rows(defs.get_all_schemas_with_history(), lambda s: s.since_version)
    extra = rows([s for s in onnxruntime.get_all_operator_schema()
                  if s.since_version == 1 and s.name in CONTRIBUTED.get(s.domain, [])], lambda s: 0)
    missing = {(d, n) for d in CONTRIBUTED for n in CONTRIBUTED[d]} - {row[:2] for row in extra}
    assert not missing, missing
    extra += [ALIASES[row[:2]] + row[2:] for row in extra if row[:2] in ALIASES]
    newest = defs.onnx_opset_version()
    print("// Operator definitions of ONNX up to opset %d. Written by tools/scripts/make-operator-table.py; do not edit." % newest)
    print("// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception")
    for row in sorted(table + extra + OWN):
        print('ORTC_OPERATOR("%s", "%s", %d, %s)' % row)


if __name__ == "__main__":
    main()
