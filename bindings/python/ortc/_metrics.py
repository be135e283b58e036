"""What an evaluation measures beside the loss: the metrics of `ortc eval --metric`, and functions.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ortc._checks import check_text
from ortc._errors import ArgumentError
from ortc._losses import Loss
from ortc._names import count_edits, join_words, parse_number, suggest

Batch = Mapping[str, Any]
Metric = Callable[[Batch, Batch], tuple[float, float]]
"""From outputs and inputs of a batch: a sum, and how many it is over. Means are made of both over all batches."""
Value = tuple[str, str, tuple[int, ...]]
"""Name, type and shape of an input or output."""
Array = NDArray[Any]


class Measure(Protocol):
    """A metric of one evaluation."""

    def add(self, outputs: Batch, inputs: Batch) -> None: ...
    def compute(self) -> float:
        """NaN where it is not defined."""


MakeMeasure = Callable[[], Measure]


class _Mean:
    """Of a function's sums."""

    def __init__(self, function: Metric) -> None:
        self.function = function
        self.total, self.count = 0.0, 0.0

    def add(self, outputs: Batch, inputs: Batch) -> None:
        found = self.function(outputs, inputs)
        if not isinstance(found, tuple) or len(found) != 2:
            raise ArgumentError(f"a metric's function has given {found!r}, but must give a sum and a count")
        total, count = found
        self.total, self.count = self.total + total, self.count + count

    def compute(self) -> float:
        return self.total / self.count if self.count else math.nan


# ---- Of scores [predictions, classes] and the classes that are right. Ties go to the lower class, and a prediction with a
# NaN is of no class.


def _predict(scores: Array) -> Array:
    return np.where(np.isnan(scores).any(1), -1, scores.argmax(1))


class _TopK:
    def __init__(self, most: int) -> None:
        self.most, self.right, self.counted = most, 0, 0

    def add(self, scores: Array, wanted: Array) -> None:
        own = scores[np.arange(len(wanted)), wanted][:, None]
        before = (scores > own) | ((scores == own) & (np.arange(scores.shape[1]) < wanted[:, None]))
        self.right += int(((before.sum(1) < self.most) & ~np.isnan(scores).any(1)).sum())
        self.counted += len(wanted)

    def compute(self) -> float:
        return self.right / self.counted if self.counted else math.nan


class _Confusion:
    """f1 and iou, of what is predicted, right, and both, by class."""

    def __init__(self, classes: int, kind: str) -> None:
        self.kind = kind
        self.predicted, self.wanted, self.both = (np.zeros(classes, np.int64) for _ in range(3))

    def add(self, scores: Array, wanted: Array) -> None:
        predicted, classes = _predict(scores), len(self.wanted)
        self.wanted += np.bincount(wanted, minlength=classes)
        self.predicted += np.bincount(predicted[predicted >= 0], minlength=classes)
        self.both += np.bincount(wanted[predicted == wanted], minlength=classes)

    def compute(self) -> float:
        sizes, both = self.predicted + self.wanted, self.both
        if not sizes.sum():
            return math.nan
        if self.kind == "micro":
            return float(2 * both.sum() / sizes.sum())
        there = sizes > 0
        values = both[there] / (sizes - both)[there] if self.kind == "iou" else 2 * both[there] / sizes[there]
        if self.kind == "binary":
            return float(2 * both[1] / sizes[1]) if sizes[1] else 0.0
        return float(values.sum() / there.sum())


class _Auc:
    """By ranks; equal scores count half."""

    def __init__(self) -> None:
        self.scores: list[Array] = []
        self.wanted: list[Array] = []

    def add(self, scores: Array, wanted: Array) -> None:
        self.scores.append(scores[:, 1] - scores[:, 0])
        self.wanted.append(wanted == 1)

    def compute(self) -> float:
        scores, wanted = np.concatenate(self.scores or [np.zeros(0)]), np.concatenate(self.wanted or [np.zeros(0, bool)])
        positive, negative = scores[wanted], np.sort(scores[~wanted])
        if np.isnan(scores).any() or not len(positive) or not len(negative):
            return math.nan
        halves = np.searchsorted(negative, positive, "left").sum() + np.searchsorted(negative, positive, "right").sum()
        return float(halves / (2 * len(positive) * len(negative)))


class _Perplexity:
    def __init__(self) -> None:
        self.total, self.counted = 0.0, 0

    def add(self, scores: Array, wanted: Array) -> None:
        largest = scores.max(1)
        finite = np.where(np.isinf(largest), 0.0, largest)
        with np.errstate(over="ignore"):
            sums = np.where(np.isinf(largest), largest, finite + np.log(np.exp(scores - finite[:, None]).sum(1)))
        self.total += float((sums - scores[np.arange(len(wanted)), wanted]).sum())
        self.counted += len(wanted)

    def compute(self) -> float:
        return math.exp(self.total / self.counted) if self.counted else math.nan


# ---- Of values [rows, columns].


class _Error:
    """mae and rmse."""

    def __init__(self, kind: str) -> None:
        self.kind, self.total, self.counted = kind, 0.0, 0

    def add(self, values: Array, wanted: Array) -> None:
        errors = values - wanted
        self.total += float((np.abs(errors) if self.kind == "mae" else errors * errors).sum())
        self.counted += errors.size

    def compute(self) -> float:
        mean = self.total / self.counted if self.counted else math.nan
        return mean if self.kind == "mae" else math.sqrt(mean)


class _Determination:
    """r2, with the means of batches joined as they come."""

    def __init__(self, columns: int) -> None:
        self.count = 0
        self.mean, self.distances, self.errors = (np.zeros(columns) for _ in range(3))

    def add(self, values: Array, wanted: Array) -> None:
        if not len(wanted):
            return
        count, mean = self.count + len(wanted), wanted.mean(0)
        difference = mean - self.mean
        self.distances += ((wanted - mean) ** 2).sum(0) + difference**2 * self.count * len(wanted) / count
        self.mean += difference * len(wanted) / count
        self.errors += ((values - wanted) ** 2).sum(0)
        self.count = count

    def compute(self) -> float:
        if self.count < 2:
            return math.nan
        constant = self.distances == 0
        values = np.where(constant, np.where(self.errors == 0, 1.0, np.where(np.isnan(self.errors), math.nan, 0.0)), 1.0)
        return float((values - np.where(constant, 0.0, self.errors / np.where(constant, 1.0, self.distances))).mean())


# ---- What is compared.

_INDICES, _CHANCES, _DECISIONS, _VALUES, _SEQUENCES = (
    "indices of classes",
    "probabilities of classes",
    "probabilities beside logits",
    "values",
    "sequences of classes",
)
_TAKES = {
    "accuracy": (_INDICES, _CHANCES, _DECISIONS),
    "topk": (_INDICES, _CHANCES),
    "f1": (_INDICES, _CHANCES, _DECISIONS),
    "auc": (_INDICES, _CHANCES, _DECISIONS),
    "iou": (_INDICES, _CHANCES, _DECISIONS),
    "perplexity": (_INDICES,),
    "token_accuracy": (_INDICES,),
    "label_error_rate": (_SEQUENCES,),
    "mae": (_VALUES,),
    "rmse": (_VALUES,),
    "r2": (_VALUES,),
}
"""Metrics, and the labels that they take."""


@dataclass(frozen=True)
class _Comparison:
    """An output and its label."""

    output: str
    label: str
    kind: str
    axis: int = -1
    """Of the classes."""
    ignored: int | None = None
    classes: int = 2
    columns: int = 1
    is_sequence: bool = False
    blank: int = -1
    """Of sequences: the class between labels."""
    lengths: tuple[str | None, str | None] = (None, None)
    """Of sequences: the inputs with the frames and with the labels of samples; None: all count."""

    def read(self, outputs: Batch, inputs: Batch) -> tuple[Array, Array]:
        """Scores and classes, or values, of a batch."""
        output, label = np.asarray(outputs[self.output], np.float64), np.asarray(inputs[self.label])
        if self.kind == _VALUES:
            return output.reshape(-1, self.columns), label.astype(np.float64).reshape(-1, self.columns)
        if self.kind == _DECISIONS:
            logits = output.reshape(-1)
            return np.stack([np.zeros_like(logits), logits], 1), (label.reshape(-1) >= 0.5).astype(np.int64)
        scores = np.moveaxis(output, self.axis, -1).reshape(-1, self.classes)
        if self.kind == _CHANCES:
            return scores, np.maximum(_predict(np.moveaxis(label, self.axis, -1).reshape(-1, self.classes)), 0)
        wanted = label.reshape(-1)
        counted = (wanted != self.ignored) & (wanted >= 0) & (wanted < self.classes)
        return scores[: len(wanted)][counted], wanted[counted]


class _LabelErrors:
    """label_error_rate: the best class of every frame, without repetitions and blanks, beside the labels."""

    def __init__(self, comparison: _Comparison) -> None:
        self.comparison, self.wrong, self.counted = comparison, 0, 0

    def add(self, outputs: Batch, inputs: Batch) -> None:
        compared = self.comparison
        output, label = np.asarray(outputs[compared.output]), np.asarray(inputs[compared.label])
        best = _predict(output.reshape(-1, compared.classes)).reshape(output.shape[:2])
        whole = np.full(len(label), len(best)), np.full(len(label), label.shape[1])
        ends, sizes = (all_of if name is None else np.asarray(inputs[name]) for name, all_of in zip(compared.lengths, whole))
        for frames, end, wanted, size in zip(best.T, ends, label, sizes):
            frames, wanted = frames[:end], wanted[:size]
            is_new = np.concatenate([[True], frames[1:] != frames[:-1]])[: len(frames)]
            self.wrong += count_edits(frames[is_new & (frames != compared.blank)].tolist(), wanted.tolist())
            self.counted += len(wanted)

    def compute(self) -> float:
        return self.wrong / self.counted if self.counted else math.nan


class _Compared:
    """A metric of a comparison."""

    def __init__(self, comparison: _Comparison, metric: Any) -> None:
        self.comparison, self.metric = comparison, metric

    def add(self, outputs: Batch, inputs: Batch) -> None:
        self.metric.add(*self.comparison.read(outputs, inputs))

    def compute(self) -> float:
        return float(self.metric.compute())


def _refuse(text: str, why: str) -> ArgumentError:
    return ArgumentError(f"metric '{text}'{why}")


def _read_whole(text: str, keys: Mapping[str, str], key: str) -> int:
    value = parse_number(keys[key], is_whole=True)
    if value is None:
        raise _refuse(text, f": {key} is '{keys[key]}', but it must be a whole number")
    return int(value)


def _find(text: str, what: str, values: Sequence[Value], name: str) -> Value:
    for each in values:
        if each[0] == name:
            return each
    raise _refuse(text, f": evaluation has no {what} '{name}'; it has {', '.join(each[0] for each in values)}")


def _compare_loss(text: str, losses: list[Loss], outputs: Sequence[Value], inputs: Sequence[Value]) -> _Comparison:
    """By the loss: what its label is."""
    loss, instead = losses[0], "; output=NAME,label=INPUT say what to compare"
    if len(losses) > 1:
        raise _refuse(text, f": there are {len(losses)} losses{instead}")
    if not loss.label:
        raise _refuse(text, f": the graph computes its loss, so no label is known{instead}")
    if loss.blank is not None:
        return _compare_sequences(text, loss, outputs, inputs)
    output, label = _find(text, "output", outputs, loss.output), _find(text, "input", inputs, loss.label)
    of_classes = _CHANCES if "float" in label[1] else _INDICES
    kind = of_classes if loss.axis is not None else {"decisions": _DECISIONS, "values": _VALUES}.get(loss.compares)
    if kind is None:
        raise _refuse(text, f" does not fit the loss '{loss.kind}'{instead}")
    return _measure(text, _Comparison(loss.output, loss.label, kind, loss.axis or 0, loss.ignored), output, label)


def _compare_sequences(text: str, loss: Loss, outputs: Sequence[Value], inputs: Sequence[Value]) -> _Comparison:
    """[frames, samples, classes] and [samples, labels] of a loss ctc."""
    output, label = _find(text, "output", outputs, loss.output), _find(text, "input", inputs, loss.label)
    lengths = loss.find_input("input_lengths"), loss.find_input("target_lengths")
    comparison = _Comparison(loss.output, loss.label, _SEQUENCES, blank=-1 if loss.blank is None else loss.blank, lengths=lengths)
    return _measure(text, comparison, output, label)


def _compare_named(
    text: str, keys: dict[str, str], losses: list[Loss], outputs: Sequence[Value], inputs: Sequence[Value]
) -> _Comparison:
    """What a loss ctc compares, by its names."""
    output, label = keys["output"], keys["label"]
    if "axis" in keys or "ignore" in keys:
        raise _refuse(text, ": axis and ignore are for labels of one class each; leave them out")
    for loss in losses:
        if loss.blank is not None and (loss.output, loss.label) == (output, label):
            return _compare_sequences(text, loss, outputs, inputs)
    raise _refuse(text, f": no loss 'ctc' compares '{output}' with '{label}', and the loss says which class is the blank")


def _compare_tensors(
    text: str, name: str, keys: dict[str, str], outputs: Sequence[Value], inputs: Sequence[Value]
) -> _Comparison:
    """By the types: integers are classes along the axis that the label has not, or decisions; other labels are values for
    metrics of these, else decisions, or probabilities of classes where an axis is given."""
    output, label = _find(text, "output", outputs, keys["output"]), _find(text, "input", inputs, keys["label"])
    axis, ignored = (_read_whole(text, keys, key) if key in keys else None for key in ("axis", "ignore"))
    rank = len(output[2])
    if axis is not None and not -rank <= axis < rank:
        raise _refuse(text, f": the output '{output[0]}' has shape {list(output[2])}, and no such axis")
    axis = axis % rank if axis is not None else None
    if "float" in label[1] or label[2] == output[2]:
        kind = _CHANCES if axis is not None else _VALUES if _VALUES in _TAKES[name] else _DECISIONS
    else:
        kind = _INDICES
        found = [i for i in range(rank) if output[2][:i] + output[2][i + 1 :] == label[2]]
        if axis is None and len(found) > 1:
            raise _refuse(text, f": several axes of the output '{output[0]}' may be that of the classes; axis=N says which")
        axis = axis if axis is not None else found[0] if found else None
    comparison = _Comparison(output[0], label[0], kind, -1 if axis is None else axis, ignored)
    return _measure(text, comparison, output, label)


def _measure(text: str, given: _Comparison, output: Value, label: Value) -> _Comparison:
    """With what shapes say."""
    shape = output[2]
    kind, axis, classes, columns = given.kind, given.axis, 2, 1
    if kind == _SEQUENCES and len(shape) == 3:
        classes, shape = shape[2], (shape[1], *label[2][1:2])
    if kind == _VALUES:
        columns = math.prod(shape[1:])
    elif kind in (_INDICES, _CHANCES) and axis >= 0:
        classes = shape[axis]
        shape = shape if kind == _CHANCES else shape[:axis] + shape[axis + 1 :]
    if "float" not in output[1] or shape != label[2] or (kind in (_INDICES, _CHANCES) and axis < 0):
        raise _refuse(
            text, f": the output '{output[0]}' has shape {list(output[2])}, and its label {list(label[2])}, which cannot be compared"
        )
    sequence = kind == _INDICES and len(label[2]) > 1
    return replace(given, classes=classes, columns=columns, is_sequence=sequence)


def _choose(text: str, name: str, keys: dict[str, str], comparison: _Comparison) -> MakeMeasure:
    """The metric of a comparison. `keys`: its own."""
    classes = comparison.classes
    if comparison.kind not in _TAKES[name]:
        fitting = ", ".join(other for other, kinds in _TAKES.items() if comparison.kind in kinds)
        raise _refuse(text, f" needs labels that are {' or '.join(_TAKES[name])}, and these are {comparison.kind}; it fits {fitting}")
    make: Callable[[], Any]
    if name == "topk":
        most = _read_whole(text, {"k": "5"} | keys, "k")
        if not 1 <= most <= classes:
            raise _refuse(text, f": k is {most}, and the output has {classes} classes")
        make = lambda: _TopK(most)  # noqa: E731
    elif name in ("accuracy", "token_accuracy"):
        if name == "token_accuracy" and not comparison.is_sequence:
            raise _refuse(text, " is for samples with a label for each of their tokens; accuracy fits")
        make = lambda: _TopK(1)  # noqa: E731
    elif name in ("f1", "iou"):
        kind = "iou" if name == "iou" else keys.get("average", "binary" if classes == 2 else "macro")
        if kind not in ("iou", "binary", "macro", "micro") or (kind == "binary" and classes != 2):
            raise _refuse(text, f": average is '{kind}', and there are {classes} classes; it is macro, micro, or of two classes binary")
        make = lambda: _Confusion(classes, kind)  # noqa: E731
    elif name == "auc":
        if classes != 2:
            raise _refuse(text, f" is for two classes, and the output has {classes}")
        make = _Auc
    elif name == "perplexity":
        make = _Perplexity
    elif name == "label_error_rate":
        return lambda: _LabelErrors(comparison)
    elif name == "r2":
        make = lambda: _Determination(comparison.columns)  # noqa: E731
    else:
        make = lambda: _Error(name)  # noqa: E731
    return lambda: _Compared(comparison, make())


def find_metric(text: str, losses: list[Loss], outputs: Sequence[Value], inputs: Sequence[Value]) -> MakeMeasure:
    """One of `ortc eval --metric`."""
    name, _, rest = check_text("a metric", text).partition(":")
    if name not in _TAKES:
        known = f"there are {join_words(list(_TAKES))}, or give a pair of a name and a function"
        raise ArgumentError(f"there is no metric '{name}'; {known}{suggest(name, list(_TAKES))}")
    keys = dict(item.partition("=")[::2] for item in rest.split(",")) if rest else {}
    own = {"topk": {"k"}, "f1": {"average"}}.get(name, set())
    named = {"output", "label", "axis", "ignore"}
    if unknown := set(keys) - own - named:
        raise _refuse(text, f": it has no key '{sorted(unknown)[0]}'; it takes {', '.join(sorted(own | named))}")
    if ("output" in keys) != ("label" in keys) or ("output" not in keys and named & set(keys)):
        raise _refuse(text, ": output=NAME and label=INPUT belong together, and axis and ignore to them")
    if "output" in keys and _SEQUENCES in _TAKES[name]:
        comparison = _compare_named(text, keys, losses, outputs, inputs)
    elif "output" in keys:
        comparison = _compare_tensors(text, name, keys, outputs, inputs)
    else:
        comparison = _compare_loss(text, losses, outputs, inputs)
    return _choose(text, name, keys, comparison)


_FIELDS = ("event", "step", "epoch", "loss", "eval_loss", "lr", "ms", "seconds", "weights")
"""What events have beside metrics."""


def _check_pair(given: tuple[Any, ...], losses: list[Loss], found: Mapping[str, MakeMeasure]) -> tuple[str, Metric]:
    if len(given) != 2 or not isinstance(given[0], str) or not callable(given[1]):
        raise ArgumentError(f"the metric {given!r} must be a pair of a name and a function")
    name, function = given
    of_losses = {start + loss.key("loss") for loss in losses for start in ("", "eval_")}
    if name in _FIELDS or name in of_losses or name in found:
        raise ArgumentError(f"the metric '{name}' has a name that is taken; there are {join_words(sorted({*_FIELDS, *of_losses, *found}))}")
    return name, function


def find_metrics(
    wanted: Sequence[str | tuple[str, Metric]], losses: list[Loss], outputs: Sequence[Value], inputs: Sequence[Value]
) -> dict[str, MakeMeasure]:
    """By name: what `ortc eval --metric` takes, "accuracy" of every loss with classes (accuracy.NAME of several), or a pair of
    a name and a function."""
    found: dict[str, MakeMeasure] = {}
    of_losses = {loss.key("accuracy"): loss for loss in losses if loss.axis is not None}
    for each in wanted:
        if isinstance(each, tuple):
            name, function = _check_pair(each, losses, found)
            found[name] = lambda function=function: _Mean(function)  # type: ignore[misc]
            continue
        names = list(of_losses) if each == "accuracy" and of_losses else [each] if each in of_losses else []
        for name in names:
            loss = of_losses[name]
            spec = f"accuracy:output={loss.output},label={loss.label},axis={loss.axis}"
            spec += f",ignore={loss.ignored}" if loss.ignored is not None else ""
            found[name] = find_metric(spec, losses, outputs, inputs)
        if not names:
            found[each] = find_metric(each, losses, outputs, inputs)
    return found
