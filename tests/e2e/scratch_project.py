"""A tiny project around our script and tools, so that they are tested without our sources."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
SECONDS = 120

CMAKELISTS = """\
cmake_minimum_required(VERSION 3.25)
project(riffle LANGUAGES CXX)
option(RIFFLE_BUILD_TESTS "" ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
add_executable(riffle cli/main.cpp)
"""

MAIN = """\
#include <cstdio>
#include <filesystem>
int main(int count, char** words) {
  std::printf("in %s:", std::filesystem::current_path().c_str());
  for (int i = 1; i < count; ++i) std::printf(" <%s>", words[i]);
  std::puts("");
}
"""


class ScratchProject:
    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="riffle-script-")).resolve()
        self.folder.chmod(0o755)
        self.root = self.folder / "clone"
        self.root.mkdir()
        for name in ("src", "include", "cli", "cmake"):
            (self.root / name).mkdir()
        shutil.copy(ROOT / "riffle", self.root)
        shutil.copytree(ROOT / "tools", self.root / "tools")
        for name in ("CMakePresets.json", ".clang-format", ".clang-tidy", "ruff.toml"):
            shutil.copy(ROOT / name, self.root)
        self.write("CMakeLists.txt", CMAKELISTS)
        self.write("cli/main.cpp", MAIN)

    def remove(self) -> None:
        shutil.rmtree(self.folder)

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)

    def append(self, name: str, text: str) -> None:
        with (self.root / name).open("a") as file:
            file.write(text)

    def popen(self, *words: str, script: str | Path | None = None, **options) -> subprocess.Popen:
        options.setdefault("cwd", self.root)
        return subprocess.Popen(
            [script or self.root / "riffle", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def run(self, *words: str, **options) -> tuple[int, str, str]:
        return finish(self.popen(*words, **options))

    def path_of(self, *commands: str) -> dict[str, str]:
        """An environment in which only the named commands are found."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        folder.chmod(0o755)
        for command in commands:
            (folder / command).symlink_to(shutil.which(command))
        return {**os.environ, "PATH": str(folder)}

    def empty_package_database(self) -> dict[str, str]:
        """An environment in which dpkg-query, the real one, knows no package."""
        folder = self.folder / "dpkg"
        for name in ("info", "updates"):
            (folder / name).mkdir(parents=True)
        (folder / "status").touch()
        return {"DPKG_ADMINDIR": str(folder)}

    def give_to_nobody(self) -> dict:
        """Options for popen that drop root's rights; nothing to drop where there are none."""
        if os.geteuid() != 0:
            return {}
        for path in (self.root, *self.root.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def finish(process: subprocess.Popen) -> tuple[int, str, str]:
    try:
        stdout, stderr = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, stdout, stderr
