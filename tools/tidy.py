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
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIDY = "clang-tidy-19"
SECONDS_PER_FILE = 600


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
        )
    except subprocess.TimeoutExpired:
        return f"{source}: {TIDY} took over {SECONDS_PER_FILE} s"
    return "" if done.returncode == 0 else done.stdout + done.stderr


def main(build: Path, folders: list[str]) -> int:
    version = subprocess.run([TIDY, "--version"], capture_output=True, text=True, check=True).stdout
    common = version + hash_of(ROOT / ".clang-tidy")
    headers = headers_by_object(build)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    clean = Path(home) / "riffle" / "tidy"
    clean.mkdir(parents=True, exist_ok=True)

    work = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = str(Path(entry["file"]).relative_to(ROOT))
        if entry["output"] not in headers:
            sys.exit(f"{source} is not built; run tools/build --tests first")
        mark = clean / key_of(entry, headers[entry["output"]], common)
        if source.split("/")[0] in folders or not folders:
            mark.touch() if mark.exists() else work.append((entry["file"], source, mark))

    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda item: tidy(build, item[0]), work)
        for done, ((_, source, mark), complaint) in enumerate(zip(work, results, strict=True), 1):
            print(f"[{done}/{len(work)}] {source}", flush=True)
            if complaint:
                failed += 1
                print(complaint, flush=True)
            else:
                mark.touch()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
