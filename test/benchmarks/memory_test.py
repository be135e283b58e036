"""Breaks when the tables of benchmarks/memory say something else than the measurements.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks/memory"))

import measure

MACHINE = {"machine": "a machine", "date": "2026-01-01"}


def line(system, base, peak, name="lenet", threads=1, **more):
    return {"name": name, "threads": threads, "system": system, "base_mib": base, "peak_mib": peak, **more}


def rows(lines, which):
    """The rows of a table as lists of cells: 0 is that of peaks, 1 that of what is beside the state."""
    text = measure.markdown(MACHINE, lines).split("\n\n")[1 + which]
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in text.splitlines()[2:] if row]


class MemoryTest(unittest.TestCase):
    def setUp(self):
        plan = {"transient_mib": 22.5, "persistent_mib": 30.0}
        # Beside libraries and state: ortc 25, eager 100, eager with kept memory 200.
        self.lines = [
            line("ortc", 80.0, 135.0, **plan),
            line("stock", 700.0, 830.0, state_mib=30.0),
            line("eager", 700.0, 930.0, state_mib=30.0),
        ]

    def test_ratios_are_of_eager_in_the_environment_as_it_is(self):
        self.assertEqual(rows(self.lines, 0)[0], ["lenet", "1", "135 (80)", "830 (700)", "930 (700)", "0.163"])
        self.assertEqual(rows(self.lines, 1)[0], ["lenet", "1", "30.0", "25.0", "100", "200", "0.250", "22.5"])

    def test_means_are_geometric_and_those_of_a_number_of_threads(self):
        more = [line("ortc", 0.0, 4.0, "mlp"), line("stock", 0.0, 5.0, "mlp", state_mib=1.0)]
        other = [line("ortc", 0.0, 9.0, threads=2), line("stock", 0.0, 9.0, threads=2, state_mib=1.0)]
        found = rows(self.lines + more + other, 1)
        self.assertEqual([row[-2] for row in found], ["0.250", "0.750", "1.00", "0.433", "1.00"])

    def test_failed_system_has_no_ratio(self):
        self.lines[0]["error"] = "no memory"
        self.assertEqual(rows(self.lines, 0)[0][-1], "–")
        self.assertEqual(rows(self.lines, 1)[0][-2], "–")
        self.assertEqual(rows(self.lines[1:], 1)[0][-2:], ["–", "–"])

    def test_size_of_a_process_is_its_own(self):
        # Kept while the process runs, so that the kernel's figure, which begins with the parent's, would be this one's.
        kept = bytearray(b"x" * (128 << 20))
        size = lambda count: measure.wait_for_peak(
            subprocess.Popen([sys.executable, "-S", "-c", f"import time; x = b'x' * {count << 20}; time.sleep(0.2)"])
        )
        (status, small), (_, large) = size(1), size(200)
        self.assertEqual(status, 0)
        self.assertLess(small, 64)
        self.assertGreater(large, 200)
        self.assertEqual(len(kept), 128 << 20)


if __name__ == "__main__":
    unittest.main()
