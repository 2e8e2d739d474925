"""Runs clang-tidy over the files of a built preset: `tidy.py BUILD [FOLDER...]`.

A file that was clean is not looked at again until something changes that clang-tidy saw: its text
or that of a header it includes, its compile command, .clang-tidy or clang-tidy itself. Their hash
names an empty file in the user's cache folder, so clones and branches share what they learned.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIDY = "clang-tidy-19"
SECONDS_PER_FILE = 600
DAYS_KEPT = 60


@cache
def hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def headers_by_object(build: Path) -> dict[str, list[Path]]:
    """What each object was made from, as ninja recorded it while building."""
    text = subprocess.run(
        ["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True
    ).stdout
    found: dict[str, list[Path]] = {}
    for block in text.split("\n\n"):
        first, *rest = block.split("\n")
        if match := re.match(r"(.+): #deps \d+.*\(VALID\)", first):
            found[match[1]] = [(build / line.strip()).resolve() for line in rest]
    return found


def key_of(entry: dict, headers: list[Path], common: str) -> str:
    lines = [common, entry["command"].replace(str(ROOT), "")]
    lines += sorted(f"{str(path).removeprefix(str(ROOT))} {hash_of(path)}" for path in headers)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def tidy(build: Path, source: str) -> str:
    """Returns what clang-tidy complains about, or nothing."""
    try:
        done = subprocess.run(
            [TIDY, "--quiet", "-p", build, source],
            capture_output=True,
            text=True,
            timeout=SECONDS_PER_FILE,
            check=False,
            cwd=ROOT,
        )
    except subprocess.TimeoutExpired:
        return f"{source}: {TIDY} took over {SECONDS_PER_FILE} s"
    return "" if done.returncode == 0 else done.stdout + done.stderr


def clean_marks() -> Path:
    """The cache folder, without the marks that nothing has asked for in a long time."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home) / "riffle" / "tidy"
    folder.mkdir(parents=True, exist_ok=True)
    for mark in folder.iterdir():
        if mark.stat().st_mtime < time.time() - DAYS_KEPT * 86400:
            mark.unlink()
    return folder


def unchecked(build: Path, folders: list[str]) -> list[tuple[str, Path]]:
    """The files to look at, each with the mark it gets when clean."""
    version = subprocess.run([TIDY, "--version"], capture_output=True, text=True, check=True).stdout
    common = version + hash_of(ROOT / ".clang-tidy")
    headers = headers_by_object(build)
    marks = clean_marks()
    work = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = str(Path(entry["file"]).relative_to(ROOT))
        if folders and source.split("/")[0] not in folders:
            continue
        output = re.search(r" -o (\S+) ", entry["command"])[1]
        if output not in headers:
            sys.exit(f"{source} is not built; run tools/build --tests first")
        mark = marks / key_of(entry, headers[output], common)
        if mark.exists():
            mark.touch()
        else:
            work.append((source, mark))
    return work


def main(build: Path, folders: list[str]) -> int:
    work = unchecked(build, folders)
    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda item: tidy(build, item[0]), work)
        for done, ((source, mark), complaint) in enumerate(zip(work, results, strict=True), 1):
            print(f"[{done}/{len(work)}] {source}", flush=True)
            if complaint:
                failed += 1
                print(complaint, flush=True)
            else:
                mark.touch()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
