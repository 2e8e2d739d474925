"""The page of charts in a real browser: it renders, shows what the file says, loads nothing; text
in the data stays text; people can read it on paper, in the dark, on a phone and with keys alone."""

import copy
import sys
import unittest
from pathlib import Path

from report_page import RIFFLE, ROOT, PageTest, run
from sample_race import CLUSTER, data_of, sample_race

sys.path.insert(0, str(ROOT / "tools"))
from chromium import PROGRAM, Chromium

PROBES = Path(__file__).with_name("report_probes.js").read_text()
HOSTILE = (
    "</script><script>window.hurt = 1</script><img src=x onerror='window.hurt = 2'>"
    "<!-- --> & \u2028 \\u003c @DATA@ ]]> \"'"
)


def seconds_text(value: float) -> str:
    """Three digits and a unit, spelled here once more."""
    units = [(1, "s"), (1e-3, "ms"), (1e-6, "µs")]
    size, unit = next(each for each in units if value >= each[0] * 0.9995)
    scaled = value / size
    decimals = 2 if scaled < 10 else 1 if scaled < 100 else 0
    return f"{scaled:.{decimals}f}\u202f{unit}"


class ReportBrowser(PageTest):
    def setUp(self):
        super().setUp()
        if PROGRAM is None:
            self.skipTest("no chromium")
        self.browser = Chromium(deadline=250)
        self.addCleanup(self.browser.close)

    def open(self, width: int = 1280, dark: bool = False) -> None:
        """Opens the page and fails on any error, and on any request but the page itself."""
        self.browser.look(width, dark=dark)
        self.browser.open(self.page.as_uri())
        wrong = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        self.assertEqual(self.browser.said(*wrong), [])
        asked = [each["request"]["url"] for each in self.browser.said("Network.requestWillBeSent")]
        self.assertEqual(asked, [self.page.as_uri()])
        self.browser.evaluate(PROBES + ";0")

    def ask(self, probe: str):
        return self.browser.evaluate(f"probes.{probe}")

    def test_every_kind_of_page_renders_and_loads_nothing(self):
        self.write(sample_race(RIFFLE))
        for verb, sections in {
            "race": "ranking training step prediction timelines groups ways repeat",
            "plan": "ranking reasons step timelines groups repeat",
            "simulate --strategy all": "ranking step timelines groups repeat",
            "sweep --workers 8,16": "speedup efficiency seconds repeat",
            "converge --steps 30": "outcome training apart repeat",
            "converge --steps 30 --test --trace googlenet": "outcome training apart repeat",
        }.items():
            if verb != "race":
                where = [] if verb == "converge --steps 30" else ["--cluster", CLUSTER]
                done = run(*verb.split(), *where, "--report", self.page)
                self.assertEqual(done.returncode, 0, done.stderr)
            self.open()
            self.assertEqual(self.ask("sections()"), sections)
            self.assertGreater(min(self.ask("marks()")), 5)
            self.assertEqual(self.ask("lost()"), 0)

    def test_numbers_are_those_of_the_race(self):
        race = sample_race(RIFFLE)
        self.write(race)
        self.open()
        head, *rows = self.ask("table('ranking')")
        names = [text for text, _ in head]
        self.assertEqual(len(rows), len(race["results"]))
        good = sorted((r for r in race["results"] if not r["failed"]), key=lambda r: r["rank"])
        for row, result in zip(rows, good, strict=False):
            place, name = row[0][0].split("\u2002")
            self.assertEqual((int(place), name), (result["rank"], result["contender"]))
            for column, field in {
                "time to target": "seconds_to_target",
                "step": "seconds_per_step",
                "compute": "compute_seconds",
                "exposed": "exposed_communication_seconds",
            }.items():
                text, value = row[names.index(column)]
                self.assertEqual((text, float(value)), (seconds_text(result[field]), result[field]))
            self.assertEqual(row[names.index("speed-up")][0], f"{result['speedup']:.2f}×")
            self.assertEqual(float(row[names.index("accuracy")][1]), result["accuracy"])
        self.assertEqual(self.ask("command()"), race["command"])

        lengths = [each / max(self.ask("bars()")) for each in self.ask("bars()")]
        longest = max(result["seconds_to_target"] for result in good)
        for length, result in zip(lengths, good, strict=True):
            self.assertAlmostEqual(length, result["seconds_to_target"] / longest, places=4)

        for row, result in zip(self.ask("table('prediction')")[1:], good, strict=True):
            predicted, measured = result["predicted_seconds_per_step"], result["seconds_per_step"]
            values = [float(value) for _, value in row[1:]]
            self.assertEqual(values[:2], [predicted, measured])
            self.assertAlmostEqual(values[2], predicted / measured - 1, places=12)

    def test_hostile_text_stays_text(self):
        race = sample_race(RIFFLE)
        for field in ("command", "cluster", "task"):
            race[field] = HOSTILE
        for i, result in enumerate(race["results"]):
            result["contender"] += HOSTILE
            result["how"] = result["timeline_file"] = HOSTILE
            result["failed"] = None if i < 3 else HOSTILE
        race["topology"]["domains"][1]["name"] = HOSTILE
        for event in race["results"][1]["timeline"]["events"]:
            event["name"] = HOSTILE
        self.write(race)
        self.open()
        self.assertIsNone(self.browser.evaluate("window.hurt ?? null"))
        self.assertEqual((self.ask("scripts()"), self.ask("foreign()")), (2, 0))
        self.assertEqual(self.ask("command()"), HOSTILE)
        self.assertEqual(data_of(self.page.read_text()), race)

    def test_whatever_is_unknown_is_left_out(self):
        whole = sample_race(RIFFLE)
        names = [result["contender"] for result in whole["results"]]
        bare = {"riffle": "race", "version": 1, "results": [{"contender": each} for each in names]}
        nulls = copy.deepcopy(whole)
        for result in nulls["results"]:
            result.update(dict.fromkeys(result, None) | {"contender": "a"})
        failed = copy.deepcopy(whole) | {"interrupted": True}
        for result in failed["results"]:
            result["failed"] = "gone"
        by_step = copy.deepcopy(whole) | {"target": None, "trace": "resnet50", "task": None}
        for race in (bare, bare | {"results": []}, nulls, failed, by_step):
            self.write(race)
            self.open()
            self.assertEqual(self.ask("lost()"), 0)
            self.assertIn("ranking", self.ask("sections()"))

    def test_it_fits_every_width(self):
        self.write(sample_race(RIFFLE))
        for width in (320, 390, 800, 1280):
            self.open(width)
            self.assertEqual(
                self.browser.evaluate("document.documentElement.scrollWidth"), width, width
            )
            self.assertEqual(self.ask("outside()"), [], width)

    def test_text_stands_out_from_its_ground(self):
        self.write(sample_race(RIFFLE))
        for dark in (False, True):
            self.open(dark=dark)
            contrasts = self.ask("contrasts()")
            self.assertGreater(len(contrasts), 200)
            self.assertEqual([each for each in contrasts if each[1] < 4.5], [], f"dark: {dark}")

    def test_readers_of_screens_find_names_tables_and_order(self):
        self.write(sample_race(RIFFLE))
        self.open()
        for probe in ("unnamed()", "uncaptioned()", "untabled()", "repeatedIds()", "deadLinks()"):
            self.assertEqual(self.ask(probe), 0, probe)
        levels = self.ask("headings()")
        self.assertEqual(levels[:2], [1, 2])
        self.assertLessEqual(max(b - a for a, b in zip(levels, levels[1:], strict=False)), 1)

    def test_keys_reach_everything_in_order(self):
        self.write(sample_race(RIFFLE))
        self.open()
        wanted = self.ask("reachable()")
        reached = []
        for _ in wanted:
            for kind in ("rawKeyDown", "keyUp"):
                self.browser.call(
                    "Input.dispatchKeyEvent", type=kind, key="Tab", windowsVirtualKeyCode=9
                )
            reached.append(self.ask("reached()"))
        self.assertEqual(reached, wanted)

    def test_it_prints_light_and_without_what_paper_cannot_do(self):
        self.write(sample_race(RIFFLE))
        self.open(dark=True)
        dark = [{"name": "prefers-color-scheme", "value": "dark"}]
        self.browser.call("Emulation.setEmulatedMedia", media="print", features=dark)
        ground = self.browser.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        self.assertEqual(ground, "rgb(255, 255, 255)")
        self.assertEqual(self.ask("shown('nav, details, button')"), 0)
        self.assertGreater(self.ask("shown('.chart svg')"), 10)


if __name__ == "__main__":
    unittest.main()
