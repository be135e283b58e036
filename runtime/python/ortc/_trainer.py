"""A training loop with the numbers of `ortc run`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ortc._artifact import Artifact
from ortc._averages import averaged
from ortc._data import Arrays, Batch, Data, Input, open_data, order_of
from ortc._errors import ArgumentError, FormatError, NotFoundError
from ortc._evaluation import Evaluation
from ortc._losses import read_losses
from ortc._metrics import Metric, find_metrics
from ortc._schedule import Schedule, parse_schedule
from ortc._session import Loaded, Session
from ortc.callbacks import Callback, Event

Rate = float | Callable[[int], float]


class Trainer:
    """Trains an artifact on data: arrays by name (a dict, or the path of an npz file), an iterable of batches, or a
    function that gives one for an epoch. Batches are dicts by name, or tuples in the order of the step's inputs.

    With arrays, the same seed and flags, losses are bit for bit those of `ortc run`."""

    def __init__(
        self,
        artifact: Artifact | Session | str | os.PathLike[str],
        train: Data,
        eval: Data | None = None,
        *,
        metrics: Iterable[str | tuple[str, Metric]] = (),
        callbacks: Iterable[Callback] = (),
        shuffle: bool = True,
        seed: int | None = None,
        lr: Rate | None = None,
        lr_schedule: str | None = None,
        threads: int = 0,
        device: str = "cpu",
        eval_weights: str | None = None,
    ) -> None:
        """`seed`: of the shuffling; None is 0, or the checkpoint's. `lr`: a rate, or a function of the number of steps done
        before; None is the artifact's, or the checkpoint's. `lr_schedule`: as --lr-schedule of `ortc run`. `eval_weights`: "ema" or
        "swa", evaluations take these averages in place of the parameters."""
        if callable(lr) and lr_schedule is not None:
            raise ArgumentError("lr is a function and lr_schedule is given, too; give one of them")
        if isinstance(artifact, Session):
            self.session = artifact
        else:
            self.session = Session(artifact, threads=threads, device=device)
        manifest = self.session.artifact.manifest
        self._losses = read_losses(manifest)
        self._numbers = self._list_numbers()
        self._train = open_data(train, self._list_inputs("train"), is_training=True)
        self._eval = open_data(eval, self._list_inputs("eval"), is_training=False) if eval is not None else None
        inputs, outputs = self.session.program.steps()[self.session.binding].get("eval", ((), ()))
        self.metrics = find_metrics(tuple(metrics), self._losses, outputs, inputs)
        self.callbacks = list(callbacks)
        self.eval_weights = eval_weights
        self.shuffle = shuffle
        self.seed = seed or 0
        self._has_seed = seed is not None
        self.lr = lr
        self._schedule = parse_schedule(lr_schedule) if lr_schedule is not None else Schedule()
        self._has_schedule = lr_schedule is not None
        self.step = 0
        """Steps done, over all fits and the checkpoint's."""
        self.epoch = 0
        self._slice = 0  # of the epoch, of the next step
        self.history: list[Event] = []
        """What callbacks were told, in order."""
        described = manifest.get("optimizer", {}).get("schedule", {})
        self._own_schedule = parse_schedule(described["lr"]) if "lr" in described else None  # of the artifact
        if self._own_schedule and (lr_schedule is not None or callable(lr)):
            raise ArgumentError(
                f"the artifact computes its rate by itself, by schedule='lr={self._own_schedule}'; leave lr_schedule and a "
                "function for lr out, or compile it without a schedule"
            )
        self._accumulate = int(manifest.get("optimizer", {}).get("accumulate", 1))
        self._has_rate = "lr" in self.session.artifact.names("scalar")
        self._base = self.session.get_scalar("lr") if self._has_rate else 0.0  # of the schedule
        self._rate = self._base  # that was set last
        self._end = 0  # the step after the last of this fit
        self._is_stopped = False

    def _list_inputs(self, step: str) -> list[Input]:
        session = self.session
        roles = session.program.steps()[session.binding]
        if step not in roles:
            raise NotFoundError(f"the artifact has no {step} step in binding '{session.binding}'")
        said: dict[str, bool | None] = {}
        for binding in session.artifact.manifest.get("bindings", []):
            if binding["name"] == session.binding:
                said = {each["name"]: each.get("batch") for each in binding["inputs"]}
        of_losses = {name for loss in self._losses for name in (loss.label, *loss.inputs)}
        return [Input(name, dtype, shape, said.get(name), name in of_losses) for name, dtype, shape in roles[step][0]]

    def _list_numbers(self) -> dict[tuple[str, str], list[str]]:
        """By binding and step: what it gives beside the loss, each of several losses and --step-outputs."""
        manifest = self.session.artifact.manifest
        wanted = [*manifest.get("optimizer", {}).get("step_outputs", []), *(loss.value for loss in self._losses)]
        found = {}
        for binding, steps in self.session.program.steps().items():
            for step, (_, outputs) in steps.items():
                given = {name for name, _, _ in outputs}
                found[binding, step] = [name for name in wanted if name in given]
        return found

    # ---- Training.

    def fit(self, epochs: int = 1, steps: int | None = None) -> list[Event]:
        """Trains for so many epochs, or steps, more than before, and gives the events of this fit. Ctrl-C ends it after the
        step in progress."""
        if steps is None and not isinstance(self._train, Arrays):
            last_step, last_epoch = None, self.epoch + epochs
        else:
            count = steps if steps is not None else epochs * self._count_slices()
            last_step, last_epoch = self.step + count, None
        self._begin_rates(last_step)
        first = len(self.history)
        self._is_stopped = False
        self._tell("on_begin")
        try:
            while not self._is_stopped and self.step != last_step and self.epoch != last_epoch:
                self._train_epoch(last_step)
        finally:
            self._tell("on_end")
        return self.history[first:]

    def _begin_rates(self, last_step: int | None) -> None:
        schedule = self._schedule
        if self._has_rate:
            self._rate = self.session.get_scalar("lr")
        if self.lr is not None and not callable(self.lr):
            self._base = self.lr
        elif schedule.is_plain:
            self._base = self._rate
        if schedule.is_falling and last_step is None and not schedule.total:
            raise ArgumentError(f"lr_schedule '{schedule}' needs a total: how many batches there will be is not known")
        if schedule.is_falling and schedule.total and self.step >= schedule.total and schedule.minimum == 0:
            raise ArgumentError(
                f"the learning-rate schedule {schedule} ends at step {schedule.total}, and this fit begins at step "
                f"{self.step}; give lr_schedule with a larger total, or lr for a constant rate"
            )
        self._end = last_step or 0

    def _set_rate(self) -> None:
        """Before a step. Without lr and a schedule, the rate is whoever's has set it."""
        if callable(self.lr):
            rate = self.lr(self.step)
        elif self.lr is None and self._schedule.is_plain:
            return
        else:
            rate = self._schedule.rate(self._base, self.step, self._end)
        if rate != self._rate:
            self.session.set_scalar("lr", rate)
            self._rate = rate

    def _count_updates(self) -> int:
        """Those that the schedule of the artifact counts."""
        states = self.session.artifact.names("state")
        return int(self.session["optimizer.step" if "optimizer.step" in states else "step"])

    def _rate_of(self, updates: int) -> float:
        """Of a step after so many updates."""
        rate = self.session.get_scalar("lr")
        return self._own_schedule.rate(rate, updates, 0) if self._own_schedule else rate

    def stop(self) -> None:
        """Ends a fit after the step in progress; for callbacks."""
        self._is_stopped = True

    def _count_slices(self) -> int:
        assert isinstance(self._train, Arrays)
        return self._train.slices

    def _cut_epoch(self) -> Iterator[Batch]:
        if not isinstance(self._train, Arrays):
            yield from self._train(self.epoch)
            return
        data = self._train
        order = order_of(self.seed, self.epoch, data.items if data.is_batch else data.slices) if self.shuffle else None
        for index in range(self._slice, data.slices):
            yield data.cut(index, order)

    def _train_epoch(self, last_step: int | None) -> None:
        started = time.perf_counter()
        losses: list[float] = []
        for batch in self._cut_epoch():
            losses.append(self._train_batch(batch))
            if self._is_stopped or self.step == last_step:
                break
        if not losses and not isinstance(self._train, Arrays):
            raise ArgumentError("the data have no batch in an epoch; an iterator gives its batches only once")
        is_whole = not isinstance(self._train, Arrays) or self._slice == self._train.slices
        if is_whole or self.step == last_step:
            self._evaluate_now()
        if not is_whole:
            return
        epoch, self.epoch, self._slice = self.epoch, self.epoch + 1, 0
        event: Event = {
            "event": "epoch",
            "step": self.step,
            "epoch": epoch,
            "loss": sum(losses) / len(losses),
            "seconds": time.perf_counter() - started,
        }
        self._tell("on_epoch", event)

    def _train_batch(self, batch: Batch) -> float:
        self._set_rate()
        updates_before = self._count_updates() if self._own_schedule else 0
        started = time.perf_counter()
        updates = (self.step + 1) % self._accumulate == 0
        loss = self.session.train_step(**batch) if updates else self.session.accumulate_step(**batch)
        milliseconds = (time.perf_counter() - started) * 1e3
        self.step += 1
        self._slice += 1
        event: Event = {"step": self.step, "epoch": self.epoch, "loss": loss}
        if self._has_rate:
            event["lr"] = self._rate_of(updates_before)
        event["ms"] = milliseconds
        for name in self._numbers.get((self.session.binding, "train" if updates else "accumulate"), ()):
            event[name] = float(self.session.read(name))
        self._tell("on_step", event)
        return loss

    def _tell(self, what: str, event: Event | None = None) -> None:
        if event is not None:
            self.history.append(event)
        for callback in self.callbacks:
            getattr(callback, what)(self, *([event] if event is not None else []))

    # ---- Evaluation.

    def _evaluate_now(self) -> None:
        if self._eval is None:
            return
        found = self._evaluate(self._eval)
        losses = {loss.key("loss") for loss in self._losses} | {"loss"}
        numbers = {f"eval_{name}" if name in losses else name: value for name, value in found.items()}
        event: Event = {"event": "eval", "step": self.step, "epoch": self.epoch, **numbers}
        self._tell("on_eval", event)

    def evaluate(self, data: Data | None = None) -> dict[str, float]:
        """The mean loss, each of several losses as `loss.NAME`, and the metrics, on the data of `eval` or others, as
        `ortc eval` gives them."""
        if data is None and self._eval is None:
            raise ArgumentError("there are no data to evaluate on")
        opened = self._eval if data is None else open_data(data, self._list_inputs("eval"), is_training=False)
        assert opened is not None
        return self._evaluate(opened)

    def _evaluate(self, data: Arrays | Callable[[int], Iterator[Batch]]) -> dict[str, float]:
        batches: Iterator[tuple[Batch, int | None]]
        if isinstance(data, Arrays):
            batches = ((data.cut(i), data.count_real(i) if data.is_batch else None) for i in range(data.slices))
        else:
            batches = ((batch, len(next(iter(batch.values())))) for batch in data(self.epoch))
        with averaged(self.session, self.eval_weights):
            return Evaluation(self.session, self._losses, self.metrics).run(batches)

    def predict(self, *inputs: Any, **named: Any) -> dict[str, Any]:
        return self.session.predict(*inputs, **named)

    # ---- Checkpoints.

    def save(self, path: str | os.PathLike[str]) -> None:
        """A checkpoint with the place in the data, which load and `ortc run --load` go on from."""
        metadata = {}
        if isinstance(self._train, Arrays):
            data = self._train
            position = {
                "seed": self.seed,
                "shuffle": int(self.shuffle),
                "step": self.step,
                "epoch": self.epoch,
                "slice": self._slice,
                "items": data.items if data.is_batch else data.slices,
                "lr": repr(self._base if not self._schedule.is_plain else self.session.get_scalar("lr") if self._has_rate else 0.0),
                "schedule": str(self._schedule),
            }
            metadata = {f"run.{key}": str(value) for key, value in position.items()}
        self.session.save(path, metadata)

    def load(self, path: str | os.PathLike[str]) -> Loaded:
        """Goes on from a checkpoint of save or of `ortc run`: with the same data, bit for bit as without the stop."""
        loaded = self.session.load(path)
        place = {key.removeprefix("run."): value for key, value in loaded.metadata.items() if key.startswith("run.")}
        if not place or loaded.fresh_state:
            return loaded
        try:
            self.step, self.epoch, self._slice = (int(place[key]) for key in ("step", "epoch", "slice"))
            self.seed = self.seed if self._has_seed else int(place["seed"])
            self.shuffle = self.shuffle and place["shuffle"] == "1"
            if self.lr is None:
                self._base = float(place["lr"])
                self._schedule = self._schedule if self._has_schedule else parse_schedule(place["schedule"])
            items = int(place["items"])
        except (KeyError, ValueError) as error:
            raise FormatError(f"{os.fspath(path)}: its metadata are no position of ortc run: {error}") from error
        if isinstance(self._train, Arrays):
            data = self._train
            is_other = items != (data.items if data.is_batch else data.slices) or self._slice > data.slices
            if is_other or self._slice == data.slices:  # the next epoch begins
                self.epoch, self._slice = self.epoch + (self._slice > 0), 0
        return loaded
