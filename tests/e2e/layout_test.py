"""The maps for newcomers, docs/layout.md and README.md, tell the same story as the tree."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def documented_links() -> list[tuple[str, set[str]]]:
    rows = re.findall(r"^\| `(\w+)` \|.*\|(.*)\|$", (ROOT / "docs/layout.md").read_text(), re.M)
    return sorted((name, set(re.findall(r"`(\w+)`", links))) for name, links in rows)


def built_links() -> list[tuple[str, set[str]]]:
    modules = []
    for file in (ROOT / "src").glob("*/CMakeLists.txt"):
        for name, body in re.findall(r"riffle_module\((\w+)([^)]*)\)", file.read_text()):
            links = body.split("LINKS")[1] if "LINKS" in body else ""
            modules.append((name, set(re.findall(r"\briffle_(\w+)", links))))
    return sorted(modules)


class Layout(unittest.TestCase):
    def setUp(self):
        self.readme = (ROOT / "README.md").read_text()

    def test_modules_link_what_their_line_names(self):
        self.assertEqual(documented_links(), built_links())

    def test_readme_has_a_line_for_each_module(self):
        lines = re.findall(r"^\| `src/(\w+)` \|", self.readme, re.M)
        self.assertEqual(sorted(lines), [name for name, _ in built_links()])

    def test_readme_links_every_page_of_docs(self):
        linked = set(re.findall(r"\(docs/([^)]+)\)", self.readme))
        for name in linked:
            self.assertTrue((ROOT / "docs" / name).exists(), name)
        pages = {path.name for path in (ROOT / "docs").glob("*.md")}
        self.assertEqual({name for name in linked if name.endswith(".md")}, pages)


if __name__ == "__main__":
    unittest.main()
