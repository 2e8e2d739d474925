"""`riffle reproduce`: the frame on made-up figures and small simulations; every claim run small."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from unittest import mock

from riffle.reproduce import cases, chart, models, words
from riffle.reproduce.__main__ import main
from riffle.reproduce.cases import Race, Sweep, Training
from riffle.reproduce.claim import (
    HELD,
    MISSED,
    PARTLY,
    UNKNOWN,
    Bar,
    Bars,
    Claim,
    Run,
    ratio,
    verdict,
)
from riffle.reproduce.claims import CLAIMS
from riffle.reproduce.measure import cells_of, measure
from riffle.reproduce.models import Model
from riffle.reproduce.page import write_page
from riffle.reproduce.record import Measured, Record

DOCS = Path(__file__).resolve().parents[2] / "docs"
RIFFLE = os.environ.get("RIFFLE_COMMAND", "riffle")
FLAT = "flat:4,latency=1ms,bandwidth=1Gbps"
RACE = Race("race", FLAT, ("slow", "fast"), Model("resnet50"))
SWEEP = Sweep("sweep", ("flat:2,latency=1ms,bandwidth=1Gbps", FLAT), ("bsp",), Model("resnet50"))


def claim(**changed):
    return Claim(
        **{
            **dict.fromkeys(("title", "paper", "sentence", "setting", "baseline"), "words"),
            "name": "made-up",
            "differs": "",
            "limits": "",
            "cases": (RACE,),
            "quick": (RACE,),
            "bars": (Bar("gain", ratio("race", "slow", "fast"), 2, goal=5),),
            "charts": (Bars("race", "a chart <of> two"),),
            **changed,
        }
    )


def measured(*repeats):
    """Of slow and fast, in seconds."""
    found = Measured(repeats=len(repeats))
    for repeat, (slow, fast) in enumerate(repeats):
        for name, seconds in (("slow", slow), ("fast", fast)):
            figures = {"failed": "died"} if seconds is None else {"seconds": seconds}
            found.add(RACE, name, repeat, figures)
    return found


def called(*arguments):
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            code = main(list(map(str, arguments)))
        except SystemExit as end:
            code = end.code
    return code, output.getvalue(), errors.getvalue()


class Reproduce(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.file = self.folder / "record.json"
        self.place = cases.Place(RIFFLE, self.folder)

    def test_the_median_is_judged_and_repeats_are_paired(self):
        judged = measured((4, 1), (9, 3), (5, 1)).judge(claim())[0]
        self.assertEqual((judged.values, judged.value, judged.verdict), ([4, 3, 5], 4, HELD))
        self.assertEqual(
            words.row(judged)[1:],
            ["4.00x", "3", "3.00 to 5.00", ">= 2.00x", HELD] + ["5.00x, not reached"],
        )

    def test_a_missed_bar_is_missed_and_what_failed_is_not_measured(self):
        self.assertEqual(verdict(measured((3, 2)).judge(claim())), MISSED)
        self.assertEqual(verdict(measured((None, 2)).judge(claim())), UNKNOWN)
        upper = claim(
            bars=(Bar("lost", lambda run: run.get("race", "slow"), 3, "%", at_most=True),)
        )
        self.assertEqual(verdict(measured((3, 2)).judge(upper)), HELD)
        self.assertEqual(verdict(measured((3.1, 2)).judge(upper)), MISSED)
        both = claim(bars=(*claim().bars, *upper.bars))
        self.assertEqual(verdict(measured((3.1, 1)).judge(both)), MISSED)
        self.assertEqual(verdict(measured((3, None)).judge(both)), PARTLY)

    def test_failures_are_said(self):
        text = words.report(claim(), measured((None, 2)))
        self.assertIn("failed: race, slow: died", text)
        self.assertIn("not measured", text)

    def test_cells_take_turns_and_what_does_not_vary_runs_once(self):
        order = [(c.name, who, repeat) for c, who, repeat in cells_of((RACE, SWEEP), 2)]
        expected = [("race", "slow", 0), ("race", "fast", 0), ("sweep", "bsp", None)]
        self.assertEqual(order, [*expected, ("race", "slow", 1), ("race", "fast", 1)])

    def test_what_is_recorded_is_not_run_again_unless_the_setting_changed(self):
        known = measured((3, None))
        ran = []

        def run(case, contender, repeat, place):
            ran.append(contender)
            return {"seconds": 1.0}

        with mock.patch.object(Race, "run", run), contextlib.redirect_stderr(io.StringIO()):
            measure(claim(), known, (RACE,), self.place, lambda: None)
            self.assertEqual(ran, ["fast"])  # it had failed
            measure(claim(), known, (replace(RACE, steps=9),), self.place, lambda: None)
        self.assertEqual(ran, ["fast", "slow", "fast"])
        self.assertEqual(len(known.cells), 2)

    def test_a_record_comes_back_as_it_was(self):
        first = claim(quick=(SWEEP,), bars=())
        record = Record(str(self.file), {"made-up": first})
        record.begin(first, True, 1, False).add(SWEEP, "bsp", None, {"points": []})
        record.save()
        again = Record(str(self.file), {"made-up": first})
        again.load()
        self.assertEqual(again.of(first), record.of(first))
        self.assertTrue(again.begin(first, True, 1, True).cells)
        self.assertFalse(again.begin(first, False, 1, True).cells)  # of another size
        other = replace(first, quick=(replace(SWEEP, clusters=(FLAT,)),))
        changed = Record(str(self.file), {"made-up": other})
        changed.load()
        self.assertFalse(changed.of(other).cells)  # measured in a setting that is no more

    def test_wrong_words_are_answered_with_the_right_ones(self):
        code, _, errors = called("sesgd-moon")
        self.assertEqual(code, 2)
        self.assertIn("no claim 'sesgd-moon'; known: sesgd-lan, sesgd-wan", errors)
        for text in ("{}", "no json", '{"riffle": "reproduce", "version": 99}'):
            self.file.write_text(text)
            code, _, errors = called("mg-wfbp-scaling", "--output", self.file)
            self.assertEqual((code, errors.count("\n")), (2, 1), text)
        self.assertEqual(called("sesgd-lan", "--repeats", "0")[0], 2)
        missing = self.folder / "none.json"
        self.assertEqual(called("--page", self.folder / "p.md", "--output", missing)[0], 2)

    def test_without_a_claim_they_are_listed(self):
        code, output, _ = called()
        self.assertEqual(code, 0)
        self.assertEqual([line.split()[0] for line in output.splitlines()], list(CLAIMS))

    def test_every_claim_is_whole(self):
        for name, each in CLAIMS.items():
            self.assertTrue(all((each.sentence, each.setting, each.baseline, each.limits)), name)
            self.assertTrue(each.bars and each.charts, name)
            of = {case.name: case for case in each.cases}
            for case in each.quick:
                self.assertIn(case.name, of, name)
                self.assertLessEqual(set(case.contenders), set(of[case.name].contenders), name)
            for drawn in each.charts:
                self.assertIn(drawn.case, of, name)

    def test_bars_ask_only_for_what_runs(self):
        """Made-up figures of all that a claim runs: every bar has a value."""
        for each in CLAIMS.values():
            figures = {(c.name, who): Everything(c) for c in each.cases for who in c.contenders}
            for bar in each.bars:
                self.assertIsInstance(bar.value(Run(figures)), int | float, bar.what)

    def test_contenders_are_known_to_the_program(self):
        """Each is simulated or verified by name; other libraries have names of their own."""
        known = subprocess.run(
            [RIFFLE, "strategies", "--format", "json"], capture_output=True, text=True, timeout=60
        )
        names = {each["name"] for each in json.loads(known.stdout)["strategies"]}
        peers = {"torch-ddp", "decent-dp"}
        for each in CLAIMS.values():
            for case in each.cases:
                for contender in case.contenders:
                    self.assertIn(contender.split(":")[0], names | peers)

    def test_models_are_scaled_in_proportion(self):
        trace = json.loads(Model("googlenet-k80", 0.1).file(RIFFLE, self.folder).read_text())
        published = json.loads((models.PUBLISHED / "googlenet-k80.json").read_text())
        whole = sum(layer["forward"] + layer["backward"] for layer in trace["layers"])
        self.assertAlmostEqual(whole, 0.1)
        self.assertEqual(sum(layer["elements"] for layer in published["layers"]), 13_379_136)
        backward = sum(layer["backward"] for layer in published["layers"])
        self.assertAlmostEqual(backward, 0.2053, places=4)
        first, last = trace["layers"][0], published["layers"][0]
        self.assertAlmostEqual(first["forward"] / whole, last["forward"] / (1.5 * backward))

    def test_a_simulated_case_has_the_figures_of_the_program(self):
        figures = SWEEP.run("bsp", 0, self.place)
        self.assertEqual([point["workers"] for point in figures["points"]], [2, 4])
        one = replace(SWEEP, clusters=(FLAT,)).run("bsp", 0, self.place)
        self.assertEqual(one["seconds"], figures["points"][1]["seconds"])
        wrong = replace(SWEEP, clusters=("flat:none",)).run("bsp", 0, self.place)
        self.assertIn("flat:none", wrong["failed"])

    def test_charts_are_svg_and_hold_the_numbers(self):
        rows = [chart.Row("a<b", 2, 1, 3, 2.5), chart.Row("c", -1, -1, -1)]
        root = ElementTree.fromstring(chart.bars("title & more", "ms", rows, -2))
        texts = "".join(root.itertext())
        for part in ("title & more", "a<b", "2.00 ms", "-1.00 ms", "dashed"):
            self.assertIn(part, texts)
        drawn = chart.lines("t", "x", {"one": [(2, 1), (4, 2)], "two": [(2, 1), (4, 1.9)]})
        self.assertIn("two 1.90", "".join(ElementTree.fromstring(drawn).itertext()))

    def test_the_page_is_what_the_command_makes_of_the_record(self):
        record = Record(str(DOCS / "results.json"), CLAIMS)
        record.load()
        write_page(self.folder / "results.md", record)
        made = {p.relative_to(self.folder) for p in self.folder.rglob("*") if p.is_file()}
        kept = {p.relative_to(DOCS) for p in (DOCS / "results").glob("*")} | {Path("results.md")}
        self.assertEqual(made, kept)
        for path in made:
            self.assertEqual((self.folder / path).read_text(), (DOCS / path).read_text(), path)


class Everything(dict):
    """Any figure that is asked for."""

    def __init__(self, case):
        counts = [
            int(c.split(":")[1].split(",")[0])
            for c in getattr(case, "clusters", ())
            if "x" not in c.split(",")[0]
        ]
        points = [{"workers": n, "speedup": n, "seconds": 1.0, "messages": 1} for n in counts]
        super().__init__(points=points, curve=[[1, 1.0]])

    def get(self, name, default=None):
        return super().get(name, 1.0)


class ReproduceRuns(unittest.TestCase):
    """As a person runs it. Minutes each: long tests."""

    def run_quick(self, name):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        file = Path(folder.name) / "record.json"
        words = [sys.executable, "-W", "ignore", "-m", "riffle.reproduce", name, "--quick"]
        done = subprocess.run(
            [*words, "--output", file], capture_output=True, text=True, timeout=900
        )
        if "no lab here" in done.stdout:
            self.skipTest("no lab here")
        found = json.loads(file.read_text())["claims"][0]
        self.assertTrue(found["bars"], done.stdout)
        for cell in found["cells"]:
            self.assertNotIn("failed", cell["figures"])
        for bar in found["bars"]:
            self.assertIn(bar["verdict"], (HELD, MISSED))
        self.assertEqual(done.returncode, 0 if found["verdict"] == HELD else 1)
        return found

    def test_every_claim_runs_small(self):
        for name, each in CLAIMS.items():
            with self.subTest(name):
                found = self.run_quick(name)
                # Times depend on the machine, these do not.
                if not any(isinstance(case, Race | Training) for case in each.quick):
                    self.assertEqual(found["verdict"], HELD)

    def test_interrupted_it_keeps_what_is_there_and_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "record.json"
            words = [sys.executable, "-m", "riffle.reproduce", "mg-wfbp-measured", "--quick"]
            words += ["--output", str(file)]
            process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
            self.addCleanup(process.kill)
            deadline = time.monotonic() + 400
            while not file.exists() and process.poll() is None:
                self.assertLess(time.monotonic(), deadline, "no first cell")
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)
            self.assertEqual(process.returncode, 130)
            cells = json.loads(file.read_text())["claims"][0]["cells"]
            self.assertEqual(len(cells), 1)
            if "no lab here" in str(cells):
                self.skipTest("no lab here")
            done = subprocess.run([*words, "--resume"], capture_output=True, timeout=600, text=True)
            self.assertIn("as recorded", done.stderr)


if __name__ == "__main__":
    unittest.main()
