# The extension module: sessions of the runtime.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from collections.abc import Callable, Iterator
from typing import Any, SupportsFloat

from numpy.typing import NDArray

ABI_VERSION: int

def host() -> tuple[int, int]:
    """Architecture and features of this machine (ortc/format.h)."""

def check_device(name: str) -> None:
    """Raises what keeps sessions from a device such as "cuda"."""

def take_snapshot(containers: tuple[Any, ...]) -> tuple[Any, ...]:
    """Keys and values of dicts, items of lists: a tuple for each."""

def is_unchanged(containers: tuple[Any, ...], snapshot: tuple[Any, ...]) -> bool:
    """Whether they have the same objects in the same order."""

def have_items(items: tuple[tuple[Any, ...], ...], absent: object) -> bool:
    """Whether dicts have the same objects under some names: each item is a dict, a name, and the object or `absent`."""

def join_words(words: list[str]) -> str:
    """ "a, b and c"."""

def suggest(text: str, words: list[str]) -> str:
    """ "; did you mean 'word'?" where one of the words is close to the text, else nothing."""

def check_kept_names(path: str, files: list[tuple[str, str]]) -> None:
    """Refuses files, each with what it is, that have names of kept checkpoints of `path`, so that they may be replaced or removed."""

def check_output(name: str, path: str, inputs: list[tuple[str, str]]) -> None:
    """Refuses what is no regular file, and what is one of the inputs, each with what it is."""

def check_folder(path: str) -> None:
    """Refuses a path whose folder is not there or cannot be written to."""

def format_event(event: dict[str, Any]) -> str:
    """The line that `ortc run --metrics` writes of it."""

class Training:
    """A training by the engine; ortc.Trainer is a door to it. Whatever of Python fails on the way is raised as it was."""

    def __init__(self, session: Session, path: str, tell: Callable[[str, dict[str, Any]], None]) -> None:
        """`path`: of the artifact. `tell` is called with the name of a method of callbacks and an event."""

    def set(self, **options: Any) -> None:
        """Options by the names of arguments of ortc.Trainer; None unsets them."""

    def open_train(self, source: str | dict[str, NDArray[Any]] | Callable[[int], Iterator[dict[str, Any]]]) -> None: ...
    def open_eval(self, source: str | dict[str, NDArray[Any]] | Callable[[int], Iterator[dict[str, Any]]]) -> None: ...
    def add_metric(self, name: str, function: Callable[..., tuple[float, float]] | None = None) -> None: ...
    def begin(self) -> None:
        """After what was set and opened, before all that follows."""

    def load(self, path: str) -> tuple[Any, ...]:
        """(fresh state, loaded, ignored, metadata, texts that tell what begins anew)"""

    def plan(self, epochs: int | None, steps: int | None) -> None:
        """Refuses what cannot be, before callbacks know of it."""

    def train(self) -> bool:
        """Whether interrupt() has ended it."""

    def stop(self) -> None: ...
    def interrupt(self) -> None: ...
    def save(self, path: str) -> None: ...
    def evaluate(
        self, source: str | dict[str, NDArray[Any]] | Callable[[int], Iterator[dict[str, Any]]] | None, weights: str
    ) -> dict[str, float]: ...
    @property
    def files(self) -> list[tuple[str, str]]:
        """Those that the data are read from: an argument, and a path."""

    @property
    def figures(self) -> list[str]:
        """Losses, and accuracies of those with classes."""

    @property
    def metrics(self) -> list[str]: ...
    @property
    def schedule(self) -> str:
        """Of the artifact; "" where it has none."""

    @property
    def saves(self) -> bool: ...
    @property
    def is_interrupted(self) -> bool: ...
    @property
    def is_exhausted(self) -> bool: ...
    @property
    def step(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def slice(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def shuffle(self) -> bool: ...
    @property
    def best(self) -> tuple[int, float] | None:
        """Step and value of the best evaluation that was due."""

_Value = tuple[str, str, tuple[int, ...]]

class Program:
    def __init__(self, path: str, device: str = "cpu") -> None: ...
    @property
    def target(self) -> str: ...
    @property
    def max_workers(self) -> int: ...
    @property
    def persistent_bytes(self) -> int: ...
    @property
    def digest(self) -> bytes: ...
    @property
    def model(self) -> bytes: ...
    def tensors(self) -> list[tuple[str, str, str, tuple[int, ...], int, str | None]]:
        """(name, role, dtype, shape, bytes, owner) of each."""

    def steps(self) -> dict[str, dict[str, tuple[tuple[_Value, ...], tuple[_Value, ...]]]]:
        """Binding -> step -> (inputs, outputs), each (name, dtype, shape)."""

    def section(self, kind: int) -> bytes: ...

class Pool:
    """Threads that frames share; one step at a time has them."""

    def __init__(self, workers: int, openmp: tuple[int, int, int] | None = None) -> None:
        """`openmp`: the addresses of GOMP_parallel, omp_get_num_threads and omp_get_thread_num, whose threads are taken
        then."""

    @property
    def workers(self) -> int: ...

class Frame:
    """A forward step and its backward step over memory of a framework: objects with data_ptr(), in the order of names.
    Of an artifact that has only `predict` that is the forward step."""

    def __init__(self, program: Program, pool: Pool) -> None: ...
    def names(self, kind: str) -> list[str]:
        """inputs, bound, outputs; cotangents, gradients, input_gradients; reread and kept by backward."""

    @property
    def gradient_bytes(self) -> int: ...
    @property
    def gradient_offsets(self) -> list[int]:
        """In that buffer, in the order of names."""

    def forward(
        self, inputs: tuple[Any, ...], bound: tuple[Any, ...], outputs: tuple[Any, ...], seed: int
    ) -> None: ...
    def backward(
        self,
        cotangents: tuple[Any, ...],
        gradients: int,
        input_gradients: tuple[Any, ...],
        kept: tuple[Any, ...],
        bound: tuple[Any, ...],
        reread: tuple[Any, ...],
    ) -> None: ...

def advance(counters: list[Any]) -> list[float]:
    """Adds one to tensors of one float32, and gives what they are then. Raises ShapeError where one is something else."""

class Update:
    """A program of `ortc update` for pieces: vectors, float64 scalars and outputs VECTOR.new, as an update in place of tensors
    of any length. Vectors that are shorter have an element for each block of the others."""

    def __init__(self, program: Program) -> None: ...
    @property
    def vectors(self) -> list[tuple[str, str, int]]:
        """Names, types ("float32"), and how many elements of the first one an element is of."""

    @property
    def scalars(self) -> list[str]: ...
    @property
    def advanced(self) -> list[str]:
        """The scalars that a step gives new values of."""

    @property
    def pieces(self) -> list[int]:
        """Lengths that there is code for, from the largest to the smallest."""

    class Batch:
        """Tensors of the caller."""

    def prepare(self, tensors: tuple[list[Any], ...]) -> Batch:
        """For each vector a list of tensors of PyTorch; those at one place have one shape and one dense layout; where
        vectors are of blocks, rows are in order, and theirs have a rank of 1. Raises ShapeError otherwise, or where types and devices are others."""

    def step(self, pool: Pool, batch: Batch, scalars: list[float]) -> list[float]:
        """Gives the new values of `advanced`."""

class Session:
    def __init__(self, program: Program, threads: int = 0, stop_on_not_finite: bool = False) -> None: ...
    @property
    def threads(self) -> int: ...
    @property
    def handle(self) -> int:
        """The address of the ortc_session, for libraries of C."""

    @property
    def binding(self) -> str:
        """The one that steps and names of inputs and outputs refer to."""

    def use_binding(self, name: str) -> None: ...
    def reset(self) -> None:
        """Parameters, state and scalars as they were at first."""

    def bind(self, **arrays: Any) -> None:
        """Inputs and outputs that steps use in place from now on."""

    def bind_address(self, name: str, address: int) -> None:
        """The same of dense memory that the caller keeps, of the host or the session's device; 0: the session's own."""

    def step(self) -> float:
        """A training step on what is bound."""

    def train_step(self, *inputs: Any, **named: Any) -> float: ...
    def accumulate_step(self, *inputs: Any, **named: Any) -> float: ...
    def eval_step(self, *inputs: Any, **named: Any) -> float: ...
    def gradients_step(self, *inputs: Any, **named: Any) -> float: ...
    def update_step(self) -> None: ...
    def predict(self, *inputs: Any, **named: Any) -> dict[str, NDArray[Any]]: ...
    def read(self, name: str) -> NDArray[Any]:
        """A copy of any tensor, in the layout of the ONNX file."""

    def write(self, name: str, values: Any) -> None: ...
    def read_gradient(self, parameter: str) -> NDArray[Any]: ...
    def write_gradient(self, parameter: str, values: Any) -> None: ...
    def get_scalar(self, name: str) -> float: ...
    def set_scalar(self, name: str, value: SupportsFloat) -> None: ...
    def locate(self, name: str) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
        """Address, ONNX type, shape and strides in bytes of a parameter, state or scalar."""

    def view(self, name: str) -> NDArray[Any]:
        """A parameter, state or scalar where it lies."""

    def tensor(self, name: str) -> Any:
        """The same as an object with __dlpack__."""

    def _save(self, path: str, metadata: dict[str, str]) -> None: ...
    def _load(self, path: str) -> tuple[bool, int, int, dict[str, str]]: ...
    def _write_checkpoint(self, metadata: dict[str, str]) -> bytes: ...
    def _read_checkpoint(self, file: bytes) -> tuple[bool, int, int, dict[str, str]]: ...
