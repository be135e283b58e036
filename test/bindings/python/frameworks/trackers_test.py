"""Callbacks that write for TensorBoard, MLflow and Weights & Biases: their own readers find the events of a trainer.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import pathlib
import struct
import sys
import tempfile
import unittest
import unittest.mock
from typing import Any

import numpy as np
from optional import needs

import ortc

SOURCE = pathlib.Path(__file__).parents[4]
DIGITS, TRAIN, TEST = (SOURCE / "test" / each for each in ("zoo/mlp-digits/model.onnx", "data/digits/train.npz", "data/digits/test.npz"))

Series = dict[str, list[tuple[int, float]]]
"""By name: steps and numbers."""


class TrackersTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def fit_twice(self, callback: ortc.callbacks.Callback) -> Series:
        """The events of the callback."""
        artifact = ortc.compile(DIGITS, shapes={"batch": 64}, optimizer="adamw:lr=3e-3", target="native")
        trainer = ortc.Trainer(artifact, TRAIN, TEST, metrics=["accuracy"], callbacks=[callback], seed=7)
        trainer.fit(epochs=2)
        trainer.session.lr = 1e-3
        trainer.fit(steps=5)
        series: Series = {}
        for event in trainer.history:
            prefix = {"eval": "eval", "epoch": ""}.get(event.get("event", ""), "train")
            for name in {"train": ("loss", "lr"), "eval": ("eval_loss", "accuracy"), "": ()}[prefix]:
                key = f"{prefix}/{name.removeprefix('eval_')}"
                series.setdefault(key, []).append((event["step"], event[name]))
        self.assertEqual({name: len(rows) for name, rows in series.items()}["eval/accuracy"], 3)
        return series

    def test_a_package_that_is_missing(self) -> None:
        with (
            unittest.mock.patch.dict(sys.modules, {"mlflow.entities": None}),
            self.assertRaisesRegex(ImportError, "the callback MLflow needs the package mlflow .*: pip install mlflow"),
        ):
            ortc.callbacks.MLflow(self.folder)

    @needs("tensorboard")
    def test_tensorboard(self) -> None:
        wanted = self.fit_twice(ortc.callbacks.TensorBoard(self.folder))
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(self.folder, size_guidance={"scalars": 0})
        events.Reload()
        got = {name: [(each.step, each.value) for each in events.Scalars(name)] for name in events.Tags()["scalars"]}
        rounded = {name: [(step, float(np.float32(value))) for step, value in rows] for name, rows in wanted.items()}
        self.assertEqual(got, rounded)

    @needs("mlflow")
    def test_mlflow(self) -> None:
        from mlflow import MlflowClient

        uri = f"sqlite:///{self.folder}/runs.db"
        callback = ortc.callbacks.MLflow(uri, experiment="digits", name="small")
        wanted = self.fit_twice(callback)
        assert callback.run is not None
        client = MlflowClient(tracking_uri=uri)
        run = client.get_run(callback.run)
        self.assertEqual((run.info.run_name, run.info.status), ("small", "FINISHED"))
        parameters = {name: run.data.params[name] for name in ("optimizer", "loss", "lr", "seed")}
        self.assertEqual(parameters, {"optimizer": "adamw", "loss": "cross_entropy", "lr": "0.003", "seed": "7"})
        got = {name: [(each.step, each.value) for each in client.get_metric_history(callback.run, name)] for name in run.data.metrics}
        self.assertEqual(got, wanted)

    @needs("wandb")
    def test_wandb(self) -> None:
        wanted = self.fit_twice(ortc.callbacks.WandB(project="digits", mode="offline", dir=self.folder, settings={"silent": True}))
        import wandb
        from wandb.proto import wandb_internal_pb2

        wandb.teardown()  # otherwise with the status of the process, which is no number here
        got: Series = {}
        config = {}
        for path in sorted(pathlib.Path(self.folder).glob("wandb/offline-run-*/*.wandb"), key=lambda each: each.stat().st_mtime_ns):
            for data in read_log(path):
                record = wandb_internal_pb2.Record.FromString(data)
                config |= {item.key: item.value_json for item in record.run.config.update}
                values = {item.key or item.nested_key[0]: item.value_json for item in record.history.item}
                for name in (name for name in values if "/" in name):
                    got.setdefault(name, []).append((int(values["_step"]), float(values[name])))
        self.assertEqual(got, wanted)
        self.assertEqual((config["optimizer"], config["lr"]), ('"adamw"', "0.003"))


def read_log(path: pathlib.Path) -> Any:
    """Records of a file in LevelDB's format for logs, after the seven bytes that W&B puts in front."""
    data, at, record, block = path.read_bytes(), 7, b"", 32768
    while at + 7 <= len(data):
        if block - at % block < 7:
            at += block - at % block
            continue
        size, kind = struct.unpack_from("<HB", data, at + 4)
        record += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield record
            record = b""


if __name__ == "__main__":
    unittest.main()
