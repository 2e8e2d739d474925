"""docs/layout.md and the build files tell the same story about modules and what they link."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def documented() -> dict[str, set[str]]:
    rows = re.findall(r"^\| `(\w+)` \|.*\|(.*)\|$", (ROOT / "docs/layout.md").read_text(), re.M)
    return {name: set(re.findall(r"`(\w+)`", links)) for name, links in rows}


def built() -> dict[str, set[str]]:
    modules = {}
    for file in sorted((ROOT / "src").glob("*/CMakeLists.txt")):
        for name, body in re.findall(r"riffle_module\((\w+)([^)]*)\)", file.read_text()):
            links = body.split("LINKS")[1] if "LINKS" in body else ""
            modules[name] = set(re.findall(r"\briffle_(\w+)", links))
    return modules


class Layout(unittest.TestCase):
    def test_modules_and_their_links(self):
        self.assertEqual(documented(), built())


if __name__ == "__main__":
    unittest.main()
