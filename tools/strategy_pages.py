"""The pages about strategies, made from what their own files in src/strategies say.

tools/strategy_pages.py RIFFLE [--write]: compares docs/strategies/*.md, the table in
docs/strategies.md and docs/traffic.md with what RIFFLE knows, or writes them.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
CLUSTER = "racks:4x4,inner=20us/10Gbps,outer=200us/1Gbps"
LIST = re.compile(r"(<!-- strategies -->\n).*?(<!-- end -->)", re.S)


def ask(riffle: str, *words: str) -> str:
    """What the command prints."""
    return subprocess.run([riffle, *words], check=True, capture_output=True, text=True).stdout


def groups(riffle: str, spec: str) -> str:
    """Who meets whom on four racks of four, and what travels when."""
    text = ask(riffle, "explain", spec, "--cluster", CLUSTER)
    found = re.search(r"^Who meets whom.*?(?=^What that means)", text, re.S | re.M)
    if found is None:
        raise SystemExit(f"strategy_pages: explain {spec} shows no groups")
    return f"    riffle explain {spec} --cluster {CLUSTER}\n\n```\n{found[0].rstrip()}\n```"


def options(rows: list[dict]) -> str:
    """A table; the first value is the default."""
    lines = ["| option | values | meaning |", "|---|---|---|"]
    for row in rows:
        values = row["values"].replace("|", ", ")
        lines.append(f"| `{row['key']}` | {values} | {row['help']} |")
    return "\n".join(lines)


def cost(rows: list[dict]) -> str:
    """Per worker and step: by formula, or as counted where there is none."""
    lines = ["| spelling | bytes / model | messages |", "|---|---|---|"]
    for row in rows:
        cells = [row["bytes_formula"], row["messages_formula"]]
        if row["bytes_expected"] is None:
            cells = [f"{row[f'{what}_counted']:.4g} for N = 16" for what in ("bytes", "messages")]
        formulas = " | ".join(cells).replace("*", "\\*")
        lines.append(f"| `{row['strategy']}` | {formulas} |")
    return "\n".join(lines)


def page(riffle: str, info: dict, traffic: list[dict]) -> str:
    """The page of one strategy."""
    name, words = info["name"], info["page"]
    file = f"src/strategies/{name.replace('-', '_')}.cpp"
    drawn = [name, *(f"{name}:{each}" for each in words["drawn"])]
    parts = [
        f"<!-- Made by tools/strategy_pages.py from {file}. -->",
        f"# {name}",
        words["idea"] or f"{info['summary'].capitalize()}.",
        "## Groups",
        *(groups(riffle, spec) for spec in drawn),
        *(["## When", words["when"]] if words["when"] else []),
        *([words["more"]] if words["more"] else []),
        "## Options",
        f"`--strategy {name}:key=value,...`, or the same text in `riffle.sync` and C++; "
        "the first value is the default.",
        options(info["options"]),
        "## Cost",
        "Sent per worker and step; letters as in [traffic](../traffic.md). `riffle plan` and "
        "`riffle simulate` give seconds for your model and network.",
        cost([row for row in traffic if row["strategy"].split(":")[0] == name]),
        *([f"Paper: {info['paper']}."] if info["paper"] else []),
    ]
    return "\n\n".join(parts) + "\n"


def listed(known: list[dict]) -> str:
    """The table of docs/strategies.md."""
    kinds = {
        True: "**exact**: the mathematics of synchronous SGD",
        False: "**not exact**: workers mix weights of their own, or gradients lose something",
    }
    lines = ["| strategy | what it does |", "|---|---|"]
    for exact, title in kinds.items():
        lines.append(f"| {title} | |")
        for info in known:
            if info["exact"] == exact:
                link = f"[{info['name']}](strategies/{info['name']}.md)"
                lines.append(f"| {link} | {info['summary']} |")
    return "\n".join(lines) + "\n"


def made(riffle: str) -> dict[Path, str]:
    """All pages, as they should be."""
    known = json.loads(ask(riffle, "strategies", "--format", "json"))["strategies"]
    traffic = json.loads(ask(riffle, "strategies", "--traffic", "--format", "json"))["traffic"]
    pages = {
        DOCS / "strategies" / f"{each['name']}.md": page(riffle, each, traffic) for each in known
    }
    index = DOCS / "strategies.md"
    pages[index] = LIST.sub(lambda found: found[1] + listed(known) + found[2], index.read_text())
    pages[DOCS / "traffic.md"] = ask(riffle, "strategies", "--traffic", "--format", "markdown")
    return pages


def main(riffle: str, write: bool) -> int:
    """1 where a page is missing, foreign or out of date."""
    pages = made(riffle)
    wrong = [file for file in (DOCS / "strategies").glob("*.md") if file not in pages]
    for file, text in pages.items():
        if file.exists() and file.read_text() == text:
            continue
        if write:
            file.write_text(text)
        else:
            wrong.append(file)
    for file in wrong:
        print(f"docs/{file.relative_to(DOCS)}: is missing, foreign or out of date (--write)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--write" in sys.argv))
