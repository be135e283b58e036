#!/usr/bin/env python3
"""Writes references.txt: predictions, labels and what scikit-learn makes of them (perplexity, label_error_rate: torchmetrics).

usage: make_references.py     (needs numpy, scikit-learn, torch and torchmetrics; the same bytes every time)

A case is a line `case NAME LOSS SHAPE`, a line `ignore N`, lines of numbers `output ...` and `label ...`, and lines
`metric SPEC VALUE`. Numbers are float32 written exactly; there are no equal scores but those of case `ties`. Sequences have
lines `blank N`, `input_lengths ...` and `target_lengths ...`, too, where there are such.
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import pathlib

import numpy as np
import sklearn.metrics as sk
import torch
from torchmetrics.functional.text import char_error_rate, perplexity

HERE = pathlib.Path(__file__).resolve().parent
rng = np.random.default_rng(11)
lines = ["# made by make_references.py"]


def write(name, loss, output, label, metrics, ignore=-100):
    lines.append(f"case {name} {loss} {'x'.join(str(n) for n in output.shape)}")
    lines.append(f"ignore {ignore}")
    lines.append("output " + " ".join(repr(float(v)) for v in output.ravel()))
    lines.append("label " + " ".join(repr(v.item()) for v in label.ravel()))
    for spec, value in metrics.items():
        lines.append(f"metric {spec} {float(value)!r}")


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def classes(name, output, label, ignore=-100, more=()):
    """Class indices; the axis of the classes is 1, as PyTorch has it."""
    count = output.shape[1]
    scores = np.moveaxis(output, 1, -1).reshape(-1, count).astype(np.float64)
    kept = label.ravel() != ignore
    scores, wanted = scores[kept], label.ravel()[kept]
    predicted = scores.argmax(1)
    metrics = {
        "accuracy": sk.accuracy_score(wanted, predicted),
        "f1:average=macro": sk.f1_score(wanted, predicted, average="macro"),
        "f1:average=micro": sk.f1_score(wanted, predicted, average="micro"),
        "iou": sk.jaccard_score(wanted, predicted, average="macro"),
        "perplexity": perplexity(torch.tensor(scores)[None], torch.tensor(wanted)[None]),
    }
    if label.ndim > 1:
        metrics["token_accuracy"] = metrics["accuracy"]
    if count > 2:
        metrics["topk:k=2"] = sk.top_k_accuracy_score(wanted, scores, k=2, labels=range(count))
    if count > 5:
        metrics["topk"] = sk.top_k_accuracy_score(wanted, scores, k=5, labels=range(count))
    if count == 2:
        metrics["f1"] = sk.f1_score(wanted, predicted)
        metrics["auc"] = sk.roc_auc_score(wanted, scores[:, 1] - scores[:, 0])
    else:
        metrics["f1"] = metrics["f1:average=macro"]
    write(name, "cross_entropy", output, label, metrics, ignore)


classes("classes", floats(37, 7), rng.integers(0, 7, 37))
# Class 4 is neither predicted nor right: it is no part of a mean.
output = floats(23, 5)
output[:, 4] = -9
classes("absent", output, rng.integers(0, 4, 23))
classes("pixels", floats(4, 3, 5, 2), rng.integers(0, 3, (4, 5, 2)))
label = rng.integers(0, 6, (5, 9))
label[rng.random(label.shape) < 0.3] = 2  # a class of its own range that takes no part
classes("tokens", floats(5, 6, 9), label, ignore=2)
label = rng.integers(0, 2, 41)
classes("two", floats(41, 2) + 1.5 * np.eye(2, dtype=np.float32)[label], label)

# Scores that are equal in and over both classes: ranks of ties are halves.
label = rng.integers(0, 2, 60)
output = np.stack([np.zeros(60), rng.integers(-2, 3, 60) / 2 + label / 2], 1).astype(np.float32)
write("ties", "cross_entropy", output, label, {"auc": sk.roc_auc_score(label, output[:, 1])})

# Logits and labels of 0 and 1 in each of 4 places: all are decisions.
label = rng.integers(0, 2, (13, 4)).astype(np.float32)
output = floats(13, 4) + label
wanted, scores = label.ravel().astype(int), output.ravel()
predicted = (scores > 0).astype(int)
write("decisions", "bce_with_logits", output, label, {
    "accuracy": sk.accuracy_score(wanted, predicted), "f1": sk.f1_score(wanted, predicted),
    "f1:average=macro": sk.f1_score(wanted, predicted, average="macro"),
    "iou": sk.jaccard_score(wanted, predicted, average="macro"), "auc": sk.roc_auc_score(wanted, scores)})

# Columns of another mean, spread and error each; one is constant, one constant and right.
label = floats(19, 5) * np.float32([1, 10, 0.1, 0, 0]) + np.float32([0, 1000, -3, 2, 5])
output = label + floats(19, 5) * np.float32([0.3, 2, 0.2, 0.1, 0])
wanted, guessed = label.astype(np.float64), output.astype(np.float64)
write("values", "mse", output, label, {
    "mae": sk.mean_absolute_error(wanted, guessed), "r2": sk.r2_score(wanted, guessed),
    "rmse": sk.root_mean_squared_error(wanted.ravel(), guessed.ravel())})
label = floats(11, 1)
output = label + 0.5 * floats(11, 1)
wanted, guessed = label.astype(np.float64), output.astype(np.float64)
write("column", "smooth_l1", output, label, {
    "mae": sk.mean_absolute_error(wanted, guessed), "r2": sk.r2_score(wanted, guessed),
    "rmse": sk.root_mean_squared_error(wanted, guessed)})



def count_edits(said, label):
    """Levenshtein's matrix, written out."""
    edits = np.zeros((len(said) + 1, len(label) + 1), int)
    edits[:, 0], edits[0] = range(len(said) + 1), range(len(label) + 1)
    for i, j in np.ndindex(len(said), len(label)):
        edits[i + 1, j + 1] = min(edits[i, j + 1] + 1, edits[i + 1, j] + 1, edits[i, j] + (said[i] != label[j]))
    return edits[-1, -1]


def sequences(name, frames, samples, count, longest, blank, cut):
    """Labels, each over several frames, with some noise; `cut`: samples have lengths of their own."""
    output, label = floats(frames, samples, count), rng.integers(0, count - 1, (samples, longest))
    label += label >= blank
    label[:, 1] = np.where(rng.random(samples) < 0.5, label[:, 0], label[:, 1])  # equal neighbours
    used = rng.integers(0, longest + 1, samples) if cut else np.full(samples, longest)
    ends = rng.integers(frames // 2, frames + 1, samples) if cut else np.full(samples, frames)
    said, meant = [], []
    for n in range(samples):
        at = np.linspace(0, 2 * longest, frames).astype(int)
        output[np.arange(frames), n, np.where(at % 2 == 1, label[n, np.minimum(at // 2, longest - 1)], blank)] += 2
        best = output[: ends[n], n].argmax(1)
        said.append([each for i, each in enumerate(best) if each != blank and (i == 0 or each != best[i - 1])])
        meant.append(list(label[n, : used[n]]))
    wrong, all_of = sum(map(count_edits, said, meant)), sum(map(len, meant))
    spell = lambda rows: ["".join(chr(97 + each) for each in row) for row in rows]  # noqa: E731
    assert abs(float(char_error_rate(spell(said), spell(meant))) - wrong / all_of) < 1e-6, "torchmetrics, in float32"
    write(name, "ctc", output, label, {"label_error_rate": wrong / all_of})
    lines.append(f"blank {blank}")
    if cut:
        lines.append("input_lengths " + " ".join(map(str, ends)))
        lines.append("target_lengths " + " ".join(map(str, used)))


sequences("utterances", 20, 13, 6, 5, 0, cut=True)
sequences("whole", 15, 7, 4, 4, 2, cut=False)

(HERE / "references.txt").write_text("\n".join(lines) + "\n")
