"""`riffle report` and --report: what is written, what is refused, what the page carries."""

import json
import re
import shutil
import unittest

from report_page import RIFFLE, ROOT, TEMPLATE, PageTest, run
from sample_race import data_of, sample_race


class Report(PageTest):
    def refused(self, *words, program=RIFFLE) -> str:
        done = run(*words, program=program)
        outcome = (done.returncode, done.stdout, done.stderr.count("\n"))
        self.assertEqual(outcome, (2, "", 1), done.stderr)
        return done.stderr

    def test_the_page_holds_the_race_as_it_was(self):
        race = sample_race(RIFFLE)
        self.write(race)
        self.assertEqual(data_of(self.page.read_text()), race)

    def test_the_command_on_the_page_is_what_was_typed(self):
        words = ["simulate", "--strategy", "sesgd", "--trace", self.folder / "it's mine.json"]
        trace = run("trace", "show", "resnet50", "--format", "json").stdout
        words[-1].write_text(trace)
        done = run(*words, "--report", self.page)
        self.assertEqual(done.returncode, 0, done.stderr)
        line = data_of(self.page.read_text())["command"]
        quoted = str(words[-1]).replace("'", "'\\''")
        self.assertEqual(
            line, f"riffle simulate --strategy sesgd --trace '{quoted}' --report {self.page}"
        )

    def test_bad_input_is_refused_in_a_line_and_leaves_nothing(self):
        file = self.folder / "race.json"
        race = {"riffle": "race", "version": 1}
        cases = {
            "results": race | {"results": {}},
            "riffle": race | {"riffle": "plan", "results": []},
            "results[0].contender": race | {"results": [{"contender": 3}]},
        }
        for field, value in {
            "steps": "x",
            "how": 3,
            "groups[0]": [3],
            "curve.loss": {"seconds": [1], "loss": 3},
            "timeline.events[0].lane": {"seconds": 1, "events": [{"lane": 3}]},
        }.items():
            result = {"contender": "a", re.split(r"\W", field)[0]: value}
            cases[f"results[0].{field}"] = race | {"results": [result]}
        for named, document in cases.items():
            file.write_text(json.dumps(document))
            where = named.replace(".", ": ") + ": "
            self.assertIn(where, self.refused("report", file, "--output", self.page))
        file.write_text("no JSON")
        self.assertIn("not valid JSON", self.refused("report", file))
        self.refused("report", self.folder / "none.json")
        file.write_text(json.dumps(race | {"results": []}))
        self.refused("report", file, "--output", self.folder / "no/such/folder.html")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["race.json"])

    def test_training_is_what_converge_says_by_the_clock_that_it_has(self):
        words = ["converge", "--steps", "12", "--test", "--strategy", "bsp", "--strategy", "gossip"]
        timed = ["--trace", "resnet50", "--cluster", "flat:4,latency=1ms,bandwidth=1Gbps"]
        for more in [], timed, ["--learning-rate", "1e9"]:
            done = run(*words, *more, "--format", "json", "--report", self.page)
            self.assertEqual(done.returncode, 0, done.stderr)
            document = data_of(self.page.read_text())
            self.assertEqual("trace" in document, more == timed)
            for said, own in zip(
                document["results"], json.loads(done.stdout)["results"], strict=True
            ):
                curve = said["curve"]
                self.assertEqual(said["contender"], own["strategy"])
                self.assertEqual(curve["loss"], own["loss"])
                self.assertEqual(curve["consensus_distance"], own["consensus_distance"])
                self.assertEqual("seconds" in curve, more == timed)
                self.assertEqual("failed" in said, own["diverged"])
                self.assertEqual("final_loss" in said, not own["diverged"])
                for i, each in enumerate(said["evaluations"]):
                    self.assertEqual(each["accuracy"], own["test_accuracy"][i])
                    if more == timed:
                        step = own["seconds_per_step"]
                        self.assertEqual(each["seconds"], own["steps"][i] * step)

    def test_without_the_page_it_says_how_to_build_it(self):
        program = self.folder / "bin/riffle"
        program.parent.mkdir()
        shutil.copy(RIFFLE, program)
        file = self.folder / "race.json"
        file.write_text('{"riffle": "race", "version": 1, "results": []}')
        for words in (["report", file], ["plan", "--report", self.page]):
            self.assertIn("tools/build --target report_page", self.refused(*words, program=program))
        self.assertFalse(self.page.exists())

    def test_the_page_names_no_host_and_carries_the_licences(self):
        text = TEMPLATE.read_text()
        policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
        self.assertTrue(policy.startswith("default-src 'none'; script-src 'sha256-"), policy)
        shell, comment = text.split("\n<!--\n")
        addresses = set(re.findall(r"https?://[^\s\"'`)]+", shell))
        self.assertLessEqual(addresses, {"http://www.w3.org/2000/svg"})
        packages = re.findall(r"^(\S+) [\d.]+ \(ISC\)$", comment, re.M)
        self.assertLessEqual({"d3-scale", "d3-shape", "d3-array"}, set(packages))
        self.assertEqual(comment.count("Permission to use, copy, modify"), len(packages))

    def test_packages_are_pinned_and_the_lock_file_names_no_host(self):
        lock = (ROOT / "web/package-lock.json").read_text()
        self.assertNotIn("://", lock)
        for name, package in json.loads(lock)["packages"].items():
            self.assertTrue(name == "" or package["integrity"].startswith("sha512-"), name)
        wanted = json.loads((ROOT / "web/package.json").read_text())
        for version in (wanted["dependencies"] | wanted["devDependencies"]).values():
            self.assertRegex(version, r"^\d+\.\d+\.\d+$")


if __name__ == "__main__":
    unittest.main()
