"""The pages about strategies show what the program shows, and there is one for each."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Pages(unittest.TestCase):
    def test_strategy_pages_are_as_the_program_makes_them(self):
        command = [sys.executable, ROOT / "tools/strategy_pages.py", os.environ["RIFFLE_COMMAND"]]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual(answer.returncode, 0, answer.stdout + answer.stderr)

    def test_every_strategy_page_is_in_the_list(self):
        index = (ROOT / "docs/strategies.md").read_text()
        for page in (ROOT / "docs/strategies").glob("*.md"):
            self.assertIn(f"(strategies/{page.name})", index)


if __name__ == "__main__":
    unittest.main()
