"""Models that were exported for training, in evaluation, prediction and `ortc export`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Wanted outputs are those of modules of PyTorch in evaluation mode (test/inference), and onnxruntime computes exported models.
"""
import json
import subprocess
import unittest

import numpy as np
from optional import need
from support import SOURCE, TOOL, WORK, run_tool

need("onnx", "onnxruntime")
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx import numpy_helper as arrays

FLOAT, BOOL, INT64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64
DRAWS = {"RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike", "Bernoulli", "Multinomial"}
X = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)
LABEL = np.arange(6) % 5


def list_nodes(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from list_nodes(attribute.g)


class Artifact:
    """The numbers of one file, with what the tool said."""

    def __init__(self, path, x=X, label=LABEL, flags=()):
        self.folder, self.data, self.x = WORK / f"inference-{len(list(WORK.iterdir()))}", WORK / "inference.npz", x
        done = subprocess.run([TOOL, "train", path, "-o", self.folder, "--target", "native", "--optimizer", "sgd:lr=0.1", "--quiet", *flags],
                              capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(done.stderr)
        self.said = done.stderr
        np.savez(self.data, x=x, label=label)

    def train(self):
        """Gives what later commands take."""
        saved, log = WORK / "inference.safetensors", WORK / "inference.jsonl"
        run_tool("run", self.folder, "--data", self.data, "--epochs", 3, "--save", saved, "--metrics", log, "--quiet")
        return "--load", saved

    def predict(self, *load):
        path = WORK / "inference-out.npz"
        run_tool("predict", self.folder, "--data", self.data, "-o", path, "--quiet", *load)
        return np.load(path)["y"]

    def export(self, *flags):
        path = WORK / "inference.onnx"
        self.told = run_tool("export", self.folder, "-o", path, *flags)
        model = onnx.load(path)
        onnx.checker.check_model(model)
        return model


def infer(model, x):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(["y"], {session.get_inputs()[0].name: x})[0]


def make_model(nodes, initializers=(), functions=(), opset=20, type=FLOAT, more_inputs=(), batch=6, outputs=()):
    """y of x [6, 5], trained by a product with w in front: y = f(x w)."""
    rng = np.random.default_rng(1)
    initializers = {"w": rng.standard_normal((5, 5)) * 0.5, **dict(initializers)}
    tensors = [arrays.from_array(np.asarray(each, helper.tensor_dtype_to_np_dtype(type) if np.asarray(each).dtype.kind == "f" else None), name)
               for name, each in initializers.items()]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), *nodes], "g",
        [helper.make_tensor_value_info("x", type, [batch, 5]), *more_inputs], [helper.make_tensor_value_info("y", type, [batch, 5]), *outputs], tensors)
    imports = [helper.make_opsetid("", opset), *({each.domain: helper.make_opsetid(each.domain, 1) for each in functions}.values())]
    path = WORK / "written.onnx"
    onnx.save(helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=10), path)
    return path


def mask_nodes(x="h", y="y", q=0.75, prefix="", type=FLOAT):
    """Dropout of x: what is drawn is below q."""
    p = prefix
    return [helper.make_node("RandomUniformLike", [x], [p + "u"]),
            helper.make_node("Constant", [], [p + "q"], value=helper.make_tensor("q", type, [], [q])),
            helper.make_node("Less", [p + "u", p + "q"], [p + "below"]),
            helper.make_node("Cast", [p + "below"], [p + "m"], to=type),
            helper.make_node("Mul", [x, p + "m"], [p + "xm"]),
            helper.make_node("Div", [p + "xm", p + "q"], [y])]


class InferenceTest(unittest.TestCase):
    def check(self, artifact, wanted=None, is_random=False, tolerance=1e-5, draws=False):
        """Before and after training: predictions are those of the exported model, a sample at a time, too; and `wanted` at first."""
        drop = artifact.predict()
        if wanted is not None:
            np.testing.assert_allclose(drop, wanted, atol=tolerance, rtol=0)
        for load in ((), artifact.train()):
            predicted, model = artifact.predict(*load), artifact.export(*load)
            self.assertEqual(DRAWS & {node.op_type for node in list_nodes(model.graph)}, set())
            batch = infer(model, artifact.x)
            np.testing.assert_allclose(batch, predicted, atol=tolerance, rtol=0)
            shape = model.graph.input[0].type.tensor_type.shape
            if shape.dim[0].dim_param:
                single = np.concatenate([infer(model, artifact.x[i : i + 1]) for i in range(len(artifact.x))])
                np.testing.assert_allclose(single, batch, atol=tolerance, rtol=0)
        return model

    def wants_identity(self, path, **options):
        """y is h in inference, and not in training."""
        artifact = Artifact(path)
        w = next(arrays.to_array(each) for each in onnx.load(path).graph.initializer if each.name == "w")
        model = self.check(artifact, X @ w.astype(np.float32), **options)
        return artifact, model

    def test_modules_of_pytorch(self):
        for folder in sorted((SOURCE / "test/inference").iterdir()):
            if not folder.is_dir():
                continue
            with self.subTest(folder.name):
                data = np.load(folder / "eval.npz")
                flags = ("--shape", "batch=4") if "torchscript" in folder.name else ()
                artifact = Artifact(folder / "model.onnx", data["x"], data["label"], flags)
                model = self.check(artifact, data["y"])
                self.assertNotIn("warning: node", artifact.said)
                for node in model.graph.node:
                    if node.op_type == "BatchNormalization":
                        self.assertEqual([len(node.output), [each.i for each in node.attribute if each.name == "training_mode"]], [1, []])
                    if node.op_type == "Dropout":
                        self.assertLess(len(node.input), 3)

    def test_training_exports(self):
        """`--training` leaves the graph as it was compiled."""
        folder = SOURCE / "test/inference/norms-torchscript-20"
        data = np.load(folder / "eval.npz")
        artifact = Artifact(folder / "model.onnx", data["x"], data["label"], ("--shape", "batch=4"))
        given, exported = onnx.load(folder / "model.onnx"), artifact.export("--training")
        self.assertEqual(list(exported.graph.node), list(given.graph.node))

    def test_files(self):
        """`ortc export` of a file needs no artifact."""
        for name in ("norms-torchscript-13", "masks-torchscript", "masks-dynamo-plain"):
            with self.subTest(name):
                folder, path = SOURCE / "test/inference" / name, WORK / "file.onnx"
                said = run_tool("export", folder / "model.onnx", "-o", path)
                self.assertRegex(said, "made those of inference")
                data = np.load(folder / "eval.npz")
                np.testing.assert_allclose(infer(onnx.load(path), data["x"]), data["y"], atol=1e-5, rtol=0)

    def test_files_have_no_checkpoint(self):
        done = subprocess.run([TOOL, "export", SOURCE / "test/inference/masks-dynamo/model.onnx", "-o", WORK / "no.onnx", "--load", "x.safetensors"],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, (WORK / "no.onnx").exists()), (2, False))
        self.assertIn("is a model, and --load goes with an artifact", done.stderr)

    def test_masks(self):
        """Written otherwise than PyTorch writes them."""
        self.wants_identity(make_model(mask_nodes()))
        node = helper.make_node
        keep = {"q": np.float32(0.75), "one": np.float32(1), "zero": np.float32(0), "s": np.float32(1 / 0.75)}
        uniform = node("RandomUniformLike", ["h"], ["u"])
        cases = {
            "swapped": [uniform, node("Greater", ["q", "u"], ["b"]), node("Where", ["b", "h", "zero"], ["k"]), node("Mul", ["s", "k"], ["y"])],
            "not": [uniform, node("GreaterOrEqual", ["u", "q"], ["d"]), node("Not", ["d"], ["b"]), node("Cast", ["b"], ["m"], to=FLOAT),
                    node("Mul", ["m", "s"], ["ms"]), node("Mul", ["ms", "h"], ["y"])],
            "range": [node("RandomUniformLike", ["h"], ["u"], low=-1.0, high=3.0), node("Constant", [], ["two"], value_float=2.0),
                      node("Less", ["u", "two"], ["b"]), node("Cast", ["b"], ["m"], to=FLOAT), node("Mul", ["h", "s"], ["hs"]),
                      node("Mul", ["hs", "m"], ["y"])],
            "falling": [uniform, node("Sub", ["one", "u"], ["v"]), node("Less", ["v", "q"], ["b"]), node("Cast", ["b"], ["m"], to=FLOAT),
                        node("Mul", ["h", "m"], ["hm"]), node("Div", ["hm", "q"], ["y"])],
            "ceil": [uniform, node("Sub", ["u", "q"], ["v"]), node("Ceil", ["v"], ["d"]), node("Sub", ["one", "d"], ["m"]),
                     node("Mul", ["h", "m"], ["hm"]), node("Div", ["hm", "q"], ["y"])],
            "whole": [uniform, node("Add", ["u", "q"], ["v"]), node("Cast", ["v"], ["i"], to=INT64), node("Cast", ["i"], ["m"], to=FLOAT),
                      node("Mul", ["h", "m"], ["hm"]), node("Div", ["hm", "q"], ["y"])],
            "of rows": [node("RandomUniform", [], ["u"], shape=[6, 1]), node("Less", ["u", "q"], ["b"]), node("Cast", ["b"], ["m"], to=FLOAT),
                        node("Div", ["m", "q"], ["ms"]), node("Mul", ["h", "ms"], ["y"])],
            "twice": [*mask_nodes("h", "k", prefix="a."), *mask_nodes("k", "y", q=0.9, prefix="b.")],
            "of two": [uniform, node("Less", ["u", "q"], ["b"]), node("Cast", ["b"], ["m"], to=FLOAT), node("Div", ["m", "q"], ["ms"]),
                       node("Mul", ["h", "ms"], ["k"]), node("Mul", ["h", "one"], ["g"]), node("Mul", ["g", "ms"], ["l"]),
                       node("Add", ["k", "l"], ["kl"]), node("Constant", [], ["half"], value_float=0.5), node("Mul", ["kl", "half"], ["y"])],
        }
        for name, nodes in cases.items():
            with self.subTest(name):
                self.wants_identity(make_model(nodes, keep))

    def test_detached_values(self):
        """Detaching is no operator of ONNX: metadata names the value."""
        for names in (["u"], ["q"], ["below"], ["m"], ["xm"], ["d"], ["u", "m", "q"]):
            with self.subTest(names):
                path = make_model([*mask_nodes(y="d"), helper.make_node("Add", ["d", "h"], ["s"]), helper.make_node("Sub", ["s", "h"], ["y"])])
                model = onnx.load(path)
                helper.set_model_props(model, {"ortc.detached": "\n".join(names)})
                onnx.save(model, path)
                for flags in ((), ("--dropout", "off")):
                    artifact = Artifact(path, flags=flags)
                    w = next(arrays.to_array(each) for each in model.graph.initializer if each.name == "w")
                    self.check(artifact, X @ w.astype(np.float32))

    def test_half_precision(self):
        path = make_model(mask_nodes(type=TensorProto.FLOAT16, q=0.7), type=TensorProto.FLOAT16)
        x = X.astype(np.float16)
        artifact = Artifact(path, x)
        np.testing.assert_allclose(infer(artifact.export(), x), artifact.predict(), atol=5e-3, rtol=0)

    def test_functions(self):
        """A function that draws, one that draws for its caller, and one with operators that have a mode."""
        whole = helper.make_function("f", "drop", ["h"], ["y"], mask_nodes(), [helper.make_opsetid("", 20)])
        mode = helper.make_function(
            "f", "node", ["h"], ["y"],
            [helper.make_node("Constant", [], ["r"], value_float=0.5), helper.make_node("Constant", [], ["t"], value=helper.make_tensor("t", BOOL, [], [True])),
             helper.make_node("Dropout", ["h", "r", "t"], ["y"])], [helper.make_opsetid("", 20)])
        for each in (whole, mode):
            with self.subTest(each.name):
                self.wants_identity(make_model([helper.make_node(each.name, ["h"], ["y"], domain="f")], functions=[each]))

    def test_bodies(self):
        """Masks and Dropout nodes in branches and loop bodies, of values around them."""
        node, info = helper.make_node, helper.make_tensor_value_info
        dropout = [node("Constant", [], ["r"], value_float=0.5), node("Constant", [], ["t"], value=helper.make_tensor("t", BOOL, [], [True])),
                   node("Dropout", ["h", "r", "t"], ["b"])]
        for name, nodes in (("mask", mask_nodes(y="b")), ("dropout", dropout)):
            with self.subTest(f"branch {name}"):
                then = helper.make_graph(nodes, "then", [], [info("b", FLOAT, [6, 5])])
                other = helper.make_graph([node("Identity", ["h"], ["c"])], "else", [], [info("c", FLOAT, [6, 5])])
                path = make_model([node("If", ["yes"], ["y"], then_branch=then, else_branch=other)], {"yes": np.array(True)})
                self.wants_identity(path)
        body = helper.make_graph(
            [*mask_nodes("v", "d"), node("Identity", ["c"], ["c_out"]), node("Identity", ["d"], ["v_out"])], "body",
            [info("i", INT64, []), info("c", BOOL, []), info("v", FLOAT, [6, 5])], [info("c_out", BOOL, []), info("v_out", FLOAT, [6, 5])])
        path = make_model([node("Loop", ["n", "", "h"], ["y"], body=body)], {"n": np.array(3)})
        self.wants_identity(path)

    def test_statistics_that_are_read(self):
        """Outputs of a norm beside the first are its running statistics."""
        node, one = helper.make_node, np.ones(5, np.float32)
        initial = {"scale": one, "bias": one * 0.1, "mean": one * 0.2, "var": one * 2}
        for opset, outputs in ((9, ["y", "m", "v", "sm", "sv"]), (13, ["y", "m", "v"]), (15, ["y", "m", "v"])):
            with self.subTest(opset):
                mode = {"training_mode": 1} if opset > 13 else {}
                path = make_model([node("BatchNormalization", ["h", "scale", "bias", "mean", "var"], outputs, **mode)], initial, opset=opset,
                                  outputs=[helper.make_tensor_value_info("m", FLOAT, [5])])
                artifact = Artifact(path, flags=("--loss-input", "y"))
                model = self.check(artifact)
                session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
                statistic = next(arrays.to_array(each) for each in model.graph.initializer if each.name == "mean")
                np.testing.assert_array_equal(session.run(["m"], {"x": X})[0], statistic)
                self.assertGreater(np.abs(statistic - 0.2).max(), 0)

    def test_masks_larger_than_what_they_drop(self):
        """The exported value has the shape that it has in training."""
        node = helper.make_node
        nodes = [node("RandomUniform", [], ["u"], shape=[6, 1]), node("Less", ["u", "q"], ["b"]), node("Cast", ["b"], ["m"], to=FLOAT),
                 node("Div", ["m", "q"], ["ms"]), node("Mul", ["v", "ms"], ["vm"]), node("Transpose", ["vm"], ["vt"]),
                 node("MatMul", ["vm", "vt"], ["vv"]), node("MatMul", ["vv", "h"], ["y"])]
        artifact = Artifact(make_model(nodes, {"q": np.float32(0.75), "v": np.ones((1, 5), np.float32)}))
        for load in ((), artifact.train()):
            np.testing.assert_allclose(infer(artifact.export(*load), X), artifact.predict(*load), atol=1e-4, rtol=0)

    def test_draws_that_are_no_dropout(self):
        """They stay, in training and in evaluation, and a warning names them."""
        node = helper.make_node
        number = {"q": np.float32(0.5), "one": np.float32(1)}
        drawn = [node("RandomUniformLike", ["h"], ["u"], name="draw"), node("Less", ["u", "q"], ["b"]), node("Cast", ["b"], ["m"], to=FLOAT)]
        cases = {
            "noise": [node("RandomNormalLike", ["h"], ["n"], name="draw"), node("Add", ["h", "n"], ["y"])],
            "mixture": [*drawn, node("Sub", ["one", "m"], ["r"]), node("Mul", ["h", "m"], ["a"]), node("Mul", ["x", "r"], ["c"]), node("Add", ["a", "c"], ["y"])],
            "token": [*drawn, node("Where", ["b", "token", "h"], ["y"])],
            "gate": [node("Sigmoid", ["h"], ["p"]), node("Bernoulli", ["p"], ["m"], name="draw"), node("Mul", ["h", "m"], ["y"])],
            "half": [*drawn, node("Mul", ["h", "m"], ["a"]), node("Mul", ["a", "q"], ["aq"]), node("Add", ["aq", "m"], ["y"])],
        }
        for name, nodes in cases.items():
            with self.subTest(name):
                more = {"token": np.linspace(-1, 1, 5).astype(np.float32)} if name == "token" else {}
                artifact = Artifact(make_model(nodes, number | more))
                self.assertRegex(artifact.said, r"warning: node 'draw' \(\w+\) draws random numbers in evaluation")
                done = subprocess.run([TOOL, "export", artifact.folder, "-o", WORK / "drawn.onnx"], capture_output=True, text=True, check=True)
                self.assertIn("node 'draw'", done.stderr)
                self.assertEqual(len(DRAWS & {each.op_type for each in onnx.load(WORK / "drawn.onnx").graph.node}), 1)

    def test_flag(self):
        h = X @ np.asarray(arrays.to_array(onnx.load(make_model(mask_nodes())).graph.initializer[0]))
        path = make_model(mask_nodes())
        kept = Artifact(path, flags=("--dropout", "as-exported:masks=0"))
        self.assertGreater(np.abs(kept.predict() - h).max(), 0.1)
        self.assertEqual(len(DRAWS & {node.op_type for node in kept.export().graph.node}), 1)
        self.assertEqual(kept.said, "")
        # Off drops in no step: all are those of the model without masks.
        plain = make_model([helper.make_node("Identity", ["h"], ["y"])])
        wanted = [np.asarray(each) for each in self.losses(Artifact(plain))]
        path = make_model(mask_nodes())
        np.testing.assert_array_equal(self.losses(Artifact(path, flags=("--dropout", "off"))), wanted)
        self.assertNotEqual(self.losses(Artifact(path))[0], wanted[0])
        self.assertNotIn("does nothing", Artifact(path, flags=("--dropout", "train")).said)

    def test_teachers(self):
        """One that was exported for training teaches what it predicts."""
        teacher, same, student = WORK / "teacher.onnx", WORK / "predicting.onnx", WORK / "student.onnx"
        make_model(mask_nodes()).rename(teacher)
        run_tool("export", teacher, "-o", same)
        make_model([helper.make_node("Tanh", ["h"], ["y"])]).rename(student)
        losses = [self.losses(Artifact(student, flags=("--teacher", f"{each}:output=y"))) for each in (teacher, same)]
        self.assertEqual(losses[0], losses[1])

    @staticmethod
    def losses(artifact):
        artifact.train()
        return [json.loads(line)["loss"] for line in (WORK / "inference.jsonl").read_text().splitlines() if '"loss"' in line]


if __name__ == "__main__":
    unittest.main()
