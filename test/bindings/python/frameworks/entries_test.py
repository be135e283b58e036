"""The cache as a place for code that is executed: damaged entries, those that others may have written, and what is on the disk.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import unittest
import unittest.mock
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from modules import Mlp

import ortc
import ortc.torch
import ortc.torch.optim
from ortc.torch import _cache, _update

x, y = torch.randn(4, 6), torch.arange(4) % 3


def run_compiled() -> None:
    model = ortc.torch.compile_(Mlp(), wait=True, fallback="error")
    F.cross_entropy(model(x), y).backward()


def run_fused() -> None:
    model = Mlp()
    ortc.torch.Trainer(model, F.cross_entropy, torch.optim.SGD(model.parameters(), lr=0.1)).step(x, y)


def run_optimizer(kind: Any = ortc.torch.optim.AdamW) -> None:
    for each in (_update.open_update, _update.open_whole):
        each.cache_clear()
    p = torch.nn.Parameter(torch.ones(4, 3))
    p.grad = torch.ones(4, 3)
    optimizer = kind([p], lr=0.1)
    optimizer.step()
    if not optimizer.report.compiled:
        raise ortc.CompileError(str(optimizer.report))


KINDS: dict[str, Callable[[], None]] = {
    "compile_": run_compiled,
    "Trainer": run_fused,
    "optim, of pieces": run_optimizer,
    "optim, of whole tensors": lambda: run_optimizer(ortc.torch.optim.Muon),
}


def flip(path: Path) -> None:
    values = bytearray(path.read_bytes())
    for i in range(200, len(values), 64):  # in every section: some are never read
        values[i] ^= 1
    path.write_bytes(values)


def link(path: Path) -> None:
    """To a file with the same bytes."""
    other = path.parents[2] / "elsewhere"
    path.rename(other)
    path.symlink_to(other)


def spoil_meta(text: str) -> Callable[[Path], Any]:
    return lambda path: (path.parents[1] / "meta.json").write_text(text)


def move_entry(path: Path) -> None:
    """Puts a link in its place."""
    entry = path.parents[1]
    other = entry.with_name("elsewhere.tmp")
    entry.rename(other)
    entry.symlink_to(other)


class EntriesTest(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = Path(place.name) / "cache"
        patch = unittest.mock.patch.dict(os.environ, ORTC_CACHE_DIR=str(self.root))
        patch.start()
        self.addCleanup(patch.stop)

    def artifacts(self) -> list[Path]:
        return sorted(self.root.glob("[0-9a-f]*/artifact/model.ortc"))

    @contextlib.contextmanager
    def count_compilations(self, wanted: int) -> Iterator[None]:
        """By the artifacts that are new, or written since."""
        before = {path: path.stat().st_mtime_ns for path in self.artifacts()}
        yield
        made = [path for path in self.artifacts() if path.stat().st_mtime_ns != before.get(path)]
        self.assertEqual(len(made), wanted)

    def test_damaged_entries(self) -> None:
        """An entry that cannot be read is none: it is compiled again, once."""
        other = Path(tempfile.mkdtemp(dir=self.root.parent))
        ortc.compile(Path(__file__).parents[4] / "test/zoo/mlp-digits/model.onnx", shapes={"batch": 4}, output=other, target="native")
        damages: dict[str, Callable[[Path], Any]] = {
            "cut": lambda path: os.truncate(path, 100),
            "empty": lambda path: os.truncate(path, 0),
            "flipped bits": flip,
            "gone": os.unlink,
            "of another model": lambda path: shutil.copy(other / "model.ortc", path),
            "no metadata": spoil_meta(""),
            "other metadata": spoil_meta("{}"),
            "metadata that is a list": spoil_meta("[]"),
            "a link": link,
            "an entry that is a link": move_entry,
            "writable by others": lambda path: os.chmod(path, 0o666),
            "in a folder that others may write into": lambda path: os.chmod(path.parent, 0o777),
            "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
        }
        if os.geteuid() == 0:
            damages["of somebody else"] = lambda path: os.chown(path, 1, 1)
        for kind, run in KINDS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                run()
                for damage, spoil in damages.items():
                    if kind != "compile_" and damage not in ("cut", "flipped bits", "of another model", "no metadata", "a link"):
                        continue
                    with self.subTest(kind=kind, damage=damage):
                        spoil(self.artifacts()[0])
                        with self.count_compilations(1):
                            run()
                        with self.count_compilations(0):
                            run()
            shutil.rmtree(self.root)

    def test_folders_of_others(self) -> None:
        """Nothing is taken from them, and nothing is written there."""
        cases: dict[str, tuple[Callable[[], Any], str]] = {
            "writable": (lambda: os.chmod(self.root, 0o777), r"others may write into it \(mode 0777\)"),
            "writable by a group": (lambda: os.chmod(self.root, 0o770), r"others may write into it \(mode 0770\)"),
            "in a folder that is": (
                lambda: os.chmod(self.root.parent, 0o777),
                f"everybody may write into {self.root.parent}, and put another folder there",
            ),
            "a link": (self._link_root, "is a link"),
        }
        if os.geteuid() == 0:
            cases["of somebody else"] = (lambda: os.chown(self.root, 1, 1), "is of user 1, and code that is executed must be of user 0")
        run_compiled()
        whole = self.root.with_name("whole")
        self.root.rename(whole)
        for case, (spoil, message) in cases.items():
            shutil.copytree(whole, self.root)
            os.chmod(self.root.parent, 0o700)
            spoil()
            before = sorted(os.listdir(self.root))
            with self.subTest(case=case):
                model = ortc.torch.compile_(Mlp(), wait=True)
                with self.assertWarnsRegex(UserWarning, f"there is no place to compile: .*{message}"):
                    self.assertEqual(model(x).shape, (4, 3))
                self.assertEqual(ortc.torch.report(model).compiled, 0)
                with self.assertRaisesRegex(ortc.CompileError, f"there is no place to compile: .*{message}"):
                    run_fused()
                with self.assertWarnsRegex(UserWarning, message), self.assertRaises(ortc.CompileError):
                    run_optimizer()
                self.assertEqual(sorted(os.listdir(self.root)), before)
            os.chmod(self.root.parent, 0o700)
            if self.root.is_symlink():
                self.root.unlink()
            else:
                shutil.rmtree(self.root)

    def _link_root(self) -> None:
        self.root.rename(self.root.with_name("elsewhere"))
        self.root.symlink_to("elsewhere")

    def test_modes(self) -> None:
        """Files that are written are only the owner's, whatever the umask is."""
        before = os.umask(0o002)
        self.addCleanup(os.umask, before)
        for run in KINDS.values():
            run()
        self.assertEqual(stat.S_IMODE(self.root.stat().st_mode), 0o700)
        self.assertEqual(len(self.artifacts()), len(KINDS))
        for path in self.root.glob("[0-9a-f]*/**/*"):
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o700 if path.is_dir() else 0o600, path)
        for run in KINDS.values():
            with self.count_compilations(0):
                run()

    def test_entries_are_on_the_disk_before_they_have_their_name(self) -> None:
        calls: list[str] = []
        made = self.root / "made"
        (made / "artifact").mkdir(parents=True)
        os.chmod(self.root, 0o700)
        shutil.copy(self._compile_something(), made / "artifact" / "model.ortc")
        sync, rename = os.fsync, os.rename

        def note_sync(handle: int) -> None:
            calls.append(os.path.relpath(os.readlink(f"/proc/self/fd/{handle}"), os.path.realpath(self.root)))
            sync(handle)

        def note_rename(source: Any, target: Any) -> None:
            calls.append("renamed")
            rename(source, target)

        with unittest.mock.patch("os.fsync", note_sync), unittest.mock.patch("os.rename", note_rename):
            _cache.commit(made, "a" * 64, {})
        at = calls.index("renamed")
        self.assertEqual(sorted(calls[:at]), ["made", "made/artifact", "made/artifact/model.ortc", "made/meta.json"])
        self.assertEqual(calls[at + 1 :], ["."])
        self.assertIsNotNone(_cache.find("a" * 64))

    def _compile_something(self) -> Path:
        folder = self.root.parent / "something"
        ortc.compile(Path(__file__).parents[4] / "test/zoo/mlp-digits/model.onnx", shapes={"batch": 4}, output=folder, target="native")
        return folder / "model.ortc"

    def test_lists_of_outputs_of_others(self) -> None:
        """The note on which outputs had gradients is no more trusted than entries are."""
        _cache.write_used("b" * 64, [0, 2])
        self.assertEqual(_cache.read_used("b" * 64), [0, 2])
        path = self.root / f"{'b' * 64}.used"
        os.chmod(path, 0o666)
        self.assertIsNone(_cache.read_used("b" * 64))
        path.rename(self.root / "other")
        path.symlink_to("other")
        self.assertIsNone(_cache.read_used("b" * 64))
        _cache.write_used("b" * 64, [1])  # in the place of the link
        self.assertEqual(_cache.read_used("b" * 64), [1])


if __name__ == "__main__":
    unittest.main()
