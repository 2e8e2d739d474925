"""What tests of the page of charts share: where it is, and how a page is made."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RIFFLE = os.environ.get("RIFFLE_COMMAND", str(ROOT / "build/release/bin/riffle"))
TEMPLATE = Path(RIFFLE).resolve().parents[1] / "share/riffle/report_page.html"


def run(*words, program=RIFFLE):
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=60)


class PageTest(unittest.TestCase):
    def setUp(self):
        if not TEMPLATE.exists():
            self.skipTest("the page is not built: tools/build --target report_page")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.page = self.folder / "report.html"

    def write(self, race: dict) -> None:
        file = self.folder / "race.json"
        file.write_text(json.dumps(race))
        done = run("report", file, "--output", self.page)
        self.assertEqual((done.returncode, done.stdout), (0, f"{self.page}\n"), done.stderr)
