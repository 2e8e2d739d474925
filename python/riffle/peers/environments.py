"""Where a peer's packages are: an environment of its own in the user's cache folder, made once.

It sees the packages of ours, so torch is reused; what it has itself comes first. pip installs the
pinned packages and nothing else (--no-deps), so it cannot bring another torch.
"""

import hashlib
import importlib.metadata
import json
import os
import shutil
import site
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path

import riffle
from riffle._core import UsageError
from riffle.data.cache import cache_folder, only_one, why
from riffle.peers.peer import Options, Peer

INSTALL_SECONDS = 600
START_SECONDS = 120


class NotAvailable(RuntimeError):
    """The peer cannot be installed or started; the message says why, in one line."""


def folder() -> Path:
    """RIFFLE_PEERS, else riffle/peers in the user's cache folder."""
    return cache_folder("RIFFLE_PEERS", "peers")


def prepare(
    peer: Peer, options: Options, say: Callable[[str], None] = lambda _: None
) -> tuple[str, dict[str, str]]:
    """The Python that runs it, and the versions of what it runs."""
    versions = {"torch": _torch_version()}
    packages = peer.packages(options)
    if not packages:
        return sys.executable, versions
    versions |= dict(package.split("==") for package in packages)
    target = place_of(peer, packages)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{target.parent}: cannot be made: {error.strerror}") from None
    with only_one(target.parent / ".lock"):
        if not target.exists():
            say(f"installing {len(packages)} packages for {peer.name} in {target}")
            _make(peer, packages, target)
    _see_ours(target)
    return str(target / "bin" / "python"), versions


def place_of(peer: Peer, packages: tuple[str, ...]) -> Path:
    """Another torch, Python or pin is another environment."""
    parts = [sys.version, sys.base_prefix, _torch_version(), *packages]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    return folder() / f"{peer.name}-{digest}"


def _torch_version() -> str:
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        raise NotAvailable("torch is not installed here; peers run on the same torch") from None


def _make(peer: Peer, packages: tuple[str, ...], target: Path) -> None:
    """It appears whole or not at all: made beside its place, tried, then moved."""
    scratch = Path(tempfile.mkdtemp(prefix=f".{peer.name}-", dir=target.parent))
    try:
        venv.EnvBuilder(symlinks=True).create(scratch)
        _install(peer, packages, _site_of(scratch))
        _see_ours(scratch)
        _try(peer, scratch / "bin" / "python")
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _site_of(environment: Path) -> Path:
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(environment)}))


def _see_ours(environment: Path) -> None:
    """Packages of this environment, and this riffle, which may have moved since."""
    ours = [*site.getsitepackages(), str(Path(riffle.__file__).parents[1])]
    text = "\n".join(dict.fromkeys(ours)) + "\n"
    path = _site_of(environment) / "riffle-peers.pth"
    if not path.exists() or path.read_text() != text:
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(text)
        fresh.replace(path)


def _install(peer: Peer, packages: tuple[str, ...], into: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    wanted = ["--no-deps", "--only-binary", ":all:", "--no-compile", "--target", str(into)]
    _run([*pip, *wanted, *packages], INSTALL_SECONDS, f"{peer.name} could not be installed")


def _try(peer: Peer, python: Path) -> None:
    modules = ", ".join(("torch", "riffle", *peer.modules))
    _run(
        [str(python), "-c", f"import {modules}"], START_SECONDS, f"{peer.name} could not be started"
    )


def _run(command: list[str], seconds: int, failed: str) -> None:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise NotAvailable(f"{failed}: not within {seconds} s") from None
    if done.returncode != 0:
        raise NotAvailable(f"{failed}: {why(done.stderr)}")


def as_json(peer: Peer, options: Options, workers: int, python: str, versions: dict) -> str:
    """What `--prepare` prints."""
    return json.dumps(
        {
            "python": python,
            "versions": versions,
            "how": peer.how(options),
            "period": peer.period(options, workers),
        }
    )
