"""A training loop: the engine of `ortc run`, over a session.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ortc._artifact import Artifact
from ortc._checks import File, check_output, check_rate, check_text, check_whole
from ortc._data import Data, Source, open_source
from ortc._errors import ArgumentError
from ortc._runtime import Training, check_folder, check_kept_names, join_words
from ortc._session import Loaded, Session
from ortc.callbacks import Callback, Event

Rate = float | Callable[[int], float]
Metric = Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[float, float]]
"""From outputs and inputs of a batch: a sum, and how many it is over. Means are made of both over all batches."""

_FIELDS = ("event", "step", "epoch", "loss", "eval_loss", "lr", "ms", "seconds", "weights")
"""What events have beside metrics."""


def _check_count(name: str, value: int | None) -> int | None:
    return None if value is None else check_whole(name, value, 1)


def _check_callbacks(given: Iterable[Callback]) -> list[Callback]:
    found = list(given) if isinstance(given, Iterable) else [given]
    for each in found:
        if lacking := [name for name in vars(Callback) if name.startswith("on_") and not hasattr(each, name)]:
            raise ArgumentError(f"callbacks has {each!r}, which has no {lacking[0]}; derive its class from ortc.callbacks.Callback")
    return found


def _check_file(name: str, file: File | None, inputs: list[tuple[str, File]]) -> str | None:
    """Of a checkpoint, before the work."""
    if file is None:
        return None
    check_output(name, Path(file), inputs)
    check_folder(os.fspath(file))
    return os.fspath(file)


class Trainer:
    """Trains an artifact on data: arrays by name (a dict, or the path of an npz file), an iterable of batches, or a
    function that gives one for an epoch. Batches are dicts by name, or tuples in the order of the step's inputs.

    It is the training of `ortc run`: with arrays, the same seed and flags, events and checkpoints are the same."""

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
        self.session = artifact if isinstance(artifact, Session) else Session(artifact, threads=threads, device=device)
        self.lr = lr
        self.eval_weights = eval_weights
        self.eval_every = _check_count("eval_every", eval_every)
        self.callbacks = _check_callbacks(callbacks)
        self.history: list[Event] = []
        """What callbacks were told, in order."""
        of = self.session.artifact
        self._training = Training(self.session, os.fspath(of.path), self._tell)
        self._has_eval = eval is not None
        patience, save_every, keep = (
            _check_count(name, value) for name, value in (("patience", patience), ("save_every", save_every), ("keep", keep))
        )
        self._training.set(
            seed=None if seed is None else check_whole("seed", seed, 0, (1 << 64) - 1),
            shuffle=bool(shuffle),
            stop_on_not_finite=self.session.stops_on_not_finite,
            best=best,
            patience=patience,
            lr_schedule=lr_schedule,
            save_every=save_every,
            keep=keep,
        )
        self._set_options()
        self._training.open_train(self._open(train, "train"))
        if eval is not None:
            self._training.open_eval(self._open(eval, "eval"))
        self._read = of.list_files() + list(self._training.files)
        saves = {name: _check_file(name, file, self._read) for name, file in (("save", save), ("save_best", save_best))}
        self._check_kept(keep, **saves)
        is_plateau = lr_schedule is not None and lr_schedule.split(":")[0] == "plateau"
        self._check_flags(saves, save_every, keep, best=best, patience=patience, plateau=is_plateau or None)
        if self._training.schedule and (lr_schedule is not None or callable(lr)):
            raise ArgumentError(
                f"the artifact computes its rate by itself, by schedule='lr={self._training.schedule}'; leave lr_schedule and a "
                "function for lr out, or compile it without a schedule"
            )
        for each in metrics:
            self._add_metric(each)
        self._training.set(**saves)
        self._training.begin()

    def _open(self, data: Data, step: str) -> Source:
        roles = self.session.program.steps()[self.session.binding]
        return open_source(data, [name for name, _, _ in roles[step][0]] if step in roles else [])

    def _add_metric(self, given: str | tuple[str, Metric]) -> None:
        if not isinstance(given, tuple):
            self._training.add_metric(check_text("a metric", given))
            return
        if len(given) != 2 or not isinstance(given[0], str) or not callable(given[1]):
            raise ArgumentError(f"the metric {given!r} must be a pair of a name and a function")
        losses = [figure for figure in self._training.figures if figure.split(".")[0] == "loss"]
        taken = {*_FIELDS, *losses, *(f"eval_{each}" for each in losses), *self._training.metrics}
        if given[0] in taken:
            raise ArgumentError(f"the metric '{given[0]}' has a name that is taken; there are {join_words(sorted(taken))}")
        self._training.add_metric(*given)

    def _check_flags(
        self, saves: Mapping[str, str | None], save_every: int | None, keep: int | None, plateau: bool | None, **more: Any
    ) -> None:
        """Refuses what lacks another argument."""
        needing = {"eval_every": self.eval_every, **more, "save_best": saves["save_best"], "lr_schedule 'plateau'": plateau}
        for name, value in needing.items():
            if value is not None and not self._has_eval:
                raise ArgumentError(f"{name} needs evaluations; give eval, the data for them")
        if keep and not save_every:
            raise ArgumentError("keep is for the checkpoints of save_every, which is not given")
        save, save_best = saves["save"], saves["save_best"]
        if save_every and save is None:
            raise ArgumentError("save_every needs save, the file of checkpoints")
        if save is not None and save_best is not None and Path(save).resolve() == Path(save_best).resolve():
            raise ArgumentError(f"save and save_best are both {save}")

    def _check_kept(self, keep: int | None, save: str | None, save_best: str | None) -> None:
        more: list[tuple[str, File]] = [("save_best", save_best)] if save_best is not None else []
        if keep and save is not None:
            check_kept_names(save, [(name, os.fspath(file)) for name, file in [*self._read, *more]])

    def _set_options(self) -> None:
        """Those that are attributes, as they are now."""
        rate = self.lr
        if callable(rate):
            function = rate
            self._training.set(lr=None, rate=lambda step: check_rate(f"lr({step})", function(step)))
        else:
            self._training.set(lr=None if rate is None else check_rate("lr", rate), rate=None)
        weights = None if self.eval_weights is None else check_text("eval_weights", self.eval_weights)
        self._training.set(eval_every=_check_count("eval_every", self.eval_every), eval_weights=weights)

    # ---- Where it stands.

    @property
    def step(self) -> int:
        """Steps done, over all fits and the checkpoint's."""
        return self._training.step

    @property
    def epoch(self) -> int:
        """Of the next step."""
        return self._training.epoch

    @property
    def seed(self) -> int:
        """Of the shuffling."""
        return self._training.seed

    @property
    def shuffle(self) -> bool:
        return self._training.shuffle

    @property
    def metrics(self) -> list[str]:
        """Names of what evaluations have beside losses."""
        return self._training.metrics

    @property
    def best_step(self) -> int | None:
        """Of the best evaluation that was due; None where none was finite, or nothing is followed."""
        return self._training.best[0] if self._training.best else None

    @property
    def best_value(self) -> float | None:
        return self._training.best[1] if self._training.best else None

    # ---- Training.

    def fit(self, epochs: int = 1, steps: int | None = None) -> list[Event]:
        """Trains for so many epochs, or steps, more than before, and gives the events of this fit. Ctrl-C ends it after the
        step in progress, with `save` after a checkpoint."""
        epochs = check_whole("epochs", epochs, 0)
        steps = check_whole("steps", steps, 0) if steps is not None else None
        if self._training.is_exhausted:
            warnings.warn(f"step {self.step}: the training has ended early there; a larger patience, or none, goes on", stacklevel=2)
        self._set_options()
        self._training.plan(epochs, steps)
        first = len(self.history)
        with self._begin_callbacks(), self._listen():
            is_interrupted = self._training.train()
        if is_interrupted:
            raise KeyboardInterrupt
        return self.history[first:]

    @contextlib.contextmanager
    def _begin_callbacks(self) -> Iterator[None]:
        """Those that have begun are ended, in their order, whatever fails."""
        begun: list[Callback] = []
        try:
            for callback in self.callbacks:
                callback.on_begin(self)
                begun.append(callback)
            yield
        finally:
            with contextlib.ExitStack() as ends:
                for callback in reversed(begun):
                    ends.callback(callback.on_end, self)

    @contextlib.contextmanager
    def _listen(self) -> Iterator[None]:
        """With `save` the first Ctrl-C lets the step in progress and its checkpoint come to their ends."""
        is_main = threading.current_thread() is threading.main_thread()
        if not self._training.saves or not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return

        def interrupt(*_: Any) -> None:
            if self._training.is_interrupted:
                raise KeyboardInterrupt
            self._training.interrupt()

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _tell(self, what: str, event: Event) -> None:
        self.history.append(event)
        for callback in self.callbacks:
            getattr(callback, what)(self, event)

    def stop(self) -> None:
        """Ends a fit after the step in progress; for callbacks."""
        self._training.stop()

    # ---- Evaluation.

    def evaluate(self, data: Data | None = None) -> dict[str, float]:
        """The mean loss, each of several losses as `loss.NAME`, and the metrics, on the data of `eval` or others, as
        `ortc eval` gives them."""
        if data is None and not self._has_eval:
            raise ArgumentError("there are no data to evaluate on")
        source = None if data is None else self._open(data, "eval")
        return self._training.evaluate(source, self.eval_weights or "")

    def predict(self, *inputs: Any, **named: Any) -> dict[str, Any]:
        return self.session.predict(*inputs, **named)

    # ---- Checkpoints.

    def list_files(self) -> list[tuple[str, File]]:
        """Those that it reads, and what each is."""
        return list(self._read)

    def save(self, path: File) -> None:
        """A checkpoint with the place in the data, which load and `ortc run --load` go on from. After a step within an epoch of an
        iterable that place is the next epoch. Raises NotFiniteError, and leaves the file as it was, where a tensor is not finite
        any more; `session.save` writes what there is."""
        check_output("save", path, self.list_files())
        self._training.save(os.fspath(path))

    def load(self, path: File) -> Loaded:
        """Goes on from a checkpoint of save or of `ortc run`: with the same data, bit for bit as without the stop."""
        self._set_options()
        *loaded, notes = self._training.load(os.fspath(path))
        for note in notes:
            warnings.warn(f"{os.fspath(path)}: {note}", stacklevel=2)
        return Loaded(*loaded)
