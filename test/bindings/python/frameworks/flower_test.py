"""Federated training with Flower: its messages and its FedAvg, with clients in this process (its own simulation runs in Ray).

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import pathlib
import unittest
from typing import Any

import numpy as np
from optional import needs

import ortc

SOURCE = pathlib.Path(__file__).parents[4]
CLIENTS, ROWS = 4, 16


def read_digits(name: str) -> dict[str, Any]:
    with np.load(SOURCE / "test/data/digits" / name) as file:
        return {"pixels": file["pixels"], "label": file["label"]}


def make_model(norm: bool = False) -> Any:
    """A perceptron over features that are drawn once and not trained."""
    from onnx import helper, numpy_helper

    rng = np.random.default_rng(0)
    sizes = (64, 192, 128, 10)
    weights, nodes, value = {}, [], "pixels"
    for i, (rows, columns) in enumerate(zip(sizes, sizes[1:])):
        weights[f"{i}.weight"] = rng.normal(size=(rows, columns)) / rows**0.5
        weights[f"{i}.bias"] = np.zeros(columns)
        nodes.append(helper.make_node("Gemm", [value, f"{i}.weight", f"{i}.bias"], [f"layer.{i}"]))
        value = f"layer.{i}"
        if i == 1 and norm:
            weights |= {"scale": np.ones(columns), "shift": np.zeros(columns), "mean": np.zeros(columns), "var": np.ones(columns)}
            statistics = ["mean", "var"]
            nodes.append(
                helper.make_node(
                    "BatchNormalization", [value, "scale", "shift", *statistics], ["norm", "new_mean", "new_var"], training_mode=1
                )
            )
            value = "norm"
        if i < 2:
            nodes.append(helper.make_node("Relu", [value], [f"hidden.{i}"]))
            value = f"hidden.{i}"
    nodes.append(helper.make_node("Identity", [value], ["output"]))
    graph = helper.make_graph(
        nodes,
        "features",
        [helper.make_tensor_value_info("pixels", 1, ["batch", 64])],
        [helper.make_tensor_value_info("output", 1, ["batch", 10])],
        [numpy_helper.from_array(values.astype(np.float32), name) for name, values in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def compile_model(norm: bool = False, **flags: Any) -> ortc.Artifact:
    return ortc.compile(make_model(norm), shapes={"batch": ROWS}, optimizer="adam:lr=1e-3", freeze=r"0\..*", target="native", **flags)


def make_part(context: Any) -> dict[str, Any]:
    """Every client has other digits, and other numbers of them."""
    data, bounds = read_digits("train.npz"), [0, 576, 1008, 1294, 1437]
    at = slice(*bounds[context.node_config["partition-id"] :][:2])
    return {name: values[at] for name, values in data.items()}


@needs("flwr", "onnx")
class FlowerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
        from flwr.supercore.logger import FLOWER_LOGGER
        from flwr.supercore.task_identity import TaskIdentity

        FLOWER_LOGGER.setLevel("ERROR")
        TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1  # of the server, whose messages bear it

    def make_grid(self, app: Any) -> Any:
        """A grid whose nodes are here. Messages go through their bytes, which it counts."""
        from flwr.app import Context, RecordDict
        from flwr.serverapp import Grid
        from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects
        from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents

        def send(message: Any) -> tuple[Any, int]:
            contents = {name: each.deflate() for name, each in get_all_nested_objects(message).items()}
            size = sum(map(len, contents.values()))
            return inflate_object_from_contents(message.object_id, contents), size

        class Here(Grid):
            run = None

            def __init__(self) -> None:
                self.contexts = {i: Context(1, i, {"partition-id": i, "num-partitions": CLIENTS}, RecordDict(), {}) for i in range(CLIENTS)}
                self.sent: list[tuple[str, int]] = []

            def get_node_ids(self) -> Any:
                return list(self.contexts)

            def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> Any:
                replies = []
                for message in messages:
                    given, _ = send(message)
                    reply, size = send(app(given, self.contexts[given.metadata.dst_node_id]))
                    self.sent.append((given.metadata.message_type, size))
                    replies.append(reply)
                return replies

            def set_run(self, run: Any) -> None: ...
            def create_message(self, *arguments: Any, **named: Any) -> Any: ...
            def push_messages(self, messages: Any) -> Any: ...
            def pull_messages(self, message_ids: Any) -> Any: ...

        return Here()

    def test_four_clients_learn_digits(self) -> None:
        from flwr.app import ConfigRecord, MetricRecord
        from flwr.serverapp.strategy import FedAvg

        import ortc.flower

        artifact = compile_model()
        app = ortc.flower.client_app(artifact, make_part, make_part, epochs=2, threads=1, metrics=["accuracy"])
        grid = self.make_grid(app)
        session = ortc.Session(artifact, threads=1)
        first, train = ortc.flower.get_arrays(session), read_digits("train.npz")
        self.assertEqual(sorted(session.parameters), ["1.bias", "1.weight", "2.bias", "2.weight"])

        def evaluate(number: int, arrays: Any) -> Any:
            ortc.flower.set_arrays(session, arrays)
            return MetricRecord(ortc.Trainer(session, train, metrics=["accuracy"]).evaluate(read_digits("test.npz")))

        result = FedAvg().start(grid, first, num_rounds=5, train_config=ConfigRecord({"lr": 3e-3}), evaluate_fn=evaluate)
        reached = [result.evaluate_metrics_serverapp[i]["accuracy"] for i in range(6)]
        self.assertLess(reached[0], 0.3)
        self.assertGreater(reached[5], 0.95)
        # The mean over clients, by their numbers of samples, is that over all samples.
        whole = ortc.Trainer(session, train, metrics=["accuracy"]).evaluate(train)
        self.assertAlmostEqual(result.evaluate_metrics_clientapp[5]["accuracy"], whole["accuracy"], places=12)
        self.assertAlmostEqual(result.evaluate_metrics_clientapp[5]["loss"], whole["loss"], places=5)
        # What travels: the trained numbers, and at most a hundredth more for names, shapes and metrics.
        trained = sum(session.artifact.tensors[name].bytes for name in session.parameters)
        sizes = [size for kind, size in grid.sent if kind == "train"]
        self.assertEqual(len(sizes), 5 * CLIENTS)
        self.assertGreater(min(sizes), trained)
        self.assertLessEqual(max(sizes), trained * 1.01)

    def test_a_round_is_the_mean_of_trainings(self) -> None:
        from flwr.serverapp.strategy import FedAvg

        import ortc.flower

        artifact = compile_model()
        app = ortc.flower.client_app(artifact, make_part, threads=1)
        grid = self.make_grid(app)
        result = FedAvg(fraction_evaluate=0).start(grid, ortc.flower.get_arrays(ortc.Session(artifact)), num_rounds=1)
        mean, count = {}, 0
        for context in grid.contexts.values():
            trainer = ortc.Trainer(artifact, make_part(context), seed=1, threads=1)
            trainer.fit()
            count += (rows := trainer.step * ROWS)
            for name, values in trainer.session.parameters.items():
                mean[name] = mean.get(name, 0) + values.astype(np.float64) * rows
        session = ortc.Session(artifact)
        ortc.flower.set_arrays(session, result.arrays)
        for name, values in session.parameters.items():
            np.testing.assert_allclose(values, mean[name] / count, rtol=1e-6, atol=1e-7)  # a mean in float32

    def test_state_stays_with_clients(self) -> None:
        from flwr.serverapp.strategy import FedAvg

        import ortc.flower

        artifact = compile_model(norm=True)
        app = ortc.flower.client_app(artifact, make_part, threads=1)
        grid = self.make_grid(app)
        FedAvg(fraction_evaluate=0).start(grid, ortc.flower.get_arrays(ortc.Session(artifact)), num_rounds=2)
        session = ortc.Session(artifact)
        means = []
        for context in grid.contexts.values():
            session.from_bytes(context.state["ortc"]["session"])
            self.assertEqual(session["step"], 2 * (len(make_part(context)["label"]) // ROWS))
            means.append(session.read("mean"))
        self.assertGreater(np.abs(means[0] - means[1]).max(), 1e-3)
        for size in (size for kind, size in grid.sent):
            self.assertLessEqual(size, sum(artifact.tensors[name].bytes for name in session.parameters) * 1.01)

    def test_means_may_be_wider_and_parameters_narrower(self) -> None:
        from flwr.app import Array, ArrayRecord

        import ortc.flower

        for precision in ({}, {"parameters": "bf16:nearest"}):
            session = ortc.Session(compile_model(**precision))
            wanted = session.read_parameters() * 2
            ortc.flower.set_arrays(session, ArrayRecord({"weights": Array(wanted.astype(np.float64))}))
            self.assertEqual(ortc.flower.get_arrays(session)["weights"].numpy().tobytes(), wanted.tobytes())

    def test_what_is_refused(self) -> None:
        import ortc.flower

        small = ortc.Session(compile_model())
        large = ortc.Session(compile_model(norm=True))
        with self.assertRaisesRegex(ortc.ShapeError, r"are 26250 numbers of float32 in one row, but float32\[25994\] was given"):
            ortc.flower.set_arrays(large, ortc.flower.get_arrays(small))


if __name__ == "__main__":
    unittest.main()
