"""What a Trainer tells of its training. A callback has the methods that it needs of Callback.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import math
import os
import time
from typing import TYPE_CHECKING, Any, TextIO

from ortc._errors import ArgumentError

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
        """After an evaluation: event ("eval"), step, epoch, eval_loss, and the metrics."""

    def on_epoch(self, trainer: Trainer, event: Event) -> None:
        """At the end of an epoch: event ("epoch"), step, epoch, loss (the mean of its steps), seconds."""

    def on_end(self, trainer: Trainer) -> None:
        """After a fit, also one that has failed."""


class JSONL(Callback):
    """A line of JSON for each step and event, as `ortc run --metrics` writes them."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self._file: TextIO | None = None

    def on_begin(self, trainer: Trainer) -> None:
        self._file = open(self.path, "a" if trainer.step else "w", encoding="utf-8")  # noqa: SIM115

    def _write(self, event: Event) -> None:
        assert self._file is not None
        finite = {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in event.items()
        }
        self._file.write(json.dumps(finite, separators=(",", ":")) + "\n")

    def on_step(self, trainer: Trainer, event: Event) -> None:
        self._write(event)

    def on_eval(self, trainer: Trainer, event: Event) -> None:
        self._write(event)

    def on_end(self, trainer: Trainer) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class TensorBoard(Callback):
    """Event files for TensorBoard, by the writer of its package."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError as error:
            raise ImportError("the callback TensorBoard needs the package tensorboard: pip install tensorboard") from error
        self._event, self._summary = event_pb2.Event, summary_pb2.Summary
        self._open = lambda: EventFileWriter(os.fspath(folder))
        self._writer: Any = None

    def on_begin(self, trainer: Trainer) -> None:
        self._writer = self._open()

    def _write(self, prefix: str, event: Event) -> None:
        values = [
            self._summary.Value(tag=f"{prefix}/{key.removeprefix('eval_')}", simple_value=value)
            for key, value in event.items()
            if isinstance(value, float) and key not in ("ms", "seconds")
        ]
        summary = self._summary(value=values)
        self._writer.add_event(self._event(wall_time=time.time(), step=event["step"], summary=summary))

    def on_step(self, trainer: Trainer, event: Event) -> None:
        self._write("train", event)

    def on_eval(self, trainer: Trainer, event: Event) -> None:
        self._write("eval", event)

    def on_end(self, trainer: Trainer) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


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

    def on_step(self, trainer: Trainer, event: Event) -> None:
        if self.every and event["step"] % self.every == 0:
            trainer.save(self.path)

    def on_eval(self, trainer: Trainer, event: Event) -> None:
        if self._monitor is not None and self._monitor.improves(event):
            trainer.save(self.path)

    def on_end(self, trainer: Trainer) -> None:
        if self._monitor is None:
            trainer.save(self.path)
