"""Breaks when the tables of benchmarks/train-step say something else than the measurements, or a wrong step counts.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks/train-step"))

import performance_set
import run
import systems
import table

LOSSES = [2.0, 1.9, 1.8, 1.7, 1.5]
MACHINE = {"machine": "a machine", "date": "2026-01-01", "seconds": 1.0}


def line(system, ms, variant="", name="lenet", losses=LOSSES, **more):
    times = {"median_ms": ms, "min_ms": ms} if ms else {}
    return {
        "name": name,
        "threads": 1,
        "system": system,
        "variant": variant,
        "losses": list(losses),
        **times,
        **more,
    }


def whole_row(lines):
    """The first row of the first table as a list of cells."""
    text = table.markdown(MACHINE, table.judge(lines))
    return [cell.strip() for cell in text.splitlines()[4].split("|")[1:-1]]


def row(lines):
    """The same without date and commit."""
    return whole_row(lines)[:-2]


class TableTest(unittest.TestCase):
    def test_three_digits_never_in_scientific_notation(self):
        self.assertEqual([table.digits(x) for x in (0.0056612, 1.234, 12345.6, 0)], ["0.00566", "1.23", "12346", "0"])

    def test_ratio_is_of_the_fastest_variant_of_the_fastest_system(self):
        lines = [
            line("ortc", 2.0),
            line("eager", 8.0, "contiguous"),
            line("eager", 6.0, "channels_last"),
            line("ort", 5.0),
        ]
        # model, threads, ortc, eager, ORT, best / ortc, in the worst turn, eager / ortc, ORT / ortc, two shares
        self.assertEqual(row(lines), ["lenet", "1", "2.00", "6.00", "5.00", "2.50", "–", "3.00", "2.50", "–", "–"])

    def test_worst_turn_compares_what_was_measured_in_the_same_turn(self):
        lines = [
            line("ortc", 2.0, turns_ms={"0": 2.0, "1": 3.0, "2": 1.0}),
            line("tuned", 1.0, turns_ms={"0": 1.0, "1": 1.0}),
            line("eager", 4.0, turns_ms={"0": 4.0, "1": 4.5}),  # 2.00, 1.50
            line("ort", 2.0, turns_ms={"2": 2.0}),  # memory did not hold it beside the other
        ]
        self.assertEqual(row(lines)[7], "1.50")
        self.assertEqual(row([*lines[:3], line("ort", 2.0, turns_ms={"1": 1.5}, taken="another run")])[7], "1.50")

    def test_what_tuning_adds_is_a_column_and_nothing_else(self):
        lines = [line("ortc", 2.0), line("tuned", 1.5), line("eager", 8.0), line("ort", 6.0)]
        # Neither does it compete with ortc, nor is ortc tuned in the ratios.
        self.assertEqual(row(lines), ["lenet", "1", "2.00", "1.50", "8.00", "6.00", "3.00", "–", "4.00", "3.00", "–", "–"])
        # It has the losses of ortc by construction: that is no second voice against the others.
        wrong = [2.5] * 5
        lines = [line("ortc", 2.0, losses=wrong), line("tuned", 1.5, losses=wrong), line("eager", 8.0), line("ort", 6.0)]
        self.assertEqual([each.get("wrong") for each in table.judge(lines)], [True, True, None, None])

    def test_steps_from_python_have_ratios_of_their_own_and_no_voice(self):
        eager = [line("eager", 9.0, "contiguous"), line("eager", 6.0, "channels_last")]
        lines = [line("ortc", 2.0), line("ortc-torch", 4.0), line("ortc-trainer", 2.5), *eager, line("compile", 5.0)]
        # They do not compete with ortc: the fastest other system is torch.compile.
        self.assertEqual(row(lines)[7], "2.50")
        rows = [line.split(" | ")[:5] for line in table.markdown(MACHINE, lines).split("\n\n")[2].splitlines()]
        self.assertEqual(rows[0][2:], ["eager / ortc.torch", "torch.compile / ortc.torch", "ortc / ortc.torch.Trainer"])
        self.assertEqual(rows[2], ["| lenet", "1", "1.50", "1.25", "0.800"])
        self.assertEqual(rows[3], ["| geometric mean", "1", "1.50", "1.25", "0.800"])
        # All of ortc are one opinion about the losses, not three.
        wrong = [2.5] * 5
        lines = [line(system, 2.0, losses=wrong) for system in ("ortc", "ortc-torch", "ortc-trainer")]
        judged = table.judge([*lines, line("eager", 8.0), line("ort", 6.0)])
        self.assertEqual([each.get("wrong") for each in judged], [True, True, True, None, None])

    def test_steps_from_python_alone_are_judged_by_pytorch(self):
        judged = table.judge([line("ortc-torch", 2.0, losses=[2.5] * 5), line("eager", 8.0)])
        self.assertEqual([each.get("wrong") for each in judged], [True, None])

    def test_every_row_has_date_and_commit_and_marks_what_was_not_in_turns(self):
        first = {"taken": "2026-01-02T03:04:05", "commit": "abc"}
        again = {"taken": "2026-01-03T03:04:05", "commit": "def"}
        lines = [line("ortc", 2.0, **again), line("eager", 4.0, **again), line("ort", 8.0, **first)]
        self.assertEqual(whole_row(lines)[2:5] + whole_row(lines)[-2:], ["2.00", "4.00", "8.00 \\*", "2026-01-03", "def"])
        self.assertIn("not in turns with ortc", table.markdown(MACHINE, lines))
        self.assertNotIn("not in turns with ortc", table.markdown(MACHINE, lines[:2]))

    def test_shares_are_of_the_rates_of_the_same_run(self):
        # 4 GFLOP and 1 GB in 100 ms of 80 GFLOP/s and 40 GB/s.
        ortc = line("ortc", 100.0, flops=4e9, bytes_read=6e8, bytes_written=4e8, fma_gflops=80.0, copy_gbs=40.0)
        self.assertEqual(row([ortc])[-2:], ["50 %", "25 %"])

    def test_geometric_mean(self):
        self.assertAlmostEqual(table.geometric_mean([2, 8]), 4)
        self.assertIsNone(table.geometric_mean([]))

    def test_fast_wrong_step_is_an_error(self):
        wrong = [*LOSSES[:4], LOSSES[4] + 0.1]
        lines = table.judge([line("ortc", 3.0), line("eager", 4.0), line("ort", 0.1, losses=wrong)])
        self.assertEqual(["error" in each for each in lines], [False, False, True])
        self.assertEqual(row(lines)[5], "1.33")

    def test_ortc_can_be_the_wrong_one(self):
        lines = table.judge([line("ortc", 3.0, losses=[1.0] * 5), line("eager", 4.0), line("ort", 5.0)])
        self.assertEqual(["error" in each for each in lines], [True, False, False])

    def test_nan_is_wrong(self):
        lines = table.judge([line("ortc", 3.0), line("eager", 4.0), line("ort", 1.0, losses=[float("nan")] * 5)])
        self.assertIn("wrong", lines[2])

    def test_batch_norm_may_drift_after_the_first_loss_only(self):
        drifted = [LOSSES[0], *(loss + 0.01 for loss in LOSSES[1:])]
        judge = lambda name, losses: table.judge(
            [line("ortc", 1.0, name=name, losses=losses), line("eager", 1.0, name=name), line("ort", 1.0, name=name)]
        )[0]
        self.assertNotIn("error", judge("mobilenetv2-224", drifted))
        self.assertIn("error", judge("bert-mini", drifted))
        self.assertIn("error", judge("mobilenetv2-224", [loss + 0.01 for loss in LOSSES]))

    def test_disturbed_time_has_no_ratio(self):
        lines = [line("ortc", 1.0), {**line("eager", 8.0), "min_ms": 3.0}]
        self.assertEqual(row(lines)[3:6], ["8.00?", "–", "–"])

    def test_failure_and_time_limit_are_told_apart(self):
        failed = {"name": "lenet", "threads": 1, "variant": ""}
        lines = [
            line("ortc", 1.0),
            {**failed, "system": "whole", "error": "more than 9 s", "too_slow": True},
            {**failed, "system": "ort", "error": "no gradient"},
        ]
        self.assertEqual(row(lines)[3:5], ["too slow to compile", "failed"])

    def test_interrupted_results_are_read_up_to_the_torn_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "results.jsonl"
            path.write_text(json.dumps(MACHINE) + "\n" + json.dumps(line("ortc", 1.0)) + '\n{"name": "le')
            results = run.Results(path, {})
            self.assertEqual((results.machine, len(results.lines)), (MACHINE, 1))
            self.assertTrue(results.has("lenet", 1, "ortc", ""))
            self.assertFalse(results.has("lenet", 2, "ortc", ""))

    def test_facts_name_models_of_the_set(self):
        names = set(performance_set.NAMES)
        for some in (performance_set.CONVOLUTIONAL, performance_set.BATCH_NORM, performance_set.IN_JAX):
            self.assertLessEqual(some, names)

    def test_reason_of_a_failure_is_its_last_error(self):
        log = "loading\nRuntimeError: no  gradient of Pad\nclosing 3 files\n"
        self.assertEqual(systems.find_reason(log), "RuntimeError: no gradient of Pad")
        self.assertEqual(systems.find_reason("one\nKilled\n\n"), "one Killed")
        self.assertEqual(systems.find_reason(""), "")

    def test_long_reason_begins_with_a_word(self):
        reason = systems.find_reason("error: " + "word " * 100)
        self.assertEqual(set(reason.split()), {"word"})
        self.assertLessEqual(len(reason), systems.REASON_LENGTH)


if __name__ == "__main__":
    unittest.main()
