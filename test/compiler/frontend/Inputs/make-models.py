#!/usr/bin/env python3
"""Writes the models beside this file. Needs the onnx Python package; the tests do not.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save, external_data_helper

HERE = os.path.dirname(os.path.abspath(__file__))
F = TensorProto.FLOAT


def write(name, graph, opset=17, ir=8, check=True, **rest):
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)] + rest.pop("imports", []),
                              ir_version=ir, producer_name="make-models", **rest)
    if check:
        checker.check_model(model)
    save(model, os.path.join(HERE, name + ".onnx"))


def value(name, shape, kind=F):
    return helper.make_tensor_value_info(name, kind, shape)


def types():
    """An initializer of every data type, raw and typed."""
    initializers, names = [], [n for n, _ in TensorProto.DataType.items() if n != "UNDEFINED"]
    for name in names:
        kind = TensorProto.DataType.Value(name)
        if name == "STRING":
            initializers.append(helper.make_tensor(name, kind, [2], [b"a", b"b\xff"]))
        else:
            initializers.append(helper.make_tensor(name, kind, [3], [1, 0, 1]))
    raw = numpy_helper.from_array(np.array([-1, 7, -8], np.int8), "raw")
    splat = numpy_helper.from_array(np.full((64, 64), 0.5, np.float32), "splat")
    large = numpy_helper.from_array(np.arange(1025, dtype=np.float32), "large")
    empty = numpy_helper.from_array(np.zeros((0, 4), np.float32), "empty")
    scalar = numpy_helper.from_array(np.array(2.5, np.float64), "scalar")
    graph = helper.make_graph([helper.make_node("Identity", ["FLOAT"], ["y"])], "types", [], [value("y", [3])],
                              initializers + [raw, splat, large, empty, scalar])
    sparse = helper.make_sparse_tensor(helper.make_tensor("sparse", F, [2], [1.0, 2.0]),
                                       helper.make_tensor("i", TensorProto.INT64, [2], [1, 5]), [2, 3])
    graph.sparse_initializer.append(sparse)
    write("types", graph, opset=26, ir=14, check=False)


def attributes():
    """One attribute of every type, on a custom operator."""
    tensor = helper.make_tensor("t", F, [2], [1.0, 2.0])
    kind = helper.make_tensor_type_proto(F, [2, "n"])
    body = helper.make_graph([helper.make_node("Relu", ["x"], ["r"])], "body", [], [value("r", None)])
    node = helper.make_node("Everything", ["x", "", "x", ""], ["y", "", "z"], name="all", domain="example",
                            f=0.5, i=-3, s="text", fs=[1.0, 2.0], ints=[1, 2], ss=["a", "b"], t=tensor,
                            ts=[tensor, tensor], tp=kind, tps=[kind, kind], g=body, gs=[body, body])
    graph = helper.make_graph([node], "attributes", [value("x", ["n", 4])], [value("y", ["n", 4]), value("z", None)],
                              value_info=[])
    write("attributes", graph, imports=[helper.make_opsetid("example", 1)], check=False)


def functions():
    body = [helper.make_node("Elu", ["a"], ["b"]), helper.make_node("Mul", ["b", "a"], ["c"])]
    ref = body[0].attribute.add()
    ref.name, ref.ref_attr_name, ref.type = "alpha", "slope", 1
    function = helper.make_function("example", "Gate", ["a"], ["c"], body, [helper.make_opsetid("", 13)],
                                    attributes=[], attribute_protos=[helper.make_attribute("slope", 0.5)])
    nodes = [helper.make_node("Gate", ["x"], ["h"], domain="example", name="first", slope=2.0),
             helper.make_node("Gate", ["h"], ["y"], domain="example")]
    graph = helper.make_graph(nodes, "functions", [value("x", [2])], [value("y", [2])])
    write("functions", graph, functions=[function], imports=[helper.make_opsetid("example", 1)],
          check=False)  # the checker wants Mul of one version everywhere


def branches():
    """Not in topological order, reads outer values in branches, and an initializer inside one."""
    inner = numpy_helper.from_array(np.array([1, 2], np.float32), "k")
    yes = helper.make_graph([helper.make_node("Add", ["h", "k"], ["p"])], "yes", [], [value("p", [2])], [inner])
    no = helper.make_graph([helper.make_node("Neg", ["x"], ["q"])], "no", [], [value("q", [2])])
    nodes = [helper.make_node("If", ["c"], ["y"], name="choose", then_branch=yes, else_branch=no),
             helper.make_node("Exp", ["x"], ["h"], name="exp")]
    graph = helper.make_graph(nodes, "branches", [value("c", [], TensorProto.BOOL), value("x", [2])], [value("y", [2])])
    write("branches", graph, check=False)


def old():
    """IR version 3: initializers are inputs as well."""
    w = numpy_helper.from_array(np.ones((3, 4), np.float32) * np.arange(4, dtype=np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "old",
                              [value("w", [3, 4]), value("x", ["batch", 3])], [value("y", ["batch", 4])], [w])
    write("old", graph, opset=7, ir=3)


def external():
    w = numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(3, 4), "w")
    with open(os.path.join(HERE, "external.bin"), "wb") as file:
        file.write(b"head" + w.raw_data)
    external_data_helper.set_external_data(w, "external.bin", 4, 48)
    w.ClearField("raw_data")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "external", [value("x", [2, 3])],
                              [value("y", [2, 4])], [w])
    write("external", graph, check=False)


if __name__ == "__main__":
    for make in (types, attributes, functions, branches, old, external):
        make()
