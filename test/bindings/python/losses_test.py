"""Several losses, weights of samples, averages and schedules of an artifact: the numbers of `ortc run` and `ortc eval`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import runpy
import unittest

import numpy as np
import ortc
from ortc import callbacks
from optional import needs
from support import DIGITS, SOURCE, TEST, TRAIN, WORK, compile_digits, read_checkpoint, read_steps, run_tool

TWO = {"digit": "cross_entropy:sample_weight=1@output:weight=2", "hidden": "mse@relu:weight=0.5"}


def make_data(path, samples):
    """The digits with a weight for each, and what a hidden layer shall be."""
    with np.load(path) as file:
        pixels, label = file["pixels"][:samples].astype(np.float32), file["label"][:samples].astype(np.int64)
    label[3] = -100
    rows = np.arange(len(label))
    return {
        "pixels": pixels,
        "label.digit": label,
        "sample_weight.digit": (rows % 3 + 1).astype(np.float32),
        "label.hidden": (rows[:, None] % 5 == np.arange(64) % 5).astype(np.float32),
    }


def compile_two(**options):
    return ortc.compile(DIGITS, shapes={"batch": 64}, optimizer="adamw:lr=3e-3", target="native", **({"loss": TWO} | options))


class SeveralLossesTest(unittest.TestCase):
    def compare(self, artifact, train, evaluation, tool_flags=(), **options):
        """Two epochs of the tool and of a Trainer."""
        folder = artifact.path.parent
        np.savez(WORK / "train.npz", **train)
        np.savez(WORK / "eval.npz", **evaluation)
        run_tool("run", folder, "--data", WORK / "train.npz", "--eval-data", WORK / "eval.npz", "--epochs", 2, "--quiet",
                 "--metrics", WORK / "tool.jsonl", "--save", WORK / "tool.safetensors", *tool_flags)
        trainer = ortc.Trainer(artifact, train, evaluation, metrics=["accuracy"], callbacks=[callbacks.JSONL(WORK / "python.jsonl")],
                               **options)
        trainer.fit(epochs=2)
        trainer.save(WORK / "python.safetensors")
        wanted, got = read_steps(WORK / "tool.jsonl"), read_steps(WORK / "python.jsonl")
        self.assertEqual(got, wanted)
        self.assertEqual(read_checkpoint(WORK / "python.safetensors")[2], read_checkpoint(WORK / "tool.safetensors")[2])
        return trainer, wanted

    def test_two_losses(self):
        """Ignored labels, weights of samples and a short last batch among them, with numbers of each loss."""
        trainer, events = self.compare(compile_two(step_outputs="grad_norm,param_norm"), make_data(TRAIN, 700), make_data(TEST, 150))
        self.assertEqual(set(events[0]), {"step", "epoch", "loss", "lr", "loss.digit", "loss.hidden", "grad_norm", "param_norm"})
        self.assertEqual(set(events[-1]), {"event", "step", "epoch", "eval_loss", "eval_loss.digit", "eval_loss.hidden", "accuracy.digit"})
        found = trainer.evaluate()
        self.assertEqual(found["loss"], 2 * found["loss.digit"] + 0.5 * found["loss.hidden"])
        trainer.session["loss.digit.weight"] = 1.0
        self.assertEqual(trainer.evaluate()["loss"], found["loss.digit"] + 0.5 * found["loss.hidden"])

    def test_one_loss_with_weights(self):
        def rename(data):
            return {"pixels": data["pixels"], "label": data["label.digit"], "sample_weight": data["sample_weight.digit"]}

        artifact = compile_two(loss="cross_entropy:sample_weight=1")
        trainer, events = self.compare(artifact, rename(make_data(TRAIN, 200)), rename(make_data(TEST, 150)))
        self.assertIn("accuracy", events[-1])
        only = {"images": rename(make_data(TRAIN, 200))["pixels"], **rename(make_data(TRAIN, 200))}
        del only["pixels"]  # the only input takes the only array that no loss reads
        self.assertEqual(ortc.Trainer(artifact, only).fit(steps=1)[0]["loss"], trainer.history[0]["loss"])

    def test_schedules_of_the_artifact(self):
        artifact = compile_two(loss="cross_entropy", schedule={"lr": "wsd:decay=5,total=20"}, accumulate=2)
        self.compare(artifact, *[dict(np.load(path)) for path in (TRAIN, TEST)])
        with self.assertRaisesRegex(ortc.ArgumentError, "the artifact computes its rate by itself, by schedule='lr=wsd:"):
            ortc.Trainer(artifact, TRAIN, lr_schedule="linear")
        with self.assertRaisesRegex(ortc.ArgumentError, "the artifact computes its rate by itself, by schedule='lr=wsd:"):
            ortc.Trainer(artifact, TRAIN, TEST, lr_schedule="plateau")

    def test_averages(self):
        artifact = compile_two(ema={"decay": 0.9, "warmup": True}, swa="start=5")
        train, evaluation = make_data(TRAIN, 700), make_data(TEST, 150)
        for kind in ("ema", "swa"):
            flags, options = ["--eval-weights", kind, "--eval-every", 3], {"eval_weights": kind, "eval_every": 3}
            trainer, events = self.compare(artifact, train, evaluation, flags, **options)
            # swa begins after the first evaluation
            self.assertEqual([event.get("weights") for event in events if "event" in event][:2], [kind if kind == "ema" else None, kind])
            found = trainer.evaluate()
            kept = trainer.session.to_bytes()
            trainer.eval_weights = None
            self.assertNotEqual(trainer.evaluate()["loss"], found["loss"])
            self.assertEqual(trainer.session.to_bytes(), kept)
        with self.assertRaisesRegex(ortc.StateError, "nothing was averaged yet"):
            ortc.Trainer(artifact, train, evaluation, eval_weights="ema").evaluate()
        with self.assertRaisesRegex(ortc.NotFoundError, "compile it with ema="):
            ortc.Trainer(compile_digits(), TRAIN, TEST, eval_weights="ema").evaluate()
        with self.assertRaisesRegex(ortc.ArgumentError, "there are ema and swa"):
            ortc.Trainer(artifact, train, evaluation, eval_weights="mean").evaluate()

    def compare_metrics(self, artifact, arrays, names, steps=12):
        """After some steps, so that predictions are no chance."""
        np.savez(WORK / "metrics.npz", **arrays)
        trainer = ortc.Trainer(artifact, arrays, arrays, metrics=names)
        trainer.fit(steps=steps)
        trainer.save(WORK / "metrics.safetensors")
        flags = [flag for name in names for flag in ("--metric", name)]
        wanted = json.loads(run_tool("eval", artifact.path.parent, "--data", WORK / "metrics.npz", "--json", "--load",
                                     WORK / "metrics.safetensors", *flags))
        found = trainer.evaluate()
        for name in names:
            self.assertEqual(found[name], wanted[name], name)
            self.assertTrue(np.isfinite(found[name]), name)
        return found

    def test_metrics_of_the_tool(self):
        """A short last batch and ignored labels among them."""
        with np.load(TEST) as file:
            pixels, label = file["pixels"][:150].astype(np.float32), file["label"][:150].astype(np.int64)
        label[::7] = -100
        choices = ["topk:k=3", "f1", "f1:average=micro", "iou", "perplexity"]
        self.compare_metrics(compile_two(loss="cross_entropy"), {"pixels": pixels, "label": label}, choices)
        chances = np.eye(10, dtype=np.float32)[label % 10]
        self.compare_metrics(compile_two(loss="cross_entropy:probabilities=1"), {"pixels": pixels, "label": chances}, choices[:4])
        decisions = {"pixels": pixels, "label": chances}
        self.compare_metrics(compile_two(loss="bce_with_logits"), decisions, ["accuracy", "f1", "f1:average=macro", "auc", "iou"])
        for loss in ("multilabel_soft_margin", "focal", "dice"):
            self.compare_metrics(compile_two(loss=loss), decisions, ["accuracy", "f1"])
        signs = {"pixels": pixels, "label": 2 * chances - 1}
        for loss in ("hinge", "soft_margin"):
            self.compare_metrics(compile_two(loss=loss), signs, ["accuracy", "f1"])
        for loss in ("mse", "gaussian_nll@output+output"):
            self.compare_metrics(compile_two(loss=loss), decisions, ["mae", "rmse", "r2"])
        two = compile_two(loss={"a": "cross_entropy@output", "b": "mse@relu"})
        hidden = make_data(TEST, 150)["label.hidden"]
        named = ["topk:k=2,output=output,label=label.a,ignore=-100", "rmse:output=relu,label=label.b"]
        self.compare_metrics(two, {"pixels": pixels, "label.a": label, "label.b": hidden}, named)
        for text, name in {"k is 11, and the output has 10 classes": "topk:k=11", "binary": "f1:average=binary", "two classes": "auc",
                           "it has no option 'n'; it takes k": "topk:n=3", "a label for each of their tokens": "token_accuracy",
                           "it fits accuracy, topk": "mae", "has no output 'y'": "f1:output=y,label=label",
                           "belong together": "f1:output=output", "k is '1_0', but it must be a whole number": "topk:k=1_0",
                           "there is no metric 'loss'; there are accuracy, topk": "loss",
                           "^metric 'f1:average=x': average is 'x'": "f1:average=x",
                           "axis is 'x', but it must be a whole": "f1:output=output,label=label,axis=x"}.items():
            with self.assertRaisesRegex(ortc.ArgumentError, text):
                ortc.Trainer(compile_two(loss="cross_entropy"), {"pixels": pixels, "label": label}, metrics=[name])

    def test_label_error_rate_of_the_tool(self):
        """40 utterances in batches of 16, whose frames are a multiple of that."""
        speech = SOURCE / "docs/examples/recipes/speech"
        runpy.run_path(str(speech / "data.py"))["write"](WORK / "speech.npz", 40, 3)
        with np.load(WORK / "speech.npz") as file:
            arrays = dict(file)
        options = {"shapes": {"batch": 16}, "optimizer": "adam:lr=5e-3", "target": "native"}
        artifact = ortc.compile(speech / "model.onnx", loss="ctc:labels=5", **options)
        named = "label_error_rate:output=log_probabilities,label=label"
        found = self.compare_metrics(artifact, arrays, ["label_error_rate", named], steps=600)
        self.assertTrue(0 < found["label_error_rate"] < 0.6, "most syllables are right by now, and some are not")
        for text, name in {"sequences of classes; it fits label_error_rate": "accuracy", "leave them out": named + ",axis=2",
                           "no loss 'ctc' compares": "label_error_rate:output=log_probabilities,label=features"}.items():
            with self.assertRaisesRegex(ortc.ArgumentError, text):
                ortc.Trainer(artifact, arrays, metrics=[name])

    @needs("onnx")
    def test_outputs_with_the_batch_after_the_classes(self):
        """7 samples in batches of 4: [4 classes, batch], where the model says it and where it does not."""
        from onnx import TensorProto, helper, numpy_helper, save

        numbers = np.random.default_rng(0)
        nodes = [helper.make_node("MatMul", ["x", "w"], ["scores"]), helper.make_node("Transpose", ["scores"], ["y"])]
        weight = numpy_helper.from_array(numbers.normal(size=(3, 4)).astype(np.float32), "w")
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])
        arrays = {"x": numbers.normal(size=(7, 3)).astype(np.float32), "label": numbers.integers(0, 4, 7)}
        for dims in (["classes", "batch"], ["made", "up"]):
            y = helper.make_tensor_value_info("y", TensorProto.FLOAT, dims)
            graph = helper.make_graph(nodes, "transposed", [x], [y], [weight])
            save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), WORK / "transposed.onnx")
            artifact = ortc.compile(WORK / "transposed.onnx", loss="cross_entropy:axis=0", shapes={"batch": 4}, target="native")
            self.compare_metrics(artifact, arrays, ["accuracy", "topk:k=2", "f1"], steps=1)

    def test_batches_and_sessions(self):
        """Names with dots are keywords of a dict, and dicts of them have a place of their own."""
        artifact, data = compile_two(), make_data(TRAIN, 128)
        wanted = [event["loss"] for event in ortc.Trainer(artifact, data, shuffle=False).fit() if "event" not in event]
        session = ortc.Session(artifact)
        flat = [{name: values[at : at + 64] for name, values in data.items()} for at in (0, 64)]
        self.assertEqual([session.train_step(**batch) for batch in flat], wanted)
        parts = session.outputs["loss.digit"], session.outputs["loss.hidden"]
        self.assertAlmostEqual(2 * float(parts[0]) + 0.5 * float(parts[1]), wanted[1], 5)
        nested = [
            {
                "pixels": batch["pixels"],
                "label": {"digit": batch["label.digit"], "hidden": batch["label.hidden"]},
                "sample_weight": {"digit": batch["sample_weight.digit"]},
            }
            for batch in flat
        ]
        for batches in (nested, [tuple(batch.values()) for batch in flat], flat):
            events = ortc.Trainer(artifact, batches).fit()
            self.assertEqual([event["loss"] for event in events if "event" not in event], wanted)
        with self.assertRaisesRegex(ortc.NotFoundError, "has no array 'label.hidden' for the loss"):
            ortc.Trainer(artifact, {name: values for name, values in data.items() if name != "label.hidden"})

    def test_metrics_of_a_loss(self):
        artifact, data = compile_two(loss={"a": "cross_entropy@output", "b": "cross_entropy@linear"}), make_data(TEST, 64)
        arrays = {"pixels": data["pixels"], "label": {"a": data["label.digit"], "b": data["label.digit"]}}
        both = ortc.Trainer(artifact, arrays, arrays, metrics=["accuracy"]).evaluate()
        one = ortc.Trainer(artifact, arrays, arrays, metrics=["accuracy.b"]).evaluate()
        self.assertEqual(set(both) - set(one), {"accuracy.a"})
        self.assertEqual(both["accuracy.b"], one["accuracy.b"])
        with self.assertRaisesRegex(ortc.ArgumentError, "metric 'f1': there are 2 losses; output=NAME,label=INPUT"):
            ortc.Trainer(artifact, arrays, arrays, metrics=["f1"])
        with self.assertRaisesRegex(ortc.ArgumentError, "^metric 'accuracy': there are 2 losses; output=NAME,label=INPUT"):
            ortc.Trainer(artifact, arrays, arrays, best="accuracy:max")


if __name__ == "__main__":
    unittest.main()
