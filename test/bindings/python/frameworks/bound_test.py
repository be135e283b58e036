"""Tensors of PyTorch that a session keeps, and whose memory is another one by the next step.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import functools
import os
import pathlib
import tempfile
import unittest
from typing import Any

import numpy as np
import torch

import ortc

MODEL = pathlib.Path(__file__).parents[4] / "test/zoo/mlp-digits/model.onnx"
ROWS = 64


@functools.cache
def artifact() -> ortc.Artifact:
    folder = tempfile.TemporaryDirectory()
    made = ortc.compile(MODEL, shapes={"batch": ROWS}, target="native", output=os.path.join(folder.name, "art"))
    made.folder_of_test = folder  # type: ignore[attr-defined]
    return made


class Plain:
    """A tensor of a framework without DLPack's C exchange."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **options: Any) -> Any:
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()

    def data_ptr(self) -> int:
        return self.tensor.data_ptr()

    def untyped_storage(self) -> Any:
        return self.tensor.untyped_storage()


def predict(pixels: torch.Tensor) -> np.ndarray[Any, Any]:
    return ortc.Session(artifact()).predict(pixels=pixels.contiguous())["output"].copy()


def occupy(*shape: int) -> list[torch.Tensor]:
    """Tensors to which the allocator gives memory that was freed a moment ago."""
    return [torch.full(shape, 7.0) for _ in range(20)]


class BoundTest(unittest.TestCase):
    def setUp(self) -> None:
        self.session = ortc.Session(artifact())
        self.pixels = torch.rand(ROWS, 64)
        self.label = torch.arange(ROWS) % 10
        self.output = torch.zeros(ROWS, 10)

    def bind(self, wrap: Any = lambda tensor: tensor) -> None:
        self.session.bind(pixels=wrap(self.pixels), label=self.label, output=wrap(self.output))
        self.session.predict()

    def test_new_memory_is_used(self) -> None:
        for wrap in (lambda tensor: tensor, Plain):
            for change in ("data", "set_"):
                with self.subTest(change=change, wrap=wrap):
                    self.setUp()
                    self.bind(wrap)
                    pixels, output = torch.rand(ROWS, 64), torch.zeros(ROWS, 10)
                    if change == "data":
                        self.pixels.data, self.output.data = pixels, output
                    else:
                        self.pixels.set_(pixels)
                        self.output.set_(output)
                    others = [*occupy(ROWS, 64), *occupy(ROWS, 10)]
                    self.session.predict()
                    np.testing.assert_array_equal(self.output.numpy(), predict(pixels))
                    self.assertEqual(self.output.data_ptr(), output.data_ptr())
                    for each in others:
                        self.assertTrue(bool((each == 7).all()), "memory of another tensor was written")

    def test_other_shapes_are_refused(self) -> None:
        changes = {
            "resize_": (lambda: self.pixels.resize_(2 * ROWS, 64), r"'pixels' was changed since: it is float32 \[128, 64\]"),
            "smaller": (lambda: self.pixels.resize_(ROWS, 32), r"'pixels' was changed since: it is float32 \[64, 32\]"),
            "data": (lambda: setattr(self.output, "data", torch.zeros(3)), r"'output' was changed since: it is float32 \[3\]"),
            "transposed": (lambda: self.pixels.t_(), "'pixels' is .* not dense and row-major"),
            "none": (lambda: self.output.untyped_storage().resize_(0), "'output' .* its storage has less memory"),
            "less": (lambda: self.output.untyped_storage().resize_(64), "'output' .* its storage has less memory"),
        }
        for name, (change, text) in changes.items():
            with self.subTest(name):
                self.setUp()
                self.bind()
                change()
                others = [*occupy(ROWS, 64), *occupy(ROWS, 10)]
                with self.assertRaisesRegex(ortc.ShapeError, text):
                    self.session.predict()
                for each in others:
                    self.assertTrue(bool((each == 7).all()), "memory of another tensor was written")
                self.pixels, self.output = torch.rand(ROWS, 64), torch.zeros(ROWS, 10)
                self.bind()  # goes on
                np.testing.assert_array_equal(self.output.numpy(), predict(self.pixels))

    def test_memory_that_was_freed_before_is_refused(self) -> None:
        for size in (0, 64):
            self.pixels.untyped_storage().resize_(size)
            with self.assertRaisesRegex(ortc.ShapeError, "'pixels' is float32 .* its storage has less memory"):
                self.session.bind(pixels=self.pixels)
        self.pixels.untyped_storage().resize_(0)
        with self.assertRaisesRegex(ortc.ShapeError, "'pixels' is float32 .* its storage has less memory"):
            self.session.predict(pixels=self.pixels)

    def test_inputs_of_other_steps_may_change(self) -> None:
        self.session.train_step(pixels=self.pixels, label=self.label)
        self.label.resize_(3)
        self.session.predict(pixels=self.pixels)
        with self.assertRaisesRegex(ortc.ShapeError, "'label' was changed since"):
            self.session.train_step(pixels=self.pixels)


if __name__ == "__main__":
    unittest.main()
