"""A file beside the module that it was exported from: outputs, gradients and running statistics in float64, at the arguments and where
functions are special.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Collection, Mapping
from typing import Any

import torch

from ortc._errors import CompileError, DifferenceError
from ortc.sources.torch import Call
from ortc.torch._examine.file import File, FileStep, symbolic_shapes
from ortc.torch._examine.points import Point, list_points
from ortc.torch._examine.precision import Numbers, Rounding, Twin, cotangent
from ortc.torch._examine.table import Comparison, Row
from ortc.torch._examine.tensors import Source, match

__all__ = ["Comparison", "Row", "compare"]

_TIMES = 8
"""A file may be so many times as far from float64 as PyTorch's own float32 is."""
_FLOOR = 1e-5
"""The share of the largest number of a tensor: what files have in float32, constants and attributes, is not more exact."""
_SMALL = 1e-4
"""The share of the largest gradient: gradients that are smaller may be rounding only."""
_ROUNDED = 1e-6
"""The share of the largest number: values of a tensor that are so near are the same in float32."""
_ROUNDINGS = 4
"""Runs in float64 that are rounded otherwise, where a tensor is farther off than PyTorch's float32 explains: a kink may be there."""


def compare(
    model: torch.nn.Module, path: str | os.PathLike[str], call: Call, flags: Mapping[str, Any], has_points: bool = True
) -> Comparison:
    """Raises DifferenceError for what differs, and CompileError for what cannot be compared. `has_points`: not only the arguments."""
    with tempfile.TemporaryDirectory(prefix="ortc-check-") as folder:
        masks = File(path).find_masks(folder)
        try:
            return _Comparing(model, File(path), call, flags, folder, masks).run(has_points)
        except DifferenceError:
            # The exporter has written them for a dropout of PyTorch, or the module draws them itself, as random numbers like others.
            if masks:
                with contextlib.suppress(DifferenceError, CompileError):
                    return _Comparing(model, File(path), call, flags, folder).run(has_points)
            raise


class _Comparing:
    def __init__(
        self, model: torch.nn.Module, file: File, call: Call, flags: Mapping[str, Any], folder: str, masks: Collection[str] = ()
    ) -> None:
        """`masks`: numbers that the file draws and that are left out with what dropout computes of them."""
        self.file, self.call, self.flags = file, call, dict(flags)
        self.found = Comparison(file.path)
        self.worst: dict[tuple[str, str], Row] = {}
        self.exact = Twin(model, torch.float64)
        own = {each.dtype for each in model.parameters() if each.is_floating_point()}
        narrow = own & {torch.bfloat16, torch.float16}
        self.own = Twin(model, narrow.pop() if narrow else torch.float32)
        self.inputs = {name: each.detach().cpu() for name, each in call.tensors.items()}
        self.weights = {name: each.detach().clone() for name, each in self.exact.trained().items()}
        try:
            self.first = self.exact.run(call, self.inputs, self.weights)
        except CompileError:
            raise
        except Exception as error:
            shapes = ", ".join(f"{name} {list(each.shape)}" for name, each in self.inputs.items())
            raise CompileError(f"the module refuses its arguments ({shapes}): {_first_line(error)}") from error
        self.names = self._match_inputs()
        if len(file.outputs) != len(self.first.outputs):
            raise CompileError(f"{file.path}: has {len(file.outputs)} outputs, the module gives {len(self.first.outputs)} tensors")
        self.step = self._compile(file.still(folder, masks), folder)
        self._check_shapes()
        self.sources = self._match_tensors()

    def _match_inputs(self) -> dict[str, str]:
        """Names of the module's inputs by those of the file."""
        left = [name for name in self.inputs if name not in {each.name for each in self.file.inputs}]
        found = {}
        for each in self.file.inputs:
            if each.name in self.inputs:
                found[each.name] = each.name
            elif left:
                found[each.name] = left.pop(0)
            else:
                raise CompileError(f"{self.file.path}: has an input '{each.name}', which is none of the arguments ({', '.join(self.inputs)})")
        return found

    def _compile(self, path: str, folder: str) -> FileStep:
        shapes = symbolic_shapes(self.file, {own: self.inputs[name] for own, name in self.names.items()})
        sources = [
            self.file.outputs[i]
            for i, each in enumerate(self.first.outputs)
            if each.is_floating_point() and (self.weights or self.first.inputs)
        ]
        wanted = [own for own, name in self.names.items() if name in self.first.inputs]
        flags = {"batch_norm": "as-exported:unbiased=1", **self.flags} if self.first.statistics else self.flags
        return FileStep(path, folder, shapes, sources, wanted, flags)

    def _check_shapes(self) -> None:
        pairs = [(own, self.inputs[name]) for own, name in self.names.items()]
        for own, each in [*pairs, *zip(self.file.outputs, self.first.outputs, strict=True)]:
            shape = self.step.tensors.get(own, ("", each.shape))[1]
            if list(shape) != list(each.shape):
                raise CompileError(
                    f"{self.file.path}: has '{own}' as {list(shape)}, the module's call as {list(each.shape)}: "
                    "give the module and the arguments that it was exported with"
                )

    def _match_tensors(self) -> dict[str, Source]:
        """Tensors that the file trains, and its running statistics, by their names there."""
        tensors = dict(self.exact.model.named_parameters()) | dict(self.exact.model.named_buffers())
        aliases = dict(self.exact.model.named_parameters(remove_duplicate=False))
        names = {own: self.step.tensors[own][1] for own in self.step.bound}
        values = {own: value for own in names if (value := self.file.value(own)) is not None}
        first = {id(each): name for name, each in reversed(list(tensors.items()))}
        found = match(names, values, {**tensors, **aliases})
        for source in found.values():
            source.name = first.get(id(aliases.get(source.name)), source.name)
        return found

    # ---- Running.

    def run(self, has_points: bool) -> Comparison:
        self._note_tensors()
        unknown = [own for own in self.step.bound if own not in self.sources]
        there = {source.name for own, source in self.sources.items() if own in self.step.trained}
        moving = {name: each for name, each in self.weights.items() if name in there}  # of the others, the file has the values
        for point in list_points(self.inputs, moving, not unknown):
            if has_points or not point.is_special:
                self._compare_at(point, unknown)
        order = {"output": 0, "gradient": 1, "gradient of input": 2, "statistics": 3}
        rows = sorted(self.worst.values(), key=lambda row: order[row.what])
        self.found.rows = [*rows, *self.found.rows]
        self._note_rest()
        if not self.found.passed:
            raise DifferenceError(self.found)
        return self.found

    def _compare_at(self, point: Point, unknown: list[str]) -> None:
        try:
            wanted = self.first if not point.is_special else self.exact.run(self.call, point.inputs, point.weights)
        except CompileError:
            raise
        except Exception as error:
            self.found.notes.append(f"{point.name}: not compared, PyTorch refuses it ({_first_line(error)})")
            return
        own = self.own.run(self.call, point.inputs, point.weights).by_name()
        got = self._run_file(point, unknown, wanted)
        judge = _Judge(wanted)
        pairs = [(key, values, got[key]) for key, values in wanted.by_name().items() if key in got]
        rows = [judge.row(point, self._title(*key), values, other, [own[key]], str(self.own.dtype)[6:]) for key, values, other in pairs]
        if not all(row.passed for row in rows):
            rounded = [self.exact.run(self.call, point.inputs, point.weights, Rounding(seed)).by_name() for seed in range(_ROUNDINGS)]
            for i, (key, values, other) in enumerate(pairs):
                if not rows[i].passed:
                    runs = [own[key], *(each[key] for each in rounded)]
                    rows[i] = judge.row(point, self._title(*key), values, other, runs, "other rounding and other ties")
        for row in rows:
            self._keep(row)

    def _run_file(self, point: Point, unknown: list[str], wanted: Numbers) -> dict[tuple[str, str], torch.Tensor]:
        """Numbers of the file, by the module's names."""
        tensors = {name: point.weights.get(name, each) for name, each in self.exact.kept.items()}
        bound = {own: source.to_file(tensors[source.name]) for own, source in self.sources.items() if own in self.step.bound}
        for own in unknown:
            value = self.file.value(own)
            if value is None:
                raise CompileError(f"{self.file.path}: trains '{own}', whose values are not known")
            bound[own] = torch.from_numpy(value.astype("float64"))
        cotangents = {self.file.outputs[i]: cotangent(i, each) for i, each in enumerate(wanted.outputs)}
        inputs = {own: point.inputs[name] for own, name in self.names.items()}
        outputs, gradients, given, after = self.step.run(inputs, bound, cotangents)
        found: dict[tuple[str, str], torch.Tensor] = {}
        for i, own in enumerate(self.file.outputs):
            if own in outputs:
                found["output", str(i)] = outputs[own]
        for own, source in self.sources.items():
            like = tensors[source.name]
            if own in gradients:
                key = "gradient", source.name
                part = source.from_file(gradients[own], like)
                found[key] = found[key] + part if key in found else part
            elif own in after and source.name in wanted.statistics:
                found["statistics", source.name] = source.from_file(after[own], like)
        for name in wanted.gradients:  # no gradient reaches it in the file
            if not unknown and ("gradient", name) not in found and self.step.order:
                found["gradient", name] = torch.zeros_like(tensors[name])
        for own, name in self.names.items():
            if name in wanted.inputs and self.step.cotangents:
                found["input gradient", name] = given.get(own, torch.zeros_like(wanted.inputs[name]))
        return found

    def _title(self, kind: str, name: str) -> tuple[str, str]:
        if kind == "output":
            return "output", self.file.outputs[int(name)]
        return ("gradient of input" if kind == "input gradient" else kind), name

    def _keep(self, row: Row) -> None:
        before = self.worst.get((row.what, row.name))
        if before is None or _share(row) > _share(before):
            self.worst[row.what, row.name] = row

    # ---- Texts beside numbers.

    def _note_tensors(self) -> None:
        """Parameters that the file has in another way, or not at all."""
        parameters = dict(self.exact.model.named_parameters())
        there = {source.name for own, source in self.sources.items() if own in self.step.trained}
        rows = self.found.rows
        self._note_values()
        for own, source in self.sources.items():
            if own in self.step.trained and source.name in parameters and not parameters[source.name].requires_grad:
                rows.append(Row("tensor", source.name, note=f"the file trains it, and requires_grad is False: --freeze '{own}'", passed=False))
            elif own in self.step.trained and source.name not in parameters:
                rows.append(Row("tensor", source.name, note=f"the file trains a buffer of the module: --freeze '{own}'", passed=False))
        for own in self.step.trained:
            if own not in self.sources:
                rows.append(Row("tensor", own, note="the file trains it, and it is no tensor of the module: the exporter has computed it from others"))
        for name, each in parameters.items():
            if each.requires_grad and name not in there:
                self._note_missing(name)
            elif each.requires_grad:
                said = next((source.describe(own) for own, source in self.sources.items() if source.name == name), "")
                if said:
                    self.found.notes.append(f"{name} is {said}")

    def _note_values(self) -> None:
        """Tensors whose values in the file are not the module's: it was exported earlier, say."""
        for own, source in self.sources.items():
            value = self.file.value(own)
            if value is None:
                continue
            mine = source.to_file(self.exact.kept[source.name])
            difference = _distance(mine, torch.from_numpy(value.astype("float64")).reshape(mine.shape), is_strict=True)
            if difference > _ROUNDED * _size(mine):
                note = f"the file has other values, {difference:.2g} away"
                self.found.rows.append(Row("tensor", source.name, note=note, passed=False))

    def _note_missing(self, name: str) -> None:
        reached = bool(self.first.gradients[name].count_nonzero())
        if self.file.value(name) is not None and reached:
            self.found.rows.append(Row("tensor", name, note="the module trains it, and the file does not", passed=False))
        elif reached:
            self.found.rows.append(Row("tensor", name, note="is not in the file: the exporter has merged it with others, or computed something from it"))

    def _note_rest(self) -> None:
        notes = self.found.notes
        if self.first.is_random or self.file.is_random:
            notes.append("random: compared with rates of dropout of 0, and random numbers of 0.5")
        if self.first.statistics:
            notes.append("running statistics as PyTorch's need --batch-norm as-exported:unbiased=1; num_batches_tracked is not in the file")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:100]


def _share(row: Row) -> float:
    return row.difference / row.tolerance if row.tolerance else float(row.difference > 0)


class _Judge:
    """Judges one point."""

    def __init__(self, wanted: Numbers) -> None:
        sizes = [_size(each) for (kind, _), each in wanted.by_name().items() if "gradient" in kind]
        self.least = max([1e-6, *(_SMALL * each for each in sizes)])

    def row(
        self, point: Point, title: tuple[str, str], wanted: torch.Tensor, got: torch.Tensor, runs: list[torch.Tensor], of: str
    ) -> Row:
        what, name = title
        if wanted.shape != got.shape:
            note = f"{list(got.shape)} in the file, {list(wanted.shape)} in the module"
            return Row(what, name, point.name, float("inf"), 0.0, "", note, False)
        span = max(_size(wanted), self.least if "gradient" in what else 1e-6)
        floor = _FLOOR * span
        rounding = max((_distance(wanted, each) for each in runs), default=0.0)
        tolerance = max(floor, _TIMES * rounding)
        reason = f"{_FLOOR:g} of {span:.2g}" if tolerance == floor else f"{_TIMES} times {rounding:.1g}, of {of}"
        undefined = int(_plain(wanted).isnan().sum())
        if undefined and point.is_special:  # how far sums carry them is a matter of their order
            got = torch.where(got.isnan(), wanted.to(got.dtype), got)
        difference = _distance(wanted, got, is_strict=True)
        note = f"{undefined} of PyTorch's are NaN" if undefined else ""
        return Row(what, name, point.name, difference, tolerance, reason, note, difference <= tolerance)


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().double()


def _size(tensor: torch.Tensor) -> float:
    values = _plain(tensor)
    values = values[values.isfinite()].abs()
    return float(values.max()) if values.numel() else 0.0


def _distance(wanted: torch.Tensor, got: torch.Tensor, is_strict: bool = False) -> float:
    """The largest, where `wanted` is a number; strictly, another infinity or NaN is infinitely far."""
    first, second = _plain(wanted), _plain(got)
    if first.shape != second.shape:
        return float("inf")
    same = (first == second) | first.isnan()
    if not is_strict:
        same |= ~first.isfinite() | ~second.isfinite()
    gap = (first - second).abs().masked_fill(same, 0.0)
    gap = gap.masked_fill(gap.isnan(), float("inf"))
    return float(gap.max()) if gap.numel() else 0.0
