"""Adding a strategy is one file, one line, one test: done here, in a copy of the project.

The copy and its build stay in the build folder, so that only the first run compiles everything.
"""

import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRATCH = Path(os.environ.get("RIFFLE_SCRATCH", ROOT / "build" / "scratch"))
BIN = SCRATCH / "build" / "release" / "bin"
TESTS = ["strategies_test", "strategy_conformance_test", "simulate_test", "runtime_test"]
FOREIGN = {"build", ".git", ".venv", ".cache", "__pycache__"}

FILE = """\
// Neighbours: pairs of neighbours average their weights; the pairs shift by one place every step.
// No paper. Cost per step: one exchange with one peer.
#include "strategies/builtin.h"

namespace riffle::strategies {
namespace {

class Neighbours : public Strategy {
 public:
  explicit Neighbours(bool odd) : odd_(odd) {}

  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& /*cost*/,
                                   const World& /*world*/) const override {
    return bucket_per_layer(trace);
  }
  [[nodiscard]] Program program(Step step, const World& world,
                                const BucketPlan& buckets) const override {
    const std::vector<Rank>& ranks = world.ranks().ranks();
    const std::size_t first = static_cast<std::size_t>((step + (odd_ ? 1 : 0)) % 2);
    Program program;
    for (const Bucket& bucket : buckets)
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        const bool leads = i % 2 == first && i + 1 < ranks.size();
        const bool follows = i % 2 != first && i > 0;
        if (follows) continue;
        program.add({.bucket = bucket.id,
                     .payload = Payload::weight,
                     .group = leads ? Group{ranks[i], ranks[i + 1]} : Group{ranks[i]},
                     .start = Start::bucket_stepped,
                     .due = before_forward()});
      }
    return program;
  }
  [[nodiscard]] Traits traits(const World& /*world*/) const override {
    return {.period = 2, .mixed = Payload::weight};
  }

 private:
  bool odd_;
};

}  // namespace

StrategyInfo neighbours() {
  return {.name = "neighbours",
          .summary = "pairs of neighbours average weights",
          .options = {{"first", "even|odd", "which ranks look to the right in step 0"}},
          .make = [](const Options& options) {
            return std::make_unique<Neighbours>(options.choice("first") == "odd");
          }};
}

}  // namespace riffle::strategies
"""
TEST = """\
#include <gtest/gtest.h>

#include "support/programs.h"

namespace riffle::test {
namespace {

TEST(Neighbours, PairsShiftByOnePlace) {
  EXPECT_EQ(groups("neighbours", 0, flat(5)), "{0 1} {2 3} {4}");
  EXPECT_EQ(groups("neighbours", 1, flat(5)), "{0} {1 2} {3 4}");
  EXPECT_EQ(groups("neighbours:first=odd", 0, flat(5)), "{0} {1 2} {3 4}");
}

}  // namespace
}  // namespace riffle::test
"""


def project() -> dict[Path, bytes]:
    """The files of the project and the three changes, by their paths."""
    files = {}
    for folder, below, names in os.walk(ROOT):
        below[:] = [name for name in below if name not in FOREIGN]
        for name in names:
            path = Path(folder) / name
            if path.is_file() and name not in FOREIGN:
                files[path.relative_to(ROOT)] = path.read_bytes()
    line = Path("src/strategies/builtin.h")
    files[line] = files[line].replace(b"  X(bsp) ", b"  X(neighbours) \\\n  X(bsp) ", 1)
    files[Path("src/strategies/neighbours.cpp")] = FILE.encode()
    files[Path("tests/strategies/neighbours_test.cpp")] = TEST.encode()
    return files


def write(files: dict[Path, bytes]) -> None:
    """What has not changed keeps its time, so that it is not compiled again."""
    for path, content in files.items():
        target = SCRATCH / path
        if target.is_file() and target.read_bytes() == content:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod((ROOT / path).stat().st_mode if (ROOT / path).exists() else 0o644)
    for folder, below, names in os.walk(SCRATCH):
        below[:] = [name for name in below if name not in FOREIGN]
        for name in names:
            if (Path(folder) / name).relative_to(SCRATCH) not in files:
                (Path(folder) / name).unlink()


def run(*words: object) -> str:
    """What a command prints; a failure shows all of it."""
    done = subprocess.run(
        [str(word) for word in words], cwd=SCRATCH, capture_output=True, text=True, timeout=3000
    )
    if done.returncode != 0:
        raise AssertionError(f"{words}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def ask(*words: str) -> dict:
    """What the command of the copy answers."""
    return json.loads(run(BIN / "riffle", *words, "--format", "json"))


class AddStrategy(unittest.TestCase):
    def test_one_file_one_line_one_test(self):
        write(project())
        without = [f"-DRIFFLE_BUILD_{what}=OFF" for what in ("BENCH", "PYTHON")]
        run("cmake", "--preset", "release", *without)
        run("ninja", "-C", "build/release", "-j", os.cpu_count(), "riffle", *TESTS)
        with self.subTest("its own test and those that every strategy gets"):
            self.passes("strategies_test", "Neighbours.*", 1)
            self.passes("strategy_conformance_test", "*neighbours*", 20)
            self.passes("simulate_test", "*EveryStrategy*neighbours*", 4)
            self.passes("runtime_test", "*Resumed*neighbours*", 1)
            self.passes("runtime_test", "*Strategies.PerBucket/Mixing4", 1)
        with self.subTest("the command"):
            self.the_command_knows_it()
        with self.subTest("the pages"):
            self.the_pages_are_made()

    def passes(self, program: str, which: str, at_least: int) -> None:
        text = run(BIN / program, f"--gtest_filter={which}")
        count = re.search(r"\[  PASSED  \] (\d+) test", text)
        self.assertGreaterEqual(int(count[1]), at_least, f"{program} {which}")

    def the_command_knows_it(self) -> None:
        listed = {each["name"]: each for each in ask("strategies")["strategies"]}
        self.assertEqual(listed["neighbours"]["options"][0]["values"], "even|odd")
        cluster = ["--cluster", "flat:8,latency=1ms,bandwidth=1Gbps"]
        tried = {each["spec"] for each in ask("plan", *cluster)["candidates"]}
        self.assertLessEqual({"neighbours", "neighbours:first=odd"}, tried)
        self.assertGreater(len(tried), len(listed))
        simulated = ask("simulate", "--strategy", "neighbours", *cluster)
        self.assertEqual(simulated["strategy"], "neighbours")
        proof = ask("verify", "neighbours", "--workers", "9")
        self.assertEqual((proof["ok"], proof["mean_preserved"], proof["period"]), (True, True, 2))
        sent = ask("strategies", "--traffic")["traffic"]
        (row,) = [each for each in sent if each["strategy"] == "neighbours"]
        # Of 16 workers 16 and 14 have a neighbour, by turns; who has one sends the model once.
        self.assertAlmostEqual(row["bytes_counted"], 15 / 16)
        text = run(BIN / "riffle", "explain", "neighbours", *cluster)
        self.assertIn("0-2  A A B", text)
        self.assertNotIn("PROBLEM", text)

    def the_pages_are_made(self) -> None:
        pages = [sys.executable, "tools/strategy_pages.py", BIN / "riffle"]
        run(*pages, "--write")
        run(*pages)
        page = (SCRATCH / "docs/strategies/neighbours.md").read_text()
        self.assertIn("| `first` | even, odd |", page)
        self.assertIn("(strategies/neighbours.md)", (SCRATCH / "docs/strategies.md").read_text())


if __name__ == "__main__":
    unittest.main()
