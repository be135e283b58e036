"""A training loop with the numbers of `ortc run`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ortc._artifact import Artifact
from ortc._averages import averaged, has_begun
from ortc._checks import File, check_output, check_rate, check_text, check_whole
from ortc._data import Arrays, Batch, Data, Input, open_data, order_of
from ortc._errors import ArgumentError, FormatError, NotFiniteError, NotFoundError
from ortc._evaluation import Evaluation
from ortc._finite import Bad, FiniteCheck, LossTrend
from ortc._following import Follower, Goal, Plateau
from ortc._kept import is_kept_name, keep_checkpoint
from ortc._losses import read_losses
from ortc._metrics import Metric, find_metric, find_metrics
from ortc._names import describe_names, format_exact
from ortc._schedule import Schedule, parse_schedule
from ortc._session import Loaded, Session
from ortc.callbacks import Callback, Event

Rate = float | Callable[[int], float]


def _check_count(name: str, value: int | None) -> int:
    return 0 if value is None else check_whole(name, value, 1)


def _check_callbacks(given: Iterable[Callback]) -> list[Callback]:
    found = list(given) if isinstance(given, Iterable) else [given]
    for each in found:
        if lacking := [name for name in vars(Callback) if name.startswith("on_") and not hasattr(each, name)]:
            raise ArgumentError(f"callbacks has {each!r}, which has no {lacking[0]}; derive its class from ortc.callbacks.Callback")
    return found


def _check_file(name: str, file: File | None, inputs: list[tuple[str, File]]) -> Path | None:
    """Of a checkpoint, before the work."""
    if file is None:
        return None
    check_output(name, Path(file), inputs)
    folder = Path(file).resolve().parent
    if not os.access(folder, os.W_OK):
        raise ArgumentError(f"{os.fspath(file)}: the folder {folder} is not there or cannot be written")
    return Path(file)


class Trainer:
    """Trains an artifact on data: arrays by name (a dict, or the path of an npz file), an iterable of batches, or a
    function that gives one for an epoch. Batches are dicts by name, or tuples in the order of the step's inputs.

    With arrays, the same seed and flags, losses are bit for bit those of `ortc run`."""

    def __init__(
        self,
        artifact: Artifact | Session | File,
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
        eval_every: int | None = None,
        best: str | None = None,
        patience: int | None = None,
        save_best: File | None = None,
        save: File | None = None,
        save_every: int | None = None,
        keep: int | None = None,
    ) -> None:
        """`seed`: of the shuffling; None is 0, or the checkpoint's. `lr`: a rate, or a function of the number of steps done
        before; None is the artifact's, or the checkpoint's. `lr_schedule`: as --lr-schedule of `ortc run`. `eval_weights`: "ema" or
        "swa", evaluations take these averages in place of the parameters. `eval_every`, `best` ("METRIC:max"), `patience`,
        `save_best`, `save`, `save_every` and `keep` are those flags of `ortc run`, and a fit is a run."""
        if callable(lr) and lr_schedule is not None:
            raise ArgumentError("lr is a function and lr_schedule is given, too; give one of them")
        for name, text in (("best", best), ("lr_schedule", lr_schedule), ("device", device), ("eval_weights", eval_weights)):
            if text is not None:
                check_text(name, text)
        if isinstance(metrics, str) or not isinstance(metrics, Iterable):
            raise ArgumentError(f"metrics is {metrics!r}, but must be a list of names, or of pairs of a name and a function")
        if lr is not None and not callable(lr):
            check_rate("lr", lr)
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
        self._comparable = outputs, inputs
        self.metrics = find_metrics(tuple(metrics), self._losses, outputs, inputs)
        self.callbacks = _check_callbacks(callbacks)
        self.eval_weights = eval_weights
        self.shuffle = shuffle
        self.seed = check_whole("seed", seed, 0, (1 << 64) - 1) if seed is not None else 0
        self._has_seed = seed is not None
        self.lr = lr
        plateau = Plateau.parse(lr_schedule) if lr_schedule is not None and lr_schedule.split(":")[0] == "plateau" else None
        self._has_schedule = lr_schedule is not None and plateau is None
        self._schedule = parse_schedule(lr_schedule) if lr_schedule is not None and plateau is None else Schedule()
        self.eval_every = _check_count("eval_every", eval_every)
        read = self._read = self.session.artifact.list_files()
        read += [(name, data) for name, data in (("train", train), ("eval", eval)) if isinstance(data, (str, os.PathLike))]
        self._save, self._save_best = _check_file("save", save, read), _check_file("save_best", save_best, read)
        self._save_every, self._keep = _check_count("save_every", save_every), _check_count("keep", keep)
        self._follower = Follower(
            Goal.parse(best) if best is not None else None, _check_count("patience", patience), plateau, save_best is not None
        )
        self._check_kept(read)
        self._check_flags(best is not None, plateau is not None)
        self.step = 0
        """Steps done, over all fits and the checkpoint's."""
        self.epoch = 0
        self._slice = 0  # of the epoch, of the next step
        self.history: list[Event] = []
        """What callbacks were told, in order."""
        described = manifest.get("optimizer", {}).get("schedule", {})
        self._own_schedule = parse_schedule(described["lr"]) if "lr" in described else None  # of the artifact
        if self._own_schedule and (self._has_schedule or plateau or callable(lr)):
            raise ArgumentError(
                f"the artifact computes its rate by itself, by schedule='lr={self._own_schedule}'; leave lr_schedule and a "
                "function for lr out, or compile it without a schedule"
            )
        self._accumulate = int(manifest.get("optimizer", {}).get("accumulate", 1))
        self._has_rate = "lr" in self.session.artifact.names("scalar")
        self._base = self.session.get_scalar("lr") if self._has_rate else 0.0  # of the schedule
        self._rate = self._base  # that was set last
        self._end = 0  # the step after the last of this fit
        self._is_stopped = self._is_interrupted = False
        self._taken: Rate | None = None
        """What `lr` was when a plateau took it over."""
        self._first = 0  # step of this fit
        self._has_ended_epoch = False  # with the last step
        self._failed_step = -1  # of this fit: the first one with a loss that is not finite, which was told; -1: none
        self._finite: FiniteCheck | None = None  # from the first fit on
        self._losses_seen = LossTrend()
        self._evaluated = self._saved = -1  # steps of the last evaluation and checkpoint
        self._loaded: Path | None = None
        self._find_goal()

    def _check_flags(self, has_best: bool, has_plateau: bool) -> None:
        """Refuses what lacks another argument."""
        needing = {
            "eval_every": self.eval_every > 0,
            "best": has_best,
            "patience": self._follower.patience > 0,
            "save_best": self._save_best is not None,
            "lr_schedule 'plateau'": has_plateau,
        }
        for name, is_given in needing.items():
            if is_given and self._eval is None:
                raise ArgumentError(f"{name} needs evaluations; give eval, the data for them")
        if self._keep and not self._save_every:
            raise ArgumentError("keep is for the checkpoints of save_every, which is not given")
        if self._save_every and self._save is None:
            raise ArgumentError("save_every needs save, the file of checkpoints")
        if self._save is None or self._save_best is None:
            return
        if self._save.resolve() == self._save_best.resolve():
            raise ArgumentError(f"save and save_best are both {self._save}")

    def _check_kept(self, inputs: list[tuple[str, File]]) -> None:
        more: list[tuple[str, File]] = [("save_best", self._save_best)] if self._save_best is not None else []
        for name, file in [*inputs, *more]:
            if self._keep and self._save is not None and is_kept_name(self._save, Path(file)):
                raise ArgumentError(
                    f"{name} {os.fspath(file)}: keep gives such names to checkpoints, and removes them; rename the file, or give "
                    "save another name"
                )

    def _find_goal(self) -> None:
        """Has evaluations compute what is followed. Raises ArgumentError where they cannot."""
        goal = self._follower.goal
        if self._eval is None or not self._follower.is_active or goal.metric in self.metrics:
            return
        several = [loss for loss in self._losses if loss.name]
        figures = ["loss", *(loss.key("loss") for loss in several)]
        figures += [loss.key("accuracy") for loss in several if loss.axis is not None]
        if goal.is_of_loss and goal.metric not in figures:
            raise ArgumentError(
                f"best {goal}: there is no {goal.metric} in the artifact; any metric goes, too; {describe_names(goal.metric, figures)}"
            )
        if goal.metric.startswith("accuracy."):
            self.metrics |= find_metrics((goal.metric,), self._losses, *self._comparable)
        elif not goal.is_of_loss:
            self.metrics[goal.metric] = find_metric(goal.metric, self._losses, *self._comparable)

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
        step in progress, with `save` behind a checkpoint."""
        epochs = check_whole("epochs", epochs, 0)
        steps = check_whole("steps", steps, 0) if steps is not None else None
        if steps is None and not isinstance(self._train, Arrays):
            last_step, last_epoch = None, self.epoch + epochs
        else:
            count = steps if steps is not None else epochs * self._count_slices()
            last_step, last_epoch = self.step + count, None
        if self._follower.is_exhausted:
            warnings.warn(f"step {self.step}: the training has ended early there; a larger patience, or none, goes on", stacklevel=2)
        self._begin_rates(last_step)
        first = len(self.history)
        self._is_stopped = False
        self._first = self.step
        self._failed_step = -1
        self._finite = self._finite or FiniteCheck(self.session)
        self._losses_seen = LossTrend()
        self._tell("on_begin")
        try:
            with self._listen():
                self._fit(last_step, last_epoch)
        except NotFiniteError:
            raise
        except Exception:  # what was trained before it
            if self._save is not None and self.step > self._first and self._saved != self.step:
                with contextlib.suppress(NotFiniteError):
                    self._save_now()
            raise
        finally:
            self._is_interrupted = False
            self._tell("on_end")
        return self.history[first:]

    def _fit(self, last_step: int | None, last_epoch: int | None) -> None:
        follower, is_done = self._follower, self.step == last_step
        # A run that was interrupted in an evaluation has left it to this one.
        if follower.is_active and self.step and not is_done and self._is_due() and follower.evaluated_step != self.step:
            self._evaluate_now(is_due=True)
        while (
            not self._has_ended
            and (last_step is None or self.step < last_step)
            and (last_epoch is None or self.epoch < last_epoch)
        ):
            self._train_epoch(last_step)
        if self._is_interrupted:
            self._tell("on_event", {"event": "interrupted", "step": self.step})
        elif (not self._is_stopped or self.step == last_step) and self._evaluated != self.step:
            self._evaluate_now(is_due=False)
        if self._save is not None and self._saved != self.step:
            self._save_now()
        if self._is_interrupted:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def _listen(self) -> Iterator[None]:
        """With `save` the first Ctrl-C lets the step in progress and its checkpoint come to their ends."""
        is_main = threading.current_thread() is threading.main_thread()
        if self._save is None or not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return

        def interrupt(*_: Any) -> None:
            if self._is_interrupted:
                raise KeyboardInterrupt
            self._is_interrupted = True

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @property
    def _has_ended(self) -> bool:
        return self._is_stopped or self._is_interrupted or self._follower.is_exhausted

    def _begin_rates(self, last_step: int | None) -> None:
        schedule = self._schedule
        if self._has_rate:
            self._rate = self.session.get_scalar("lr")
        if self.lr is not None and not callable(self.lr) and not (self._follower.plateau and self.lr == self._taken):
            self._base = self._taken = check_rate("lr", self.lr)
        elif schedule.is_plain and not self._follower.plateau:
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
            rate = check_rate(f"lr({self.step})", self.lr(self.step))
        elif self.lr is None and self._schedule.is_plain and not self._follower.plateau:
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
            if self._is_due():
                self._evaluate_now(is_due=True)
            if self._save_every and (self.step - self._first) % self._save_every == 0:
                self._save_now()
            if self._has_ended or self.step == last_step:
                break
        if not losses and not isinstance(self._train, Arrays):
            raise ArgumentError("the data have no batch in an epoch; an iterator gives its batches only once")
        is_whole = not isinstance(self._train, Arrays) or self._slice == self._train.slices
        if not isinstance(self._train, Arrays) and self._eval is not None and not self.eval_every:
            self._evaluate_now(is_due=True)
        if not is_whole:
            return
        epoch, self.epoch, self._slice = self.epoch, self.epoch + 1, 0
        self._has_ended_epoch = True
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
        try:
            loss = self.session.train_step(**batch) if updates else self.session.accumulate_step(**batch)
        except NotFiniteError as error:
            self._tell("on_event", {"event": "not_finite", "step": self.step + 1})
            place = f"step {self.step + 1}, epoch {self.epoch}, slice {self._slice}"
            reason = self._explain(batch, None)
            raise NotFiniteError(
                f"{error} ({place}){reason}; no parameter was changed by this step, {self._describe_kept()}"
            ) from None
        milliseconds = (time.perf_counter() - started) * 1e3
        self.step += 1
        self._slice += 1
        self._has_ended_epoch = isinstance(self._train, Arrays) and self._slice == self._train.slices
        event: Event = {"step": self.step, "epoch": self.epoch, "loss": loss}
        if self._has_rate:
            event["lr"] = self._rate_of(updates_before)
        event["ms"] = milliseconds
        for name in self._numbers.get((self.session.binding, "train" if updates else "accumulate"), ()):
            event[name] = float(self.session.read(name))
        self._tell("on_step", event)
        if math.isfinite(loss):
            self._losses_seen.add(loss, self.step)
        elif self._failed_step < 0:
            self._failed_step = self.step
            self._tell("on_event", {"event": "not_finite", "step": self.step})
        if self.session.stops_on_not_finite and updates:
            self._check_weights(batch)
        return loss

    def _explain(self, batch: Batch, update: Bad | None) -> str:
        assert self._finite is not None
        return self._finite.explain(batch, self._losses, self._losses_seen, update)

    def _check_weights(self, batch: Batch) -> None:
        """After an update: its loss is that of the weights before, so theirs tells of it one step late, or never."""
        assert self._finite is not None
        if (bad := self._finite.check_model()) is None:
            return
        self._tell("on_event", {"event": "not_finite", "step": self.step, "tensor": bad.name})
        raise NotFiniteError(
            f"the weights are not finite after the update of step {self.step} (epoch {self.epoch}, slice {self._slice - 1}): "
            f"{bad}{self._explain(batch, bad)}; {self._describe_kept()}"
        )

    def _describe_kept(self) -> str:
        """The state of the training when it ends for numbers that are not finite."""
        if self._saved >= 0:
            return f"{self._save} holds step {self._saved}"
        advice = self.step > self._first and not self._save_every
        return "nothing was saved" + "; save with save_every keeps what comes before" * advice

    def _tell(self, what: str, event: Event | None = None) -> None:
        if event is not None:
            self.history.append(event)
        for callback in self.callbacks:
            getattr(callback, what)(self, *([event] if event is not None else []))

    # ---- Evaluation.

    def _is_due(self) -> bool:
        """By the step of the training, not of the fit: fits may end anywhere."""
        if self._eval is None:
            return False
        return self.step % self.eval_every == 0 if self.eval_every else self._has_ended_epoch

    def _evaluate_now(self, is_due: bool) -> None:
        """One that is not due, at the end of a fit, is told and counts for nothing else: an uninterrupted one has none there."""
        if self._eval is None:
            return
        weights = self.eval_weights  # of a run: once there are some
        weights = weights if weights is not None and has_begun(self.session, weights) else None
        found = self._evaluate(self._eval, weights)
        if self._is_interrupted:  # half of an evaluation is none; the next fit makes up for it
            return
        self._evaluated = self.step
        losses = {loss.key("loss") for loss in self._losses} | {"loss"}
        numbers = {f"eval_{name}" if name in losses else name: value for name, value in found.items()}
        epoch = self.epoch - 1 if self._slice == 0 and self.epoch > 0 else self.epoch
        event: Event = {"event": "eval", "step": self.step, "epoch": epoch, "eval_loss": numbers.pop("eval_loss")}
        if weights is not None:
            event["weights"] = weights
        self._tell("on_eval", event | numbers)
        if is_due and self._follower.is_active:
            self._follow(found[self._follower.goal.metric])

    def _follow(self, value: float) -> None:
        follower, metric = self._follower, self._follower.goal.metric
        is_best, rate = follower.add(value, self.step, self._base)
        if rate != self._base:
            self._base = rate
            self._tell("on_event", {"event": "plateau", "step": self.step, "lr": rate})
        if is_best:
            event: Event = {"event": "best", "step": self.step, "metric": metric, "value": value}
            if self._save_best is not None:
                self.save(self._save_best)
                event["file"] = os.fspath(self._save_best)
            self._tell("on_event", event)
        if follower.is_exhausted:
            self._tell("on_event", {"event": "early_stop", "step": self.step, "best_step": follower.best_step})

    @property
    def best_step(self) -> int | None:
        """Of the best evaluation that was due; None where none was finite, or nothing is followed."""
        return self._follower.best_step if self._follower.best_step >= 0 else None

    @property
    def best_value(self) -> float | None:
        return self._follower.best if self._follower.best_step >= 0 else None

    def evaluate(self, data: Data | None = None) -> dict[str, float]:
        """The mean loss, each of several losses as `loss.NAME`, and the metrics, on the data of `eval` or others, as
        `ortc eval` gives them."""
        if data is None and self._eval is None:
            raise ArgumentError("there are no data to evaluate on")
        opened = self._eval if data is None else open_data(data, self._list_inputs("eval"), is_training=False)
        assert opened is not None
        return self._evaluate(opened, self.eval_weights)

    def _evaluate(self, data: Arrays | Callable[[int], Iterator[Batch]], weights: str | None) -> dict[str, float]:
        batches: Iterator[tuple[Batch, int | None]]
        if isinstance(data, Arrays):
            batches = ((data.cut(i), data.count_real(i) if data.is_batch else None) for i in range(data.slices))
        else:
            batches = ((batch, len(next(iter(batch.values())))) for batch in data(self.epoch))
        batches = itertools.takewhile(lambda _: not self._is_interrupted, batches)
        with averaged(self.session, weights):
            return Evaluation(self.session, self._losses, self.metrics).run(batches)

    def predict(self, *inputs: Any, **named: Any) -> dict[str, Any]:
        return self.session.predict(*inputs, **named)

    # ---- Checkpoints.

    def _save_now(self) -> None:
        """To the file of `save`."""
        assert self._save is not None
        self.save(self._save)
        self._saved = self.step
        if self._keep:
            keep_checkpoint(self._save, self.step, self._keep, self._loaded)
        self._tell("on_event", {"event": "save", "step": self.step, "file": os.fspath(self._save)})

    def list_files(self) -> list[tuple[str, File]]:
        """Those that it reads, and what each is."""
        return list(self._read)

    def save(self, path: File) -> None:
        """A checkpoint with the place in the data, which load and `ortc run --load` go on from. Behind a step within an epoch of an
        iterable that place is the next epoch. Raises NotFiniteError, and leaves the file as it was, where a tensor is not finite
        any more; `session.save` writes what there is."""
        check_output("save", path, self.list_files())
        if self._finite is not None and (bad := self._finite.check_saved()) is not None:
            loss = f", and the loss is not finite since step {self._failed_step}" if self._failed_step >= 0 else ""
            reason = self._finite.describe_growth(self._losses_seen)
            if not reason and not self.session.stops_on_not_finite:
                reason = "; a session with stop_on_not_finite ends at the step that does it, and says why"
            raise NotFiniteError(
                f"{os.fspath(path)}: step {self.step} is not saved: {bad}{loss}{reason}; {self._describe_kept()}"
            )
        epoch, index, items = self._find_place()
        position = {
            "seed": self.seed,
            "shuffle": int(self.shuffle),
            "step": self.step,
            "epoch": epoch,
            "slice": index,
            "items": items,
            "lr": format_exact(self._find_base()),
            "schedule": str(self._schedule),
        }
        self.session.save(path, {f"run.{key}": str(value) for key, value in position.items()} | self._follower.describe())

    def _find_place(self) -> tuple[int, int, int]:
        """The epoch, the slice in it, and how many items there are."""
        data = self._train
        if not isinstance(data, Arrays):  # there is no way back into an epoch: the next one begins
            return self.epoch + (self._slice > 0), 0, 0
        items = data.items if data.is_batch else data.slices
        if self._has_ended_epoch and self._slice == 0:  # of `ortc run` the next one begins with its first step
            return self.epoch - 1, data.slices, items
        return self.epoch, self._slice, items

    def _find_base(self) -> float:
        if self._follower.plateau or not self._schedule.is_plain:
            return self._base
        return self.session.get_scalar("lr") if self._has_rate else 0.0

    def load(self, path: File) -> Loaded:
        """Goes on from a checkpoint of save or of `ortc run`: with the same data, bit for bit as without the stop."""
        loaded = self.session.load(path)
        self._finite = None
        place = {key.removeprefix("run."): value for key, value in loaded.metadata.items() if key.startswith("run.")}
        self._loaded, self._taken, self._evaluated, self._has_ended_epoch = Path(path), None, -1, False
        has_place = bool(place) and not loaded.fresh_state
        replaces_rate = self.lr is not None or self._has_schedule
        note = self._follower.resume(loaded.metadata if has_place else {}, os.fspath(path), replaces_rate)
        if note:
            warnings.warn(f"{os.fspath(path)}: {note}", stacklevel=2)
        if self._follower.plateau and self._eval is None:
            raise ArgumentError(
                f"{os.fspath(path)}: its learning rate follows evaluations, and there are none; give eval, or lr for a constant rate"
            )
        self._find_goal()
        if not has_place:
            self._base = self.session.get_scalar("lr") if self._has_rate else 0.0
            return loaded
        try:
            self.step, self.epoch, self._slice = (int(place[key]) for key in ("step", "epoch", "slice"))
            self.seed = self.seed if self._has_seed else int(place["seed"])
            self.shuffle = self.shuffle and place["shuffle"] == "1"
            if self.lr is None:
                self._base = float(place["lr"])
                self._schedule = self._schedule if self._has_schedule else parse_schedule(place["schedule"])
            self._schedule = Schedule() if self._follower.plateau else self._schedule
            items = int(place["items"])
        except (KeyError, ValueError) as error:
            raise FormatError(f"{os.fspath(path)}: its metadata are no position of ortc run: {error}") from error
        data = self._train
        has_same = isinstance(data, Arrays) and items == (data.items if data.is_batch else data.slices)
        slices = data.slices if isinstance(data, Arrays) and has_same else -1
        self._has_ended_epoch = self._slice == slices
        if self._slice >= slices:  # the next epoch begins
            self.epoch, self._slice = self.epoch + (self._slice > 0), 0
        return loaded
