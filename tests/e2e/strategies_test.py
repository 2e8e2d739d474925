"""riffle verify, explain and strategies as a person calls them; pages made by commands."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

RIFFLE = os.environ["RIFFLE_COMMAND"]
DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
RACKS = "racks:2x3,inner=20us/10Gbps,outer=200us/1Gbps"

LONELY = {
    "bucket": 0,
    "payload": "weight",
    "group": [0, 1],
    "collective": "all_reduce",
    "algorithm": "auto",
    "lane": 0,
    "start": "bucket_stepped",
    "due": {"steps": 1, "point": "before_forward"},
    "merge": {"kind": "replace"},
    "wire": "f32",
}


def riffle(*arguments):
    """Exit code, standard output, standard error."""
    done = subprocess.run([RIFFLE, *arguments], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


class Strategies(unittest.TestCase):
    def test_traffic_page_is_current(self):
        code, page, _ = riffle("strategies", "--traffic", "--format", "markdown")
        self.assertEqual(code, 0)
        self.assertEqual(page, (DOCS / "traffic.md").read_text())

    def test_list_has_papers_and_options(self):
        code, text, _ = riffle("strategies", "--format", "json")
        self.assertEqual(code, 0)
        listed = {each["name"]: each for each in json.loads(text)["strategies"]}
        self.assertTrue(all(each["paper"] and each["summary"] for each in listed.values()))
        keys = [option["key"] for option in listed["ds-sync"]["options"]]
        self.assertEqual(
            keys,
            ["pattern", "delay", "order", "bucket", "mix_state", "wire", "feedback", "algorithm"],
        )

    def test_verify_proves(self):
        code, text, _ = riffle(
            "verify", "--strategy", "sesgd", "--workers", "27", "--format", "json"
        )
        self.assertEqual(code, 0)
        proof = json.loads(text)
        self.assertEqual(
            list(proof),
            [
                "strategy",
                "workers",
                "ok",
                "partition",
                "deadlock_free",
                "mean_preserved",
                "period",
                "mixing_rate",
                "steps_to_consensus",
                "problems",
            ],
        )
        self.assertEqual((proof["ok"], proof["steps_to_consensus"]), (True, 3))

    def test_verify_takes_dead_ranks_and_clusters(self):
        code, text, _ = riffle(
            "verify", "all", "--cluster", RACKS, "--dead", "1,5", "--format", "json"
        )
        self.assertEqual(code, 0)
        self.assertEqual({each["workers"] for each in json.loads(text)["results"]}, {4})

    def test_verify_refutes_a_program(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "lonely.json"
            file.write_text(json.dumps({"riffle": "program", "version": 1, "exchanges": [LONELY]}))
            code, text, error = riffle("verify", "--program", str(file), "--workers", "4")
        self.assertEqual(code, 1)
        self.assertIn("ranks {2 3}: take no part in the exchange of weights", text)
        self.assertIn("1 of 1 refuted", error)

    def test_verify_refuses_bad_usage(self):
        for arguments in (
            ["verify", "sesg"],
            ["verify", "--workers", "0"],
            ["verify", "--dead", "99"],
            ["verify", "--program", "absent.json"],
            ["verify", "sesgd:groups=2"],
        ):
            code, text, error = riffle(*arguments)
            self.assertEqual((code, text), (2, ""), arguments)
            self.assertEqual(error.strip().splitlines()[-1][:7], "riffle:", arguments)

    def test_explain_draws_and_tells(self):
        code, text, _ = riffle("explain", "ds-sync:pattern=bottleneck,delay=2", "--cluster", RACKS)
        self.assertEqual(code, 0)
        self.assertIn("0-2  A*A A", text)
        self.assertIn(
            "after 4 steps without learning all hold exactly their mean", " ".join(text.split())
        )
        self.assertNotIn("\x1b", text)

    def test_explain_tells_every_strategy(self):
        listed = json.loads(riffle("strategies", "--format", "json")[1])["strategies"]
        for each in listed:
            code, text, error = riffle("explain", each["name"], "--trace", "vgg16")
            self.assertEqual(code, 0, error)
            self.assertIn("Who meets whom", text)
            self.assertNotIn("PROBLEM", text)


if __name__ == "__main__":
    unittest.main()
