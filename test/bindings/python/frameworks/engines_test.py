"""The page on engines.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import unittest

import torch
from modules import use_own_cache
from optional import needs
from pages import run_page

import ortc.torch


def setUpModule() -> None:
    use_own_cache()
    torch.set_num_threads(1)


@needs("transformers", "peft", "accelerate", "lightning")
class PageTest(unittest.TestCase):
    def test_blocks_run(self) -> None:
        names = run_page("engines.md")
        for model, calls in ((names["model"], 4), (names["classifier"].net, 4)):
            report = ortc.torch.report(model)
            self.assertEqual((report.compiled, sum(report.eager.values())), (calls, 0), str(report))


if __name__ == "__main__":
    unittest.main()
