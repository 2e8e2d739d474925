"""Checkpoints: a folder per step, in it a file per rank, and `latest.json` beside them.

A file is one line of JSON (what it is, how long, its SHA-256) and what torch.save wrote. Files
appear whole or not at all; `latest.json` names a step only when the files of all ranks are there.
The step before the latest is kept.
"""

import hashlib
import io
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import torch

from riffle._core import UsageError

VERSION = 1
MAGIC = b'{"riffle": "checkpoint"'
LATEST = "latest.json"


def write_whole(path: Path, content: bytes) -> None:
    """All of it on disk under its name, or the name as it was before."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _step_folder(home: Path, step: int) -> Path:
    return home / f"step-{step:09d}"


def _rank_file(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.ckpt"


def save(home: str, header: dict[str, Any], state: dict[str, Any]) -> None:
    """This rank's part; `header` names step and rank. Call `publish` when all ranks are done."""
    folder = _step_folder(Path(home), header["step"])
    folder.mkdir(parents=True, exist_ok=True)
    stream = io.BytesIO()
    torch.save(state, stream)
    content = stream.getvalue()
    whole = {"riffle": "checkpoint", "version": VERSION, **header, "bytes": len(content)}
    line = json.dumps({**whole, "sha256": _sum(whole, content)})
    write_whole(_rank_file(folder, header["rank"]), line.encode() + b"\n" + content)


def _sum(header: dict[str, Any], content: bytes) -> str:
    return hashlib.sha256(json.dumps(header).encode() + content).hexdigest()


def publish(home: str, step: int) -> None:
    """Makes a step the latest, on rank 0, after all ranks have saved; drops all but one older."""
    folder = Path(home)
    before = _step_before(folder, step)
    document = {"riffle": "checkpoints", "version": VERSION, "step": step, "previous": before}
    write_whole(folder / LATEST, json.dumps(document).encode() + b"\n")
    keep = {_step_folder(folder, each) for each in (step, before) if each is not None}
    for old in folder.glob("step-*"):
        if old not in keep:
            shutil.rmtree(old, ignore_errors=True)


def _step_before(home: Path, step: int) -> int | None:
    """The published one, or what an earlier step was resumed from by name."""
    published = _published_step(home)
    if published is not None and published < step:
        return published
    older = [int(each.name.removeprefix("step-")) for each in home.glob("step-*")]
    return max((each for each in older if each < step), default=None)


def _published_step(home: Path) -> int | None:
    try:
        return int(json.loads((home / LATEST).read_text())["step"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def home_of(path: str) -> str:
    """The folder of all steps, from itself or from one of them."""
    given = Path(path)
    return str(given.parent if re.fullmatch(r"step-\d+", given.name) else given)


def _folder_to_read(path: str) -> Path:
    given = Path(path)
    if re.fullmatch(r"step-\d+", given.name):
        return given
    latest = given / LATEST
    try:
        document = json.loads(latest.read_text())
        kind, version = document["riffle"], document["version"]
    except FileNotFoundError:
        raise UsageError(f"{latest}: is missing; no checkpoint was completed there") from None
    except OSError as error:
        raise UsageError(f"{latest}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        kind, version = "", 0
    if kind != "checkpoints":
        raise UsageError(f"{latest}: is no list of checkpoints{_hint(given)}")
    if version > VERSION:
        raise UsageError(f"{latest}: is of version {version}, this riffle knows {VERSION}")
    return _step_folder(given, int(document["step"]))


def _hint(home: Path, bad: Path | None = None) -> str:
    others = sorted(each for each in home.glob("step-*") if each != bad)
    return f"; to go on from an earlier one: --resume {others[-1]}" if others else ""


def _split(path: Path) -> tuple[dict[str, Any], bytes]:
    """Header and content of one file, both checked; a refusal names what else there is."""

    def refuse(why: str) -> UsageError:
        return UsageError(f"{path}: {why}{_hint(path.parent.parent, path.parent)}")

    try:
        line, _, content = path.read_bytes().partition(b"\n")
    except OSError as error:
        raise refuse(error.strerror or "cannot be read") from None
    if not line.startswith(MAGIC):
        raise refuse("is no checkpoint of riffle")
    try:
        header = json.loads(line)
        version, size, wanted = header["version"], header["bytes"], header.pop("sha256")
    except (ValueError, KeyError):
        raise refuse("is cut off in its first line") from None
    if version > VERSION:
        raise refuse(f"is of version {version}, this riffle knows {VERSION}")
    if len(content) != size:
        raise refuse(f"is cut off: {len(content)} of {size} bytes")
    if _sum(header, content) != wanted:
        raise refuse("is damaged: its SHA-256 differs")
    return header, content


def settings_in(path: str) -> dict[str, Any]:
    """What the run that wrote it was told."""
    return _split(_rank_file(_folder_to_read(path), 0))[0]["settings"]


def load(path: str, rank: int, size: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and state of this rank."""
    file = _rank_file(_folder_to_read(path), rank)
    header, content = _split(file)
    if (header["rank"], header["workers"]) != (rank, size):
        raise UsageError(
            f"{file}: is of rank {header['rank']} of {header['workers']}, this is rank {rank} of "
            f"{size}; resuming needs the same number of workers"
        )
    return header, torch.load(io.BytesIO(content), weights_only=True)
