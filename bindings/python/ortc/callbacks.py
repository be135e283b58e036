"""What a Trainer tells of its training. A callback has the methods that it needs of Callback.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
import os
import time
from typing import TYPE_CHECKING, Any, TextIO

from ortc._checks import check_output
from ortc._errors import ArgumentError
from ortc._packages import need

if TYPE_CHECKING:
    from ortc._trainer import Trainer

Event = dict[str, Any]


class Callback:
    """Does nothing."""

    def on_begin(self, trainer: Trainer) -> None:
        """Before the first step of a fit."""

    def on_step(self, trainer: Trainer, event: Event) -> None:
        """After a training step: step, epoch, loss (before its update), lr, ms."""

    def on_eval(self, trainer: Trainer, event: Event) -> None:
        """After an evaluation: event ("eval"), step, epoch, eval_loss, weights ("ema" or "swa") where it was of averages, and the
        metrics."""

    def on_event(self, trainer: Trainer, event: Event) -> None:
        """After what an evaluation or `save` leads to: event ("best", "plateau", "early_stop", "save", "interrupted"), step, and what `ortc run`
        writes of it; "not_finite" after the first step of a fit whose loss is not finite, and with `tensor` after an update that made one so."""

    def on_epoch(self, trainer: Trainer, event: Event) -> None:
        """At the end of an epoch: event ("epoch"), step, epoch, loss (the mean of its steps), seconds."""

    def on_end(self, trainer: Trainer) -> None:
        """After a fit, also one that has failed."""


class JSONL(Callback):
    """A line of JSON for each step and event, as `ortc run --metrics` writes them. A fit that begins at step 0 writes a new file, and
    replaces what is there; one that goes on adds to it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """A path that is relative is so to the folder that is current now."""
        if not isinstance(path, (str, os.PathLike)):
            raise ArgumentError(f"path of JSONL is {path!r}, but must be the path of a file")
        self.path = os.path.abspath(os.fspath(path))
        self._file: TextIO | None = None

    def on_begin(self, trainer: Trainer) -> None:
        check_output("JSONL", self.path, trainer.list_files())
        try:
            self._file = open(self.path, "a" if trainer.step else "w", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            folder = os.path.dirname(self.path)
            reason = error.strerror if os.path.isdir(folder) else f"there is no folder {folder}"
            raise ArgumentError(f"{self.path}: cannot be written: {reason}") from error

    def _write(self, event: Event) -> None:
        assert self._file is not None
        from ortc._runtime import format_event  # trackers need none of it

        self._file.write(format_event(event) + "\n")

    def on_step(self, trainer: Trainer, event: Event) -> None:
        self._write(event)

    def on_eval(self, trainer: Trainer, event: Event) -> None:
        self._write(event)

    def on_event(self, trainer: Trainer, event: Event) -> None:
        self._write(event)

    def on_end(self, trainer: Trainer) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class Tracker(Callback):
    """Hands the numbers of steps and evaluations to `log`, named train/loss, eval/accuracy and so on."""

    def log(self, values: dict[str, float], step: int) -> None:
        """Keeps them."""

    def _log(self, prefix: str, event: Event) -> None:
        values = {
            f"{prefix}/{key.removeprefix('eval_')}": value
            for key, value in event.items()
            if isinstance(value, float) and key not in ("ms", "seconds")
        }
        self.log(values, event["step"])

    def on_step(self, trainer: Trainer, event: Event) -> None:
        self._log("train", event)

    def on_eval(self, trainer: Trainer, event: Event) -> None:
        self._log("eval", event)


def _describe(trainer: Trainer) -> dict[str, Any]:
    """What a run was trained with."""
    manifest, session = trainer.session.artifact.manifest, trainer.session
    kinds = {key: manifest.get(key, {}).get("kind") for key in ("loss", "optimizer")}
    return {**kinds, **session.scalars, "seed": trainer.seed}


class TensorBoard(Tracker):
    """Event files for TensorBoard, by the writer of its package."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        event = need("tensorboard.compat.proto.event_pb2", "the callback TensorBoard")
        summary = need("tensorboard.compat.proto.summary_pb2", "the callback TensorBoard")
        writer = need("tensorboard.summary.writer.event_file_writer", "the callback TensorBoard")
        self._event, self._summary = event.Event, summary.Summary
        self._open = lambda: writer.EventFileWriter(os.fspath(folder))
        self._writer: Any = None

    def on_begin(self, trainer: Trainer) -> None:
        self._writer = self._open()

    def log(self, values: dict[str, float], step: int) -> None:
        rows = [self._summary.Value(tag=name, simple_value=value) for name, value in values.items()]
        self._writer.add_event(self._event(wall_time=time.time(), step=step, summary=self._summary(value=rows)))

    def on_end(self, trainer: Trainer) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class MLflow(Tracker):
    """A run of MLflow, by its client (mlflow-skinny is enough, with what its store needs). Several fits are one run."""

    _MOST = 1000
    """Numbers of a batch; MLflow takes no more."""

    def __init__(self, uri: str | None = None, experiment: str = "Default", name: str | None = None) -> None:
        """`uri`: of the store, such as "sqlite:///mlflow.db"; None is what MLFLOW_TRACKING_URI says."""
        self._entities = need("mlflow.entities", "the callback MLflow")
        self._client = need("mlflow", "the callback MLflow").MlflowClient(tracking_uri=uri)
        self.experiment = experiment
        self.name = name
        self.run: str | None = None
        """The id of the run, from the first fit on."""
        self._waiting: list[Any] = []

    def on_begin(self, trainer: Trainer) -> None:
        if self.run is not None:
            self._client.update_run(self.run, status="RUNNING")
            return
        known = self._client.get_experiment_by_name(self.experiment)
        experiment = known.experiment_id if known is not None else self._client.create_experiment(self.experiment)
        self.run = self._client.create_run(experiment, run_name=self.name).info.run_id
        parameters = [self._entities.Param(key, str(value)) for key, value in _describe(trainer).items()]
        self._client.log_batch(self.run, params=parameters)

    def log(self, values: dict[str, float], step: int) -> None:
        now = int(time.time() * 1e3)
        self._waiting += [self._entities.Metric(name, value, now, step) for name, value in values.items()]
        if len(self._waiting) + len(values) > self._MOST:
            self._send()

    def _send(self) -> None:
        if self._waiting:
            self._client.log_batch(self.run, metrics=self._waiting)
            self._waiting = []

    def on_epoch(self, trainer: Trainer, event: Event) -> None:
        self._send()

    def on_end(self, trainer: Trainer) -> None:
        self._send()
        self._client.set_terminated(self.run)


class WandB(Tracker):
    """A run of Weights & Biases. Several fits are one run."""

    def __init__(self, **settings: Any) -> None:
        """`settings`: of wandb.init, such as project="digits", mode="offline"."""
        self._wandb = need("wandb", "the callback WandB")
        self._settings = settings
        self.run: Any = None

    def on_begin(self, trainer: Trainer) -> None:
        again = {"id": self.run.id, "resume": "allow"} if self.run is not None else {"config": _describe(trainer)}
        self.run = self._wandb.init(**{**again, **self._settings})

    def log(self, values: dict[str, float], step: int) -> None:
        self.run.log(values, step=step)

    def on_end(self, trainer: Trainer) -> None:
        self.run.finish()


class _Monitor:
    """A value of evaluations, and the best that it was."""

    def __init__(self, name: str, mode: str, least: float = 0) -> None:
        if mode not in ("min", "max"):
            raise ArgumentError(f"mode is '{mode}', but must be min or max")
        self.name = name
        self.sign = 1 if mode == "min" else -1
        self.least = least
        self.best = math.inf

    def improves(self, event: Event) -> bool:
        if self.name not in event:
            known = ", ".join(key for key, value in event.items() if isinstance(value, float))
            raise ArgumentError(f"an evaluation has no '{self.name}'; it has {known}")
        value = self.sign * event[self.name]
        if not value < self.best - self.least:  # a NaN is no improvement
            return False
        self.best = value
        return True


class EarlyStopping(Callback):
    """Ends a fit when so many evaluations in a row have not improved a value by `least`."""

    def __init__(self, monitor: str = "eval_loss", patience: int = 3, mode: str = "min", least: float = 0) -> None:
        self._monitor = _Monitor(monitor, mode, least)
        self.patience = patience
        self._waited = 0

    def on_begin(self, trainer: Trainer) -> None:
        self._waited = 0

    def on_eval(self, trainer: Trainer, event: Event) -> None:
        self._waited = 0 if self._monitor.improves(event) else self._waited + 1
        if self._waited >= self.patience:
            trainer.stop()


class Checkpoint(Callback):
    """Saves after so many steps and at the end; with `monitor`, after evaluations that improve this value, and never
    otherwise."""

    def __init__(
        self, path: str | os.PathLike[str], every: int | None = None, monitor: str | None = None, mode: str = "min"
    ) -> None:
        if every is not None and (every < 1 or monitor is not None):
            raise ArgumentError("every is a number of steps above 0, and not for a monitor")
        self.path = path
        self.every = every
        self._monitor = _Monitor(monitor, mode) if monitor is not None else None

    def on_begin(self, trainer: Trainer) -> None:
        check_output("Checkpoint", self.path, trainer.list_files())

    def on_step(self, trainer: Trainer, event: Event) -> None:
        if self.every and event["step"] % self.every == 0:
            trainer.save(self.path)

    def on_eval(self, trainer: Trainer, event: Event) -> None:
        if self._monitor is not None and self._monitor.improves(event):
            trainer.save(self.path)

    def on_end(self, trainer: Trainer) -> None:
        if self._monitor is None:
            trainer.save(self.path)
