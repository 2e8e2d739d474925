"""Runs clang-tidy over the files of a built preset: `tidy.py BUILD [SECONDS]`.

A file that was clean is not looked at again until something changes that clang-tidy saw: its text
or that of a header it includes, its compile command, .clang-tidy or clang-tidy itself. Their hash
names an empty file in the user's cache folder, so clones and branches share what they learned.

One file takes clang-tidy 19 some 15 s, most of it spent in the standard library's headers. So
files of one module are given to it together, included into one; where they do not compile that
way, or there is a complaint, one by one. With SECONDS it looks only at what the last commit or the
working tree changed, or what includes that, and nothing is begun later than that.
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TIDY = "clang-tidy-19"
SECONDS_PER_FILE = 600
FILES_AT_A_TIME = 8
DAYS_KEPT = 60
CAPTURE = {"capture_output": True, "text": True, "check": True}


class Work(NamedTuple):
    age: int  # of its last change
    source: str
    mark: Path  # made when it is clean
    flags: tuple[str, ...]  # of the compiler


@cache
def hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def headers_by_object(build: Path) -> dict[str, list[Path]]:
    """What each object was made from, as ninja recorded it while building."""
    text = subprocess.run(["ninja", "-C", build, "-t", "deps"], **CAPTURE).stdout
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


def complaint_of(command: list, name: str, folder: Path) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=SECONDS_PER_FILE,
            check=False,
            cwd=folder,
        )
    except subprocess.TimeoutExpired:
        return f"{name}: {TIDY} took over {SECONDS_PER_FILE} s"
    return "" if done.returncode == 0 else done.stdout or done.stderr


@cache
def config_of(folder: str) -> str:
    """What .clang-tidy says there, for a file that includes others as if they were headers."""
    command = [TIDY, "--dump-config", str(ROOT / folder / "any.cpp"), "--"]
    text = subprocess.run(command, **CAPTURE).stdout.replace("\n...\n", "\n")
    return re.sub(r"(?m)^(HeaderFilterRegex: .*)'$", r"\1|\\.cpp$'", text)


def are_clean(build: Path, batch: list[Work]) -> bool:
    """Whether clang-tidy has nothing to say of these files together."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / ".clang-tidy").write_text(config_of(Path(batch[0].source).parts[0]))
        # By this name the analyzer knows that what it includes is no header.
        unified = folder / "UnifiedSource.cpp"
        unified.write_text("".join(f'#include "{ROOT / work.source}"\n' for work in batch))
        command = [TIDY, "--quiet", unified, "--", *batch[0].flags]
        return not complaint_of(command, unified.name, build)


def tidy(build: Path, batch: list[Work]) -> list[str]:
    """What clang-tidy complains about in each file. Marks those that are clean, at once: this run
    may be cut off."""
    if len(batch) > 1 and are_clean(build, batch):
        complaints = [""] * len(batch)
    else:
        alone = [TIDY, "--quiet", "-p", build]
        complaints = [complaint_of([*alone, w.source], w.source, ROOT) for w in batch]
    for work, complaint in zip(batch, complaints, strict=True):
        if not complaint:
            work.mark.touch()
    return complaints


def clean_marks() -> Path:
    """The cache folder, without the marks that nothing has asked for in a long time."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home) / "riffle" / "tidy"
    folder.mkdir(parents=True, exist_ok=True)
    for mark in folder.iterdir():
        if mark.stat().st_mtime < time.time() - DAYS_KEPT * 86400:
            mark.unlink()
    return folder


def recently_changed() -> dict[Path, int]:
    """Files by how long ago git saw them change, 0 for not committed yet."""
    git = ["git", "-C", ROOT]
    try:
        open_files = subprocess.run([*git, "diff", "--name-only", "HEAD"], **CAPTURE).stdout
        history = subprocess.run([*git, "log", "--format=", "--name-only"], **CAPTURE).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        return {}
    rank = {ROOT / name: i for i, name in reversed(list(enumerate(history.split(), 1)))}
    return rank | {ROOT / name: 0 for name in open_files.split()}


def just_changed() -> set[Path]:
    """What the last commit or the working tree changed."""
    command = ["git", "-C", ROOT, "diff", "--name-only", "HEAD~1"]
    names = subprocess.run(command, **CAPTURE).stdout.split()
    return {ROOT / name for name in names}


def unchecked(build: Path, all_files: bool) -> list[Work]:
    """The files to look at, what changed last first."""
    version = subprocess.run([TIDY, "--version"], **CAPTURE).stdout
    common = version + hash_of(ROOT / ".clang-tidy")
    headers = headers_by_object(build)
    changed = recently_changed()
    marks = clean_marks()
    wanted = None if all_files else just_changed()
    work = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = str(Path(entry["file"]).relative_to(ROOT))
        output = re.search(r" -o (\S+) ", entry["command"])[1]
        if output not in headers:
            sys.exit(f"{source} is not built; run tools/build --tests first")
        folder = ROOT / Path(source).parts[0] / ".clang-tidy"  # adds to the one above it
        config = common + (hash_of(folder) if folder.exists() else "")
        mark = marks / key_of(entry, headers[output], config)
        if mark.exists():
            mark.touch()
        elif wanted is None or not wanted.isdisjoint(headers[output]):
            age = min(changed.get(path, len(changed)) for path in headers[output])
            flags = shlex.split(entry["command"].split(" -o ")[0])[1:]
            work.append(Work(age, source, mark, tuple(flags)))
    return sorted(work)


def batches_of(work: list[Work]) -> list[list[Work]]:
    """Files of one folder that are compiled alike, a few at a time."""
    alike: dict[tuple, list[Work]] = {}
    for each in work:
        alike.setdefault((Path(each.source).parent, each.flags), []).append(each)
    batches = [
        group[at : at + FILES_AT_A_TIME]
        for group in alike.values()
        for at in range(0, len(group), FILES_AT_A_TIME)
    ]
    return sorted(batches)


def only_new(complaint: str, seen: set[str]) -> str:
    """Without what another file has complained of already: headers are seen by many."""
    parts = re.split(r"^(?=/\S+:\d+:\d+: )", complaint, flags=re.MULTILINE)
    new = [part.replace(f"{ROOT}/", "") for part in parts if part not in seen]
    seen.update(parts)
    return "".join(new).rstrip()


def main(build: Path, seconds: float) -> int:
    work = unchecked(build, seconds == float("inf"))
    batches = batches_of(work)
    deadline = time.monotonic() + seconds

    def look(batch: list[Work]) -> list[str] | None:
        return None if time.monotonic() >= deadline else tidy(build, batch)

    looked = complained = 0
    seen: set[str] = set()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for batch, complaints in zip(batches, pool.map(look, batches), strict=True):
            for each, complaint in zip(batch, complaints or [], strict=complaints is not None):
                looked += 1
                print(f"[{looked}/{len(work)}] {each.source}", flush=True)
                if complaint:
                    complained += 1
                    print(only_new(complaint, seen), flush=True)
    left = f", {len(work) - looked} left for --all" if looked < len(work) else ""
    print(f"{looked} files looked at{left}")
    return 1 if complained else 0


if __name__ == "__main__":
    limit = float(sys.argv[2]) if len(sys.argv) > 2 else float("inf")
    sys.exit(main(Path(sys.argv[1]).resolve(), limit))
