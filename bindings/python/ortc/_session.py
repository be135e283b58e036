"""Sessions: parameters, state and steps of an artifact.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from ortc import _runtime
from ortc._artifact import Artifact
from ortc._checks import check_output, check_whole
from ortc._errors import NotFoundError

if TYPE_CHECKING:
    import numpy as np


class Loaded(NamedTuple):
    """What a checkpoint has brought."""

    fresh_state: bool
    """The file had weights alone, and the optimizer's state is as at first."""
    loaded: int
    ignored: int
    metadata: dict[str, str]


class Tensors(Mapping[str, NDArray[Any]]):
    """Tensors of a session by name. Reading gives an array over the session's memory where there is one, else a read-only
    copy; `tensors[name] = array` writes."""

    def __init__(
        self, names: tuple[str, ...], read: Callable[[str], NDArray[Any]], write: Callable[[str, Any], None] | None
    ) -> None:
        self._names = names
        self._read = read
        self._write = write

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._names:
            raise NotFoundError(f"there is no '{name}'; there are {', '.join(self._names) or 'none'}")
        return self._read(name)

    def __setitem__(self, name: str, values: Any) -> None:
        if self._write is None or name not in self._names:
            raise NotFoundError(f"there is no '{name}' to write")
        self._write(name, values)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Session(_runtime.Session):
    """Parameters and optimizer state of an artifact, and the steps that change them. Hyper-parameters are attributes:
    `session.lr = 1e-4`."""

    def __init__(
        self,
        artifact: Artifact | str | os.PathLike[str],
        threads: int = 0,
        device: str = "cpu",
        stop_on_not_finite: bool = False,
    ) -> None:
        """`threads`: 0 takes what the artifact allows and the machine has."""
        threads = check_whole("threads", threads, 0, (1 << 31) - 1)
        opened = artifact if isinstance(artifact, Artifact) else Artifact(artifact)
        program = opened.program(device)
        super().__init__(program, threads, stop_on_not_finite)
        put = super().__setattr__
        put("artifact", opened)
        put("device", device)
        put("program", program)
        put("stops_on_not_finite", stop_on_not_finite)
        put("_scalars", frozenset(opened.names("scalar")))

    artifact: Artifact
    device: str
    program: _runtime.Program
    stops_on_not_finite: bool
    _scalars: frozenset[str]

    # ---- Tensors.

    def write(self, name: str, values: Any) -> None:
        """Takes an array of the tensor's type and shape: what `read` has given, say."""
        tensor = self.artifact.tensors.get(name)
        if tensor is not None and tensor.dtype == "bfloat16":
            from ortc._arrays import as_read

            values = as_read(values)
        super().write(name, values)

    def _place(self, name: str) -> NDArray[Any]:
        if self.device == "cpu":
            return self.view(name)
        return self._copy(name)

    def _copy(self, name: str) -> NDArray[Any]:
        values = self.read(name)
        values.flags.writeable = False
        return values

    @property
    def parameters(self) -> Tensors:
        """What is trained, live: arrays over the session's memory with the strides that the compiler chose."""
        return Tensors(self.artifact.names("parameter"), self._place, self.write)

    @property
    def state(self) -> Tensors:
        """Of the optimizer, and running statistics."""
        return Tensors(self.artifact.names("state"), self._place, self.write)

    def read_parameters(self, trainable: bool = True) -> NDArray[np.float32]:
        """All parameters as one array, in the manifest's order; `trainable=False`: running statistics, too."""
        from ortc import _parameters

        return _parameters.read(self, trainable)

    def write_parameters(self, values: Any, trainable: bool = True) -> None:
        """Takes what read_parameters gave here or elsewhere, averaged, say. Optimizer state stays."""
        from ortc import _parameters

        _parameters.write(self, values, trainable)

    @property
    def outputs(self) -> Tensors:
        """What the last step has given: copies."""
        return Tensors(self._names_of(1), self._copy, None)

    @property
    def gradients(self) -> Tensors:
        """After a gradients step and before any other: copies. Written ones are what update_step applies."""
        return Tensors(self.artifact.names("parameter"), self.read_gradient, self.write_gradient)

    def _names_of(self, which: int) -> tuple[str, ...]:
        steps = self.program.steps()[self.binding].values()
        return tuple(dict.fromkeys(value[0] for step in steps for value in step[which]))

    # ---- Hyper-parameters.

    @property
    def scalars(self) -> dict[str, float]:
        return {name: self.get_scalar(name) for name in sorted(self._scalars)}

    def __getitem__(self, name: str) -> float:
        """A hyper-parameter, or a state of one element such as `step`."""
        return self.get_scalar(name)

    def __setitem__(self, name: str, value: float) -> None:
        self.set_scalar(name, value)

    def __getattr__(self, name: str) -> float:
        if name != "_scalars" and name in self._scalars:
            return self.get_scalar(name)
        raise AttributeError(f"a session has no '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            super().__setattr__(name, value)
            return
        if name not in self._scalars:
            known = ", ".join(sorted(self._scalars))
            raise AttributeError(f"'{name}' is no hyper-parameter of the artifact; it has {known}")
        self.set_scalar(name, value)

    # ---- Checkpoints.

    def save(self, path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
        """Writes parameters, state and hyper-parameters as a safetensors file; the path has the old file or the new. Raises
        ArgumentError for what is no regular file, and for the artifact's."""
        check_output("save", path, self.artifact.list_files())
        self._save(os.fspath(path), dict(metadata or {}))

    def load(self, path: str | os.PathLike[str]) -> Loaded:
        """Takes a checkpoint, or weights alone, after checking all of the file."""
        return Loaded(*self._load(os.fspath(path)))

    def to_bytes(self, metadata: Mapping[str, str] | None = None) -> bytes:
        """What save writes."""
        return self._write_checkpoint(dict(metadata or {}))

    def from_bytes(self, file: bytes) -> Loaded:
        """The same as load, from memory."""
        return Loaded(*self._read_checkpoint(file))
