"""What ./riffle promises: set-up on first use, nothing in the way later, clear words otherwise."""

import os
import shutil
import signal
import time
import unittest
from pathlib import Path

from scratch_project import ROOT, ScratchProject, finish

BUILD_PACKAGES = (
    "g++ cmake ninja-build ccache libcli11-dev libfmt-dev nlohmann-json3-dev libucx-dev"
)
INSTALL = "apt-get update && apt-get install --yes --no-install-recommends "
# What the script itself uses before it builds, and nothing that builds or installs.
BASICS = ["bash", "env", "find", "dirname", "mkdir", "flock", "grep", "tr", "dpkg-query"]


class Script(unittest.TestCase):
    def setUp(self):
        self.project = ScratchProject()
        self.addCleanup(self.project.remove)
        self.root = self.project.root

    def expect_output(self, expected: str, *words: str, **options):
        status, stdout, stderr = self.project.run(*words, **options)
        self.assertEqual((status, stdout), (0, expected), stderr)
        return stderr

    def test_first_run_builds_and_leaves_stdout_to_the_program(self):
        stderr = self.expect_output(f"in {self.root}: <plan> <a b> <>\n", "plan", "a b", "")
        self.assertIn("configuring", stderr)
        self.assertIn("100 %", stderr)

    def test_second_run_needs_no_build_tool_and_says_nothing(self):
        self.project.run()
        only_basics = self.project.path_of("bash", "env", "find")
        stderr = self.expect_output(f"in {self.root}: <plan>\n", "plan", env=only_basics)
        self.assertEqual(stderr, "")

    def test_works_from_another_folder_and_through_a_symlink(self):
        elsewhere = self.project.folder
        self.expect_output(f"in {elsewhere}: <x>\n", "x", cwd=elsewhere)
        (elsewhere / "link").symlink_to("clone/riffle")
        self.expect_output(f"in {elsewhere}: <x>\n", "x", cwd=elsewhere, script="./link")
        on_path = {**os.environ, "PATH": f"{self.root}:{os.environ['PATH']}"}
        self.expect_output("in /: <x>\n", "riffle", "x", cwd="/", script="env", env=on_path)

    def test_changed_sources_are_built_again(self):
        self.project.run()
        main = self.root / "cli/main.cpp"
        main.write_text(main.read_text().replace("in %s", "now in %s"))
        self.expect_output(f"now in {self.root}:\n")

    @unittest.skipUnless(shutil.which("npm"), "needs npm")
    def test_the_page_of_charts_is_built_for_those_who_write_one(self):
        (self.root / "web").mkdir()
        self.project.write("web/style.css", "")
        self.project.append(
            "CMakeLists.txt",
            "set(page ${CMAKE_BINARY_DIR}/share/riffle/report_page.html)\n"
            "add_custom_command(OUTPUT ${page} DEPENDS ${CMAKE_SOURCE_DIR}/web/style.css\n"
            "  COMMAND ${CMAKE_COMMAND} -E make_directory share/riffle\n"
            "  COMMAND ${CMAKE_COMMAND} -E touch ${page})\n"
            "add_custom_target(report_page DEPENDS ${page})\n",
        )
        page = self.root / "build/release/share/riffle/report_page.html"
        for words in (["plan"], ["report", "--help"], ["plan", "--reported", "x"]):
            self.project.run(*words)
            self.assertFalse(page.exists(), words)
        for words in (["report", "race.json"], ["plan", "--report", "x"], ["plan", "--report=x"]):
            page.unlink(missing_ok=True)
            spelled = "".join(f" <{word}>" for word in words)
            stderr = self.expect_output(f"in {self.root}:{spelled}\n", *words)
            self.assertIn("report_page", stderr)
            self.assertTrue(page.exists(), words)
            self.assertEqual(self.expect_output(f"in {self.root}:{spelled}\n", *words), "")

    def test_a_failed_build_shows_the_error_and_the_log_and_recovers(self):
        main = self.root / "cli/main.cpp"
        good = main.read_text()
        main.write_text(good.replace("int count", "int cuont"))
        status, stdout, stderr = self.project.run("plan")
        self.assertEqual((status, stdout), (1, ""))
        self.assertIn("cli/main.cpp:5:23: error: ", stderr)
        log = Path(stderr.split("whole output is in ")[1].strip())
        self.assertIn("error: ", log.read_text())
        main.write_text(good)
        self.expect_output(f"in {self.root}:\n")

    def test_a_failed_configuration_shows_the_error_and_recovers(self):
        good = (self.root / "CMakeLists.txt").read_text()
        self.project.write("CMakeLists.txt", "find_package(NoSuchThing REQUIRED)\n")
        status, _, stderr = self.project.run("plan")
        self.assertEqual(status, 1)
        self.assertIn("NoSuchThing", stderr)
        self.project.write("CMakeLists.txt", good)
        self.expect_output(f"in {self.root}:\n")

    def test_two_first_runs_at_once(self):
        first, second = (self.project.popen(word) for word in ("one", "two"))
        results = [finish(first), finish(second)]
        outputs = [(status, stdout) for status, stdout, _ in results]
        self.assertEqual(outputs, [(0, f"in {self.root}: <{w}>\n") for w in ("one", "two")])
        builds = [stderr for _, _, stderr in results if "100 %" in stderr]
        self.assertEqual(len(builds), 1, "one builds, the other waits")

    def test_an_interrupted_build_goes_on_in_the_next_run(self):
        started, proceed = self.project.folder / "started", self.project.folder / "proceed"
        self.project.write(
            "wait.sh",
            f"touch {started}\n"
            f"for i in $(seq 600); do [ -e {proceed} ] && exec touch $1; sleep 0.1; done\n",
        )
        self.project.append(
            "CMakeLists.txt",
            "add_custom_command(OUTPUT waited COMMAND sh ${CMAKE_SOURCE_DIR}/wait.sh waited)\n"
            "add_custom_target(wait DEPENDS waited)\nadd_dependencies(riffle wait)\n",
        )
        process = self.project.popen("plan", start_new_session=True)
        deadline = time.monotonic() + 60
        while not started.exists():
            self.assertLess(time.monotonic(), deadline, "the build did not start")
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        status, stdout, stderr = finish(process)
        self.assertEqual((status, stdout), (130, ""), stderr)
        self.assertIn("interrupted", stderr)
        proceed.touch()
        self.expect_output(f"in {self.root}: <plan>\n", "plan")

    def test_missing_packages_are_named_in_the_line_to_run(self):
        environment = self.project.path_of(*BASICS, "apt-get")
        environment |= self.project.empty_package_database()
        dropped = self.project.give_to_nobody()
        status, stdout, stderr = self.project.run("plan", env=environment, **dropped)
        self.assertEqual((status, stdout), (1, ""))
        self.assertEqual(stderr.splitlines()[-1], INSTALL + BUILD_PACKAGES)

    def test_only_what_is_missing_is_named(self):
        environment = self.project.path_of(*BASICS) | self.project.empty_package_database()
        status_file = Path(environment["DPKG_ADMINDIR"]) / "status"
        status_file.write_text(
            "Package: cmake\nStatus: install ok installed\nVersion: 1\nArchitecture: all\n"
            "Maintainer: a\nDescription: b\n"
        )
        status, _, stderr = self.project.run("plan", env=environment)
        self.assertEqual(status, 1)
        self.assertEqual(stderr.splitlines()[-1], INSTALL + BUILD_PACKAGES.replace("cmake ", ""))

    def test_the_test_verb_names_all_its_packages_at_once(self):
        environment = self.project.path_of(*BASICS) | self.project.empty_package_database()
        status, stdout, stderr = self.project.run("test", env=environment)
        self.assertEqual((status, stdout), (1, ""))
        line = stderr.splitlines()[-1]
        self.assertTrue(line.startswith(INSTALL + BUILD_PACKAGES), line)
        for package in ("libgtest-dev", "clang-format-19", "clang-tidy-19", "clang-19"):
            self.assertIn(f" {package}", line)

    def test_unknown_options_and_presets_are_answered_with_the_known_ones(self):
        status, stdout, stderr = self.project.run("test", "--fast")
        self.assertEqual((status, stdout), (2, ""))
        self.assertEqual(
            stderr, "riffle: test: unknown option '--fast'; known: --quick --all --fresh --help\n"
        )
        for words in (["--quick", "--fresh"], ["--all", "--quick"], ["--fresh"]):
            status, stdout, stderr = self.project.run("test", *words)
            self.assertEqual((status, stdout, stderr.count("\n")), (2, "", 1), stderr)
        environment = {**os.environ, "RIFFLE_PRESET": "relaese"}
        status, stdout, stderr = self.project.run("plan", env=environment)
        self.assertEqual((status, stdout), (2, ""))
        self.assertIn("no preset 'relaese'; known: release debug", stderr)

    def borrow_python(self):
        if not (ROOT / ".venv/ready").exists():
            self.skipTest("needs the Python environment that `tools/lint python` makes")
        (self.root / ".venv").symlink_to(ROOT / ".venv")
        os.utime(
            self.root / "tools/requirements.txt", (0, 0)
        )  # it is as old as its .venv, or older

    def test_all_tests_that_were_cut_off_go_on_where_they_were(self):
        self.borrow_python()
        started, proceed, ran = (self.project.folder / name for name in ("start", "go", "ran"))
        self.project.write("good.sh", f"echo $1 >> {ran}\n")
        self.project.write(
            "slow.sh",
            f"echo $1 >> {started}\n"
            f"for i in $(seq 900); do [ -e {proceed} ] && exit; sleep 0.1; done; exit 1\n",
        )
        self.project.append(
            "CMakeLists.txt",
            "if(RIFFLE_BUILD_TESTS)\n  enable_testing()\n"
            "  foreach(name one two)\n"
            "    add_test(NAME ${name} COMMAND sh ${CMAKE_SOURCE_DIR}/good.sh ${name})\n"
            "  endforeach()\n"
            "  add_test(NAME slow COMMAND sh ${CMAKE_SOURCE_DIR}/slow.sh)\n"
            '  set_tests_properties(slow PROPERTIES DEPENDS "one;two")\nendif()\n',
        )
        process = self.project.popen("test", "--all", start_new_session=True)
        deadline = time.monotonic() + 100
        while not started.exists():
            self.assertLess(time.monotonic(), deadline, "the tests did not start")
            self.assertIsNone(process.poll(), "ended early")
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        _, stdout, stderr = finish(process)
        self.assertIn("11 of 11 stages left", stdout, stderr)
        self.assertEqual(sorted(ran.read_text().split()), ["one", "two"])

        proceed.touch()
        status, stdout, stderr = self.project.run("test", "--all")
        lines = stdout.splitlines()
        self.assertEqual(status, 0, stdout + stderr)
        self.assertRegex(lines[0], "lint format .* passed earlier")
        self.assertRegex(stdout, "build release .* left\n")  # what lies there may be older
        self.assertRegex(stdout, "tests release .* left, but for 2 tests that passed earlier\n")
        self.assertIn("8 of 11 stages left", stdout)
        self.assertRegex(stdout, "ok +tests release .* 3 passed, 0 failed, 0 skipped; 2 of them")
        # In the other two presets they ran for the first time.
        self.assertEqual(sorted(ran.read_text().split()), ["one"] * 3 + ["two"] * 3)
        self.assertEqual(lines[-2], "5 of these passed in earlier runs, of the same sources")
        self.assertEqual(lines[-1], "17 passed, 0 failed")

        status, stdout, stderr = self.project.run("test", "--all")
        self.assertIn("0 of 11 stages left", stdout)
        self.assertEqual((status, stdout.splitlines()[-1]), (0, "17 passed, 0 failed"), stderr)
        self.assertEqual(len(ran.read_text().split()), 6)

        records = self.root / "build/test/passed"
        shutil.copytree(records, self.project.folder / "kept")
        self.assertIn("11 of 11 stages left", self.plan_of("--all", "--fresh"))
        shutil.rmtree(records)
        shutil.copytree(self.project.folder / "kept", records)
        self.assertIn("0 of 11 stages left", self.plan_of("--all"))
        self.project.write("cli/new.h", "#pragma once\n")
        self.assertIn("11 of 11 stages left", self.plan_of("--all"))

    def plan_of(self, *words: str) -> str:
        """What is said first; the run is then cut off."""
        process = self.project.popen("test", *words, start_new_session=True)
        lines = []
        while not lines or "stages left" not in lines[-1]:
            lines.append(process.stdout.readline())
            self.assertTrue(lines[-1], "ended early")
        os.killpg(process.pid, signal.SIGKILL)
        finish(process)
        return lines[-1]

    def test_the_test_verb_sums_up_and_says_how_to_repeat_what_failed(self):
        self.borrow_python()
        self.project.append(
            "CMakeLists.txt",
            "if(RIFFLE_BUILD_TESTS)\n  enable_testing()\n"
            "  add_test(NAME good COMMAND true)\n  add_test(NAME bad COMMAND false)\n"
            '  add_test(NAME none COMMAND sh -c "exit 77")\n'
            "  set_tests_properties(none PROPERTIES SKIP_RETURN_CODE 77)\n"
            "  set_tests_properties(good bad none PROPERTIES LABELS unit)\n"
            "  add_test(NAME slow COMMAND false)\nendif()\n",
        )
        status, stdout, stderr = self.project.run("test", "--quick")
        lines = stdout.splitlines()
        # lint format, shell, python and the build pass too.
        self.assertEqual((status, lines[-1]), (1, "5 passed, 1 failed, 1 skipped"), stdout + stderr)
        self.assertIn("alone: ctest --preset release --rerun-failed", lines[-2])

    def test_what_failed_beside_others_is_tried_once_more_and_named(self):
        self.borrow_python()
        seen = self.project.folder / "seen"
        self.project.write("late.sh", f"[ -e {seen} ] || {{ touch {seen}; exit 1; }}\n")
        self.project.append(
            "CMakeLists.txt",
            "if(RIFFLE_BUILD_TESTS)\n  enable_testing()\n  add_test(NAME good COMMAND true)\n"
            "  add_test(NAME late COMMAND sh ${CMAKE_SOURCE_DIR}/late.sh)\n"
            "  set_tests_properties(good late PROPERTIES LABELS unit)\nendif()\n",
        )
        status, stdout, stderr = self.project.run("test", "--quick")
        lines = stdout.splitlines()
        self.assertEqual((status, lines[-1]), (0, "6 passed, 0 failed"), stdout + stderr)
        self.assertIn("2 passed, 0 failed, 0 skipped; only on a second try, alone: late", lines[-2])


if __name__ == "__main__":
    unittest.main()
