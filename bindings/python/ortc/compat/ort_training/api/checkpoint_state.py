"""CheckpointState: parameters, optimizer state and properties, in a safetensors file that sessions of ortc load, too.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ortc._errors import ArgumentError, FormatError
from ortc.compat.ort_training import _safetensors
from ortc.compat.ort_training._values import to_array

if TYPE_CHECKING:
    from ortc.compat.ort_training.api.module import Module


class Parameter:
    def __init__(self, name: str, state: CheckpointState) -> None:
        self._name = name
        self._state = state

    @property
    def name(self) -> str:
        return self._name

    @property
    def data(self) -> NDArray[Any]:
        return self._state._read(self._name)

    @data.setter
    def data(self, value: NDArray[Any]) -> None:
        self._state._write(self._name, value)

    @property
    def grad(self) -> NDArray[Any] | None:
        """Between module(...) and Optimizer.step; zeros before, and None without a Module."""
        module = self._state._module
        return module._gradient(self._name) if module is not None and self.requires_grad else None

    @property
    def requires_grad(self) -> bool:
        return self._name in self._state._trainable

    def __repr__(self) -> str:
        return f"Parameter(name={self.name}, requires_grad={self.requires_grad})"


class Parameters:
    """By name, in the order of names."""

    def __init__(self, state: CheckpointState) -> None:
        self._state = state

    def __getitem__(self, name: str) -> Parameter:
        if name not in self:
            raise KeyError(f"there is no parameter '{name}'; there are {', '.join(self._state._tensors)}")
        return Parameter(name, self._state)

    def __setitem__(self, name: str, value: NDArray[Any]) -> None:
        self[name].data = value

    def __contains__(self, name: object) -> bool:
        return name in self._state._tensors

    def __iter__(self) -> Iterator[tuple[str, Parameter]]:
        return ((name, self[name]) for name in sorted(self._state._tensors))

    def __len__(self) -> int:
        return len(self._state._tensors)

    def __repr__(self) -> str:
        return repr(sorted(self._state._tensors))


class Properties:
    """Whole numbers, numbers and texts by name."""

    def __init__(self, values: dict[str, int | float | str]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> int | float | str:
        return self._values[name]

    def __setitem__(self, name: str, value: int | float | str) -> None:
        if not isinstance(value, (int, float, str)) or isinstance(value, bool):
            raise ArgumentError(f"property '{name}' is a {type(value).__qualname__}, but must be an int, a float or a str")
        self._values[name] = value

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[tuple[str, int | float | str]]:
        return iter(self._values.items())

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(list(self._values))


class CheckpointState:
    """Of load_checkpoint. One Module trains it: from its first step on, parameters are those of the module's session."""

    def __init__(self, tensors: dict[str, NDArray[Any]], metadata: dict[str, str]) -> None:
        names = json.loads(metadata["parameters"]) if "parameters" in metadata else list(tensors)
        self._tensors = {name: tensors[name] for name in names}
        self._optimizer = {name: each for name, each in tensors.items() if name not in self._tensors}
        self._trainable = frozenset(metadata["trainable"].split("\n"))
        self._outputs: list[str] = json.loads(metadata["outputs"])
        """Outputs of the graph that a step gives beside the loss."""
        self._properties = Properties(json.loads(metadata["properties"]))
        self._module: Module | None = None

    @classmethod
    def load_checkpoint(cls, checkpoint_uri: str | os.PathLike[str]) -> CheckpointState:
        """Of generate_artifacts or save_checkpoint."""
        tensors, metadata = _safetensors.read(checkpoint_uri)
        try:
            return cls(tensors, metadata)
        except (KeyError, ValueError) as error:
            raise FormatError(f"{os.fspath(checkpoint_uri)}: is no checkpoint of generate_artifacts or save_checkpoint") from error

    @classmethod
    def save_checkpoint(
        cls, state: CheckpointState, checkpoint_uri: str | os.PathLike[str], include_optimizer_state: bool = False
    ) -> None:
        tensors = {name: state._read(name) for name in state._tensors}
        if include_optimizer_state:
            tensors.update(state._optimizer if state._module is None else state._module._optimizer_state())
        metadata = {
            "parameters": json.dumps(list(state._tensors)),
            "trainable": "\n".join(sorted(state._trainable)),
            "outputs": json.dumps(state._outputs),
            "properties": json.dumps(state._properties._values),
        }
        _safetensors.write(checkpoint_uri, tensors, metadata)

    @property
    def parameters(self) -> Parameters:
        return Parameters(self)

    @property
    def properties(self) -> Properties:
        return self._properties

    def _read(self, name: str) -> NDArray[Any]:
        """A copy."""
        live = None if self._module is None else self._module._read(name)
        return self._tensors[name].copy() if live is None else live

    def _write(self, name: str, value: Any) -> None:
        given, present = np.asarray(to_array(value)), self._read(name)
        if given.dtype != present.dtype or given.shape != present.shape:
            raise ArgumentError(f"'{name}' is {present.dtype} {present.shape}, but was given {given.dtype} {given.shape}")
        if self._module is not None and self._module._write(name, given):
            return
        if name not in self._trainable and not np.array_equal(given, present):
            raise ArgumentError(f"'{name}' is frozen, a constant of the compiled step: generate artifacts from a model with other values")
        self._tensors[name] = given.copy()
