"""Every block of Python on docs/python.md, in order, in a folder with the files that it names.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os
import re
import shutil
import unittest

from support import DIGITS, SOURCE, TEST, TRAIN, WORK


class PageTest(unittest.TestCase):
    def test_blocks_run(self):
        text = (SOURCE / "docs/python.md").read_text()
        blocks = list(re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S))
        self.assertGreater(len(blocks), 5)
        folder = WORK / "page"
        folder.mkdir()
        shutil.copy(DIGITS, folder / "model.onnx")
        shutil.copy(TRAIN, folder)
        shutil.copy(TEST, folder)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder)
        names = {}
        for block in blocks:
            self.assertEqual(block[1], "python", "a block that no test runs")
            line = text[: block.start(2)].count("\n")
            exec(compile("\n" * line + block[2], "docs/python.md", "exec"), names)
        # What the page says of its last training.
        self.assertGreater(names["trainer"].evaluate()["accuracy"], 0.9)
        self.assertTrue((folder / "best.safetensors").exists())
        self.assertEqual(names["s"]["step"], 29)


if __name__ == "__main__":
    unittest.main()
