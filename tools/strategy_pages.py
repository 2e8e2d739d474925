"""The parts of docs/strategies/*.md that the program itself knows: groups, options, cost.

tools/strategy_pages.py RIFFLE [--write]: compares the marked parts with what RIFFLE prints, or
writes them. People write what is between them.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

PAGES = Path(__file__).resolve().parents[1] / "docs" / "strategies"
CLUSTER = "racks:4x4,inner=20us/10Gbps,outer=200us/1Gbps"
PART = re.compile(r"(<!-- (groups|options|cost)( [^ ]+)? -->\n).*?(<!-- end -->)", re.S)


def ask(riffle: str, *words: str) -> str:
    """What the command prints."""
    return subprocess.run([riffle, *words], check=True, capture_output=True, text=True).stdout


def groups(riffle: str, spec: str) -> str:
    """Who meets whom on four racks of four, and what travels when."""
    text = ask(riffle, "explain", spec, "--cluster", CLUSTER)
    found = re.search(r"^Who meets whom.*?(?=^What that means)", text, re.S | re.M)
    if found is None:
        raise SystemExit(f"strategy_pages: explain {spec} shows no groups")
    return f"    riffle explain {spec} --cluster {CLUSTER}\n\n```\n{found[0].rstrip()}\n```\n"


def options(riffle: str, name: str) -> str:
    """A table; the first value is the default."""
    known = json.loads(ask(riffle, "strategies", "--format", "json"))["strategies"]
    rows = next(each["options"] for each in known if each["name"] == name)
    lines = ["| option | values | meaning |", "|---|---|---|"]
    for row in rows:
        values = row["values"].replace("|", ", ")
        lines.append(f"| `{row['key']}` | {values} | {row['help']} |")
    return "\n".join(lines) + "\n"


def cost(riffle: str, name: str) -> str:
    """Per worker and step, as the traffic table has it."""
    rows = json.loads(ask(riffle, "strategies", "--traffic", "--format", "json"))["traffic"]
    lines = ["| spelling | bytes / model | messages |", "|---|---|---|"]
    for row in rows:
        if row["strategy"].split(":")[0] == name:
            formulas = f"{row['bytes_formula']} | {row['messages_formula']}".replace("*", "\\*")
            lines.append(f"| `{row['strategy']}` | {formulas} |")
    return "\n".join(lines) + "\n"


def made(riffle: str, page: Path) -> str:
    """The page with its parts as they are now."""

    def part(found: re.Match[str]) -> str:
        makers = {"groups": groups, "options": options, "cost": cost}
        subject = (found[3] or page.stem).strip()
        return found[1] + makers[found[2]](riffle, subject) + found[4]

    return PART.sub(part, page.read_text())


def main(riffle: str, write: bool) -> int:
    """1 where a page is missing or out of date."""
    known = json.loads(ask(riffle, "strategies", "--format", "json"))["strategies"]
    names = [each["name"] for each in known]
    wrong = sorted(set(names) ^ {page.stem for page in PAGES.glob("*.md")})
    for page in sorted(PAGES.glob("*.md")):
        if page.stem not in names:
            continue
        text = made(riffle, page)
        if write:
            page.write_text(text)
        elif text != page.read_text():
            wrong.append(page.stem)
    for name in wrong:
        print(f"docs/strategies/{name}.md: is missing, foreign or out of date (--write makes it)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--write" in sys.argv))
