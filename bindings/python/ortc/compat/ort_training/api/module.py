"""Module: the loss and the gradients of a model of generate_artifacts.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ortc._artifact import Artifact
from ortc._compile import compile, run_compiler
from ortc._errors import ArgumentError, StateError
from ortc._session import Session
from ortc.compat.ort_training import _safetensors
from ortc.compat.ort_training._graphs import FLAGS, graph_inputs
from ortc.compat.ort_training._notes import note
from ortc.compat.ort_training._optimizers import make_adamw
from ortc.compat.ort_training._sizes import compile_with_some
from ortc.compat.ort_training._values import are_ort_values, to_array, to_ort_value
from ortc.compat.ort_training.api.checkpoint_state import CheckpointState

_Shapes = tuple[tuple[int, ...], ...]
_Results = tuple[float, tuple[NDArray[Any], ...]]
"""The loss, and outputs beside it."""


class Buffer(np.ndarray[Any, Any]):
    """An array that is its own numpy(), as tensors of other packages have it."""

    def numpy(self) -> NDArray[Any]:
        return np.asarray(self)


class Module:
    """Trains the parameters of a CheckpointState. Shapes that the artifact has no step for are compiled when they first come, which
    needs the compiler and the package onnx."""

    training: bool

    def __init__(
        self,
        train_model_uri: str | os.PathLike[str],
        state: CheckpointState,
        eval_model_uri: str | os.PathLike[str] | None = None,
        device: str = "cpu",
        session_options: Any = None,
    ) -> None:
        if state._module is not None:
            raise StateError("another Module trains this CheckpointState: load the checkpoint again")
        if eval_model_uri is not None and not Path(eval_model_uri).is_file():
            raise ArgumentError(f"{os.fspath(eval_model_uri)}: there is no such file")
        self.training = True
        self._path = Path(train_model_uri)
        self._state = state
        self._has_eval = eval_model_uri is not None
        self._device = device
        self._threads = int(getattr(session_options, "intra_op_num_threads", 0))
        if session_options is not None:
            note("of session_options, Module takes intra_op_num_threads alone")
        self._sessions: list[tuple[Session, set[_Shapes]]] = []
        self._current: Session | None = None
        self._has_default = False
        """Whether it was called before its Optimizer was made, and has taken AdamW."""
        self._gradients = "none"
        """none, fresh (of one module(...) or more), or used by an update."""
        compiled = self._path.with_suffix(".ortc")
        if compiled.exists():
            self._add(Artifact(compiled))
        state._module = self

    def __call__(self, *user_inputs: Any) -> Any:
        """The loss, and with additional outputs a tuple of it and those: arrays, or OrtValues where those are given. In training mode
        gradients are added to those since the last lazy_reset_grad."""
        inputs = [to_array(each) for each in user_inputs]
        loss, rest = self._train(inputs) if self.training else self._evaluate(inputs)
        results = (np.array(loss, np.float32), *rest)
        if are_ort_values(user_inputs):
            results = tuple(map(to_ort_value, results))
        return results if rest else results[0]

    def _train(self, inputs: list[Any]) -> _Results:
        if self._gradients == "used":
            raise StateError("gradients have been used by Optimizer.step: call lazy_reset_grad() before the next step")
        session = self._session(inputs)
        before = dict(self._current.gradients) if self._gradients == "fresh" and self._current is not None else None
        self._move_to(session)
        rest: tuple[NDArray[Any], ...] = ()
        if self._state._outputs:
            note("in training mode, outputs beside the loss are those of evaluation: no dropout, and running statistics")
            session.eval_step(*inputs)
            rest = tuple(session.outputs[name] for name in self._state._outputs)
        self._gradients = "none"
        loss = session.gradients_step(*inputs)
        for name, values in (before or {}).items():
            session.gradients[name] = session.gradients[name] + values
        self._gradients = "fresh"
        return loss, rest

    def _evaluate(self, inputs: list[Any]) -> _Results:
        if not self._has_eval:
            raise StateError("evaluation mode needs eval_model_uri")
        if self._gradients == "fresh":
            raise StateError("gradients are waiting, and do not outlive an evaluation: call Optimizer.step() or lazy_reset_grad() first")
        session = self._session(inputs)
        self._move_to(session)
        loss = session.eval_step(*inputs)
        return loss, tuple(session.outputs[name] for name in self._state._outputs)

    def train(self, mode: bool = True) -> Module:
        self.training = mode
        return self

    def eval(self) -> Module:
        return self.train(False)

    def lazy_reset_grad(self) -> None:
        """The next step in training mode begins with gradients of its own."""
        self._gradients = "none"

    # ---- Parameters.

    def get_contiguous_parameters(self, trainable_only: bool = False) -> Buffer:
        """Copies of all, one after the other, in the order of the graph's initializers."""
        parts = [self._state._read(name).ravel() for name in self._names(trainable_only)]
        return np.concatenate(parts).view(Buffer)

    def get_parameters_size(self, trainable_only: bool = True) -> int:
        return sum(self._state._tensors[name].size for name in self._names(trainable_only))

    def copy_buffer_to_parameters(self, buffer: Any, trainable_only: bool = True) -> None:
        """From an array of get_contiguous_parameters' order. Frozen parameters must be as they are."""
        values = np.asarray(to_array(buffer))
        wanted = self.get_parameters_size(trainable_only)
        if values.dtype != np.float32 or values.shape != (wanted,):
            raise ArgumentError(f"the buffer is {values.dtype} {values.shape}, but must be float32 ({wanted},)")
        offset = 0
        for name in self._names(trainable_only):
            present = self._state._tensors[name]
            self._state._write(name, values[offset : offset + present.size].reshape(present.shape))
            offset += present.size

    def _names(self, trainable_only: bool) -> list[str]:
        names = [name for name in self._state._tensors if not trainable_only or name in self._state._trainable]
        for name in names:
            if self._state._tensors[name].dtype != np.float32:
                raise ArgumentError(f"'{name}' is {self._state._tensors[name].dtype}: a buffer of parameters is float32")
        return names

    # ---- Names and export.

    def input_names(self) -> list[str]:
        names = self._find_inputs()
        if names is None:
            loss = self._flags["loss"]
            raise StateError(
                f"what the loss {loss} takes is known when it is compiled: give generate_artifacts shapes=..., or call the module first"
            )
        return names

    def _find_inputs(self) -> list[str] | None:
        """Those of a step, where they are known."""
        if self._sessions:
            session = self._current or self._sessions[0][0]
            names = [name for name, _, _ in session.program.steps()[session.binding]["gradients"][0]]
            kind = session.artifact.manifest["loss"]["kind"]
        else:
            names, kind = [each.name for each in graph_inputs(self._graph)], self._flags["loss"]
            if not isinstance(kind, str) or any(word in kind for word in ("=", "@", "ctc", "triplet", "distillation")):
                return None
            if kind.startswith("output:"):
                kind = "output"
            else:
                names.append("label")
        label = "labels" if kind == "cross_entropy" else "target"
        return [label if name == "label" and kind != "output" else name for name in names]

    def output_names(self) -> list[str]:
        return ["loss", *self._state._outputs]

    def export_model_for_inferencing(self, inference_model_uri: str | os.PathLike[str], graph_output_names: list[str]) -> None:
        """The graph with the weights of now, up to these outputs. Needs the compiler, and the package onnx where that is not all, or
        where nothing is compiled yet."""
        session = self._current or (self._sessions[0][0] if self._sessions else None)
        if session is None:
            session = self._add(compile_with_some(self._path, self._graph, **self._complete_flags()))
        self._move_to(session)
        target = Path(inference_model_uri)
        weights = target.with_name(f".{target.name}.safetensors")
        try:
            session.save(weights)
            run_compiler(["export", os.fspath(session.artifact.path), "--load", os.fspath(weights), "-o", os.fspath(target)])
        finally:
            weights.unlink(missing_ok=True)
        if {*graph_output_names} != {name for name, _, _ in session.program.steps()[session.binding]["predict"][1]}:
            _keep_outputs(target, graph_output_names)

    # ---- Sessions: one for each artifact, of which one has the parameters.

    @cached_property
    def _graph(self) -> Any:
        import onnx

        return onnx.load(os.fspath(self._path), load_external_data=False)

    @cached_property
    def _flags(self) -> dict[str, Any]:
        for entry in self._graph.metadata_props:
            if entry.key == FLAGS:
                return dict(json.loads(entry.value))
        raise ArgumentError(f"{self._path}: is no training model of generate_artifacts")

    @property
    def _optimizer_flag(self) -> str:
        given = self._sessions[0][0].artifact.manifest["flags"] if self._sessions else self._flags
        return str(given.get("optimizer", ""))

    def _choose_optimizer(self, flags: dict[str, Any]) -> None:
        """Of a graph that onnxblock has made without one."""
        self._flags.update(flags)

    def _add(self, artifact: Artifact) -> Session:
        session = Session(artifact, threads=self._threads, device=self._device)
        steps = session.program.steps().values()
        fits = {tuple(shape for _, _, shape in step["gradients"][0]) for step in steps}
        self._sessions.append((session, fits))
        return session

    def _session(self, inputs: list[Any]) -> Session:
        """What has a step for these shapes."""
        shapes = tuple(tuple(each.shape) for each in inputs)
        for session, fits in self._sessions:
            if shapes in fits:
                return session
        names = [each.name for each in graph_inputs(self._graph)]
        wanted = self._find_inputs()
        if wanted is not None and len(inputs) != len(wanted):
            raise ArgumentError(f"a step takes {', '.join(wanted)}, but was given {len(inputs)} arrays")
        return self._add(compile(self._path, shapes=dict(zip(names, shapes, strict=False)), **self._complete_flags()))

    def _complete_flags(self) -> dict[str, Any]:
        """Those that the graph is compiled with, whatever its shapes are."""
        if not self._optimizer_flag:
            self._choose_optimizer(make_adamw().flags)
            self._has_default = True
        flags = {"target": "native"} | self._flags
        flags.pop("bindings", None)
        return flags

    def _move_to(self, session: Session) -> None:
        """Takes parameters and state along."""
        if session is self._current:
            return
        if self._current is not None:
            session.from_bytes(self._current.to_bytes())
        else:
            names = {*session.artifact.names("parameter"), *session.artifact.names("state")}
            known = {name: each for name, each in self._state._tensors.items() if name in names}
            session.from_bytes(_safetensors.serialize({**known, **self._state._optimizer}, {}))
        self._current = session

    def _update(self, rate: float, is_of_transformers: bool) -> None:
        session = self._current
        if session is None or self._gradients != "fresh":
            raise StateError("there are no gradients: call the module in training mode first")
        session["lr"] = rate
        chosen, kept = session.artifact.manifest["optimizer"], {"lr": rate}
        if is_of_transformers:
            # AdamW of transformers, which ONNX Runtime has: epsilon is added before the correction of the bias, and what is left
            # after the update decays: (p - u) (1 - rate decay) = p (1 - rate decay) - u (1 - rate decay).
            kept["epsilon"] = session["epsilon"]
            session["epsilon"] = chosen["epsilon"] / math.sqrt(1 - chosen["beta2"] ** (session["step"] + 1))
            if decay := chosen["weight_decay"]:
                kept["weight_decay"] = session["weight_decay"]
                keep = 1 - rate * decay or math.ulp(0.5)
                session["lr"], session["weight_decay"] = rate * keep, decay / keep
        session.update_step()
        for name, value in kept.items():
            session[name] = value
        self._gradients = "used"

    def _read(self, name: str) -> NDArray[Any] | None:
        """Of the session, if it has the tensor and may change it."""
        session = self._current
        return session.read(name) if session is not None and self._is_live(name) else None

    def _write(self, name: str, values: NDArray[Any]) -> bool:
        """Into the session; False where that has no such tensor."""
        if self._current is None or not self._is_live(name):
            return False
        self._current.write(name, values)
        return True

    def _is_live(self, name: str) -> bool:
        tensor = None if self._current is None else self._current.artifact.tensors.get(name)
        return tensor is not None and tensor.role in ("parameter", "state")

    def _gradient(self, name: str) -> NDArray[Any] | None:
        """Zeros before a step; None where an update has used it."""
        if self._current is not None and self._gradients == "fresh":
            return self._current.gradients[name]
        return np.zeros_like(self._state._tensors[name]) if self._gradients == "none" else None

    def _state_value(self, name: str, default: float) -> float:
        """A number of the optimizer's."""
        if self._current is not None:
            return self._current[name]
        return float(self._state._optimizer[name]) if name in self._state._optimizer else default

    def _optimizer_state(self) -> Mapping[str, NDArray[Any]]:
        if self._current is None:
            return self._state._optimizer
        tensors, _ = _safetensors.parse(self._current.to_bytes(), "the session")
        return {name: each for name, each in tensors.items() if name not in self._state._tensors}


def _keep_outputs(path: Path, names: list[str]) -> None:
    """Leaves what these outputs need."""
    import onnx

    model = onnx.load(os.fspath(path))
    inputs = [each.name for each in graph_inputs(model)]
    onnx.save(onnx.utils.Extractor(model).extract_model(inputs, names), os.fspath(path))
